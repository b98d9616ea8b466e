"""How many changes a namespace's journal took in each minute, from few of its entries."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Final

MINUTE: Final = 60_000_000
"""Microseconds."""


def per_minute(at: Callable[[int], int], last: int, edges: Sequence[int]) -> list[int]:
    """Count the entries between each two moments.

    Entries are numbered without gaps and their times never go back, so a count is the
    difference of two positions, and each position is found by halving.

    Args:
        at: Gives the time of the entry at a position, in microseconds.
        last: The position of the newest entry; 0 where there is none.
        edges: The moments, rising.

    Returns:
        One count for each two neighbours; an entry at an edge belongs to what follows it.
    """
    firsts: list[int] = []
    low, known = 1, cache(at)
    for edge in edges:
        low = bisect_left(range(last + 1), edge, lo=low, hi=last + 1, key=known)
        firsts.append(low)
    return [after - before for before, after in pairwise(firsts)]


def edges_until(now: int, minutes: int) -> list[int]:
    """Give the edges of the minutes up to a moment; the last is the one that still runs."""
    end = now - now % MINUTE + MINUTE
    return [end - MINUTE * back for back in range(minutes, -1, -1)]
