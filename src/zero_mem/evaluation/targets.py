"""What recall must reach on the public development sets, and what it is to reach in the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from zero_mem.evaluation.figures import Figures

CORE: Final = "zero-mem"
DENSE: Final = "zero-mem-dense"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A bound on one figure, in percent.

    Attributes:
        set: The set.
        figure: The figure's name.
        must: The least that is accepted.
        goal: What the project wants.
        row: The row that has to reach it.
        category: One category of the set, None for all.
        above: The row whose figure of the same run is subtracted, "" for none.
    """

    set: str
    figure: str
    must: float
    goal: float
    row: str
    category: str | None = None
    above: str = ""

    @property
    def title(self) -> str:
        """What is bounded, in words."""
        where = self.set if self.category is None else f"{self.set}, {self.category}"
        return f"{where}: {said(self.figure)}" + (f" above {self.above}" if self.above else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A target and what was reached."""

    target: Target
    value: float

    @property
    def met(self) -> bool:
        """Whether the bound is met, to a tenth of a point as the figures are shown."""
        return round(self.value, 1) >= self.target.must

    @property
    def goal_met(self) -> bool:
        """Whether the goal is met too."""
        return round(self.value, 1) >= self.target.goal


def said(figure: str) -> str:
    """Say a figure's name in words."""
    kind, _, depth = figure.partition("@")
    words = {
        "share": "share of the evidence",
        "any": "any of it",
        "all": "all of it",
        "ndcg": "nDCG",
        "first": "evidence at rank 1",
        "newest": "newest above the outdated",
    }
    return f"{words[kind]}{f' in {_depth(depth)}' if depth else ''}"


def _depth(depth: str) -> str:
    if depth.isdecimal():
        return f"the top {depth}"
    bodies = "" if depth.endswith("t") else ", whole bodies"
    return f"{depth[:-1]} tokens{bodies}"


def _targets() -> Iterator[Target]:
    for name, figure, category, core, dense in (
        ("locomo_audited", "share@10", None, (79, 84), (82, 88)),
        ("locomo_audited", "share@10", "multi-hop", (46, 55), (51, 65)),
        ("lifebench_zh", "share@10", None, (53, 62), (56, 68)),
        ("lifebench_zh", "any@10", None, (90, 95), (90, 96)),
        ("realmem", "share@10", None, (37, 48), (37, 48)),
        ("hotpotqa", "share@5", None, (91, 97), (91, 97)),
        ("hotpotqa", "all@5", None, (82, 94), (82, 94)),
        ("musique", "share@5", None, (69, 80), (69, 80)),
        ("musique", "all@5", None, (36, 55), (36, 55)),
        ("factcons", "first", None, (97, 99.5), (97, 99.5)),
    ):
        for row, (must, goal) in ((CORE, core), (DENSE, dense)):
            yield Target(set=name, figure=figure, category=category, must=must, goal=goal, row=row)
    for row in (CORE, DENSE):
        for figure in ("share@500t", "share@500w"):
            yield Target(
                set="locomo_audited", figure=figure, must=17, goal=22, row=row, above="bm25"
            )
        for name in ("single_facts", "single_facts_one_session"):
            yield Target(set=name, figure="first", must=0, goal=5, row=row, above="bm25")


TARGETS: Final = tuple(_targets())


def judged(figures: Iterable[Figures]) -> list[Judged]:
    """Judge what was measured; a target whose rows were not measured is left out."""
    by_row = {(one.set, one.row): one for one in figures}
    found = ((target, _reached(target, by_row)) for target in TARGETS)
    return [Judged(target=target, value=value) for target, value in found if value is not None]


def _reached(target: Target, by_row: Mapping[tuple[str, str], Figures]) -> float | None:
    one = by_row.get((target.set, target.row))
    if one is None:
        return None
    value = one.means(category=target.category).get(target.figure)
    if value is None or not target.above:
        return value
    other = by_row.get((target.set, target.above))
    return None if other is None else value - other.means()[target.figure]
