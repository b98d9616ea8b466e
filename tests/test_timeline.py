"""A conversation prompt by prompt: what memory put in, why, and what became of it."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import (
    BODY,
    FORMATS,
    request,
    response,
    result_texts,
    results,
    turn,
    user,
)

from zero_mem import Memory, MemoryController, ZeroMemRuntime
from zero_mem.controller.messages import WireFormat
from zero_mem.conversation.timeline import timeline
from zero_mem.errors import NotFound
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock

pytestmark = pytest.mark.req("inspect:prompt")
each_format = pytest.mark.parametrize("wire_format", FORMATS)


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def test_each_prompt_of_a_runtime_shows_what_is_new_in_it_and_why(
    space: Namespace, clock: FakeClock
) -> None:
    space.save("Never wake the customer.", form="procedural", kind="rule", memory_id="r")
    space.save("order W-991 is open", kind="task_state", memory_id="t")
    runtime = ZeroMemRuntime(space, conversation="c")
    messages = [said("user", "hi")]
    runtime.build_prompt(messages)
    clock.advance(60)
    messages += [said("assistant", "ok"), said("user", "and?")]
    runtime.build_prompt(messages, require=["t"])

    found = timeline(space, "c")

    first, second = found.prompts
    assert (second.at - first.at).total_seconds() == 60  # type: ignore[operator]
    assert [first.messages, second.messages] == [1, 3]
    (block,) = first.entries
    assert [(line.span.reason, line.span.memory_id) for line in block.lines] == [
        ("fence", None),
        ("pinned", "r"),
        ("fence", None),
    ]
    assert "Never wake the customer." in block.lines[1].span.text
    assert (first.carried, second.carried) == (0, block.tokens)
    assert [line.span.memory_id for line in second.entries[0].lines] == [None, "t", None]
    assert found.by_reason["required"] == second.entries[0].lines[1].span.tokens
    assert sum(found.by_reason.values()) == first.new + second.new


def test_the_tokens_are_those_of_the_prompt_that_was_sent(space: Namespace) -> None:
    space.save("Never wake the customer.", form="procedural", kind="rule", memory_id="r")
    runtime = ZeroMemRuntime(space, conversation="c")
    messages = [said("user", "hi")]
    runtime.build_prompt(messages)
    memorys = [span for span in runtime.inspect(0, messages) if not span.reason.startswith("host")]
    (prompt,) = timeline(space, "c").prompts
    assert [line.span for line in prompt.entries[0].lines] == memorys


def test_a_superseded_line_names_the_prompt_that_took_its_place(space: Namespace) -> None:
    space.save("Closes at 5.", form="procedural", kind="rule", memory_id="r")
    runtime = ZeroMemRuntime(space, conversation="c")
    messages = [said("user", "hi")]
    runtime.build_prompt(messages)
    space.update("r", content="Closes at 6.")
    messages += [said("assistant", "ok"), said("user", "and?")]
    runtime.build_prompt(messages)
    first, second = timeline(space, "c").prompts
    (old, new) = (prompt.entries[0].lines[1] for prompt in (first, second))
    assert (old.superseded_by, old.supersedes) == (1, False)
    assert (new.superseded_by, new.supersedes) == (None, True)
    assert (old.span.version, new.span.version) == (1, 2)
    assert "Closes at 5." in old.span.text


def test_a_purged_memory_leaves_its_mark_and_nothing_else(space: Namespace) -> None:
    space.save("Her number is 555-0199.", form="procedural", kind="rule", memory_id="r")
    ZeroMemRuntime(space, conversation="c").build_prompt([said("user", "hi")])
    space.purge("r")
    found = timeline(space, "c")
    line = found.prompts[0].entries[0].lines[1]
    assert (line.purged, line.span.text) == (True, "[memo:r] purged")
    assert "0199" not in repr(found)


@each_format
def test_a_controllers_prompt_shows_what_stands_for_each_result(
    space: Namespace, clock: FakeClock, wire_format: WireFormat
) -> None:
    subject = MemoryController(space, conversation="c", share=0.1, inject=0)
    items = user_and_call(wire_format)
    subject.prepare(request(wire_format, *items), wire_format)
    clock.advance(5)
    items += [turn(wire_format, c2=("stock", {})), results(wire_format, c2="7 left")]
    sent = subject.prepare(request(wire_format, *items), wire_format)

    first, second = timeline(space, "c").prompts

    (offloaded,) = first.entries
    assert (offloaded.place, offloaded.tool, offloaded.whole > 500) == ("result", "orders", True)
    assert offloaded.lines[0].span.reason == "receipt"
    assert 0 < offloaded.tokens < offloaded.whole
    assert "".join(line.span.text for line in offloaded.lines) in result_texts(
        dict(sent), wire_format
    )
    (short,) = second.entries
    assert (short.tool, short.lines[0].span.text, short.tokens) == ("stock", "7 left", short.whole)
    assert second.carried == offloaded.tokens
    assert (second.at - first.at).total_seconds() == 5  # type: ignore[operator]


def user_and_call(wire_format: WireFormat) -> list[Any]:
    return [
        user("Which orders are late?"),
        turn(wire_format, c1=("orders", {})),
        results(wire_format, c1=BODY),
    ]


@each_format
def test_a_reply_tells_what_was_passed_and_what_was_claimed_unread(
    space: Namespace, wire_format: WireFormat
) -> None:
    subject = MemoryController(space, conversation="c", share=0.1, inject=0)
    subject.prepare(request(wire_format, *user_and_call(wire_format)), wire_format)
    (memory_id,) = (entry.memory_id for entry in timeline(space, "c").prompts[0].entries)
    handle = f"[memo:{memory_id}]"
    subject.absorb(
        response(wire_format, turn(wire_format, f"According to {handle} nothing is late.")),
        wire_format,
    )
    subject.absorb(
        response(wire_format, turn(wire_format, c3=("mail", {"text": handle}))), wire_format
    )
    (prompt,) = timeline(space, "c").prompts
    (claim,) = (reply for reply in prompt.replies if reply.event == "claim")
    assert claim.memory_ids == (memory_id,)
    (passed,) = (reply for reply in prompt.replies if reply.tool == "mail")
    assert (passed.event, passed.memory_ids) == ("passed", (memory_id,))
    assert handle in passed.written
    assert handle not in passed.executed
    assert timeline(space, "c").phantoms == 1


def test_reads_by_a_tool_belong_to_the_prompt_that_was_answered(space: Namespace) -> None:
    space.save("Never wake the customer.", form="procedural", kind="rule", memory_id="r")
    kept = space.save("Her train leaves at 9:14.", memory_id="n").memory_id
    subject = MemoryController(space, conversation="c", inject=0)
    subject.prepare(request("anthropic", user("hi")), "anthropic")
    subject.show(kept)
    subject.run_memory_call("memory_read", {"id": kept})
    subject.prepare(
        request("anthropic", user("hi"), turn("anthropic", "yes"), user("go on")), "anthropic"
    )
    first, second = timeline(space, "c").prompts
    assert [(r.event, r.memory_ids) for r in first.replies] == [("read", ("n",))]
    assert second.replies == ()


def test_a_conversation_that_nobody_had_is_not_found(memory: Memory) -> None:
    with pytest.raises(NotFound, match="no conversation 'x' in acme/alice"):
        timeline(memory.namespace("acme", "alice"), "x")


def test_stores_that_noted_no_time_are_read(space: Namespace) -> None:
    space.decide("controller:old", "sent:d1", "0")
    space.decide("turn:old", "0", '{"messages": 1, "digest": "d1", "blocks": []}')
    (prompt,) = timeline(space, "old").prompts
    assert (prompt.at, prompt.messages, prompt.entries) == (None, 1, ())
