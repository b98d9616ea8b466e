"""The sums over all units of a namespace, as lists; `recall.arrays` does the same with numpy.

Both give the same numbers to the last bit, so an installed package never changes an order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from zero_mem.recall.corpus import Corpus
from zero_mem.recall.fuse import dense_scores
from zero_mem.recall.levels import Level

Vector: TypeAlias = Any
"""A number for each unit or document: a list here, an array there; both are read by index."""


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
    """What the hierarchy view computes of all units at once."""

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

    def sum(self, scores: Vector, values: Vector, weight: float) -> list[float]:
        """Add weighted values to scores."""

    def listed(self, scores: Vector) -> list[float]:
        """Give scores as a list."""


class Lists:
    """The arithmetic of the core: no package at all."""

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
        highest = own.unit
        return [score / highest for score in own.scores]

    def sum(self, scores: Vector, values: Vector, weight: float) -> list[float]:
        """See `Arithmetic`."""
        return [a + weight * b for a, b in zip(scores, values, strict=True)]

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
