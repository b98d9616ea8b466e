"""Threads: which units follow one another in one conversation, and whether they do at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice, pairwise

from zero_mem.index.units import Unit

GAP = timedelta(hours=3)
"""A longer silence ends a neighbourhood."""

EPISODE_GAP = timedelta(hours=2)
EPISODE_UNITS = 8

REACH = 2
"""How many units each side are neighbours."""

PAIRS = 200
"""How many pairs of neighbours tell whether threads hold together."""

COHERENCE = 0.02
"""How much likelier neighbours are than other units where threads hold together (cosine)."""


def moment(unit: Unit) -> float:
    """Give the place of a unit in time; one without a time comes first."""
    return unit.stamp.timestamp() if unit.stamp else 0.0


def runs(units: Sequence[Unit], group: Sequence[int], gap: timedelta) -> Iterator[Sequence[int]]:
    """Cut a thread where its silence is longer than a gap."""
    breaks = [place for place in range(1, len(group)) if _silent(units, group, place, gap)]
    for start, end in zip([0, *breaks], [*breaks, len(group)], strict=True):
        yield group[start:end]


def _silent(units: Sequence[Unit], group: Sequence[int], place: int, gap: timedelta) -> bool:
    earlier, later = units[group[place - 1]].stamp, units[group[place]].stamp
    return earlier is not None and later is not None and later - earlier > gap


def neighbours(units: Sequence[Unit], group: Sequence[int]) -> Mapping[int, tuple[int, ...]]:
    """Give each unit of a thread its neighbours: up to `REACH` each side, no gap over `GAP`."""
    found: dict[int, tuple[int, ...]] = {}
    for run in runs(units, group, GAP):
        for place, index in enumerate(run):
            before = run[max(0, place - REACH) : place]
            found[index] = (*before, *run[place + 1 : place + 1 + REACH])
    return found


def episodes(units: Sequence[Unit], group: Sequence[int]) -> Iterator[Sequence[int]]:
    """Cut a thread into episodes: no gap over `EPISODE_GAP`, at most `EPISODE_UNITS` units."""
    for run in runs(units, group, EPISODE_GAP):
        for start in range(0, len(run), EPISODE_UNITS):
            yield run[start : start + EPISODE_UNITS]


def coherent(
    groups: Iterable[Sequence[int]],
    near: Mapping[int, Sequence[int]],
    among: Sequence[int],
    likeness: Callable[[int, int], float],
) -> bool:
    """Tell whether neighbours speak of the same things more than any two units do.

    Single facts that were saved one after the other have a session too, but no thread: the
    text of one says nothing about the next. Deterministic: pairs are taken at even steps.

    Args:
        groups: The threads.
        near: The neighbours of each unit.
        among: The units that are looked at, in order.
        likeness: The cosine of two units, 0 to 1.
    """
    place = {index: number for number, index in enumerate(among)}
    pairs = [
        (a, b)
        for group in groups
        for a, b in pairwise(group)
        if a in place and b in place and b in near[a]
    ]
    if not pairs:
        return False
    step = max(1, len(pairs) // PAIRS)
    chosen = list(islice(pairs[::step], PAIRS))
    close = sum(likeness(a, b) for a, b in chosen) / len(chosen)
    count = len(among)
    others = [(a, among[(place[b] + count // 2) % count]) for a, b in chosen]
    far = sum(likeness(a, b) for a, b in others) / len(chosen)
    return close - far >= COHERENCE and close >= 2 * far
