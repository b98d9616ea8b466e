"""The sums over all units of a namespace with numpy, for namespaces that have vectors.

See `recall.arithmetic` for what each gives; the order of additions is the same, so the
numbers are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from zero_mem.index.nearest import Cosines
from zero_mem.recall.arithmetic import FLOORS, Allowed, Graded
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.levels import K1, Level
from zero_mem.recall.thread import REACH
from zero_mem.recall.threads import NEXT_WEIGHT, OWN_WEIGHT

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


COMMON = 8
"""A term in one of so many documents is added to all at once: zeros cost less than places."""

NO_TERM = ""
"""Under this the lengths of a level's documents are kept, beside what is kept of terms."""

FEW = 12
"""A term in fewer units is counted faster one by one."""

SPARSE = 4
"""Up to so many positions for each unit have a table that tells which unit is at each."""


class Arrays:
    """The arithmetic of numpy."""

    def count(self, corpus: Corpus, terms: Iterable[str]) -> None:
        """See `Arithmetic`."""
        levels = _levels(corpus)
        for term in terms:
            units, counts = corpus.occurrences.get(term, ((), ()))
            missing = [name for name, level in levels.items() if not level.counted(term)]
            if len(units) < FEW or not missing:
                continue
            held, often = np.array(units), np.array(counts)
            for name in missing:
                documents, weights = _kept(corpus, name, partial(_MEMBERS[name], corpus))
                inside = documents[:, held].ravel()
                added = np.bincount(inside, (weights[:, held] * often).ravel())
                found = np.flatnonzero(added[: corpus.count])
                times = added[found].astype(np.int64)
                levels[name].keep_counts(term, found.tolist(), times.tolist())

    def graded(self, level: Level, weights: Mapping[str, float]) -> Graded:
        """See `Arithmetic`."""
        scores = np.zeros(level.size)
        for term, weight in weights.items():
            documents, impacts = _impacts(level, term)
            if documents is None:
                scores += weight * impacts
            else:
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
        found = _cosines(similarities)
        table: Integers = _kept(corpus, "places", lambda: _places(corpus))
        if not len(table):
            return Arrays._searched(corpus, found)
        offsets = found.positions - corpus.units[0].position
        within = (offsets >= 0) & (offsets < len(table))
        places = table[np.where(within, offsets, 0)]
        known = within & (places >= 0)
        return Cosines(places[known], found.cosines[known])

    @staticmethod
    def _searched(corpus: Corpus, found: Cosines) -> Cosines:
        positions: Integers = _kept(
            corpus, "positions", lambda: np.array([unit.position for unit in corpus.units])
        )
        places = np.searchsorted(positions, found.positions)
        known = places < len(positions)
        known[known] = positions[places[known]] == found.positions[known]
        return Cosines(places[known], found.cosines[known])

    def own(self, own: Graded) -> Floats:
        """See `Arithmetic`."""
        return self.shares(own.scores, own.unit)

    def sum(self, scores: Any, values: Any, weight: float) -> Floats:
        """See `Arithmetic`."""
        found: Floats = scores + weight * values
        return found

    def shares(self, scores: Any, whole: float) -> Floats:
        """See `Arithmetic`."""
        found: Floats = scores / whole
        return found

    def add(self, scores: Any, values: Mapping[int, float]) -> None:
        """See `Arithmetic`."""
        indices, added = _columns(values)
        scores[indices] += added

    def multiply(self, scores: Any, factors: Mapping[int, float]) -> None:
        """See `Arithmetic`."""
        indices, multiplied = _columns(factors)
        scores[indices] *= multiplied

    def multiply_all(self, scores: Any, indices: Collection[int], factor: float) -> None:
        """See `Arithmetic`."""
        scores[indices] *= factor

    def together(self, corpus: Corpus, name: str, lists: Iterable[Sequence[int]]) -> Any:
        """See `Arithmetic`."""

        def made() -> Integers:
            indices = frozenset().union(*lists)
            return np.sort(np.fromiter(indices, np.int64, len(indices)))

        return _kept(corpus, name, made)

    def highest(self, scores: Any) -> float:
        """See `Arithmetic`."""
        return float(scores.max(initial=0.0))

    def best(self, scores: Any, count: int, allowed: Allowed | None) -> list[int]:
        """See `Arithmetic`."""
        highest = self.highest(scores)
        found: Integers = np.empty(0, dtype=np.int64)
        for share in FLOORS:
            found = np.flatnonzero(scores > share * highest)
            if allowed is not None:
                found = found[[allowed(index) for index in found.tolist()]]
            if len(found) >= count:
                break
        values = scores[found]
        if len(found) > count:
            least = np.partition(values, -count)[-count]
            found, values = found[values >= least], values[values >= least]
        best: list[int] = found[np.lexsort((found, values))[::-1][:count]].tolist()
        return best

    def listed(self, scores: Any) -> list[float]:
        """See `Arithmetic`."""
        found: list[float] = scores.tolist()
        return found


def _cosines(similarities: Mapping[int, float]) -> Cosines:
    if isinstance(similarities, Cosines):
        return similarities
    return Cosines(*_columns(similarities))


def _columns(values: Mapping[int, float]) -> tuple[Integers, Floats]:
    count = len(values)
    return (
        np.fromiter(values.keys(), np.int64, count),
        np.fromiter(values.values(), np.float64, count),
    )


def _impacts(level: Level, term: str) -> tuple[Integers | None, Floats]:
    """Give where a term occurs and what it adds there, or that for all where it is common."""
    found: tuple[Integers | None, Floats] | None = level.kept.get(term)
    if found is None:
        held, often = level.counts(term)
        documents, counts = np.array(held, dtype=np.int64), np.array(often, dtype=np.float64)
        short, slope = level.norm
        impacts = counts * (K1 + 1) / (counts + (short + slope * _lengths(level)[documents]))
        if COMMON * len(documents) > level.size:
            every = np.zeros(level.size)
            every[documents] = impacts
            found = (None, every)
        else:
            found = (documents, impacts)
        level.kept[term] = found
    return found


def _lengths(level: Level) -> Integers:
    found: Integers | None = level.kept.get(NO_TERM)
    if found is None:
        found = level.kept[NO_TERM] = np.array(level.lengths, dtype=np.int64)
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
    total, count = np.zeros(corpus.count), np.zeros(corpus.count)
    for beside in near:
        total += all_own[beside]
        count += known[beside]
    total, count = total[places], count[places]
    mixed: Floats = np.where(count > 0, 0.5 * own + 0.5 * (total / np.maximum(count, 1)), own)
    return mixed


def _neighbours(corpus: Corpus) -> Integers:
    """Give a neighbour of each unit in each row; `count` stands for none."""
    found = np.full((2 * REACH, corpus.count), corpus.count, dtype=np.int64)
    near = corpus.neighbours
    sizes = np.fromiter(map(len, near.values()), np.int64, len(near))
    total = int(sizes.sum())
    units = np.repeat(np.fromiter(near, np.int64, len(near)), sizes)
    rows = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found[rows, units] = np.fromiter(chain.from_iterable(near.values()), np.int64, total)
    return found


Members = tuple[Integers, Integers]
"""Of each unit, in rows, the documents of a level that hold it and how often; see `Level`."""


def _window_members(corpus: Corpus) -> Members:
    near: Integers = _kept(corpus, "neighbours", lambda: _neighbours(corpus))
    standing = corpus.threads.standing
    followers = np.fromiter((one.follower for one in standing), np.int64, len(standing))
    documents = np.vstack((np.arange(corpus.count), near))
    weights = np.where(documents == followers, NEXT_WEIGHT, 1)
    weights[0] = OWN_WEIGHT
    return documents, weights


def _alone(numbers: Sequence[int]) -> Members:
    documents = np.array([numbers], dtype=np.int64)
    return documents, np.ones_like(documents)


_MEMBERS: Mapping[str, Callable[[Corpus], Members]] = {
    "windows": _window_members,
    "episodes": lambda corpus: _alone(corpus.threads.episode_of),
    "sessions": lambda corpus: _alone(corpus.threads.session_of),
}


def _levels(corpus: Corpus) -> Mapping[str, Level]:
    return {"windows": corpus.windows, "episodes": corpus.episodes, "sessions": corpus.sessions}


def _places(corpus: Corpus) -> Integers:
    """Give the unit at each position from the first unit's on, -1 for none; empty if sparse."""
    positions = np.array([unit.position for unit in corpus.units], dtype=np.int64)
    offsets = positions - positions[:1]
    size = int(offsets[-1]) + 1 if len(offsets) else 0
    if size > SPARSE * len(offsets):
        return np.empty(0, dtype=np.int64)
    found = np.full(size, -1, dtype=np.int64)
    found[offsets] = np.arange(len(offsets))
    return found
