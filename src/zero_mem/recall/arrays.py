"""The sums over all units of a namespace with numpy, for namespaces that have vectors.

See `recall.arithmetic` for what each gives; the order of additions is the same, so the
numbers are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zero_mem.index.nearest import Cosines
from zero_mem.recall.arithmetic import Graded
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.levels import Level
from zero_mem.recall.thread import REACH

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Arrays:
    """The arithmetic of numpy."""

    def graded(self, level: Level, weights: Mapping[str, float]) -> Graded:
        """See `Arithmetic`."""
        scores = np.zeros(level.size)
        for term, weight in weights.items():
            documents, impacts = _impacts(level, term)
            scores[documents] += weight * impacts
        return Graded(scores, float(scores.max(initial=0.0)))

    def blended(
        self,
        corpus: Corpus,
        own: Graded,
        window: Graded,
        outer: Sequence[tuple[float, Graded]],
        *,
        share: float,
        short: float,
    ) -> Floats:
        """See `Arithmetic`."""
        (by_episode, episodes), (by_session, sessions) = outer
        by_episode, by_session = by_episode / episodes.unit, by_session / sessions.unit
        threads = corpus.threads
        need = _kept(corpus, f"need {short}", lambda: np.array(corpus.need(short)))
        episode_of = _kept(corpus, "episode_of", lambda: np.array(threads.episode_of))
        session_of = _kept(corpus, "session_of", lambda: np.array(threads.session_of))
        alone = own.scores / own.unit
        scores: Floats = alone + share * need * (window.scores / window.unit - alone)
        base = by_episode * episodes.scores + by_session * sessions.scores[session_of]
        scores += base[episode_of]
        return scores

    def dense(self, corpus: Corpus, similarities: Mapping[int, float], *, threaded: bool) -> Floats:
        """See `Arithmetic`."""
        scores = np.zeros(corpus.count)
        if not similarities:
            return scores
        placed = _cosines(similarities)
        places, own = placed.positions, placed.cosines.astype(np.float64)
        mixed = _with_neighbours(corpus, places, own) if threaded else own
        middle = float(np.partition(mixed, len(mixed) // 2)[len(mixed) // 2])
        highest = float(mixed.max())
        if middle == highest:
            low = float(mixed.min())
            scores[places] = 1.0 if low == highest else (mixed - low) / (highest - low)
        else:
            scores[places] = np.maximum(0.0, mixed - middle) / (highest - middle)
        return scores

    def placed(self, corpus: Corpus, similarities: Mapping[int, float]) -> Mapping[int, float]:
        """See `Arithmetic`."""
        positions: Integers = _kept(
            corpus, "positions", lambda: np.array([unit.position for unit in corpus.units])
        )
        found = _cosines(similarities)
        places = np.searchsorted(positions, found.positions)
        known = places < len(positions)
        known[known] = positions[places[known]] == found.positions[known]
        return Cosines(places[known], found.cosines[known])

    def own(self, own: Graded) -> Floats:
        """See `Arithmetic`."""
        shares: Floats = own.scores / own.unit
        return shares

    def sum(self, scores: Any, values: Any, weight: float) -> list[float]:
        """See `Arithmetic`."""
        return self.listed(scores + weight * values)

    def listed(self, scores: Any) -> list[float]:
        """See `Arithmetic`."""
        found: list[float] = scores.tolist()
        return found


def _cosines(similarities: Mapping[int, float]) -> Cosines:
    if isinstance(similarities, Cosines):
        return similarities
    count = len(similarities)
    return Cosines(
        np.fromiter(similarities.keys(), np.int64, count),
        np.fromiter(similarities.values(), np.float64, count),
    )


def _impacts(level: Level, term: str) -> tuple[Integers, Floats]:
    found: tuple[Integers, Floats] | None = level.kept.get(term)
    if found is None:
        documents, impacts = level.impacts(term)
        found = level.kept[term] = (np.array(documents, dtype=np.int64), np.array(impacts))
    return found


def _kept(corpus: Corpus, name: str, make: Callable[[], Any]) -> Any:
    """Give an array of the corpus, made once for as long as nothing changes."""
    found = corpus.kept.get(name)
    if found is None:
        found = corpus.kept[name] = make()
    return found


def _with_neighbours(corpus: Corpus, places: Integers, own: Floats) -> Floats:
    """Give half a unit's own similarity and half its neighbours' mean, where it has any."""
    near: Integers = _kept(corpus, "neighbours", lambda: _neighbours(corpus))
    known = np.zeros(corpus.count + 1, dtype=bool)
    known[places] = True
    all_own = np.zeros(corpus.count + 1)
    all_own[places] = own
    total, count = np.zeros(len(places)), np.zeros(len(places))
    for column in near[places].T:
        total += all_own[column]
        count += known[column]
    some = count > 0
    mixed = own.copy()
    mixed[some] = 0.5 * own[some] + 0.5 * (total[some] / count[some])
    return mixed


def _neighbours(corpus: Corpus) -> Integers:
    """Give the neighbours of each unit; `count`, which stands for none, fills the rows."""
    found = np.full((corpus.count, 2 * REACH), corpus.count, dtype=np.int64)
    for index, near in corpus.neighbours.items():
        found[index, : len(near)] = near
    return found
