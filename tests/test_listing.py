"""Which conversations there are, newest first, and what each took."""

from __future__ import annotations

from typing import Any

import pytest
from console_talks import SPACE, talked
from conversations import request, response, turn, user

from zero_mem import Memory, MemoryController, ZeroMemRuntime
from zero_mem.access import Grant
from zero_mem.console.pages.conversations import with_proxys
from zero_mem.controller.rounds import Answered, Hidden, Piece
from zero_mem.conversation.listing import conversations, detailed
from zero_mem.conversation.reviewing import review
from zero_mem.conversation.timeline import timeline
from zero_mem.ledger.columns import CallTokens
from zero_mem.ledger.entries import Account, LedgerEntry
from zero_mem.ledger.reading import OF_ALL, key_of
from zero_mem.ledger.sides import Side
from zero_mem.ledger.stored import written
from zero_mem.proxy.identity import digest
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock

pytestmark = pytest.mark.req("inspect:prompt")


def build(space: Namespace, conversation: str) -> None:
    ZeroMemRuntime(space, conversation=conversation).build_prompt(
        [{"role": "user", "content": "hi"}]
    )


def enter(space: Namespace, conversation: str, last: float) -> None:
    """Enter calls as a proxy does."""
    account = Account(calls=2, requests=2, paid=Side(tokens=CallTokens(conversation=70)))
    entry = LedgerEntry(conversation=conversation, account=account, last=last)
    space.decide(OF_ALL, key_of(conversation, "p", last), written(entry))


def test_conversations_of_all_namespaces_come_newest_first(
    memory: Memory, clock: FakeClock
) -> None:
    for place, name in ((("a",), "first"), (("a", "b"), "second"), (("c",), "third")):
        clock.advance(60)
        build(memory.namespace(*place), name)
    clock.advance(60)
    build(memory.namespace("a"), "first")
    assert [(one.namespace, one.name) for one in conversations(memory)] == [
        (("a",), "first"),
        (("c",), "third"),
        (("a", "b"), "second"),
    ]
    assert [one.name for one in conversations(memory, ("a",))] == ["first", "second"]
    assert conversations(memory)[0].last == memory.now()


def test_a_conversation_tells_its_prompts_results_claims_and_columns(
    space: Namespace, clock: FakeClock
) -> None:
    talked(space.memory, clock)
    rows = {one.name: detailed(space.memory, one) for one in conversations(space.memory, SPACE)}
    order, trip = rows["order-57"], rows["trip-to-bern"]
    assert (order.prompts, order.results, order.phantoms) == (1, 1, 1)
    assert (trip.prompts, trip.results, trip.phantoms) == (3, 0, 0)
    assert trip.entry is None
    assert order.entry is not None
    assert order.entry.account.calls == 1
    assert order.entry.columns.prompt == 2600
    assert order.entry.columns.memory_reads > 0


def test_what_a_proxy_entered_joins_the_conversation_it_is_about(
    memory: Memory, clock: FakeClock
) -> None:
    root, tenant = memory.namespace("proxy"), "t1"
    build(memory.namespace("proxy", tenant, "named"), "named")
    build(memory.namespace("proxy", tenant), "shared")
    enter(root, digest(tenant, "named"), 1_800_000_000.0)
    enter(root, digest(tenant, "shared"), 1_700_000_000.0)
    enter(root, digest(tenant, "observed"), 1_600_000_000.0)
    rows = with_proxys(memory, conversations(memory))
    assert {(one.namespace, one.name, one.entry is not None) for one in rows} == {
        (("proxy", tenant, "named"), "named", True),
        (("proxy", tenant), "shared", True),
        (("proxy",), digest(tenant, "observed"), True),
    }


def test_a_key_lists_only_what_it_may_read(memory: Memory) -> None:
    build(memory.namespace("a"), "ours")
    build(memory.namespace("b"), "theirs")
    made = memory.keyring.create("app", [Grant.parse("read:a/**")])
    view = memory.guarded(made.credential)
    assert [one.name for one in conversations(view)] == ["ours"]
    assert timeline(view.namespace("a"), "ours").prompts
    assert review(view.namespace("a")).unknown == ("ours",)


def seen(memory: Memory, clock: FakeClock) -> tuple[Any, ...]:
    """Give what the readers tell of a store that was filled alike."""
    talked(memory, clock, "7 left")
    space = memory.namespace(*SPACE)
    listed = [
        (one.name, one.last, one.entry and one.entry.columns) for one in conversations(memory)
    ]
    found = [timeline(space, name) for name, *_ in listed]
    events = [[[r.event for r in p.replies] for p in one.prompts] for one in found]
    tokens = [[(p.at, p.new, p.carried) for p in one.prompts] for one in found]
    return listed, events, tokens, review(space).kinds


def test_postgresql_keeps_the_order_of_what_was_decided(postgres_url: str) -> None:
    one, other = FakeClock(), FakeClock()
    with (
        Memory.open("memory://", clock=one) as plain,
        Memory.open(postgres_url, clock=other, durability="normal") as there,
    ):
        assert seen(there, other) == seen(plain, one)


def test_what_a_hidden_round_answered_is_told_once(space: Namespace) -> None:
    kept = space.save("Her train leaves at 9:14.", memory_id="n").memory_id
    subject = MemoryController(space, conversation="c", inject=0)
    asked = request("openai_responses", user("hi"))
    subject.prepare(asked, "openai_responses")
    answer = response("openai_responses", turn("openai_responses", "at 9:14")) | {"id": "resp_1"}
    round_ = Answered(
        turn=({"type": "function_call", "call_id": "m1", "name": "memory_read"},),
        pieces={"m1": [Piece(text="[memo:n] at 9:14", memory_id=kept)]},
    )
    subject.hide(asked, answer, Hidden(before=(round_,)), "openai_responses")
    (prompt,) = timeline(space, "c").prompts
    (reply,) = prompt.replies
    assert (reply.event, reply.memory_ids) == ("answer", ("n",))
    assert reply.written == "[memo:n] at 9:14"
    assert reply.tokens > 0
    space.purge("n")
    (reply,) = timeline(space, "c").prompts[0].replies
    assert "9:14" not in reply.written
