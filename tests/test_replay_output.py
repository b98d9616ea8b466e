"""What a replay hands out: JSON, prompt lines, the table, and the verdict's sentence."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from replay_runs import Prompts, Words, calls, orders, refund_run, result, run, says, system, user

from zero_mem.controller.messages import Defect, WireFormat
from zero_mem.ledger.columns import PROMPT_COLUMNS
from zero_mem.ledger.prices import Price, PriceTable
from zero_mem.replay.engine import run as replay
from zero_mem.replay.figures import LeftOut, Replay
from zero_mem.replay.output import PromptWriter, as_json, plain, table
from zero_mem.replay.strategies import FullConcatenation, ReceiptsOnly, SlidingWindow, ZeroMem
from zero_mem.replay.verdict import verdict
from zero_mem.replay.wording import money, of, percent, short, signed

pytestmark = pytest.mark.req("ledger:compare")

STRATEGIES = (FullConcatenation(), SlidingWindow(messages=4), ReceiptsOnly(), ZeroMem())
SHORT = run(
    system("Be kind."),
    user("what is the time"),
    calls(("c", "clock", {})),
    result("c", "clock", "12:00"),
    says("noon"),
    name="short",
)


def long_runs() -> Replay:
    transcripts = [refund_run(steps=12, name="long"), SHORT]
    return replay(transcripts, STRATEGIES, tokenizer=Words(), overhead="o " * 30)


def test_json_has_the_promised_names_and_is_json() -> None:
    defects = [Defect(file="a.jsonl", line=3, record="", problem="cut off")]
    left = [LeftOut(strategy="vector_rag", title="Vector RAG", reason="needs the dense extra")]
    found = replay([SHORT], STRATEGIES, tokenizer=Words(), defects=defects, left_out=left)
    written = json.loads(json.dumps(as_json(found, verdict(found)), allow_nan=False))
    for one in written["strategies"]:
        assert {
            *("strategy", "budget", "tokens", "cost", "peak", "coverage_visible"),
            *("coverage_linked", "coverage_in_line", "coverage_reachable", "price_cached"),
            *("tool_column_share", "tool_column_share_with_definitions"),
            "prefix_unchanged_share",
        } <= set(one)
        assert sum(one["tokens"][name] for name in PROMPT_COLUMNS) == one["tokens"]["prompt"]
        assert sum(one["roll_up"].values()) == one["tokens"]["prompt"]
    assert [one["budget"] for one in written["strategies"]] == [None, None, None, 0.25]
    assert written["prices"]["date"] == "2026-11"
    assert written["prices"]["model"] == "Sonnet 5.5"
    assert written["defects"][0]["line"] == 3
    assert written["left_out"][0]["reason"] == "needs the dense extra"
    assert written["versions"]["tokens_exact"] is True
    assert written["verdict"]["worth_it"] is False


@pytest.mark.req("ledger:example")
def test_the_designs_example_stands_beside_the_honest_figure() -> None:
    found = long_runs()
    worked = as_json(found, verdict(found))["example"]
    assert (worked["full"], worked["receipts"]) == (8_000_000, 4_500)
    assert worked["saved_here"] == verdict(found).saved < worked["saved"]


def test_prompt_lines_hold_each_prompt_as_it_would_be_sent() -> None:
    lines, sink = io.StringIO(), Prompts()
    writer = PromptWriter(lines)
    transcript = refund_run(steps=2)
    replay([transcript], STRATEGIES, tokenizer=Words(), on_prompt=[writer, sink])
    written = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert len(written) == len(sink.all) == 4 * 7
    for line, prompt in zip(written, sink.all, strict=True):
        assert [m["content"] for m in line["messages"]] == [e.message.text for e in prompt.entries]
        assert transcript.messages[line["answer"]].role == "assistant"
        assert ("preamble" in line) == (line["strategy"] in {"receipts", "zero_mem"})
    full = [line for line in written if line["strategy"] == "full"][-1]
    assert (full["trajectory"], full["call"], full["budget"]) == ("refund", 7, None)
    called, answered = full["messages"][2:4]
    assert called["tool_calls"][0] == {
        "id": "c0",
        "type": "function",
        "function": {"name": "list_orders", "arguments": '{"page": 0}'},
    }
    assert answered["tool_call_id"] == "c0"
    assert answered["content"] == orders(12)


@pytest.mark.parametrize("wire_format", ["openai_chat", "anthropic"])
def test_every_token_figure_can_be_counted_again_from_prompt_lines(wire_format: WireFormat) -> None:
    """What a line says is sent is what the ledger counts, definitions and preamble included."""
    lines, words = io.StringIO(), Words()
    tools = ({"name": "list_orders", "description": "list the orders of a page"},)
    transcript = replace(refund_run(steps=3), tools=tools, wire_format=wire_format)
    found = replay([transcript], STRATEGIES, tokenizer=words, on_prompt=[PromptWriter(lines)])
    written = [json.loads(line) for line in lines.getvalue().splitlines()]

    def definitions(line: dict[str, Any]) -> tuple[int, int]:
        own = [tool for tool in line["tools"] if tool == tools[0]]
        (read,) = [tool for tool in line["tools"] if tool != tools[0]] or [None]
        ours = f"{json.dumps(read)}\n{line['preamble']}" if read else ""
        return words.count(json.dumps(own)), words.count(ours)

    def messages(line: dict[str, Any]) -> int:
        texts = [m["content"] for m in line["messages"]]
        texts += [m.get("name", "") for m in line["messages"]]
        functions = [c["function"] for m in line["messages"] for c in m.get("tool_calls", ())]
        texts += [f[name] for f in functions for name in ("name", "arguments")]
        return sum(map(words.count, texts))

    for outcome in found.outcomes:
        mine = [line for line in written if line["strategy"] == outcome.strategy]
        own, ours = (sum(counts) for counts in zip(*map(definitions, mine), strict=True))
        assert own == outcome.tokens.tool_definitions > 0
        assert ours == outcome.tokens.our_definitions
        assert (ours > 0) == outcome.uses_handles
        charged = sum(line["charged"] for line in mine)
        assert charged == outcome.seen.read_tokens + outcome.seen.control_tokens
        total = sum(map(messages, mine)) + own + ours + charged
        assert total == outcome.tokens.prompt == sum(line["tokens"] for line in mine)
        values = [value for line in mine for value in line["values"]]
        assert len(values) == outcome.seen.values
        assert sum(value["visible"] for value in values) == outcome.seen.visible


@pytest.mark.req("pkg:errors")
def test_a_lone_surrogate_goes_through_a_prompt_line() -> None:
    lines = io.StringIO()
    odd = run(user("\ud83d 退款"), says("ok"))
    replay([odd], [FullConcatenation()], tokenizer=Words(), on_prompt=[PromptWriter(lines)])
    line = lines.getvalue().encode("utf-8")
    assert json.loads(line)["messages"][0]["content"] == "\ud83d 退款"


def test_the_table_fits_its_width_in_blocks() -> None:
    laid = table(long_runs())
    assert len(laid.rows) == 4
    assert all(len(row) == len(laid.headers) for row in laid.rows)
    narrow = plain(laid, width=80)
    assert max(map(len, narrow.splitlines())) <= 80
    assert narrow.count("Zero-Mem 0.25") > 1
    assert plain(laid, width=400).count("Zero-Mem 0.25") == 1


def test_the_table_explains_its_columns_below() -> None:
    laid = table(long_runs())
    below = plain(laid, width=80).split("\n\n")[-1]
    assert " ".join(below.split()) == laid.legend
    assert max(map(len, below.splitlines())) <= 80
    unexplained = {"strategy", "system", "output", "receipts", "cost", "vs full"}
    for name in set(laid.headers) - unexplained:
        assert f"{name}, " in laid.legend
    assert "of 12 values that calls took from earlier results" in laid.legend
    none = table(replay([SHORT], STRATEGIES, tokenizer=Words()))
    assert "no call took a value from an earlier result" in none.legend


def test_in_line_says_what_it_is_a_share_of() -> None:
    """A value of a text result and one of JSON: in line is a share of the one alone."""
    mixed = run(
        user("go"),
        calls(("a", "look", {})),
        result("a", "look", "ticket T-4711 is open\n" + "more text " * 40),
        calls(("b", "list_orders", {})),
        result("b", "list_orders", orders(9)),
        calls(("c", "close", {"ticket": "T-4711", "order": "ORD-00003"})),
    )
    found = replay([mixed], STRATEGIES, tokenizer=Words())
    laid = table(found)
    at = laid.headers.index("in line")
    assert [row[at] for row in laid.rows if row[0] in {"Full concatenation", "Receipts only"}] == [
        "100% of 1",
        "0% of 1",
    ]
    shown = as_json(found, verdict(found))["strategies"][0]
    assert (shown["values"], shown["values_in_text"], shown["coverage_in_line"]) == (2, 1, 1.0)
    json_only = long_runs()
    assert {row[at] for row in table(json_only).rows} == {"–"}
    assert {
        (one["values_in_text"], one["coverage_in_line"])
        for one in as_json(json_only, verdict(json_only))["strategies"]
    } == {(0, None)}


def test_runs_that_cost_more_are_in_the_table_and_the_json() -> None:
    found = long_runs()
    laid = table(found)
    at = laid.headers.index("dearer")
    rows = {row[0]: row[at] for row in laid.rows}
    assert (rows["Full concatenation"], rows["Zero-Mem 0.25"]) == ("0/2", "1/2")
    counted = {
        s["strategy"]: s["runs_dearer"] for s in as_json(found, verdict(found))["strategies"]
    }
    assert (counted["full"], counted["zero_mem"]) == (0, len(verdict(found).dearer)) == (0, 1)
    alone = replay([SHORT], [ReceiptsOnly()], tokenizer=Words())
    assert table(alone).rows[0][at] == "–"
    assert as_json(alone, verdict(alone))["strategies"][0]["runs_dearer"] is None


def far_too_long(window: int) -> Replay:
    """One result that is beyond all measure, re-sent at every call."""
    huge = run(
        user("go"),
        calls(("a", "dump", {})),
        result("a", "dump", "lorem ipsum dolor " * 60_000),
        *(message for _ in range(40) for message in (says("yes"), user("go on"))),
        says("end"),
    )
    row = Price(model="mine", input=2, read=2, write=None, output=0, window=window)
    prices = PriceTable(date="2026-01", rows={"mine": row})
    return replay(
        [huge], [FullConcatenation(), ZeroMem()], tokenizer=Words(), prices=prices, model="mine",
        overhead="",
    )  # fmt: skip


def test_what_no_model_could_take_is_said_and_never_counts_as_all_saved() -> None:
    found = far_too_long(window=100_000)
    judged = verdict(found)
    assert 0.995 < judged.saved < 1
    assert "costs 99% less than sending everything" in judged.sentence
    assert (
        "at 41 of 42 calls everything would not fit the model's window of 100,000 tokens"
        in judged.sentence
    )
    assert judged.unsendable == 41
    full, ours = as_json(found, judged)["strategies"]
    assert (full["calls_over_window"], ours["calls_over_window"]) == (41, 0)
    assert "41 prompts are longer than the model's 100,000 tokens" in full["note"]
    assert "-99%" in table(found).rows[1]
    fitting = far_too_long(window=1_000_000)
    assert verdict(fitting).unsendable == 0
    assert "window" not in verdict(fitting).sentence
    assert fitting.outcomes[0].note == ""


def test_figures_are_short_and_never_flatter() -> None:
    assert [short(n) for n in (0, 950, 999_960, 84_230, 1_240_000)] == [
        *("0", "950", "1M", "84.2k", "1.24M")
    ]
    assert [percent(s) for s in (None, 0.0, 0.5, 0.999, 1.0)] == ["–", "0%", "50%", "99%", "100%"]
    assert [signed(c) for c in (None, 0.0, -0.001, -0.12, 2.41, -0.9996, -1.0)] == [
        *("–", "0%", "0%", "-12%", "+241%", "-99%", "-100%")
    ]
    assert [of(part, whole) for part, whole in ((0, 0), (1, 1), (999, 1_000))] == [
        *("–", "100% of 1", "99% of 1k")
    ]
    assert [money(m) for m in (0.00123, 1.239, 1234.5)] == ["$0.0012", "$1.24", "$1,234"]


def test_a_long_run_is_worth_it_and_the_sentence_says_from_where() -> None:
    found = verdict(long_runs())
    assert found.worth_it
    assert found.from_call is not None
    assert found.sentence.startswith(
        f"Worth it for runs like these, from call {found.from_call} on"
    )
    assert "Sonnet 5.5 prices of 2026-11" in found.sentence
    assert found.sentence.count(". ") == 0, "one sentence"
    assert [run.name for run in found.dearer] == ["short"]
    assert "1 of 2 runs cost more" in found.sentence


def test_a_short_run_is_not_worth_it() -> None:
    found = verdict(replay([SHORT], STRATEGIES, tokenizer=Words(), overhead="o " * 30))
    assert not found.worth_it
    assert found.from_call is None
    assert found.saved < 0
    assert found.sentence.startswith("Not worth it for runs like these: Zero-Mem 0.25 costs")
    assert "more than sending everything" in found.sentence


def test_the_providers_own_discount_is_credited_to_nobody() -> None:
    """Equal prompts at a cached price save nothing, however much the cache saves."""
    found = replay([SHORT], STRATEGIES, tokenizer=Words(), overhead="")
    zero, full = found.outcome("zero_mem", 0.25), found.outcome("full")
    assert zero is not None
    assert full is not None
    assert zero.cost == full.cost
    assert full.cost.total < full.uncached.total * 1.25
    assert verdict(found).saved == verdict(found).saved_uncached == 0
    assert "as much as" in verdict(found).sentence


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (replay([SHORT], [FullConcatenation()], tokenizer=Words()), "must both be run"),
        (replay([], STRATEGIES, tokenizer=Words()), "no model call"),
        (
            replay([run(user("hi"), says("hello"))], STRATEGIES, tokenizer=Words()),
            "no tool results",
        ),
    ],
    ids=["one strategy", "no runs", "no tools"],
)
def test_where_nothing_can_be_judged_it_says_why(found: Replay, said: str) -> None:
    assert said in verdict(found).sentence
    assert not verdict(found).worth_it


def test_the_verdict_takes_the_nearest_budget_that_was_run() -> None:
    strategies = [FullConcatenation(), ZeroMem(share=0.15), ZeroMem(share=0.5)]
    found = replay([refund_run()], strategies, tokenizer=Words())
    assert verdict(found).label == "Zero-Mem 0.15"
    assert verdict(found, budget=0.45).label == "Zero-Mem 0.5"
