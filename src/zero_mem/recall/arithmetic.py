"""The sums over all units of a namespace, as lists; `recall.arrays` does the same with numpy.

Both give the same numbers to the last bit, so an installed package never changes an order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from zero_mem.recall.corpus import Corpus
from zero_mem.recall.fuse import dense_scores
from zero_mem.recall.levels import Level

Vector: TypeAlias = Any
"""A number for each unit or document: a list here, an array there; both are read by index."""


Allowed = Callable[[int], bool]
"""Tells which units may be found."""

FLOORS = (0.5, 0.25, 0.1, 0.0)
"""Shares of the highest score, tried in turn, above which the best are looked for."""


class Graded(NamedTuple):
    """Scores of a level's documents, and the highest of them."""

    scores: Vector
    highest: float

    @property
    def unit(self) -> float:
        """What counts as 1: the highest score, where there is one."""
        return self.highest or 1.0

    def share(self, document: int) -> float:
        """Give a document's score as a share of the highest."""
        return float(self.scores[document] / self.unit)


class Arithmetic(Protocol):
    """What a ranking computes of all units at once."""

    def count(self, corpus: Corpus, terms: Iterable[str]) -> None:
        """Count terms on all levels, where that can be done faster than level by level."""

    def graded(self, level: Level, weights: Mapping[str, float]) -> Graded:
        """Score a level's documents by BM25."""

    def blended(
        self,
        corpus: Corpus,
        own: Graded,
        window: Graded,
        outer: Sequence[tuple[float, Graded]],
        *,
        share: float,
        short: float,
    ) -> Vector:
        """Give each unit its own share, its window's and those of its episode and session.

        Args:
            corpus: The units.
            own: Their own scores.
            window: Those of their windows.
            outer: The weight and the scores of the episodes, and of the sessions.
            share: How much of a unit's score its window has.
            short: Longer units need their window less.
        """

    def dense(self, corpus: Corpus, similarities: Mapping[int, float], *, threaded: bool) -> Vector:
        """Give each unit's dense score, see `fuse.dense_scores`; 0 without a vector."""

    def placed(self, corpus: Corpus, similarities: Mapping[int, float]) -> Mapping[int, float]:
        """Give by index what is given by position; what has no unit is left out."""

    def own(self, own: Graded) -> Vector:
        """Give each unit's own share."""

    def sum(self, scores: Vector, values: Vector, weight: float) -> Vector:
        """Give scores with weighted values added."""

    def shares(self, scores: Vector, whole: float) -> Vector:
        """Give scores as shares of a whole."""

    def add(self, scores: Vector, values: Mapping[int, float]) -> None:
        """Add values to the scores of some units."""

    def multiply(self, scores: Vector, factors: Mapping[int, float]) -> None:
        """Multiply the scores of some units."""

    def multiply_all(self, scores: Vector, indices: Collection[int], factor: float) -> None:
        """Multiply the scores of some units by the same factor."""

    def together(
        self, corpus: Corpus, name: str, lists: Iterable[Sequence[int]]
    ) -> Collection[int]:
        """Give the indices of some lists, each once.

        Args:
            corpus: Where they belong to.
            name: What they are, the same only for the same ones of this corpus.
            lists: The lists.
        """

    def highest(self, scores: Vector) -> float:
        """Give the highest score, 0 where there is none."""

    def best(self, scores: Vector, count: int, allowed: Allowed | None) -> list[int]:
        """Give the indices of the highest scores above 0, the later one first among equals."""

    def listed(self, scores: Vector) -> list[float]:
        """Give scores as a list."""


class Lists:
    """The arithmetic of the core: no package at all."""

    def count(self, corpus: Corpus, terms: Iterable[str]) -> None:
        """See `Arithmetic`."""

    def graded(self, level: Level, weights: Mapping[str, float]) -> Graded:
        """See `Arithmetic`."""
        scores = level.scores(weights)
        return Graded(scores, max(scores, default=0.0))

    def blended(
        self,
        corpus: Corpus,
        own: Graded,
        window: Graded,
        outer: Sequence[tuple[float, Graded]],
        *,
        share: float,
        short: float,
    ) -> list[float]:
        """See `Arithmetic`."""
        # One pass over all units, and most of them have no word of the question around them.
        (by_episode, episodes), (by_session, sessions) = outer
        by_episode, by_session = by_episode / episodes.unit, by_session / sessions.unit
        in_episode, in_session = episodes.scores, sessions.scores
        episode_of, session_of = corpus.threads.episode_of, corpus.threads.session_of
        base = [0.0] * len(own.scores)
        for episode in corpus.episode_numbers:
            session = in_session[session_of[episode]]
            base[episode] = by_episode * in_episode[episode] + by_session * session
        highest, widest = own.unit, window.unit
        return [
            (alone := score / highest) + share * need * (around / widest - alone) + base[episode]
            if around
            else base[episode]
            for score, around, need, episode in zip(
                own.scores, window.scores, corpus.need(short), episode_of, strict=True
            )
        ]

    def dense(
        self, corpus: Corpus, similarities: Mapping[int, float], *, threaded: bool
    ) -> list[float]:
        """See `Arithmetic`."""
        found = dense_scores(similarities, corpus.neighbours if threaded else {})
        return [found.get(index, 0.0) for index in range(corpus.count)]

    def placed(self, corpus: Corpus, similarities: Mapping[int, float]) -> Mapping[int, float]:
        """See `Arithmetic`."""
        places = corpus.places
        return {places[p]: value for p, value in similarities.items() if p in places}

    def own(self, own: Graded) -> list[float]:
        """See `Arithmetic`."""
        return self.shares(own.scores, own.unit)

    def sum(self, scores: Vector, values: Vector, weight: float) -> list[float]:
        """See `Arithmetic`."""
        return [a + weight * b for a, b in zip(scores, values, strict=True)]

    def shares(self, scores: Vector, whole: float) -> list[float]:
        """See `Arithmetic`."""
        return [score / whole for score in scores]

    def add(self, scores: Vector, values: Mapping[int, float]) -> None:
        """See `Arithmetic`."""
        for index, value in values.items():
            scores[index] += value

    def multiply(self, scores: Vector, factors: Mapping[int, float]) -> None:
        """See `Arithmetic`."""
        for index, factor in factors.items():
            scores[index] *= factor

    def multiply_all(self, scores: Vector, indices: Collection[int], factor: float) -> None:
        """See `Arithmetic`."""
        for index in indices:
            scores[index] *= factor

    def together(
        self, corpus: Corpus, name: str, lists: Iterable[Sequence[int]]
    ) -> Collection[int]:
        """See `Arithmetic`."""
        found = list(lists)
        return found[0] if len(found) == 1 else frozenset().union(*found)

    def highest(self, scores: Vector) -> float:
        """See `Arithmetic`."""
        return max(scores, default=0.0)

    def best(self, scores: Vector, count: int, allowed: Allowed | None) -> list[int]:
        """See `Arithmetic`."""
        highest = self.highest(scores)
        found: list[tuple[float, int]] = []
        for share in FLOORS:
            floor = share * highest
            # Almost all scores are low: leaving them out at once is most of the work of sorting.
            found = [(score, index) for index, score in enumerate(scores) if score > floor]
            if allowed is not None:
                found = [pair for pair in found if allowed(pair[1])]
            if len(found) >= count:
                break
        found.sort(reverse=True)
        return [index for _, index in found[:count]]

    def listed(self, scores: Vector) -> list[float]:
        """See `Arithmetic`."""
        return list(scores)


def arithmetic(*, dense: bool) -> Arithmetic:
    """Choose how to compute: with numpy where vectors are used, which need it anyway."""
    if dense:
        try:
            from zero_mem.recall.arrays import Arrays
        except ModuleNotFoundError as error:
            if error.name != "numpy":
                raise
        else:
            return Arrays()
    return Lists()
