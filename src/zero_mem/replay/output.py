"""A replay's figures as JSON, as table rows, and its prompts as JSON lines."""

from __future__ import annotations

import json
import platform
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, TextIO

from zero_mem.controller.definitions import PREAMBLE, read_definition
from zero_mem.ledger.example import example
from zero_mem.ledger.prices import PER
from zero_mem.replay.coverage import CACHE_READ
from zero_mem.replay.figures import Outcome, Replay, Seen, ratio
from zero_mem.replay.prompt import Prompt, openai_chat
from zero_mem.replay.verdict import Verdict, dearer_runs
from zero_mem.replay.wording import money, of, percent, short, signed

FORMAT: Final = 1
"""Version of the JSON structure; it rises when a name changes its meaning."""


def as_json(replay: Replay, verdict: Verdict) -> dict[str, Any]:
    """Give the whole result as JSON-ready values.

    `strategies` has one object per strategy and budget. Shares are numbers, those of coverage
    in [0, 1], or `null` where there is nothing to divide by; costs are US dollars. The shares
    of coverage are of `values`, but `coverage_in_line` is of `values_in_text`: of those that
    a result holds which is text and not JSON. docs/replay.md has every key.
    """
    worked = example()
    return {
        "format": FORMAT,
        "versions": _versions(replay),
        "prices": _prices(replay),
        "runs": _runs(replay),
        "provider_usage": asdict(replay.billed),
        "strategies": [_outcome(replay, outcome) for outcome in replay.outcomes],
        "left_out": [asdict(left) for left in replay.left_out],
        "defects": [asdict(defect) for defect in replay.defects],
        "verdict": asdict(verdict),
        "example": {
            "full": worked.full,
            "receipts": worked.receipts,
            "saved": worked.saved,
            "saved_here": verdict.saved,
        },
    }


def _outcome(replay: Replay, outcome: Outcome) -> dict[str, Any]:
    """Give one strategy's figures at one budget."""
    seen, state, cost = outcome.seen, outcome.state, outcome.cost
    return {
        "strategy": outcome.strategy,
        "title": outcome.title,
        "budget": outcome.budget,
        "tokens": outcome.tokens.as_dict(),
        "roll_up": asdict(outcome.tokens.roll_up()),
        "cache_state": asdict(state),
        "cost": cost.total,
        "cost_by_state": asdict(cost),
        "cost_uncached": outcome.uncached.total,
        "runs_dearer": dearer(replay, outcome),
        "peak": outcome.peak,
        "calls_over_window": outcome.too_long(replay.price.window),
        "values": seen.values,
        "values_in_text": seen.lines,
        "reads": seen.reads,
        "coverage_visible": ratio(seen.visible, seen.values),
        "coverage_linked": ratio(seen.linked, seen.values),
        "coverage_in_line": ratio(seen.in_line, seen.lines),
        "coverage_reachable": ratio(seen.reachable, seen.values),
        "price_cached": outcome.price,
        "price_cached_with_definitions": outcome.price_with_definitions,
        "tool_column_share": outcome.share,
        "tool_column_share_with_definitions": outcome.share_with_definitions,
        "prefix_unchanged_share": outcome.prefix_unchanged,
        "note": outcome.note,
    }


def dearer(replay: Replay, outcome: Outcome) -> int | None:
    """Count the runs that cost more than full concatenation; None where that was not run."""
    full = replay.outcome("full")
    return None if full is None else len(dearer_runs(full.runs, outcome.runs))


def _versions(replay: Replay) -> dict[str, Any]:
    return {
        "zero_mem": package_version(),
        "python": platform.python_version(),
        "tokenizer": replay.tokenizer,
        "tokens_exact": replay.exact,
    }


def package_version() -> str:
    """Give the installed version of this package."""
    try:
        return version("zero-mem")
    except PackageNotFoundError:
        return "unknown"


def _prices(replay: Replay) -> dict[str, Any]:
    return asdict(replay.price) | {
        "date": replay.price_date,
        "unit": f"US dollars per {PER:,} tokens",
        "price_cached_read_factor": CACHE_READ,
    }


def _runs(replay: Replay) -> dict[str, int]:
    runs = replay.outcomes[0].runs if replay.outcomes else ()
    return {
        "runs": len(runs),
        "calls": sum(len(run.calls) for run in runs),
        "messages": replay.messages,
    }


class PromptWriter:
    """Writes each prompt as one JSON line, as it is made.

    A line has:

    - `trajectory`, `call` (from 1), `strategy`, `budget`: which prompt it is.
    - `messages`: the conversation as it would be sent, in the shape of OpenAI chat completions.
    - `tools`: the definitions sent beside it, in the transcript's own format: the run's own, and
      last the read tool where the strategy has handles. Then `preamble` is there too, which the
      controller puts before the conversation.
    - `answer`: the index, in the transcript, of the assistant message that the prompt led to.
    - `tokens`: all of the prompt, with definitions, preamble and charged reads.
    - `charged`: tokens of the reads that values need which are not visible; they are in no
      message.
    - `values`: what the answer's calls take from memory, each with `visible` and `linked`, and
      in `read` the memory that has to be read for it, where it is not visible.

    With these every share and token figure of the result can be counted again.
    """

    def __init__(self, lines: TextIO) -> None:
        self._lines = lines

    def __call__(self, prompt: Prompt) -> None:
        """Write one line."""
        line: dict[str, Any] = {
            "trajectory": prompt.trajectory,
            "call": prompt.call,
            "strategy": prompt.strategy,
            "budget": prompt.budget,
            "answer": prompt.index,
            "tokens": prompt.tokens,
            "charged": prompt.charged,
            "values": [asdict(value) for value in prompt.values],
            "messages": openai_chat(entry.message for entry in prompt.entries),
            "tools": [dict(tool) for tool in prompt.tools],
        }
        if prompt.uses_handles:
            line["tools"].append(read_definition(prompt.wire_format))
            line["preamble"] = PREAMBLE
        self._lines.write(_json_line(line))


def _json_line(value: Mapping[str, Any]) -> str:
    """Write one line that any reader takes; a lone surrogate is escaped, all else is plain."""
    line = json.dumps(value, ensure_ascii=False)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        line = json.dumps(value, ensure_ascii=True)
    return line + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of text: the first column is the row's name, the others align right.

    `groups` are the sizes of groups of columns that stay together, `legend` explains them.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    groups: tuple[int, ...]
    legend: str


_TOKENS: Final = {
    "system": "system",
    "tool_definitions": "tools",
    "our_definitions": "our tool",
    "conversation": "talk",
    "tool_control": "control",
    "tool_results": "results",
    "memory_receipts": "receipts",
    "memory_reads": "reads",
    "output": "output",
}
_COST: Final = ("cost", "vs full", "dearer", "peak", "share", "price", "prefix")
_COVERAGE: Final = ("visible", "linked", "in line", "reach")


def table(replay: Replay) -> Table:
    """Lay the comparison out, one row per strategy and budget."""
    return Table(
        headers=("strategy", *_TOKENS.values(), *_COST, *_COVERAGE),
        rows=tuple(_row(replay, outcome) for outcome in replay.outcomes),
        groups=(len(_TOKENS), len(_COST), len(_COVERAGE)),
        legend=f"Tokens: {TOKENS_LEGEND} Cost: {COST_LEGEND} {coverage_legend(replay)}",
    )


TOKENS_LEGEND: Final = (
    "tools, the run's own tool definitions; our tool, the read tool's definition and the "
    "preamble; talk, the conversation; control, tool calls and names; results, what is shown of "
    "tool results; reads, what reads put in."
)
COST_LEGEND: Final = (
    "dearer, runs that cost more than in full; peak, the longest prompt; share, memory's tokens "
    "÷ the tool results' in full; price, the same with cache reads at 0.1; prefix, bytes that "
    "the next call re-sends unchanged."
)


def coverage_legend(replay: Replay, *, linked: str = "linked", reach: str = "reach") -> str:
    """Say what the columns of coverage are shares of, and what each of them means."""
    seen = replay.outcomes[0].seen if replay.outcomes else Seen()
    if not seen.values:
        return "Coverage: no call took a value from an earlier result."
    return (
        f"Coverage of {seen.values:,} values that calls took from earlier results: visible, in "
        f"the prompt; {linked}, with its key or row header; in line, in its whole line, of the "
        f"{seen.lines:,} that a result which is text holds; {reach}, visible or one read away."
    )


def _row(replay: Replay, outcome: Outcome) -> tuple[str, ...]:
    full, tokens, cost = replay.outcome("full"), outcome.tokens, outcome.cost.total
    change = ratio(cost, full.cost.total) if full else None
    more = dearer(replay, outcome)
    return (
        outcome.label,
        *(short(getattr(tokens, name)) for name in _TOKENS),
        money(cost),
        signed(None if change is None else change - 1),
        "–" if more is None else f"{more}/{len(outcome.runs)}",
        short(outcome.peak),
        _share(outcome.share),
        _share(outcome.price),
        percent(outcome.prefix_unchanged),
        *coverage(outcome),
    )


def coverage(outcome: Outcome) -> tuple[str, str, str, str]:
    """Write the four shares: visible, linked, in line, reachable."""
    seen = outcome.seen
    return (
        percent(ratio(seen.visible, seen.values)),
        percent(ratio(seen.linked, seen.values)),
        of(seen.in_line, seen.lines),
        percent(ratio(seen.reachable, seen.values)),
    )


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


def plain(table: Table, *, width: int = 100) -> str:
    """Render a table and its legend as text, in blocks of columns where it is too wide."""
    widths = [max(map(len, column)) for column in zip(table.headers, *table.rows, strict=True)]
    blocks = [_block(table, widths, columns) for columns in _fitting(widths, table.groups, width)]
    legend = textwrap.fill(table.legend, width=min(width, 100))
    return "\n\n".join(["\n".join(lines) for lines in blocks] + [legend])


def _fitting(widths: Sequence[int], groups: Sequence[int], width: int) -> list[list[int]]:
    """Put as many columns into a block as fit, and break before a group that doesn't."""
    blocks: list[list[int]] = [[]]
    first = 1
    for size in groups:
        group = range(first, first + size)
        first += size
        if blocks[-1] and _width(widths, [*blocks[-1], *group]) > width:
            blocks.append([])
        for column in group:
            if blocks[-1] and _width(widths, [*blocks[-1], column]) > width:
                blocks.append([])
            blocks[-1].append(column)
    return blocks


def _width(widths: Sequence[int], columns: Iterable[int]) -> int:
    return widths[0] + sum(2 + widths[column] for column in columns)


def _block(table: Table, widths: Sequence[int], columns: Sequence[int]) -> list[str]:
    lines = [table.headers, tuple("-" * each for each in widths), *table.rows]
    return [
        "  ".join([line[0].ljust(widths[0]), *(line[c].rjust(widths[c]) for c in columns)])
        for line in lines
    ]
