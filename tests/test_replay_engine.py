"""The replay's figures, checked against counts made another way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from replay_runs import (
    STRATEGIES,
    Prompts,
    Words,
    calls,
    orders,
    refund_run,
    result,
    run,
    says,
    system,
    user,
)

from zero_mem.controller.messages import Message, Transcript
from zero_mem.errors import InvalidInput
from zero_mem.ledger.columns import CallTokens
from zero_mem.memory import Memory
from zero_mem.replay.accounting import Meter, TokenCache, unchanged_prefix
from zero_mem.replay.engine import run as replay
from zero_mem.replay.figures import Billed, Outcome, Replay
from zero_mem.replay.prompt import Entry, Grown
from zero_mem.replay.saving import MemorySaver
from zero_mem.replay.strategies import (
    FullConcatenation,
    LateClearing,
    NextCallFolding,
    ReceiptsOnly,
    SlidingWindow,
    Strategy,
    ZeroMem,
    rewritten,
)
from zero_mem.replay.transcripts import read
from zero_mem.text.tokens import tokenizer

pytestmark = pytest.mark.req("ledger:compare")


def outcome(found: Replay, strategy: str) -> Outcome:
    one = next(o for o in found.outcomes if o.strategy == strategy)
    assert one is not None
    return one


def words_of(message: Message) -> int:
    parts = [message.text, message.tool]
    parts += [text for call in message.calls for text in (call.name, call.arguments)]
    return sum(len(part.split()) for part in parts)


TINY = run(
    system("a b c"),  # 3 system
    user("d e"),  # 2 conversation
    calls(("c1", "look", {})),  # 2 control: name and arguments
    result("c1", "look", "r1 r2 r3 r4 r5 r6 r7 r8"),  # 8 results, 1 control for the name
    says("f"),  # 1
    user("g h"),  # 2
    says("i j"),  # 2
)


@pytest.mark.req("ledger:columns")
def test_a_run_small_enough_to_count_by_hand() -> None:
    found = replay([TINY], [FullConcatenation()], tokenizer=Words())
    (calls_,) = (one.calls for one in found.outcomes[0].runs)
    assert [call.columns for call in calls_] == [
        CallTokens(system=3, conversation=2, output=2),
        CallTokens(system=3, conversation=2, tool_control=3, tool_results=8, output=1),
        CallTokens(system=3, conversation=5, tool_control=3, tool_results=8, output=2),
    ]
    assert [(call.state.read, call.state.write) for call in calls_] == [(0, 5), (5, 11), (16, 3)]
    assert found.outcomes[0].peak == 19
    # Input 2.5 to write, 0.10 to read, 10 to answer, per million.
    assert found.outcomes[0].cost.total == pytest.approx(
        (19 * 2.5 + 21 * 0.10 + 5 * 10) / 1_000_000
    )
    assert found.outcomes[0].uncached.total == pytest.approx((40 * 2 + 5 * 10) / 1_000_000)


def test_shares_and_price_of_the_same_run() -> None:
    found = replay(
        [TINY], [FullConcatenation(), ReceiptsOnly()], tokenizer=Words(), overhead="o o o o"
    )
    full, receipts = outcome(found, "full"), outcome(found, "receipts")
    assert full.share == 1
    assert full.price == pytest.approx((8 + 8 * 0.1) / 16)
    assert receipts.share == pytest.approx(2 * 2 / 16), "a receipt of two words, twice"
    assert receipts.price == pytest.approx((2 + 2 * 0.1) / 16)
    assert receipts.share_with_definitions == pytest.approx((2 * 2 + 3 * 4) / 16)
    assert receipts.price_with_definitions == pytest.approx((2.2 + 4 + 2 * 0.4) / 16)
    assert full.share_with_definitions == 1, "full concatenation needs no read tool"


@pytest.mark.req("ledger:columns")
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
def test_the_columns_of_every_call_add_up_to_its_prompt(strategy: Strategy) -> None:
    sink = Prompts()
    found = replay(
        [refund_run()], [strategy], tokenizer=Words(), overhead="o " * 7, on_prompt=[sink]
    )
    for prompt, call in zip(sink.all, found.outcomes[0].calls(), strict=True):
        sent = sum(words_of(entry.message) for entry in prompt.entries)
        charged = call.seen.read_tokens + call.seen.control_tokens
        ours = 7 if strategy.uses_handles else 0
        assert call.columns.prompt == sent + charged + ours == prompt.tokens
        assert call.columns.roll_up().prompt == call.columns.prompt
        assert call.state.prompt == sent + ours


@pytest.mark.req("ledger:columns")
def test_saving_costs_no_token_in_any_column() -> None:
    """N saves: the ledger shows none of them, since none of them is a model's work."""
    found = replay([refund_run(steps=20)], [FullConcatenation()], tokenizer=Words())
    tokens = found.outcomes[0].tokens
    assert (tokens.memory_receipts, tokens.memory_reads, tokens.our_definitions) == (0, 0, 0)
    zero = replay([refund_run(steps=20)], [ReceiptsOnly()], tokenizer=Words()).outcomes[0].tokens
    assert zero.memory_receipts > 0
    assert zero.output == tokens.output


def test_each_result_is_saved_once_in_order_whatever_the_strategies() -> None:
    class Recording:
        def __init__(self) -> None:
            self.saved: list[tuple[str, str]] = []

        def run(self, name: str) -> Recording:
            self.saved.append(("run", name))
            return self

        def save(self, text: str, tool: str) -> str:
            self.saved.append((tool, text))
            return str(len(self.saved))

    saver = Recording()
    replay([TINY, TINY], STRATEGIES, tokenizer=Words(), saver=saver)
    assert saver.saved == [("run", "run"), ("look", "r1 r2 r3 r4 r5 r6 r7 r8")] * 2


@pytest.mark.req("runtime:hooks")
def test_results_are_kept_in_a_store_through_the_runtime() -> None:
    """Each run has a namespace of its own, and a second replay into the store two more."""
    with Memory.open("memory://") as memory:
        for _ in range(2):
            replay([TINY, TINY], STRATEGIES, tokenizer=Words(), saver=MemorySaver(memory))
        spaces = memory.subtree("replay").namespaces()
        assert spaces == [("replay", f"run-{number}") for number in (1, 2, 3, 4)]
        for path in spaces:
            record = memory.namespace(*path).get("1")
            assert record.text == "r1 r2 r3 r4 r5 r6 r7 r8"
            assert (record.kind, record.source) == ("tool_result", "tool")
            assert record.metadata["tool"] == "look"


def test_no_text_is_counted_twice_in_a_run() -> None:
    """What a long replay must not do; with it, a 50 MB result is counted once."""
    words = Words()
    replay([refund_run()], STRATEGIES[:-1], tokenizer=words)
    assert max(words.asked.values()) == 1


def test_a_value_seen_by_a_call_is_visible_linked_or_a_charged_read() -> None:
    shown = replay([refund_run()], STRATEGIES, tokenizer=Words())
    full, folded = outcome(shown, "full"), outcome(shown, "receipts")
    assert full.seen.values == 6
    assert (full.seen.visible, full.seen.linked, full.seen.reads) == (6, 6, 0)
    assert (folded.seen.visible, folded.seen.reachable, folded.seen.reads) == (0, 6, 6)
    assert folded.tokens.memory_reads > 0
    window = outcome(replay([late_run()], [SlidingWindow(messages=2)], tokenizer=Words()), "window")
    assert (window.seen.values, window.seen.visible, window.seen.reachable) == (1, 0, 0)
    assert window.seen.reads == 0, "without a handle there is nothing to read"


def late_run() -> Transcript:
    return run(
        user("find"),
        calls(("c", "look", {})),
        result("c", "look", orders(4)),
        *(user(f"hm {n}") for n in range(9)),
        calls(("d", "take", {"id": "ORD-00002"})),
    )


def test_a_read_is_paid_as_the_round_trip_that_it_is() -> None:
    found = replay([refund_run(steps=1)], [ReceiptsOnly()], tokenizer=Words())
    call = next(call for call in found.outcomes[0].calls() if call.seen.reads)
    asked, shown = call.seen.control_tokens, call.seen.read_tokens
    sent, kept = call.state.prompt, call.state.read
    expected = kept * 0.1 + (sent - kept) * 2.5 + asked * 10  # the call that asks
    expected += (
        sent * 0.1 + (asked + shown) * 2.5 + call.columns.output * 10
    )  # the one that answers
    assert call.cost.total == pytest.approx(expected / 1_000_000)


def test_the_prefix_is_whole_where_nothing_sent_changes() -> None:
    found = replay([refund_run()], STRATEGIES, tokenizer=Words())
    kept = {o.strategy: o.prefix_unchanged for o in found.outcomes}
    assert kept["full"] == kept["receipts"] == kept["zero_mem"] == 1
    assert max(kept["window"], kept["folding"], kept["late_clearing"]) < 1


def test_late_clearing_that_never_cleared_says_so() -> None:
    notes = [
        replay([refund_run()], [strategy], tokenizer=Words()).outcomes[0].note
        for strategy in (LateClearing(), LateClearing(trigger=400, keep=1))
    ]
    assert notes == ["no prompt passed 100,000 tokens, so it is full concatenation here", ""]


def test_the_same_input_gives_the_same_result() -> None:
    one, other = (replay([refund_run()], STRATEGIES, tokenizer=Words()) for _ in range(2))
    assert one == other


class Watched(list[Entry]):
    """A growing list that counts how often one of its items is looked at."""

    looked = 0

    def __getitem__(self, index: Any) -> Any:
        self.looked += 1
        return super().__getitem__(index)


def test_what_is_only_appended_is_looked_at_once() -> None:
    """The accounting of a run is linear in its calls where nothing sent is ever changed."""
    entries, meter = Watched(), Meter(TokenCache(Words()))
    for turn in range(300):
        entries.append(Entry(message=user(f"turn {turn}"), origin=turn))
        measured = meter.measure(Grown(entries))
        assert (measured.kept, measured.weight.tokens) == (turn, 2 * turn + 2)
    assert entries.looked == 300


def test_a_changed_message_ends_the_prefix_wherever_it_is() -> None:
    now = [Entry(message=user(f"turn {turn}"), origin=turn) for turn in range(900)]
    assert unchanged_prefix(now, Grown(now)) == unchanged_prefix(now, list(now)) == 900
    for at in (0, 255, 256, 600, 899):
        before = [*now[:at], rewritten(now[at], "gone", "cleared"), *now[at + 1 :]]
        assert unchanged_prefix(before, now) == at
        noted = [*now[:at], replace(now[at], changed="the same text"), *now[at + 1 :]]
        assert unchanged_prefix(noted, now) == 900
    assert unchanged_prefix(now[:700], now) == unchanged_prefix(now, now[:700]) == 700


def test_a_prompt_stays_as_it_was_when_the_run_goes_on() -> None:
    entries = [Entry(message=user(f"turn {turn}"), origin=turn) for turn in range(5)]
    prompt = Grown(entries)
    entries.append(Entry(message=user("later"), origin=5))
    assert list(prompt) == prompt[:] == entries[:5]
    assert (len(prompt), prompt[-1], prompt[3:]) == (5, entries[4], entries[3:5])
    with pytest.raises(IndexError):
        prompt[5]


def test_runs_may_come_one_by_one() -> None:
    once = replay(iter([TINY, TINY]), iter([FullConcatenation()]), tokenizer=Words())
    assert once == replay([TINY, TINY], [FullConcatenation()], tokenizer=Words())


@pytest.mark.req("ledger:columns")
def test_the_providers_own_figures_stand_beside_the_counted_ones() -> None:
    known = replace(TINY, usage={2: {"prompt_tokens": 9}, 6: {"prompt_tokens": 25}})
    found = replay([known, TINY], [FullConcatenation()], tokenizer=Words())
    assert found.billed == Billed(calls=2, counted=5 + 19, billed=34)


def test_progress_is_told_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    replay(
        [TINY, TINY],
        [FullConcatenation()],
        tokenizer=Words(),
        on_progress=lambda *at: told.append(at),
    )
    assert told == [(done, 14) for done in range(1, 15)]


@pytest.mark.req("pkg:errors")
def test_wrong_requests_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"zero_mem at 0\.25 is given twice"):
        replay([TINY], [ZeroMem(), ZeroMem(share=0.25)], tokenizer=Words())
    with pytest.raises(InvalidInput, match="no price for model 'nobody'"):
        replay([TINY], [FullConcatenation()], tokenizer=Words(), model="nobody")


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    "messages",
    [
        (),
        (says("first"),),
        (result("lost", "look", orders(5)), says("an orphan")),
        (user("\ud800 lone"), says("\udfff")),
        (user("x"), calls(("", "", {})), result("", "", "")),
    ],
    ids=["empty", "answer first", "orphan", "surrogates", "nameless"],
)
def test_odd_runs_are_replayed(messages: tuple[Message, ...]) -> None:
    found = replay([run(*messages)], STRATEGIES, tokenizer=Words())
    answers = sum(message.role == "assistant" for message in messages)
    assert all(len(o.runs[0].calls) == answers for o in found.outcomes)


@pytest.fixture
def tau_bench(shared_data: Callable[[str], Path]) -> Replay:
    path = shared_data("raw/taubench_airline.openai_chat.jsonl.gz")
    strategies = [FullConcatenation(), NextCallFolding(), ZeroMem(share=0.25)]
    return replay(read(path).transcripts, strategies, tokenizer=tokenizer("o200k"))


def test_real_runs_measure_what_a_trial_by_the_same_rules_did(tau_bench: Replay) -> None:
    full, folding = outcome(tau_bench, "full"), outcome(tau_bench, "folding")
    assert full.seen.values == full.seen.visible == 376
    assert full.price == pytest.approx(0.198, abs=0.0005)
    assert folding.seen.visible / folding.seen.values == pytest.approx(0.22, abs=0.005)
    assert folding.share == pytest.approx(0.13, abs=0.005)


@pytest.mark.req("controller:offload")
def test_real_runs_keep_what_the_next_decision_needs(tau_bench: Replay) -> None:
    zero = outcome(tau_bench, "zero_mem")
    seen = zero.seen
    assert zero.share is not None
    assert zero.price is not None
    assert zero.share <= 0.25
    assert zero.price <= 0.12
    assert seen.visible >= 0.90 * seen.values
    assert seen.linked >= 0.70 * seen.values
    assert seen.reachable == seen.values
    assert zero.prefix_unchanged == 1
