"""The units of a namespace in memory, with what a query needs of them.

What a unit has by itself (its names, its days) is kept when others change; what units have
together (threads, levels, the graph) is made anew, when a query first asks for it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import pairwise

from zero_mem.index.entities import EntityIndex, Names, names_of
from zero_mem.index.units import Unit
from zero_mem.recall import thread
from zero_mem.recall.calendar_days import Span
from zero_mem.recall.dates import spans, years_of
from zero_mem.recall.levels import Level

OWN_WEIGHT = 4
"""How often a unit's own text counts in its window's."""

NEXT_WEIGHT = 2
"""And how often in the window of the next unit, which may be its answer."""

LONGEST_SPAN = 31
"""A unit that speaks of more days than these is not about any of them."""

DATED_CHARACTERS = 300
"""Of a unit's text so much is read for dates."""


class Corpus:
    """Everything that is derived from the units of a namespace.

    Indices are places in `units`; a unit that ended leaves an empty one at its place.

    Args:
        units: In order of position.
        frequencies: Of some terms in how many of `total` units they are, where `units` are
            only some of a larger namespace.
        total: The number of units of that namespace.
        coherent: Whether that namespace's threads hold together.
    """

    def __init__(
        self,
        units: Iterable[Unit],
        *,
        frequencies: Mapping[str, int] | None = None,
        total: int = 0,
        coherent: bool | None = None,
    ) -> None:
        self.units: list[Unit] = []
        self.occurrences: dict[str, tuple[list[int], list[int]]] = {}
        self.lengths: list[int] = []
        self.places: dict[int, int] = {}
        self.alive = 0
        self._frequencies = frequencies
        self._total = total
        self._coherent = coherent
        self._names: dict[int, Names] = {}
        self._spans: dict[int, tuple[Span, ...]] = {}
        self._vectors: dict[int, dict[str, float]] = {}
        for unit in units:
            self._append(unit)

    @property
    def count(self) -> int:
        """The number of places, ended units included."""
        return len(self.units)

    # Changes

    def put(self, unit: Unit) -> bool:
        """Take a unit in, at its place or as the last; False where neither is possible."""
        place = self.places.get(unit.position)
        if place is None:
            if self.units and unit.position < self.units[-1].position:
                return False
            self._append(unit)
        else:
            self._replace(place, unit)
        self._forget()
        return True

    def remove(self, position: int) -> None:
        """Let the unit at a position end."""
        place = self.places.get(position)
        if place is not None and self.units[place].terms:
            gone = Unit(position=position, terms=(), text="")
            self._replace(place, gone)
            self._forget()

    def _append(self, unit: Unit) -> None:
        self.places[unit.position] = place = len(self.units)
        self.units.append(unit)
        self.lengths.append(len(unit.terms))
        self.alive += 1
        for term, count in Counter(unit.terms).items():
            held = self.occurrences.get(term)
            if held is None:
                self.occurrences[term] = ([place], [count])
            else:
                held[0].append(place)
                held[1].append(count)

    def _replace(self, place: int, unit: Unit) -> None:
        old = self.units[place]
        self.alive += (unit.text != "") - (old.text != "")
        for term in set(old.terms):
            self._drop(term, place)
        for term, count in Counter(unit.terms).items():
            places, counts = self.occurrences.setdefault(term, ([], []))
            at = bisect_left(places, place)
            places.insert(at, place)
            counts.insert(at, count)
        self.units[place], self.lengths[place] = unit, len(unit.terms)
        self._names.pop(place, None)
        self._spans.pop(place, None)

    def _drop(self, term: str, place: int) -> None:
        places, counts = self.occurrences[term]
        at = bisect_left(places, place)
        del places[at], counts[at]
        if not places:
            del self.occurrences[term]

    def _forget(self) -> None:
        """Drop what units have together."""
        self._vectors.clear()
        for name, attribute in vars(type(self)).items():
            if isinstance(attribute, cached_property):
                self.__dict__.pop(name, None)

    # Words

    def idf(self, term: str) -> float:
        """Give a term's inverse document frequency among the units."""
        if self._frequencies is not None:
            n, total = self._frequencies.get(term, 0), self._total
        else:
            held = self.occurrences.get(term)
            n, total = (len(held[0]) if held else 0), self.alive
        return math.log(1 + (max(total, n) - n + 0.5) / (n + 0.5))

    def vector(self, index: int) -> Mapping[str, float]:
        """Give a unit's terms by tf-idf, of length 1."""
        found = self._vectors.get(index)
        if found is None:
            counts = Counter(self.units[index].terms)
            raw = {term: (1 + math.log(n)) * self.idf(term) for term, n in counts.items()}
            norm = math.sqrt(sum(value * value for value in raw.values())) or 1.0
            found = self._vectors[index] = {term: value / norm for term, value in raw.items()}
        return found

    def likeness(self, one: int, other: int) -> float:
        """Give the cosine of two units."""
        a, b = self.vector(one), self.vector(other)
        if len(a) > len(b):
            a, b = b, a
        return sum(value * b[term] for term, value in a.items() if term in b)

    # The hierarchy

    @cached_property
    def turns(self) -> Level:
        """The units themselves."""
        return Level(self.occurrences, self.lengths, None, self.count)

    @cached_property
    def windows(self) -> Level:
        """Each unit with its neighbours, its own text counted more."""
        shares = [
            (
                (index, OWN_WEIGHT),
                *((o, NEXT_WEIGHT if o == after else 1) for o in self.neighbours.get(index, ())),
            )
            for index, after in enumerate(self._followers)
        ]
        return Level(self.occurrences, self.lengths, shares, self.count)

    @property
    def _followers(self) -> list[int]:
        """Of each unit the next one of its thread, -1 where there is none."""
        found = [-1] * self.count
        for group in self.threads:
            for index, after in pairwise(group):
                found[index] = after
        return found

    @cached_property
    def episodes(self) -> Level:
        """Units of a thread without a break; one outside any thread is its own."""
        return self._grouped(self.episode_of)

    @cached_property
    def sessions(self) -> Level:
        """The sessions."""
        return self._grouped(self.session_of)

    def _grouped(self, numbers: Sequence[int]) -> Level:
        shares = [((number, 1),) for number in numbers]
        return Level(self.occurrences, self.lengths, shares, max(numbers, default=-1) + 1)

    @cached_property
    def session_of(self) -> list[int]:
        """The number of each unit's session; a unit without one is alone in its own."""
        numbers: dict[str, int] = {}
        return [
            numbers.setdefault(unit.session or f"\n{index}", len(numbers))
            for index, unit in enumerate(self.units)
        ]

    @cached_property
    def episode_of(self) -> list[int]:
        """The number of each unit's episode."""
        numbers = [-1] * self.count
        number = 0
        for group in self.threads:
            for episode in thread.episodes(self.units, group):
                for index in episode:
                    numbers[index] = number
                number += 1
        for index, found in enumerate(numbers):
            if found < 0:
                numbers[index], number = number, number + 1
        return numbers

    @cached_property
    def labels(self) -> list[str]:
        """The counterparty of each unit: a label that repeats, but not everywhere."""
        counts = Counter(unit.label for unit in self.units)
        most = max(2, self.count // 50)
        return [u.label if 2 <= counts[u.label] <= most else "" for u in self.units]

    @cached_property
    def threads(self) -> list[list[int]]:
        """The threads, see `thread.threads`."""
        return thread.threads(self.units, self.labels)

    @cached_property
    def thread_of(self) -> Mapping[int, int]:
        """The number of each unit's thread; those in none are left out."""
        return {index: number for number, group in enumerate(self.threads) for index in group}

    @cached_property
    def neighbours(self) -> Mapping[int, tuple[int, ...]]:
        """Of each unit of a thread its neighbours."""
        found: dict[int, tuple[int, ...]] = {}
        for group in self.threads:
            found.update(thread.neighbours(self.units, group))
        return found

    @cached_property
    def coherent(self) -> bool:
        """Tell whether the threads hold together, see `thread.coherent`."""
        if self._coherent is not None:
            return self._coherent
        return thread.coherent(self.threads, self.neighbours, self.count, self.likeness)

    @cached_property
    def openings(self) -> frozenset[int]:
        """The first unit of each session."""
        first: dict[int, int] = {}
        for index, number in enumerate(self.session_of):
            first.setdefault(number, index)
        return frozenset(index for index in first.values() if self.units[index].session)

    # Names and days

    @cached_property
    def entities(self) -> EntityIndex:
        """The graph of names and units."""
        for index, unit in enumerate(self.units):
            if index not in self._names:
                self._names[index] = names_of(unit.text)
        return EntityIndex(self.units, [self._names[index] for index in range(self.count)])

    @cached_property
    def dated(self) -> Mapping[Span, list[int]]:
        """The units of each span of days: that of their stamp, and those their text names."""
        found: dict[Span, list[int]] = defaultdict(list)
        for index, unit in enumerate(self.units):
            held = self._spans.get(index)
            if held is None:
                held = self._spans[index] = _unit_spans(unit)
            for span in held:
                found[span].append(index)
        return found

    @cached_property
    def days(self) -> Mapping[int, list[int]]:
        """The units stamped on each day."""
        found: dict[int, list[int]] = defaultdict(list)
        for index, unit in enumerate(self.units):
            if unit.stamp:
                found[unit.stamp.toordinal()].append(index)
        return found

    @cached_property
    def years(self) -> list[int]:
        """The years of the stamps."""
        return years_of(self.days)

    @cached_property
    def speakers(self) -> Mapping[str, list[int]]:
        """The units of each speaker."""
        return _by_name(unit.speaker for unit in self.units)

    @cached_property
    def counterparties(self) -> Mapping[str, list[int]]:
        """The units of each label."""
        return _by_name(self.labels)


def _by_name(names: Iterable[str]) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(names):
        if name:
            found[name].append(index)
    return found


def _unit_spans(unit: Unit) -> tuple[Span, ...]:
    anchor = unit.stamp.date() if unit.stamp else None
    years = [anchor.year] if anchor else []
    found = spans(unit.text[:DATED_CHARACTERS], anchor=anchor, years=years)
    own = [] if anchor is None else [_day(anchor)]
    return (*own, *(span for span in found if span.days <= LONGEST_SPAN))


def _day(day: date) -> Span:
    return Span(day.toordinal(), day.toordinal())
