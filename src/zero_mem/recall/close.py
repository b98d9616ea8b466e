"""Closure: what belongs to the best evidence, though the question has few of its words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from zero_mem.recall.corpus import Corpus

MOST_SHARE = 0.05
"""Where so large a part of the units lies within the days, days say nothing."""

MOST_UNITS = 400

MOST_READ = 2000
"""Units of three days, whatever their speaker or thread, beyond which nobody looks at them."""


def same_days(
    corpus: Corpus, seeds: Sequence[int], scores: Mapping[int, float]
) -> dict[int, float]:
    """Score the units stamped within a day of a seed by their likeness to it.

    What happened leaves traces of several kinds: a call, a message, a photo. So only units of
    another speaker or kind get something, and none of the seed's own thread, for which its
    window has spoken.

    Args:
        corpus: The units.
        seeds: The best units.
        scores: Of the seeds.
    """
    found: dict[int, float] = {}
    most = min(MOST_UNITS, max(20.0, MOST_SHARE * corpus.alive))
    for together in _groups(corpus, seeds):
        near = list(islice(_near(corpus, together[0]), int(most) + 1))
        if len(near) > most:
            continue
        weights = {seed: scores[seed] for seed in together}
        for index, gain in corpus.likeness.to(weights, near).items():
            found[index] = found.get(index, 0.0) + gain
    return found


def _groups(corpus: Corpus, seeds: Sequence[int]) -> Iterable[Sequence[int]]:
    """Group the seeds that have the same units near them."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for seed in seeds:
        unit = corpus.units[seed]
        day = unit.stamp.toordinal() if unit.stamp else None
        thread = corpus.threads.thread_of.get(seed)
        groups.setdefault((day, unit.speaker, unit.kind, thread), []).append(seed)
    return groups.values()


def _near(corpus: Corpus, seed: int) -> Iterator[int]:
    units, unit = corpus.units, corpus.units[seed]
    if unit.stamp is None:
        return
    numbers = corpus.threads.thread_of
    day, thread = unit.stamp.toordinal(), numbers.get(seed)
    speaker, kind = unit.speaker, unit.kind
    days = [corpus.days.get(near, ()) for near in (day - 1, day, day + 1)]
    if sum(map(len, days)) > MOST_READ:
        return
    for held in days:
        for index in held:
            other = units[index]
            if (other.speaker != speaker or other.kind != kind) and (
                thread is None or numbers.get(index) != thread
            ):
                yield index


def neighbouring(
    corpus: Corpus, evidence: Sequence[int], scores: Mapping[int, float], share: float
) -> dict[int, float]:
    """Score the neighbours of the evidence at a share of its own score.

    Source: arXiv:2607.29377, support from neighbouring turns.
    """
    found: dict[int, float] = {}
    for index in evidence:
        for near in corpus.neighbours.get(index, ()):
            found[near] = max(found.get(near, 0.0), share * scores[index])
    return found
