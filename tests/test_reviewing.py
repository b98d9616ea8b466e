"""The cost review from what the store knows by itself, and the settings that it proposes."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import request, response, results, turn, user

from zero_mem import MemoryController, ZeroMemRuntime
from zero_mem.conversation.reviewing import review
from zero_mem.policy.cost_review import KindReview
from zero_mem.policy.limits import configured
from zero_mem.policy.proposals import proposed
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock
from zero_mem.text.tokens import tokenizer

pytestmark = pytest.mark.req("policy:cost-review")

COUNT = tokenizer("o200k")
RULE = "Prefers quiet hotels near the station. " * 8 + "Loyalty number: ZX-4417"


def talk(space: Namespace, clock: FakeClock, *replies: str, conversation: str = "c") -> None:
    """Hold a conversation that is recorded as it happens; "" is a reply that nobody recorded."""
    runtime = ZeroMemRuntime(space, conversation=conversation)
    messages: list[dict[str, Any]] = []
    for reply in replies:
        messages.append({"role": "user", "content": "go on"})
        runtime.on_message("user", "go on")
        clock.advance(1)
        runtime.build_prompt(messages)
        clock.advance(1)
        if reply:
            runtime.on_message("assistant", reply)
        messages.append({"role": "assistant", "content": reply})
        clock.advance(1)


def test_a_recorded_conversation_is_reviewed_as_its_host_would(
    space: Namespace, clock: FakeClock
) -> None:
    space.save(RULE, form="procedural", kind="rule", memory_id="r")
    talk(space, clock, *["ok"] * 9, "Booked with ZX-4417.")
    found = review(space)
    (kind,) = found.kinds
    assert (kind.kind, kind.visibility, kind.used, kind.uses) == ("rule", "pinned", 1, 1)
    assert kind.tokens == 10 * COUNT.count(f"[memo:r] rule: {RULE}\n")
    assert (found.reviewed, found.unknown, found.prompts) == (("c",), (), 10)
    (proposal,) = found.proposals
    assert (proposal.kind, proposal.before, proposal.after) == ("rule", "pinned", "handle")
    assert 0 < proposal.saving < proposal.tokens == kind.tokens


def test_what_nobody_was_seen_to_use_is_never_proposed_to_be_hidden(
    space: Namespace, clock: FakeClock
) -> None:
    space.save(RULE, form="procedural", kind="rule", memory_id="r")
    talk(space, clock, *["ok"] * 3)
    (proposal,) = review(space).proposals
    assert proposal.after == "handle"


def test_a_conversation_whose_replies_were_not_recorded_tells_nothing(
    space: Namespace, clock: FakeClock
) -> None:
    space.save(RULE, form="procedural", kind="rule", memory_id="r")
    talk(space, clock, "ok", "", "ok", conversation="gap")
    talk(space, clock, "ok", "ok", "", conversation="waiting")
    found = review(space)
    assert (found.reviewed, found.unknown, found.prompts) == (("waiting",), ("gap",), 2)


def test_what_was_found_or_required_is_not_the_settings_doing(
    space: Namespace, clock: FakeClock
) -> None:
    space.save(RULE, kind="note", memory_id="n")
    runtime = ZeroMemRuntime(space, conversation="c")
    clock.advance(1)
    runtime.build_prompt([{"role": "user", "content": "hi"}], require=["n"])
    clock.advance(1)
    runtime.on_message("assistant", "ok")
    assert (review(space).kinds, review(space).reviewed) == ((), ("c",))


def test_values_that_a_controller_passed_by_reference_are_uses(
    space: Namespace, clock: FakeClock
) -> None:
    space.save("Loyalty number: ZX-4417", form="procedural", kind="rule", memory_id="r")
    subject = MemoryController(space, conversation="c", inject=0)
    items: list[Any] = [user("Book it.")]
    clock.advance(1)
    subject.prepare(request("anthropic", *items), "anthropic")
    written = turn("anthropic", c1=("book", {"with": "[memo:r]"}))
    subject.absorb(response("anthropic", written), "anthropic")
    items += [turn("anthropic", c1=("book", {"with": "ZX-4417"})), results("anthropic", c1="done")]
    clock.advance(1)
    subject.prepare(request("anthropic", *items), "anthropic")
    (kind,) = review(space).kinds
    assert (kind.used, kind.uses, review(space).prompts) == (1, 1, 1)


def measured(kind: str = "rule", visibility: Any = "pinned", **costs: int) -> KindReview:
    return KindReview(
        kind=kind,
        visibility=visibility,
        shown=1,
        used=1,
        uses=1,
        tokens=costs[visibility],
        by_policy=costs,  # type: ignore[arg-type]
    )


def test_a_proposal_is_what_configure_takes_and_then_there_is_none(space: Namespace) -> None:
    settings = configured("", {"visibility": "summary"}, form=None, kind="pref")
    reviews = [
        measured(pinned=1000, summary=400, handle=90),
        measured("pref", "summary", pinned=300, summary=100, handle=60),
    ]
    first, second = proposed(settings, reviews)
    assert [(p.kind, p.after, p.saving) for p in (first, second)] == [
        ("rule", "handle", 910),
        ("pref", "handle", 40),
    ]
    space.configure(**second.settings)
    assert space.limits("semantic", "pref").visibility == "handle"
    assert proposed(space.settings(), [reviews[1]]) == []


def test_little_savings_and_kinds_that_were_shown_in_two_ways_are_left_alone() -> None:
    little = measured(pinned=1000, summary=950)
    assert proposed("", [little]) == []
    assert len(proposed("", [little], least=0.01)) == 1
    twice = [measured(pinned=1000, handle=90), measured(visibility="summary", summary=1, handle=0)]
    assert proposed("", twice) == []
