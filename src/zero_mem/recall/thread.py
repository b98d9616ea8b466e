"""Threads: which units follow one another in one conversation, and whether they do at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from zero_mem.index.units import Unit

GAP = timedelta(hours=3)
"""A longer silence ends a neighbourhood."""

REACH = 2
"""How many units each side are neighbours."""


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


def neighbours(units: Sequence[Unit], group: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Give each unit of a thread its neighbours: up to `REACH` each side, no gap over `GAP`."""
    breaks = [place for place in range(1, len(group)) if _gap(units, group, place)]
    found: dict[int, tuple[int, ...]] = {}
    for start, end in zip([0, *breaks], [*breaks, len(group)], strict=True):
        run = group[start:end]
        for place, index in enumerate(run):
            before = run[max(0, place - REACH) : place]
            found[index] = (*before, *run[place + 1 : place + 1 + REACH])
    return found


def _gap(units: Sequence[Unit], group: Sequence[int], place: int) -> bool:
    earlier, later = units[group[place - 1]].stamp, units[group[place]].stamp
    return earlier is not None and later is not None and later - earlier > GAP
