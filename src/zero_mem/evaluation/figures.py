"""What is measured of a ranking: shares of the evidence by rank and by tokens of a prompt."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from zero_mem.evaluation.prompt import CUT, WHOLE, Order, Prompt
from zero_mem.evaluation.sets import Asked

DEPTHS: Final = (5, 10, 20)
BUDGETS: Final = (250, 500, 1000, 2000)

PROMPTS: Final[Mapping[str, int]] = {"t": CUT, "w": WHOLE}
"""The suffix of figures by tokens: bodies cut as by default, and whole ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one question gave: figures between 0 and 1, and the CPU seconds of its ranking."""

    category: str
    half: int
    values: Mapping[str, float]
    seconds: float


@dataclass(slots=True, kw_only=True)
class Figures:
    """What one row reached on one set."""

    set: str
    row: str
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def categories(self) -> list[str]:
        """The categories, in alphabetical order."""
        return sorted({outcome.category for outcome in self.outcomes})

    def means(self, *, category: str | None = None, half: int | None = None) -> dict[str, float]:
        """Give the mean of every figure in percent, over all questions or some."""
        chosen = [
            outcome.values
            for outcome in self.outcomes
            if category in (None, outcome.category) and half in (None, outcome.half)
        ]
        names = dict.fromkeys(name for values in chosen for name in values)
        return {
            name: 100 * statistics.fmean(values[name] for values in chosen if name in values)
            for name in names
        }

    def milliseconds(self) -> float:
        """Give the median CPU time of a ranking, the encoder's not counted."""
        return 1000 * statistics.median(outcome.seconds for outcome in self.outcomes)


def outcome(question: Asked, prompt: Prompt, order: Order, seconds: float) -> Outcome:
    """Judge one ranking."""
    gold = question.evidence
    values = {**by_rank(order.indices, gold), **dict(by_tokens(prompt, order, gold))}
    if question.stale:
        stale = frozenset(question.space.places[name] for name in question.stale)
        values["newest"] = float(_place(order.indices, gold) < _place(order.indices, stale))
    return Outcome(category=question.category, half=question.half, values=values, seconds=seconds)


def _place(order: Sequence[int], wanted: frozenset[int]) -> int:
    return next((place for place, index in enumerate(order) if index in wanted), len(order))


def by_rank(order: Sequence[int], gold: frozenset[int]) -> dict[str, float]:
    """Give the shares, the hits and nDCG of a ranking at each depth.

    Source:
        Järvelin and Kekäläinen (2002): gain 1 for evidence, discounted by log2(rank + 1).
    """
    found: dict[str, float] = {"first": float(bool(order) and order[0] in gold)}
    for depth in DEPTHS:
        shares = [1.0] * len(gold.intersection(order[:depth]))
        found |= _hits(shares, len(gold), str(depth))
    gains = [float(index in gold) for index in order[:10]]
    found["ndcg@10"] = ndcg(gains, len(gold), depth=10)
    return found


def by_tokens(prompt: Prompt, order: Order, gold: frozenset[int]) -> Iterator[tuple[str, float]]:
    """Give the same at each budget of prompt tokens.

    A piece of evidence counts by the share of its tokens that its line keeps; hits count lines.
    """
    for suffix, threshold in PROMPTS.items():
        for budget in BUDGETS:
            lines = list(prompt.filled(order, budget, threshold=threshold))
            gains = [line.share if line.place in gold else 0.0 for line in lines]
            name = f"{budget}{suffix}"
            yield from _hits([gain for gain in gains if gain], len(gold), name).items()
            yield f"ndcg@{name}", ndcg(gains, len(gold))


def _hits(shares: Sequence[float], wanted: int, depth: str) -> dict[str, float]:
    return {
        f"share@{depth}": sum(shares) / wanted,
        f"any@{depth}": float(bool(shares)),
        f"all@{depth}": float(len(shares) == wanted),
    }


def ndcg(gains: Iterable[float], wanted: int, depth: int | None = None) -> float:
    """Give the discounted gain of a ranking by that of the best one."""
    gain = sum(value / math.log2(place + 2) for place, value in enumerate(gains))
    most = wanted if depth is None else min(wanted, depth)
    return gain / sum(1 / math.log2(place + 2) for place in range(most))
