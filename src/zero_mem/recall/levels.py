"""BM25 on each level of the hierarchy: turn, window, episode, session, from one inverted list.

Only units are indexed. What a window or a session holds of a term is added up from its units
when a query first asks for the term, and kept; so a write stays one write.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

K1 = 1.2
B = 0.75

Occurrences: TypeAlias = Mapping[str, tuple[list[int], list[int]]]
"""Of each term the units that hold it, and how often."""

Impacts: TypeAlias = tuple[list[int], list[float]]
"""Documents of a level, and what a term adds to each, before its idf."""

Shares: TypeAlias = Sequence[tuple[tuple[int, int], ...]]
"""Of each unit the documents that hold its text, each with how often it counts there."""


class Level:
    """One level: documents that each hold the text of some units.

    Args:
        occurrences: The inverted list of the units.
        lengths: The number of terms of each unit.
        shares: Where each unit's text counts; None where documents are the units themselves.
        count: The number of documents.
    """

    def __init__(
        self,
        occurrences: Occurrences,
        lengths: Sequence[int],
        shares: Shares | None,
        count: int,
        b: float = B,
    ) -> None:
        self._occurrences = occurrences
        self._shares = shares
        self.count = count
        self._norms = _norms(_document_lengths(lengths, shares, count), b)
        self._impacts: dict[str, Impacts] = {}

    def scores(self, weights: Mapping[str, float]) -> list[float]:
        """Score every document: the sum of its terms' impacts, each times its weight (idf)."""
        scores = [0.0] * self.count
        for term, weight in weights.items():
            documents, impacts = self.impacts(term)
            for document, impact in zip(documents, impacts, strict=True):
                scores[document] += weight * impact
        return scores

    def impacts(self, term: str) -> Impacts:
        """Give where a term occurs and what it adds there."""
        found = self._impacts.get(term)
        if found is None:
            found = self._impacts[term] = self._make(term)
        return found

    def idf(self, term: str) -> float:
        """Give a term's inverse document frequency on this level."""
        n = len(self.impacts(term)[0])
        return math.log(1 + (self.count - n + 0.5) / (n + 0.5))

    def _make(self, term: str) -> Impacts:
        documents, counts = self._counts(term)
        norms = self._norms
        return documents, [
            count * (K1 + 1) / (count + norms[document])
            for document, count in zip(documents, counts, strict=True)
        ]

    def _counts(self, term: str) -> tuple[list[int], list[int]]:
        units, counts = self._occurrences.get(term, ([], []))
        if self._shares is None:
            return units, counts
        held: dict[int, int] = defaultdict(int)
        for unit, count in zip(units, counts, strict=True):
            for document, weight in self._shares[unit]:
                held[document] += weight * count
        return list(held), list(held.values())


def _document_lengths(lengths: Sequence[int], shares: Shares | None, count: int) -> Sequence[int]:
    if shares is None:
        return lengths
    totals = [0] * count
    for length, parts in zip(lengths, shares, strict=True):
        for document, weight in parts:
            totals[document] += weight * length
    return totals


def _norms(lengths: Sequence[int], b: float) -> list[float]:
    mean = max(sum(lengths) / max(len(lengths), 1), 1e-9)
    return [K1 * (1 - b + b * length / mean) for length in lengths]
