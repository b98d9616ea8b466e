"""A replay's figures as JSON, as table rows, and its prompts as JSON lines."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, TextIO

from zero_mem.controller.definitions import PREAMBLE, read_definition
from zero_mem.ledger.example import example
from zero_mem.ledger.prices import PER
from zero_mem.replay.coverage import CACHE_READ
from zero_mem.replay.figures import Outcome, Replay, ratio
from zero_mem.replay.prompt import Prompt, openai_chat
from zero_mem.replay.verdict import Verdict, money

FORMAT: Final = 1
"""Version of the JSON structure; it rises when a name changes its meaning."""


def as_json(replay: Replay, verdict: Verdict) -> dict[str, Any]:
    """Give the whole result as JSON-ready values.

    `strategies` has one object per strategy and budget. Shares are numbers in [0, 1] or
    `null` where there is nothing to divide by; costs are US dollars.
    """
    worked = example()
    return {
        "format": FORMAT,
        "versions": _versions(replay),
        "prices": _prices(replay),
        "runs": _runs(replay),
        "provider_usage": asdict(replay.billed),
        "strategies": [outcome_json(outcome) for outcome in replay.outcomes],
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


def outcome_json(outcome: Outcome) -> dict[str, Any]:
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
        "peak": outcome.peak,
        "values": seen.values,
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

    `messages` is the conversation as it would be sent, in the shape of OpenAI chat
    completions. Where the strategy needs them, the read tool's definition and the preamble
    stand beside it, in `tools` and `preamble`, since the figures count them apart. `answer`
    is the index, in the transcript, of the assistant message that this prompt led to.
    """

    def __init__(self, lines: TextIO) -> None:
        self._lines = lines
        self._beside = {"preamble": PREAMBLE, "tools": [read_definition("openai_chat")]}

    def __call__(self, prompt: Prompt) -> None:
        """Write one line."""
        line: dict[str, Any] = {
            "trajectory": prompt.trajectory,
            "call": prompt.call,
            "strategy": prompt.strategy,
            "budget": prompt.budget,
            "answer": prompt.index,
            "messages": openai_chat(entry.message for entry in prompt.entries),
        }
        if prompt.uses_handles:
            line |= self._beside
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
    """A table of text: the first column is the row's name, the others align right."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


_COLUMNS: Final = {
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


def table(replay: Replay) -> Table:
    """Lay the comparison out, one row per strategy and budget."""
    headers = (
        *("strategy", *_COLUMNS.values(), "cost", "vs full", "peak"),
        *("visible", "linked", "in line", "reach", "share", "price", "prefix"),
    )
    full = replay.outcome("full")
    base = full.cost.total if full else None
    return Table(headers=headers, rows=tuple(_row(outcome, base) for outcome in replay.outcomes))


def _row(outcome: Outcome, full_cost: float | None) -> tuple[str, ...]:
    tokens, seen, cost = outcome.tokens, outcome.seen, outcome.cost.total
    change = None if not full_cost else cost / full_cost - 1
    return (
        outcome.label,
        *(short(getattr(tokens, name)) for name in _COLUMNS),
        money(cost),
        "–" if change is None else f"{change:+.0%}",
        short(outcome.peak),
        percent(ratio(seen.visible, seen.values)),
        percent(ratio(seen.linked, seen.values)),
        percent(ratio(seen.in_line, seen.lines)),
        percent(ratio(seen.reachable, seen.values)),
        _share(outcome.share),
        _share(outcome.price),
        percent(outcome.prefix_unchanged),
    )


def short(count: int) -> str:
    """Write a count in at most five characters: 950, 84.2k, 1.24M."""
    for limit, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if count >= limit * 0.9995:
            return f"{count / limit:.3g}{unit}"
    return str(count)


def percent(share: float | None) -> str:
    """Write a share as a whole per cent, never rounding up to 100 %; a dash for none."""
    if share is None:
        return "–"
    return f"{min(share, 0.99):.0%}" if 0.99 < share < 1 else f"{share:.0%}"


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


def plain(table: Table, *, width: int = 100) -> str:
    """Render a table as text, in blocks of columns where it is wider than `width`."""
    widths = [max(map(len, column)) for column in zip(table.headers, *table.rows, strict=True)]
    blocks = ["\n".join(_block(table, widths, columns)) for columns in _fitting(widths, width)]
    return "\n\n".join(blocks)


def _fitting(widths: Sequence[int], width: int) -> list[list[int]]:
    blocks: list[list[int]] = [[]]
    used = widths[0]
    for column in range(1, len(widths)):
        if blocks[-1] and used + 2 + widths[column] > width:
            blocks.append([])
            used = widths[0]
        blocks[-1].append(column)
        used += 2 + widths[column]
    return blocks


def _block(table: Table, widths: Sequence[int], columns: Sequence[int]) -> list[str]:
    lines = [table.headers, tuple("-" * each for each in widths), *table.rows]
    return [
        "  ".join([line[0].ljust(widths[0]), *(line[c].rjust(widths[c]) for c in columns)])
        for line in lines
    ]
