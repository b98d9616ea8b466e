"""The units of a namespace in memory, with what a query needs of them.

Each part (threads, levels, names, days) is made when a query first asks for it, and then
follows every change: a query after one write does only the work of that write.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from zero_mem.index.entities import EntityIndex, Names, names_of
from zero_mem.index.units import Unit
from zero_mem.models.date_parsers import DateParser
from zero_mem.recall import thread
from zero_mem.recall.calendar_days import Span
from zero_mem.recall.dates import spans, years_of
from zero_mem.recall.levels import Level, Shares
from zero_mem.recall.likeness import Likeness, cosine, unit_vector
from zero_mem.recall.threads import Threads
from zero_mem.text.entities import RULES, EntityExtractor

_K = TypeVar("_K")

LONGEST_SPAN = 31
"""A unit that speaks of more days than these is not about any of them."""

DATED_CHARACTERS = 300
"""Of a unit's text so much is read for dates."""


class Corpus:
    """Everything that is derived from the units of a namespace.

    Indices are places in `units`; a unit that ended leaves an empty one at its place. `kept` is
    what an arithmetic keeps of all units; it goes with every change.

    Args:
        units: In order of position.
        frequencies: Of some terms in how many of `total` units they are, where `units` are
            only some of a larger namespace.
        total: The number of units of that namespace.
        coherent: Whether that namespace's threads hold together.
        extractor: Finds names, in units and in questions to them.
        date_parser: Reads what the rules do not know of a question's time phrases.
    """

    def __init__(
        self,
        units: Iterable[Unit],
        *,
        frequencies: Mapping[str, int] | None = None,
        total: int = 0,
        coherent: bool | None = None,
        extractor: EntityExtractor = RULES,
        date_parser: DateParser | None = None,
    ) -> None:
        self.units: list[Unit] = []
        self.occurrences: dict[str, tuple[list[int], list[int]]] = {}
        self.lengths: list[int] = []
        self.places: dict[int, int] = {}
        self.extractor = extractor
        self.date_parser = date_parser
        self.kept: dict[str, Any] = {}
        self._ended: set[int] = set()
        self._need: dict[float, list[float]] = {}
        self._frequencies = frequencies
        self._total = total
        self._coherent = coherent
        self._sampled: tuple[int, bool, int] | None = None
        self._names: dict[int, Names] = {}
        self.likeness = Likeness(self.units, self.occurrences, self.idf)
        for unit in units:
            self._append(unit)

    @property
    def count(self) -> int:
        """The number of places, ended units included."""
        return len(self.units)

    @property
    def alive(self) -> int:
        """The number of units that have not ended."""
        return len(self.units) - len(self._ended)

    # Changes

    def put(self, unit: Unit) -> bool:
        """Take a unit in, at its place or as the last; False where neither is possible."""
        place = self.places.get(unit.position)
        if place is not None:
            self._replace(place, unit)
        elif self.units and unit.position < self.units[-1].position:
            return False
        else:
            self._append(unit)
            self._follow(len(self.units) - 1, None, unit)
        return True

    def remove(self, position: int) -> None:
        """Let the unit at a position end."""
        place = self.places.get(position)
        if place is not None and place not in self._ended:
            self._replace(place, Unit(position=position, terms=(), text=""), ended=True)

    def _append(self, unit: Unit) -> None:
        self.places[unit.position] = place = len(self.units)
        self.units.append(unit)
        self.lengths.append(len(unit.terms))
        for term, count in Counter(unit.terms).items():
            held = self.occurrences.get(term)
            if held is None:
                self.occurrences[term] = ([place], [count])
            else:
                held[0].append(place)
                held[1].append(count)

    def _replace(self, place: int, unit: Unit, *, ended: bool = False) -> None:
        old = self.units[place]
        for term in set(old.terms):
            self._drop(term, place)
        for term, count in Counter(unit.terms).items():
            places, counts = self.occurrences.setdefault(term, ([], []))
            at = bisect_left(places, place)
            places.insert(at, place)
            counts.insert(at, count)
        self.units[place], self.lengths[place] = unit, len(unit.terms)
        if ended:
            self._ended.add(place)
        else:
            self._ended.discard(place)
        self._names.pop(place, None)
        # Its thread, and how common its words are, bear on the sample wherever it stands there.
        if ended or (self._sampled and place < self._sampled[2]):
            self._sampled = None
        self._follow(place, old, unit)

    def _drop(self, term: str, place: int) -> None:
        places, counts = self.occurrences[term]
        at = bisect_left(places, place)
        del places[at], counts[at]
        if not places:
            del self.occurrences[term]

    def _follow(self, place: int, old: Unit | None, new: Unit) -> None:
        """Bring every part that was made already up to date."""
        self.likeness.change(place)
        self.kept.clear()
        for short, needs in self._need.items():
            needs[place : place + 1] = [_need(self.lengths[place], short)]
        made = self.__dict__
        moved = [place]
        if "threads" in made:
            moved = self.threads.change(place, old, new)
        for name in _SHARES.keys() & made.keys():
            self._follow_level(name, moved, place, old)
        if "stamps" in made:
            self.stamps.change(place, old, new)
        if "calendar" in made:
            self.calendar.change(place, new)
        if "speakers" in made:
            _move(self.speakers, old.speaker if old else "", new.speaker, place)
        if "entities" in made and not self._named_one_more(place, old):
            del made["entities"]

    def _follow_level(self, name: str, moved: Iterable[int], place: int, old: Unit | None) -> None:
        level: Level = getattr(self, name)
        touched = set(old.terms) if old else set()
        for index in moved:
            length = len(old.terms) if old and index == place else self.lengths[index]
            if index < level.size:
                level.displace(index, length)
        for index in moved:
            level.place(index, self.lengths[index], self._shares(name, index))
            touched.update(self.units[index].terms)
        level.forget(touched)

    def _named_one_more(self, place: int, old: Unit | None) -> bool:
        if old is not None:
            return False
        self.entities.append(self.units[place], self._named(place))
        return True

    # Words

    def idf(self, term: str) -> float:
        """Give a term's inverse document frequency among the units."""
        if self._frequencies is not None:
            n, total = self._frequencies.get(term, 0), self._total
        else:
            held = self.occurrences.get(term)
            n, total = (len(held[0]) if held else 0), self.alive
        return _idf(n, total)

    # The hierarchy

    def need(self, short: float) -> Sequence[float]:
        """Tell how much each unit needs its window, 0 to 1: the longer than `short`, the less."""
        found = self._need.get(short)
        if found is None:
            found = self._need[short] = [_need(length, short) for length in self.lengths]
        return found

    @cached_property
    def threads(self) -> Threads:
        """Where each unit stands."""
        return Threads(self.units, self._ended)

    @cached_property
    def turns(self) -> Level:
        """The units themselves."""
        return self._level("turns")

    @cached_property
    def windows(self) -> Level:
        """Each unit with its neighbours, its own text counted more."""
        return self._level("windows")

    @cached_property
    def episodes(self) -> Level:
        """Units of a thread without a break; one outside any thread is its own."""
        return self._level("episodes")

    @cached_property
    def sessions(self) -> Level:
        """The sessions; a unit without one is alone in its own."""
        return self._level("sessions")

    @property
    def episode_numbers(self) -> Sequence[int]:
        """The numbers of the episodes: each that of its first unit."""
        found: Sequence[int] | None = self.kept.get("episode_numbers")
        if found is None:
            found = self.kept["episode_numbers"] = sorted(set(self.threads.episode_of))
        return found

    def _level(self, name: str) -> Level:
        level = Level(self.occurrences, alone=name == "turns")
        for index, length in enumerate(self.lengths):
            level.place(index, length, self._shares(name, index))
        return level

    def _shares(self, level: str, index: int) -> Shares:
        return () if index in self._ended else _SHARES[level](self.threads, index)

    @property
    def neighbours(self) -> Mapping[int, tuple[int, ...]]:
        """Of each unit of a thread its neighbours."""
        return self.threads.neighbours

    @property
    def coherent(self) -> bool:
        """Tell whether the threads hold together, see `thread.coherent`.

        It is told by the first units, an eighth more each time: one more unit in a large
        namespace does not change what its threads are.
        """
        if self._coherent is not None:
            return self._coherent
        first = _settled(self.alive)
        if self._sampled is None or self._sampled[0] != first:
            self._sampled = (first, *self._coherence(first))
        return self._sampled[1]

    def _coherence(self, first: int) -> tuple[bool, int]:
        vectors: dict[int, Mapping[str, float]] = {}
        occurrences = self.occurrences
        alive = (index for index in range(self.count) if index not in self._ended)
        among = list(islice(alive, first))
        after = among[-1] + 1 if among else 0

        def idf(term: str) -> float:
            return _idf(bisect_left(occurrences[term][0], after), first)

        def vector(index: int) -> Mapping[str, float]:
            if index not in vectors:
                vectors[index] = unit_vector(self.likeness.log_counts(index), idf)
            return vectors[index]

        def likeness(one: int, other: int) -> float:
            return cosine(vector(one), vector(other))

        holds = thread.coherent(self.threads.groups, self.neighbours, among, likeness)
        return holds, after

    @property
    def openings(self) -> Iterable[int]:
        """The first unit of each session."""
        return self.threads.openings

    # Names and days

    @cached_property
    def entities(self) -> EntityIndex:
        """The graph of names and units."""
        return EntityIndex(self.units, [self._named(index) for index in range(self.count)])

    def _named(self, index: int) -> Names:
        found = self._names.get(index)
        if found is None:
            found = self._names[index] = names_of(self.units[index].text, self.extractor)
        return found

    @cached_property
    def stamps(self) -> Stamps:
        """What units are stamped on each day."""
        return Stamps(self.units)

    @cached_property
    def calendar(self) -> Calendar:
        """Which days units speak of: only a question that names days has them read."""
        return Calendar(self.units)

    def near(self, span: Span, reach: float) -> Iterable[tuple[Span, Sequence[int]]]:
        """Give the units dated at most so many days from a span, by the span of their date."""
        dated = self.calendar.dated
        return ((held, dated[held]) for held in self.calendar.near(span, reach))

    @property
    def days(self) -> Mapping[int, Sequence[int]]:
        """The units stamped on each day."""
        return self.stamps.days

    @property
    def years(self) -> list[int]:
        """The years of the stamps."""
        return self.stamps.years

    @cached_property
    def speakers(self) -> dict[str, list[int]]:
        """The units of each speaker."""
        found: dict[str, list[int]] = {}
        for index, unit in enumerate(self.units):
            if unit.speaker:
                found.setdefault(unit.speaker, []).append(index)
        return found

    @property
    def counterparties(self) -> Mapping[str, Sequence[int]]:
        """The units of each label."""
        return self.threads.labelled


_SHARES: Mapping[str, Callable[[Threads, int], Shares]] = {
    "turns": lambda threads, index: ((index, 1),),
    "windows": lambda threads, index: threads.standing[index].window_shares(index),
    "episodes": lambda threads, index: ((threads.episode_of[index], 1),),
    "sessions": lambda threads, index: ((threads.session_of[index], 1),),
}


class Stamps:
    """The days on which units are stamped, by a table that changes with them.

    Attributes:
        days: The units of each day.
    """

    def __init__(self, units: Iterable[Unit]) -> None:
        self.days: dict[int, list[int]] = {}
        self._years: list[int] | None = None
        for index, unit in enumerate(units):
            self.change(index, None, unit)

    def change(self, index: int, old: Unit | None, new: Unit) -> None:
        """Follow a unit that came, changed or ended."""
        before, after = (
            unit.stamp.toordinal() if unit and unit.stamp else None for unit in (old, new)
        )
        _move(self.days, before, after, index)
        self._years = None

    @property
    def years(self) -> list[int]:
        """The years of the stamps."""
        if self._years is None:
            self._years = years_of(self.days)
        return self._years


class Calendar:
    """The days that units speak of, by a table that changes with them.

    Attributes:
        dated: The units of each span of days: that of their stamp, and those their text names.
    """

    def __init__(self, units: Iterable[Unit]) -> None:
        self.dated: dict[Span, list[int]] = {}
        self._spans: dict[int, tuple[Span, ...]] = {}
        for index, unit in enumerate(units):
            self._enter(index, unit)
        self._ordered = sorted(self.dated)

    def change(self, index: int, new: Unit) -> None:
        """Follow a unit that came, changed or ended."""
        for span in self._spans.pop(index, ()):
            _move(self.dated, span, None, index)
            if span not in self.dated:
                del self._ordered[bisect_left(self._ordered, span)]
        for span in set(_unit_spans(new)).difference(self.dated):
            insort(self._ordered, span)
        self._enter(index, new)

    def _enter(self, index: int, unit: Unit) -> None:
        self._spans[index] = found = tuple(dict.fromkeys(_unit_spans(unit)))
        for span in found:
            _move(self.dated, None, span, index)

    def day_of(self, index: int) -> Span | None:
        """Give the days that a unit's text names first, else that of its stamp."""
        found = self._spans[index]
        return found[min(1, len(found) - 1)] if found else None

    def near(self, span: Span, reach: float) -> Iterable[Span]:
        """Give the spans at most so many days from a span."""
        first = bisect_left(self._ordered, (span.start - reach - LONGEST_SPAN,))
        last = bisect_left(self._ordered, (span.end + reach + 1,))
        return (held for held in self._ordered[first:last] if span.gap(held) <= reach)


def _move(held: dict[_K, list[int]], old: _K | None, new: _K | None, index: int) -> None:
    """Move an index from one list to another; an empty list goes, nothing has none."""
    if old == new:
        return
    if old:
        held[old].remove(index)
        if not held[old]:
            del held[old]
    if new:
        insort(held.setdefault(new, []), index)


def _need(length: int, short: float) -> float:
    return 1.0 if length <= short else short / length


def _idf(n: int, total: int) -> float:
    return math.log(1 + (max(total, n) - n + 0.5) / (n + 0.5))


def _settled(count: int) -> int:
    """Give the largest number up to `count` that has three digits in base two, then zeros."""
    step = max(0, count.bit_length() - 4)
    return count >> step << step


def _unit_spans(unit: Unit) -> tuple[Span, ...]:
    anchor = unit.stamp.date() if unit.stamp else None
    years = [anchor.year] if anchor else []
    found = spans(unit.text[:DATED_CHARACTERS], anchor=anchor, years=years)
    own = [] if anchor is None else [_day(anchor)]
    return (*own, *(span for span in found if span.days <= LONGEST_SPAN))


def _day(day: date) -> Span:
    return Span(day.toordinal(), day.toordinal())
