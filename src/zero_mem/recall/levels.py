"""BM25 on each level of the hierarchy: turn, window, episode, session, from one inverted list.

Only units are indexed. What a window or a session holds of a term is added up from its units
when a query first asks for the term, and kept until one of them changes; so a write stays one
write, and the query after it adds up only what the write touched.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

K1 = 1.2
B = 0.75

Occurrences: TypeAlias = Mapping[str, tuple[list[int], list[int]]]
"""Of each term the units that hold it, and how often."""

Listed: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Documents of a level that hold a term, and how often."""

Impacts: TypeAlias = tuple[Sequence[int], Sequence[float]]
"""Documents of a level, and what a term adds to each, before its idf."""

Shares: TypeAlias = tuple[tuple[int, int], ...]
"""The documents that hold a unit's text, each with how often it counts there."""


class Level:
    """One level: documents that each hold the text of some units.

    A document has the number of one of its units, so that adding a unit renumbers nothing;
    numbers that no document has are empty.

    Args:
        occurrences: The inverted list of the units.
        alone: Documents are the units themselves.

    Attributes:
        lengths: The number of terms of each document.
        size: One more than the highest number of a document.
        kept: What a faster arithmetic keeps of a term; it goes whenever impacts change.
    """

    def __init__(self, occurrences: Occurrences, *, alone: bool = False) -> None:
        self.lengths: list[int] = []
        self.kept: dict[str, Any] = {}
        self._occurrences = occurrences
        self._alone = alone
        self._shares: list[Shares] = []
        self._members: list[int] = []
        self._documents = 0
        self._total = 0
        self._listed: dict[str, Listed] = {}
        self._impacts: dict[str, Impacts] = {}

    @property
    def size(self) -> int:
        """One more than the highest number of a document."""
        return len(self.lengths)

    # Changes

    def place(self, unit: int, length: int, shares: Shares) -> None:
        """Count a unit's text in some documents; without any it counts nowhere.

        Args:
            unit: Its index.
            length: The number of its terms.
            shares: Where it counts.
        """
        last = max((document for document, _ in shares), default=unit)
        while max(unit, last) >= self.size:
            self.lengths.append(0)
            self._members.append(0)
            self._shares.append(())
        self._shares[unit] = shares
        self._count(shares, length, 1)

    def displace(self, unit: int, length: int) -> None:
        """Take a unit's text, of that length, out of the documents that hold it."""
        self._count(self._shares[unit], length, -1)
        self._shares[unit] = ()

    def _count(self, shares: Shares, length: int, sign: int) -> None:
        for document, weight in shares:
            self.lengths[document] += sign * weight * length
            self._total += sign * weight * length
            before = self._members[document]
            self._members[document] = before + sign
            self._documents += (before + sign > 0) - (before > 0)

    def forget(self, terms: Iterable[str]) -> None:
        """Forget what was added up of some terms, and whatever the mean length enters."""
        for term in terms:
            self._listed.pop(term, None)
        self._impacts.clear()
        self.kept.clear()

    # Scores

    def scores(self, weights: Mapping[str, float]) -> list[float]:
        """Score every document: the sum of its terms' impacts, each times its weight (idf)."""
        scores = [0.0] * self.size
        for term, weight in weights.items():
            documents, impacts = self.impacts(term)
            for document, impact in zip(documents, impacts, strict=True):
                scores[document] += weight * impact
        return scores

    @property
    def norm(self) -> tuple[float, float]:
        """Give how BM25 weighs a document's length: a constant, and what each term adds."""
        mean = max(self._total / max(self._documents, 1), 1e-9)
        return K1 * (1 - B), K1 * B / mean

    def impacts(self, term: str) -> Impacts:
        """Give where a term occurs and what it adds there."""
        found = self._impacts.get(term)
        if found is None:
            documents, counts = self.counts(term)
            short, slope = self.norm
            lengths = self.lengths
            found = self._impacts[term] = (
                documents,
                [
                    count * (K1 + 1) / (count + (short + slope * lengths[document]))
                    for document, count in zip(documents, counts, strict=True)
                ],
            )
        return found

    def counted(self, term: str) -> bool:
        """Tell whether it is known how often each document holds a term."""
        return self._alone or term in self._listed

    def keep_counts(self, term: str, documents: Sequence[int], counts: Sequence[int]) -> None:
        """Take over which documents hold a term how often, as `counts` would add it up."""
        self._listed[term] = documents, counts

    def idf(self, term: str) -> float:
        """Give a term's inverse document frequency on this level."""
        n = len(self.counts(term)[0])
        return math.log(1 + (self._documents - n + 0.5) / (n + 0.5))

    def counts(self, term: str) -> Listed:
        """Give which documents hold a term, and how often."""
        if self._alone:
            return self._occurrences.get(term, ((), ()))
        found = self._listed.get(term)
        if found is None:
            held: dict[int, int] = defaultdict(int)
            shares = self._shares
            for unit, count in zip(*self._occurrences.get(term, ((), ())), strict=True):
                for document, weight in shares[unit]:
                    held[document] += weight * count
            found = self._listed[term] = list(held), list(held.values())
        return found
