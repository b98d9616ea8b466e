"""The search view of a report: what recall would have chosen at each user turn, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from replay_runs import Words, calls, orders, refund_run, result, run, says, system, user

from zero_mem.controller.messages import Transcript
from zero_mem.replay.engine import run as replay
from zero_mem.replay.evidence import CHOSEN, collect, turns
from zero_mem.replay.prompt import Prompt
from zero_mem.replay.report import report
from zero_mem.replay.strategies import FullConcatenation, ReceiptsOnly, ZeroMem
from zero_mem.replay.transcripts import read
from zero_mem.replay.verdict import verdict

pytestmark = pytest.mark.req("ledger:compare", "inspect:prompt", "recall:dual-view")

TALK = run(
    system("You are a gardener."),
    user("When do I plant the tulips behind the shed?"),
    says("In October, before the frost."),
    user("And the beans?"),
    says("In May."),
    calls(("c", "almanac", {"month": "May"})),
    result("c", "almanac", '{"month": "May", "frost": "until the 15th"}'),
    says("Mind the frost in May."),
    user("When was it again, the tulips behind the shed?"),
    says("In October."),
)


def test_each_user_turn_sees_only_the_messages_before_it() -> None:
    found = list(turns(TALK))
    assert [(turn.place, turn.earlier) for turn in found] == [(2, 0), (4, 2), (9, 7)]
    for turn in found:
        assert all(each.place < turn.place for each in (*turn.chosen, *turn.missed))


def test_the_chosen_come_with_their_scores_and_what_made_them() -> None:
    *_, last = turns(TALK, limit=2)
    first, second = last.chosen
    assert first.place == 2
    assert first.text.startswith("When do I plant the tulips")
    assert first.score >= second.score > 0
    assert dict(first.parts)["own"] > 0
    assert last.missed
    assert {each.outcome for each in last.missed} == {"the limit of 2 items"}
    assert last.tokens > 0


@pytest.mark.parametrize("words", ["", "   ", "\ud83e\uddfe", "?!", "the of and"])
def test_a_turn_that_asks_nothing_is_no_fault(words: str) -> None:
    found = list(turns(run(user("a"), says("b"), user(words), says("c"))))
    assert len(found) == 2


def test_what_a_page_carries_is_bounded() -> None:
    runs = [refund_run(steps=12, name=f"run-{n}") for n in range(30)]
    whole = collect(runs, cap=10**9)
    assert not whole.closed
    cut = collect(runs, cap=40_000)
    assert cut.closed
    assert len(json.dumps(cut.runs)) < 60_000
    assert cut.runs[0] == whole.runs[0]


def page_of(transcript: Transcript) -> str:
    strategies = (FullConcatenation(), ZeroMem())
    found = replay([transcript], strategies, tokenizer=Words(), overhead="")
    return report(found, verdict(found), evidence=collect([transcript]))


def book_of(page: str) -> Any:
    return json.loads(page.partition('id="book">')[2].partition("</script>")[0])


def test_the_page_has_a_search_view_and_its_data() -> None:
    page = page_of(TALK)
    assert 'id="search-turn"' in page
    assert "3 turns" in page
    (evidence,) = book_of(page)["evidence"]
    assert [turn["at"] for turn in evidence["turns"]] == [2, 4, 9]
    who = {item[1] for turn in evidence["turns"] for item in turn["in"] + turn["out"]}
    assert {"user", "assistant", "result of almanac"} <= who


def test_a_page_without_user_turns_has_no_search_view() -> None:
    page = page_of(run(says("alone")))
    assert 'id="search-turn"' not in page


def test_a_prompt_names_the_memory_that_a_value_is_one_read_away_in() -> None:
    rows = orders(200)
    asked = run(
        user("refund the late one"),
        calls(("a", "list_orders", {})),
        result("a", "list_orders", rows),
        calls(("b", "refund", {"order_id": "ORD-00137"})),
        result("b", "refund", "done"),
        says("Refunded."),
    )
    prompts = list[Prompt]()
    replay([asked], [ReceiptsOnly()], tokenizer=Words(), on_prompt=[prompts.append])
    values = {value.value: value for prompt in prompts for value in prompt.values}
    value = values["ORD-00137"]
    assert (value.visible, value.read) == (False, "1")


def test_public_runs_have_evidence_at_every_turn(shared_data: Callable[[str], Path]) -> None:
    reading = read(shared_data("raw/taubench_airline.openai_chat.jsonl.gz"))
    found = collect(reading.transcripts[:5])
    assert len(found.runs) == 5
    for one in found.runs:
        for turn in one["turns"][1:]:
            assert len(turn["in"]) <= CHOSEN
            assert all(item[0] < turn["at"] for item in turn["in"])
