"""How alike units are: the cosine of their terms, weighed by tf-idf."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from zero_mem.index.units import Unit

Idf = Callable[[str], float]
Vector = Mapping[str, float]


class Likeness:
    """The likeness of the units of a corpus, by vectors that are made when they are needed.

    Args:
        units: The units.
        idf: Gives a term's inverse document frequency.
    """

    def __init__(self, units: Sequence[Unit], idf: Idf) -> None:
        self._units = units
        self._idf = idf
        self._logs: dict[int, Vector] = {}
        self._vectors: dict[int, Vector] = {}

    def change(self, index: int) -> None:
        """Follow a unit that came, changed or ended: its terms, and so the idf of all."""
        self._logs.pop(index, None)
        self._vectors.clear()

    def log_counts(self, index: int) -> Vector:
        """Give 1 + log n for each term that a unit has n times."""
        found = self._logs.get(index)
        if found is None:
            counts = Counter(self._units[index].terms)
            found = self._logs[index] = {term: 1 + math.log(n) for term, n in counts.items()}
        return found

    def to(self, index: int, others: Iterable[int]) -> Mapping[int, float]:
        """Give the cosine of a unit with each of some others."""
        own, vectors = list(self._vector(index).items()), self._vectors
        found: dict[int, float] = {}
        for other in others:
            held = vectors.get(other) or self._vector(other)
            found[other] = sum([weight * held[term] for term, weight in own if term in held])
        return found

    def _vector(self, index: int) -> Vector:
        found = self._vectors.get(index)
        if found is None:
            found = self._vectors[index] = unit_vector(self.log_counts(index), self._idf)
        return found


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
