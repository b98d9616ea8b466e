"""Threads: which units follow one another in one conversation, and whether they do at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
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


def threads(units: Sequence[Unit], labels: Sequence[str]) -> list[list[int]]:
    """Group units by session, counterparty and kind, each group in order of time.

    Args:
        units: The units of a namespace, in order of position.
        labels: The counterparty of each, "" where none is known.

    Returns:
        Indices into `units`; units without a session form no thread.
    """
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index, unit in enumerate(units):
        if unit.session:
            groups[unit.session, labels[index], unit.kind].append(index)
    found = [group for group in groups.values() if len(group) > 1]
    for group in found:
        group.sort(key=lambda index: (_moment(units[index]), index))
    return found


def _moment(unit: Unit) -> float:
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
    groups: Sequence[Sequence[int]],
    near: Mapping[int, Sequence[int]],
    count: int,
    likeness: Callable[[int, int], float],
) -> bool:
    """Tell whether neighbours speak of the same things more than any two units do.

    Single facts that were saved one after the other have a session too, but no thread: the
    text of one says nothing about the next. Deterministic: pairs are taken at even steps.

    Args:
        groups: The threads.
        near: The neighbours of each unit.
        count: The number of units.
        likeness: The cosine of two units, 0 to 1.
    """
    pairs = [(a, b) for g in groups for a, b in pairwise(g) if b in near[a]]
    if not pairs:
        return False
    step = max(1, len(pairs) // PAIRS)
    chosen = list(islice(pairs[::step], PAIRS))
    close = sum(likeness(a, b) for a, b in chosen) / len(chosen)
    far = sum(likeness(a, (b + count // 2) % count) for a, b in chosen) / len(chosen)
    return close - far >= COHERENCE and close >= 2 * far
