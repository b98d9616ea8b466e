"""Strategies decide on the past alone, keep calls with their results, and do what they say."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_runs import (
    STRATEGIES,
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
from zero_mem.replay.prompt import INJECTED, Entry
from zero_mem.replay.strategies import (
    ExternalState,
    ExtractiveSummary,
    FullConcatenation,
    LateClearing,
    NextCallFolding,
    ReceiptsOnly,
    SlidingWindow,
    Strategy,
    ZeroMem,
    ZeroMemTail,
)

pytestmark = pytest.mark.req("ledger:compare")

EVERY = (*STRATEGIES, ZeroMemTail(share=0.25))
APPEND_ONLY = [s for s in EVERY if s.name in {"full", "receipts", "zero_mem"}]


def by_name(strategy: Strategy) -> str:
    return strategy.name


def prompts(strategy: Strategy, transcript: Transcript) -> list[list[Entry]]:
    """Give the prompt of every call of a run."""
    session = strategy.start(Words())
    made, saved = [], 0
    for at, message in enumerate(transcript.messages):
        if message.role == "assistant":
            made.append(list(session.prompt()))
        saved += message.role == "tool"
        session.observe(message, at, str(saved) if message.role == "tool" else "")
    return made


def texts(entries: Sequence[Entry]) -> list[str]:
    return [entry.message.text for entry in entries]


@pytest.mark.req("controller:offload")
@pytest.mark.parametrize("strategy", EVERY, ids=by_name)
def test_cutting_the_future_off_changes_no_earlier_prompt(strategy: Strategy) -> None:
    whole = refund_run()
    full = prompts(strategy, whole)
    for end in range(len(whole.messages)):
        cut = prompts(strategy, run(*whole.messages[:end]))
        assert cut == full[: len(cut)]


@pytest.mark.parametrize("strategy", EVERY, ids=by_name)
def test_every_result_stands_behind_its_call(strategy: Strategy) -> None:
    for entries in prompts(strategy, parallel_run()):
        open_calls: set[str] = set()
        for entry in entries:
            message = entry.message
            if message.role == "tool":
                assert message.call_id in open_calls
            elif entry.origin != INJECTED:
                open_calls = {call.call_id for call in message.calls}


def parallel_run() -> Transcript:
    messages: list[Message] = [system("Be brief."), user("compare")]
    for step in range(8):
        ids = [f"p{step}-{n}" for n in range(step + 1)]
        messages.append(calls(*((call_id, "look", {"at": call_id}) for call_id in ids)))
        messages += [result(call_id, "look", orders(3)) for call_id in ids]
        messages.append(says("and now"))
    return run(*messages)


@pytest.mark.req("controller:offload")
@pytest.mark.parametrize("strategy", APPEND_ONLY, ids=by_name)
def test_earlier_messages_are_never_touched_again(strategy: Strategy) -> None:
    """Twenty turns with writes between them leave the earlier prompt as it was sent."""
    made = prompts(strategy, refund_run(steps=20))
    for before, after in pairwise(made):
        assert after[: len(before)] == before


@pytest.mark.parametrize("strategy", EVERY, ids=by_name)
@given(st.lists(st.sampled_from("suact"), max_size=24), st.text(max_size=30))
def test_any_order_of_messages_is_taken(strategy: Strategy, roles: list[str], text: str) -> None:
    made = {
        "s": system(text),
        "u": user(text),
        "a": says(text),
        "c": calls(("c", "look", {"q": text})),
        "t": result("c", "look", text * 20),
    }
    transcript = run(*(made[role] for role in roles))
    assert len(prompts(strategy, transcript)) == sum(role in "ac" for role in roles)


def test_full_concatenation_sends_every_message_as_it_is() -> None:
    whole = refund_run()
    last = prompts(FullConcatenation(), whole)[-1]
    assert [entry.message for entry in last] == list(whole.messages[:-1])


def test_the_window_keeps_system_and_the_latest_messages() -> None:
    whole = refund_run()
    last = prompts(SlidingWindow(messages=4), whole)[-1]
    assert [entry.message for entry in last] == [whole.messages[0], *whole.messages[-5:-1]]


def test_the_window_reaches_back_to_the_call_of_its_first_result() -> None:
    last = prompts(SlidingWindow(messages=2), parallel_run())[-1]
    assert [entry.message.role for entry in last] == ["system", "assistant", *["tool"] * 8]


def test_the_summary_quotes_what_left_the_window() -> None:
    made = prompts(ExtractiveSummary(keep=4), refund_run())
    assert texts(made[1]) == texts(prompts(FullConcatenation(), refund_run())[1])
    head, summary, *kept = made[-1]
    assert head.message.role == "system"
    assert summary.origin == INJECTED
    assert "退款" in summary.message.text
    assert 4 <= len(kept) <= 8


def test_the_summary_is_bounded_and_breaks_the_prefix_only_in_steps() -> None:
    settings = ExtractiveSummary(keep=4, limit=500, line_limit=60)
    made = prompts(settings, refund_run(steps=20))
    summaries = [entries[1].message.text for entries in made if entries[1].origin == INJECTED]
    assert max(map(len, summaries)) < 800
    assert len(set(summaries)) < len(made) / 2


def test_external_state_shows_the_newest_result_of_each_tool() -> None:
    *rest, line = prompts(ExternalState(), refund_run(steps=3))[-1]
    assert line.message.text == "Task state: 6 results so far (list_orders x3, refund_order x3)"
    shown = [e.message.text for e in rest if e.message.role == "tool" and not e.changed]
    assert shown == [orders(12, start=24), "done"]


def test_late_clearing_waits_for_its_trigger_and_keeps_the_newest() -> None:
    waiting = LateClearing()
    assert (waiting.trigger, waiting.keep) == (100_000, 3)
    assert prompts(waiting, refund_run()) == prompts(FullConcatenation(), refund_run())
    cleared = [
        [e.changed for e in entries if e.message.role == "tool"]
        for entries in prompts(LateClearing(trigger=400, keep=1), refund_run())
    ]
    assert set(cleared[-1][:-2]) == {"cleared"}
    assert cleared[-1][-1] == ""
    assert cleared[1] == [""]


def test_folding_shows_a_result_once_in_full_and_then_its_receipt() -> None:
    made = prompts(NextCallFolding(), refund_run(steps=2))
    first = orders(12)
    assert first in texts(made[1])
    assert first not in texts(made[2])
    assert "[memo:1] save" in texts(made[2])
    assert "done" in texts(made[-1]), "a result no longer than its receipt stays"


def test_receipts_alone_name_each_memory() -> None:
    last = prompts(ReceiptsOnly(), refund_run(steps=2))[-1]
    receipts = [entry for entry in last if entry.receipt]
    assert [entry.message.text for entry in receipts] == ["[memo:1] save", "[memo:3] save"]
    assert all(entry.spans[0].reason for entry in receipts)


@pytest.mark.req("controller:offload", "inspect:prompt")
def test_zero_mem_keeps_short_results_and_gives_each_memory_token_a_reason() -> None:
    last = prompts(ZeroMem(share=0.25), refund_run())[-1]
    assert "done" in texts(last)
    folded = [entry for entry in last if entry.receipt]
    assert folded
    for entry in folded:
        assert "[memo:" in entry.receipt
        assert entry.receipt in entry.message.text
        assert all(span.reason for span in entry.spans)
        assert len(entry.message.text) < len(orders(12))


@pytest.mark.req("controller:offload")
def test_a_tail_stands_at_the_end_and_in_no_later_prompt() -> None:
    made = prompts(ZeroMemTail(share=0.25), refund_run())
    blocks = [prompt[-1] for prompt in made if prompt[-1].origin == INJECTED]
    assert blocks
    for prompt in made:
        assert all(entry.origin != INJECTED for entry in prompt[:-1])
    for block in blocks:
        assert all(made[-1][span.origin].message.role == "tool" for span in block.spans)


@pytest.mark.parametrize("strategy", EVERY, ids=by_name)
def test_an_error_flag_stays_with_its_result(strategy: Strategy) -> None:
    failed = run(
        user("go"), calls(("c", "look", {})), result("c", "look", orders(9), is_error=True)
    )
    made = prompts(strategy, run(*failed.messages, says("sorry"), says("again")))
    assert all(entry.message.is_error for entry in made[-1] if entry.message.role == "tool")
