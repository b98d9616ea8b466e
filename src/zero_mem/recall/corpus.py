"""The units of a namespace in memory, with what a query needs of them; built once, then read."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property

from zero_mem.index.units import Unit
from zero_mem.recall import thread
from zero_mem.recall.calendar_days import Span
from zero_mem.recall.dates import spans, years_of
from zero_mem.recall.levels import Level

OWN_WEIGHT = 4
"""How often a unit's own text counts in its neighbourhood's."""

LONGEST_SPAN = 31
"""A unit that speaks of a longer time is not about any of its days."""

DATED_CHARACTERS = 300
"""Of a unit's text so much is read for dates."""


class Corpus:
    """Everything that is derived from the units of a namespace.

    Args:
        units: In order of position.
    """

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = units
        self.count = len(units)
        self.occurrences: dict[str, tuple[list[int], list[int]]] = {}
        for index, unit in enumerate(units):
            for term, count in Counter(unit.terms).items():
                held = self.occurrences.get(term)
                if held is None:
                    self.occurrences[term] = ([index], [count])
                else:
                    held[0].append(index)
                    held[1].append(count)
        self._lengths = [len(unit.terms) for unit in units]

    def idf(self, term: str) -> float:
        """Give a term's inverse document frequency among the units."""
        held = self.occurrences.get(term)
        n = len(held[0]) if held else 0
        return math.log(1 + (self.count - n + 0.5) / (n + 0.5))

    @cached_property
    def turns(self) -> Level:
        """The units themselves."""
        return Level(self.occurrences, self._lengths, None, self.count)

    @cached_property
    def labels(self) -> list[str]:
        """The counterparty of each unit: a label that repeats, but not everywhere."""
        return _labels(self.units)

    @cached_property
    def threads(self) -> list[list[int]]:
        """The threads, see `thread.threads`."""
        return thread.threads(self.units, self.labels)

    @cached_property
    def neighbours(self) -> Mapping[int, tuple[int, ...]]:
        """Of each unit of a thread its neighbours."""
        found: dict[int, tuple[int, ...]] = {}
        for group in self.threads:
            found.update(thread.neighbours(self.units, group))
        return found

    @cached_property
    def windows(self) -> Level:
        """Each unit with its neighbours, its own text counted more."""
        none: tuple[int, ...] = ()
        shares = [
            ((index, OWN_WEIGHT), *((other, 1) for other in self.neighbours.get(index, none)))
            for index in range(self.count)
        ]
        return Level(self.occurrences, self._lengths, shares, self.count)

    @cached_property
    def session_of(self) -> list[int]:
        """The number of each unit's session; a unit without one is alone in its own."""
        numbers: dict[str, int] = {}
        return [
            numbers.setdefault(unit.session or f"\n{index}", len(numbers))
            for index, unit in enumerate(self.units)
        ]

    @cached_property
    def sessions(self) -> Level:
        """The sessions."""
        shares = [((number, 1),) for number in self.session_of]
        return Level(self.occurrences, self._lengths, shares, max(self.session_of, default=-1) + 1)

    @cached_property
    def spans(self) -> list[tuple[Span, ...]]:
        """The days of each unit: its stamp's, and those its text names."""
        return [_unit_spans(unit) for unit in self.units]

    @cached_property
    def years(self) -> list[int]:
        """The years of the stamps."""
        return years_of({unit.stamp.toordinal() for unit in self.units if unit.stamp})

    @cached_property
    def speakers(self) -> Mapping[str, list[int]]:
        """The units of each speaker."""
        found: dict[str, list[int]] = defaultdict(list)
        for index, unit in enumerate(self.units):
            if unit.speaker:
                found[unit.speaker].append(index)
        return found

    @cached_property
    def counterparties(self) -> Mapping[str, list[int]]:
        """The units of each label."""
        found: dict[str, list[int]] = defaultdict(list)
        for index, label in enumerate(self.labels):
            if label:
                found[label].append(index)
        return found


def _labels(units: Sequence[Unit]) -> list[str]:
    counts = Counter(unit.label for unit in units)
    most = max(2, len(units) // 50)
    return [unit.label if 2 <= counts[unit.label] <= most else "" for unit in units]


def _unit_spans(unit: Unit) -> tuple[Span, ...]:
    anchor = unit.stamp.date() if unit.stamp else None
    years = [anchor.year] if anchor else []
    found = spans(unit.text[:DATED_CHARACTERS], anchor=anchor, years=years)
    own = [] if anchor is None else [_day(anchor)]
    return (*own, *(span for span in found if span.days <= LONGEST_SPAN))


def _day(day: date) -> Span:
    return Span(day.toordinal(), day.toordinal())
