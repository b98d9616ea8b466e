"""Every ledger of a namespace in one form, read and summed up in one place."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from clocks import Clock
from conversations import BODY, request, results, turn, user
from hypothesis import given
from hypothesis import strategies as st

from zero_mem import Memory, MemoryController
from zero_mem.ledger import Account, LedgerEntry, overview
from zero_mem.ledger.columns import PROMPT_COLUMNS, CacheState, CallTokens
from zero_mem.ledger.prices import DEFAULT_TABLE, Cost
from zero_mem.ledger.reading import summed_up
from zero_mem.ledger.sides import Side
from zero_mem.ledger.stored import read, written
from zero_mem.space import Namespace

pytestmark = pytest.mark.req("ledger:columns")

CALL = {"input_tokens": 1000, "output_tokens": 50}


def called(space: Namespace, conversation: str, *, mode: Any = "offload") -> LedgerEntry:
    subject = MemoryController(space, conversation=conversation, share=0.1, mode=mode)
    asked = [turn("anthropic", "wait", c1=("orders", {})), results("anthropic", c1=BODY)]
    given = request("anthropic", user("Which are late?"), *asked, model="claude-sonnet-5-5")
    sent = subject.prepare(given, "anthropic")
    return subject.account(sent, "anthropic", usage=CALL, given=given)


def test_a_namespace_is_summed_up_by_conversation_and_by_day() -> None:
    clock = Clock(datetime(2026, 11, 28, 12, tzinfo=UTC))
    with Memory.open("memory://", clock=clock) as memory:
        space = memory.namespace("a")
        first = called(space, "one")
        clock.now += timedelta(days=1)
        called(space, "two", mode="observe")
        again = called(space, "one")
        found = overview(space)
    assert [entry.conversation for entry in found.conversations] == ["one", "two"]
    assert list(found.days) == ["2026-11-28", "2026-11-29"]
    assert [account.calls for account in found.days.values()] == [1, 2]
    assert found.total.paid.tokens.prompt == 3000
    assert found.total.paid.tokens.memory_receipts > 0
    assert found.total.kept_out == first.account.kept_out + again.account.kept_out > 0
    one, two = found.conversations
    assert one.account.kept_out == found.total.kept_out
    assert (two.account.kept_out, two.account.saved) == (0, 0)
    assert found.total.saved > 0
    assert found.total.saved == pytest.approx(one.account.saved)
    price = DEFAULT_TABLE.price("Sonnet 5.5")
    assert two.cost() == Cost(fresh=1000 * price.input / 1e6, output=50 * price.output / 1e6)
    written_out = json.loads(json.dumps(found.as_dict()))
    assert written_out["total"]["kept_out"] == found.total.kept_out
    assert written_out["conversations"][0]["conversation"] == "one"


def test_a_rehearsal_is_never_taken_for_what_was_saved() -> None:
    def side(tokens: int) -> Side:
        state = CacheState(fresh=tokens)
        return Side(tokens=CallTokens(tool_results=tokens), state=state)

    observed = Account(calls=1, paid=side(900), offloaded=side(100))
    offloaded = Account(calls=1, paid=side(100), without=side(800))
    both = observed + offloaded
    assert (observed.kept_out, offloaded.kept_out, both.kept_out) == (0, 700, 700)
    assert both.other_way("observe") == side(200)
    assert both.other_way("offload") == side(1700)


PROXYS = {
    "began": 1_795_900_000.5,
    "calls": 2,
    "requests": 3,
    "estimated": 1,
    "unpriced": 0,
    "paid": {
        "tokens": {
            "system": 10, "tool_definitions": 20, "our_definitions": 30, "conversation": 40,
            "tool_control": 5, "tool_results": 6, "memory_receipts": 7, "memory_reads": 8,
            "output": 9, "prompt": 126,
        },
        "cache": {"read": 100, "write": 20, "fresh": 6},
        "cost": {"read": 0.25, "write": 0.5, "fresh": 0.125, "output": 0.0, "total": 0.875},
    },
    "other": {
        "tokens": {"tool_results": 500, "output": 9, "prompt": 500},
        "cache": {"read": 400, "write": 100, "fresh": 0},
        "cost": {"read": 1.0, "write": 1.0, "fresh": 0.0, "output": 0.0, "total": 2.0},
    },
    "origin": "named",
    "mode": "offload",
    "wire_format": "anthropic",
    "model": "claude-sonnet-5-5",
    "receipts": ["[memo:1] save +399"],
    "last": 1_795_990_000.0,
}  # fmt: skip
CALLS = ["Sonnet 5.5", [10, 0, 0, 90, 0, 0, 0, 0, 50], 80, [60, 10, 30], True, 400]


def test_what_older_versions_stored_is_read_alike(space: Namespace) -> None:
    space.decide("proxy.ledger", "c0ffee:0123456789ab", json.dumps(PROXYS))
    observed = {**PROXYS, "mode": "observe"}
    space.decide("proxy.ledger", "c0ffee:ba9876543210", json.dumps(observed))
    space.decide("ledger:order:57", "00ff", json.dumps(CALLS))
    space.decide("ledger:order:57", "00fe", json.dumps([*CALLS[:-1], None]))
    found = {entry.conversation: entry for entry in overview(space).conversations}
    proxied, called = found["c0ffee"], found["order:57"]
    assert (proxied.account.calls, proxied.account.requests, proxied.account.estimated) == (4, 6, 2)
    assert proxied.account.kept_out == 500 - 126
    assert proxied.account.saved == 1.125
    assert proxied.receipts == ("[memo:1] save +399",)
    assert (called.account.calls, called.counted, called.columns.prompt) == (2, 160, 200)
    assert called.account.kept_out == 300
    price = DEFAULT_TABLE.price("Sonnet 5.5")
    assert called.account.saved == pytest.approx(
        (180 * price.read + 30 * (price.write or 0) + 90 * price.input) / 1e6
    )
    assert overview(space).days[""].calls == 2


def test_a_model_without_a_price_is_in_no_cost(space: Namespace) -> None:
    space.decide("ledger:c", "00ff", json.dumps(["no-such", *CALLS[1:]]))
    (entry,) = overview(space).conversations
    assert (entry.account.unpriced, entry.account.paid.cost, entry.account.saved) == (1, None, 0)


figures = st.integers(min_value=0, max_value=10**9)
sides = st.builds(
    Side,
    tokens=st.builds(CallTokens, **dict.fromkeys((*PROMPT_COLUMNS, "output"), figures)),
    state=st.builds(CacheState, read=figures, write=figures, fresh=figures),
    cost=st.none() | st.builds(Cost, read=st.floats(0, 1e6), output=st.floats(0, 1e6)),
)
accounts = st.builds(
    Account,
    **dict.fromkeys(("calls", "requests", "estimated", "unpriced", "counted"), figures),
    paid=sides,
    without=st.none() | sides,
    offloaded=st.none() | sides,
)
entries = st.builds(
    LedgerEntry,
    conversation=st.just("c"),
    account=accounts,
    model=st.text(),
    mode=st.sampled_from(["observe", "offload"]),
    began=st.floats(0, 1e10),
    last=st.floats(0, 1e10),
    receipts=st.lists(st.text(min_size=1)).map(tuple),
)


@given(entries)
def test_an_entry_is_read_as_it_was_written(entry: LedgerEntry) -> None:
    assert read("c", written(entry)) == entry


@given(st.lists(entries, max_size=6))
def test_conversations_and_days_add_up_to_the_total(entered: list[LedgerEntry]) -> None:
    found = summed_up(entered)
    for parts in ([e.account for e in found.conversations], found.days.values()):
        together = sum(parts, Account())
        assert together.paid.tokens == found.total.paid.tokens
        assert together.kept_out == found.total.kept_out
        assert together.calls == found.total.calls
