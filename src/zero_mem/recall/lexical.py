"""BM25 over the postings of one namespace, pure and the same for every store.

Statistics (document count, mean length, document frequency) are the namespace's own, so that
one tenant's data never changes another's scores. Common terms are read last: the rare ones
choose the candidates, and all terms score them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from zero_mem.storage.base import NamespaceRow, Posting, Transaction

K1 = 1.2
B = 0.75
"""Robertson & Zaragoza, The Probabilistic Relevance Framework (2009): usual values."""

MAX_TERMS = 64
"""Of a longer query the rarest terms count."""

FIRST_POSTINGS = 3000
"""How many postings of the rarest terms are read before the common terms are left for scoring."""

FIRST_CANDIDATES = 300
"""How many candidates of the rare terms are scored in full before more are read."""


class Scored(NamedTuple):
    """A record's position and its score in [0, 1)."""

    position: int
    score: float


class Lexicon(Protocol):
    """What BM25 needs to know of an index."""

    @property
    def count(self) -> int:
        """The number of indexed records."""

    @property
    def length(self) -> int:
        """The number of terms in all of them."""

    def frequencies(self, terms: Collection[str]) -> Mapping[str, int]:
        """In how many records each term is; terms in none are left out."""

    def postings(self, term: str) -> Sequence[Posting]:
        """Where a term is."""

    def documents(self, positions: Collection[int]) -> Mapping[int, Sequence[str]]:
        """The terms of some records."""


class StoredLexicon:
    """The index of a namespace in a store."""

    def __init__(self, transaction: Transaction, row: NamespaceRow) -> None:
        self._transaction = transaction
        self._row = row
        self.count = row.documents
        self.length = row.length

    def frequencies(self, terms: Collection[str]) -> Mapping[str, int]:
        """See `Lexicon`."""
        return self._transaction.frequencies(self._row, terms)

    def postings(self, term: str) -> Sequence[Posting]:
        """See `Lexicon`."""
        return self._transaction.postings(self._row, term)

    def documents(self, positions: Collection[int]) -> Mapping[int, Sequence[str]]:
        """See `Lexicon`."""
        return self._transaction.documents(self._row, positions)


class ListedLexicon:
    """An index made on the spot of records that no index holds (the past, the archive)."""

    def __init__(self, units: Iterable[Sequence[str]]) -> None:
        self._units = list(units)
        self._postings: dict[str, list[Posting]] = defaultdict(list)
        for position, terms in enumerate(self._units):
            for term, frequency in Counter(terms).items():
                self._postings[term].append(Posting(position, frequency, len(terms)))
        self.count = len(self._units)
        self.length = sum(map(len, self._units))

    def frequencies(self, terms: Collection[str]) -> Mapping[str, int]:
        """See `Lexicon`."""
        return {term: len(self._postings[term]) for term in terms if term in self._postings}

    def postings(self, term: str) -> Sequence[Posting]:
        """See `Lexicon`."""
        return self._postings.get(term, [])

    def documents(self, positions: Collection[int]) -> Mapping[int, Sequence[str]]:
        """See `Lexicon`."""
        return {position: self._units[position] for position in positions}


class _Weights(NamedTuple):
    """The idf of each query term, rarest first, and the mean length."""

    idf: Mapping[str, float]
    frequencies: Mapping[str, int]
    mean: float
    best: float

    def part(self, term: str, frequency: int, length: int) -> float:
        """Give a term's part of a record's score."""
        norm = K1 * (1 - B + B * length / self.mean)
        return self.idf[term] * frequency * (K1 + 1) / (frequency + norm)


def rank(lexicon: Lexicon, terms: Sequence[str]) -> Iterator[Scored]:
    """Rank the records that hold a query term, best first, newer ones first among equals.

    A score is the share of the most that these terms could give, so it lies in [0, 1) and
    compares within a namespace. Records come lazily: a caller that filters may go on until
    none is left.

    Source:
        Okapi BM25 with idf = ln(1 + (N - n + 0.5) / (n + 0.5)).
    """
    weights = _weigh(lexicon, terms)
    remaining = list(weights.idf)
    seen: set[int] = set()
    while remaining:
        chosen = _affordable(remaining, weights.frequencies)
        remaining = remaining[len(chosen) :]
        partial = _partial(lexicon, chosen, weights, seen)
        if not remaining and not seen:
            yield from _ordered(partial, weights)
            return
        order = sorted(partial, key=lambda position: (-partial[position], -position))
        for start in range(0, len(order), FIRST_CANDIDATES):
            some = order[start : start + FIRST_CANDIDATES]
            yield from _ordered(_full(lexicon, some, weights), weights)
        seen.update(order)


def _weigh(lexicon: Lexicon, terms: Sequence[str]) -> _Weights:
    found = lexicon.frequencies(terms)
    rarest = sorted(found, key=lambda term: (found[term], term))[:MAX_TERMS]
    count = lexicon.count
    idf = {t: math.log(1 + (count - found[t] + 0.5) / (found[t] + 0.5)) for t in rarest}
    # Terms that no record has count towards the best possible score: they were asked for.
    absent = sum(term not in found for term in terms[:MAX_TERMS])
    best = (sum(idf.values()) + absent * math.log(1 + (count + 0.5) / 0.5)) * (K1 + 1)
    return _Weights(idf, found, max(lexicon.length / max(count, 1), 1e-9), best)


def _affordable(terms: Sequence[str], frequencies: Mapping[str, int]) -> Sequence[str]:
    spent = 0
    for number, term in enumerate(terms):
        spent += frequencies[term]
        if spent > FIRST_POSTINGS and number:
            return terms[:number]
    return terms


def _partial(
    lexicon: Lexicon, terms: Sequence[str], weights: _Weights, seen: set[int]
) -> dict[int, float]:
    scores: dict[int, float] = defaultdict(float)
    for term in terms:
        for position, frequency, length in lexicon.postings(term):
            if position not in seen:
                scores[position] += weights.part(term, frequency, length)
    return scores


def _full(lexicon: Lexicon, positions: Sequence[int], weights: _Weights) -> dict[int, float]:
    scores: dict[int, float] = {}
    for position, terms in lexicon.documents(positions).items():
        counts = Counter(term for term in terms if term in weights.idf)
        scores[position] = sum(
            weights.part(term, counts[term], len(terms)) for term in weights.idf if term in counts
        )
    return scores


def _ordered(scores: Mapping[int, float], weights: _Weights) -> Iterator[Scored]:
    for position in sorted(scores, key=lambda position: (-scores[position], -position)):
        yield Scored(position, scores[position] / weights.best)
