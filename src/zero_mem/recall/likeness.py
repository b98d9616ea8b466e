"""How alike units are: the cosine of their terms, weighed by tf-idf."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from zero_mem.index.units import Unit
from zero_mem.recall.levels import Occurrences

Idf = Callable[[str], float]
Vector = Mapping[str, float]


LONG = 4
"""A list of so many times the units that are wanted is not read; they are looked up instead."""


class Likeness:
    """The likeness of the units of a corpus, by what is made when it is needed.

    Args:
        units: The units.
        occurrences: Their inverted list.
        idf: Gives a term's inverse document frequency.
    """

    def __init__(self, units: Sequence[Unit], occurrences: Occurrences, idf: Idf) -> None:
        self._units = units
        self._occurrences = occurrences
        self._idf = idf
        self._logs: dict[int, Vector] = {}
        self._idfs: dict[str, float] = {}
        self._norms: dict[int, float] = {}

    def change(self, index: int) -> None:
        """Follow a unit that came, changed or ended: its terms, and so the idf of all."""
        self._logs.pop(index, None)
        self._idfs.clear()
        self._norms.clear()

    def log_counts(self, index: int) -> Vector:
        """Give 1 + log n for each term that a unit has n times."""
        found = self._logs.get(index)
        if found is None:
            counts = Counter(self._units[index].terms)
            found = self._logs[index] = {term: log_count(n) for term, n in counts.items()}
        return found

    def to(self, seeds: Mapping[int, float], others: Sequence[int]) -> Mapping[int, float]:
        """Give each of some units its cosine with each seed, times the seed's weight, added up."""
        if not others:
            return {}
        products = dict.fromkeys(others, 0.0)
        first, last = min(others), max(others)
        for term, weight in self._together(seeds).items():
            # The others are near in time and so mostly in place: little of a list is read.
            places, counts = self._occurrences[term]
            start, end = bisect_left(places, first), bisect_right(places, last)
            if end - start > LONG * len(others):
                self._add_each(products, term, weight)
                continue
            for place, count in zip(places[start:end], counts[start:end], strict=True):
                if place in products:
                    products[place] += weight * log_count(count)
        norm = self._norm
        return {other: value and value / norm(other) for other, value in products.items()}

    def _together(self, seeds: Mapping[int, float]) -> Vector:
        """Add up the vectors of the seeds, each with the idf that the other side lacks."""
        found: dict[str, float] = {}
        for seed, weight in seeds.items():
            share = weight / self._norm(seed)
            for term, log in self.log_counts(seed).items():
                added = share * log * self._known_idf(term) ** 2
                found[term] = found.get(term, 0.0) + added
        return found

    def _add_each(self, products: dict[int, float], term: str, weight: float) -> None:
        for other in products:
            products[other] += weight * self.log_counts(other).get(term, 0.0)

    def _known_idf(self, term: str) -> float:
        found = self._idfs.get(term)
        if found is None:
            found = self._idfs[term] = self._idf(term)
        return found

    def _norm(self, index: int) -> float:
        found = self._norms.get(index)
        if found is None:
            logs, idf = self.log_counts(index), self._known_idf
            squares = sum([(log * idf(term)) ** 2 for term, log in logs.items()])
            found = self._norms[index] = math.sqrt(squares) or 1.0
        return found


def log_count(count: int) -> float:
    """Give 1 + log n."""
    return 1 + math.log(count) if count > 1 else 1.0


def unit_vector(logs: Vector, idf: Idf) -> Vector:
    """Weigh log counts by idf, and bring them to length 1."""
    raw = {term: value * idf(term) for term, value in logs.items()}
    norm = math.sqrt(sum(value * value for value in raw.values())) or 1.0
    return {term: value / norm for term, value in raw.items()}


def cosine(a: Vector, b: Vector) -> float:
    """Give the cosine of two vectors of length 1."""
    if len(a) > len(b):
        a, b = b, a
    return sum([value * b[term] for term, value in a.items() if term in b])
