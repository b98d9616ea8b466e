"""How a measurement is asked for and reported: its options, tables in Markdown, figures as JSON."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure; `bound` is what it must keep to, "" where it is only shown."""

    name: str
    figure: float
    unit: str
    bound: str = ""
    met: bool = True


def at_most(name: str, figure: float, bound: float, unit: str = "tokens") -> Figure:
    return Figure(name=name, figure=figure, unit=unit, bound=f"<= {bound:g}", met=figure <= bound)


def all_of(name: str, right: int, of: int) -> Figure:
    return Figure(name=name, figure=right / of, unit="share", bound="= 1", met=right == of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One comparison; `ratio` is ours against the other, and `must` is its bound."""

    name: str
    ours: float
    other: float
    unit: str
    ratio: float
    must: str
    met: bool


def throughput(
    name: str, size: int, found: tuple[float, float, float], at_least: float
) -> Comparison:
    """Compare how many a second; `found` is the seconds of ours and theirs, and the ratio."""
    mine, theirs, ratio = found
    return Comparison(
        name=name,
        ours=size / mine,
        other=size / theirs,
        unit="1/s",
        ratio=ratio,
        must=f">= {at_least:g}",
        met=ratio >= at_least,
    )


def options(doc: str | None) -> argparse.ArgumentParser:
    """Give a parser with what every measurement takes; the first line of `doc` describes it."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    parser.add_argument("--markdown", type=Path, help="write the table to a file")
    return parser


def command(*versions: str) -> str:
    """Name the command that is running and the versions it runs on, as a line before a table."""
    with_python = ", ".join([f"Python {platform.python_version()}", *versions])
    return f"`python {' '.join(sys.argv)}` ({with_python})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def figures_table(rows: Iterable[Figure]) -> str:
    return table(
        ["what", "figure", "unit", "bound", "met"],
        ([r.name, f"{r.figure:,.4g}", r.unit, r.bound, yes(r.met)] for r in rows),
    )


def comparisons_table(rows: Iterable[Comparison]) -> str:
    return table(
        ["what", "Zero-Mem", "other", "unit", "ratio", "must", "met"],
        (
            [r.name, f"{r.ours:,.2f}", f"{r.other:,.2f}", r.unit, f"{r.ratio:.2f}", r.must,
             yes(r.met)]
            for r in rows
        ),
    )  # fmt: skip


def yes(met: bool) -> str:
    """Write whether a bound is kept, so that a miss is seen."""
    return "yes" if met else "NO"


def report(given: argparse.Namespace, text: str, figures: Any) -> None:
    """Print a text, and write it and the figures to the files that the caller named."""
    print(text)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if given.markdown:
        given.markdown.write_text(f"{text}\n", encoding="utf-8")


def report_rows(
    given: argparse.Namespace, rows: Sequence[Figure] | Sequence[Comparison], *versions: str
) -> int:
    """Report rows under the command that measured them; give 0 if every bound is kept, else 1."""
    figures = [row for row in rows if isinstance(row, Figure)]
    comparisons = [row for row in rows if isinstance(row, Comparison)]
    written = figures_table(figures) if figures else comparisons_table(comparisons)
    report(given, f"{command(*versions)}\n\n{written}", [asdict(row) for row in rows])
    return 0 if all(row.met for row in rows) else 1
