"""What `bench/recall.py` measures: shares of the evidence by rank and by tokens of a prompt."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from evidence.sets import COUNT, Asked
from zero_mem.policy.limits import Limits
from zero_mem.text.compress import compress
from zero_mem.text.fence import memory_line

BUDGETS = (250, 500, 1000, 2000)
DEPTHS = (5, 10, 20)
SHORTEST_LINE = 12
"""Tokens; with fewer left a prompt is full."""

THRESHOLD = Limits().compaction_threshold

Ranker: TypeAlias = Callable[[Asked], list[int]]
"""Gives the best units of a question's namespace, best first."""


@dataclass(kw_only=True)
class Figures:
    """What one row reached on one set; shares in percent."""

    set: str
    row: str
    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seconds: list[float] = field(default_factory=list)

    def add(self, question: Asked, order: Sequence[int], seconds: float, *, tokens: bool) -> None:
        """Count one question; by tokens of a prompt too where asked for, which takes long."""
        ids = [question.space.ids[index] for index in order]
        by_prompt = by_tokens(question, order) if tokens else {}
        measured = {**by_rank(ids, question.gold), **by_prompt}
        self.seconds.append(seconds)
        for name, value in measured.items():
            self.values[name].append(value)
        for group in (question.category, f"space {question.space.name}"):
            self.values[f"share@10 {group}"].append(measured["share@10"])

    @cached_property
    def means(self) -> Mapping[str, float]:
        """Give every figure's mean, in percent."""
        return {name: 100 * statistics.fmean(values) for name, values in self.values.items()}

    def halves(self) -> tuple[float, float]:
        """Give share@10 over the first and the second half of the spaces (by name)."""
        names = sorted(name for name in self.values if name.startswith("share@10 space "))
        middle = (len(names) + 1) // 2
        return tuple(  # type: ignore[return-value]
            100 * statistics.fmean([v for n in some for v in self.values[n]] or [0.0])
            for some in (names[:middle], names[middle:] or names)
        )


def by_rank(ids: Sequence[str], gold: frozenset[str]) -> Mapping[str, float]:
    """Give the shares and hits of a ranking at each depth."""
    found: dict[str, float] = {"first": float(bool(ids) and ids[0] in gold)}
    for depth in DEPTHS:
        hits = len(gold.intersection(ids[:depth]))
        found[f"share@{depth}"] = hits / len(gold)
        found[f"any@{depth}"] = float(hits > 0)
        found[f"all@{depth}"] = float(hits == len(gold))
    gain = sum(1 / math.log2(place + 2) for place, name in enumerate(ids[:10]) if name in gold)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(gold), 10)))
    found["ndcg@10"] = gain / ideal
    return found


def by_tokens(question: Asked, order: Sequence[int]) -> Mapping[str, float]:
    """Give the share of the evidence that would stand in a prompt of so many tokens.

    Lines are filled as `Namespace.recall` fills them: what does not fit is passed over. An item
    counts by the share of its tokens that its extract keeps: `tokens@` with the default
    compaction_threshold, `whole@` where the namespace sets none.
    """
    cut = _filled(question, order, THRESHOLD)
    whole = _filled(question, order, 1 << 30)
    return {f"tokens@{budget}": share for budget, share in cut.items()} | {
        f"whole@{budget}": share for budget, share in whole.items()
    }


def _filled(question: Asked, order: Sequence[int], threshold: int) -> Mapping[int, float]:
    spent = dict.fromkeys(BUDGETS, 0)
    kept = dict.fromkeys(BUDGETS, 0.0)
    space = question.space
    for index in order:
        if spent[BUDGETS[-1]] > BUDGETS[-1] - SHORTEST_LINE:
            break
        text = space.texts[index]
        shown = compress(text, limit=threshold, query=question.text).text
        cost = COUNT(memory_line(str(index + 1), "message", None, shown) + "\n")
        share = 1.0 if shown == text else min(1.0, COUNT(shown) / space.size(index))
        for budget in BUDGETS:
            if spent[budget] + cost <= budget:
                spent[budget] += cost
                kept[budget] += share if space.ids[index] in question.gold else 0.0
    return {budget: share / len(question.gold) for budget, share in kept.items()}


def measure(
    name: str, row: str, ranker: Ranker, asked_of: Sequence[Asked], *, tokens: bool = True
) -> Figures:
    """Put every question of a set to a row."""
    figures = Figures(set=name, row=row)
    for number, question in enumerate(asked_of, start=1):
        start = time.perf_counter()
        order = ranker(question)
        figures.add(question, order, time.perf_counter() - start, tokens=tokens)
        if sys.stderr.isatty():
            print(f"\r{name}: {row} {number}/{len(asked_of)}  ", end="", file=sys.stderr)
    return figures
