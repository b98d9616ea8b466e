"""The names of a namespace: which unit speaks of which, decided by the texts themselves."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from zero_mem.index.units import Unit
from zero_mem.text.entities import RULES, Entity, EntityExtractor

MOST_ENTITIES = 40
"""Of a unit's names the first count."""

TITLE_WORDS = 10
"""A text that begins with so few words and a full stop or a line break has a title."""

LONGEST_CALLED = 8
"""Characters of the longest name of a speaker that is looked for in other texts."""

_TITLE = re.compile(r"\s*([^\n.。:：!?！？]{2,80})(?:[.。]\s|\n)")
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")


class Names(NamedTuple):
    """What one text names, by itself: its title and its names in order, with repeats."""

    title: str
    found: tuple[Entity, ...]


class EntityIndex:
    """Edges between units and names.

    Args:
        units: The units.
        names: What each names (`names_of`).

    Attributes:
        of_unit: Of each unit the names it holds, with how often; its title is one.
        units: Of each name the units that hold it.
        titled: Of each name the units whose title it is.
    """

    def __init__(self, units: Sequence[Unit], names: Sequence[Names]) -> None:
        self.titled: dict[str, list[int]] = defaultdict(list)
        self.of_unit: list[Mapping[str, int]] = []
        self.units: dict[str, list[int]] = defaultdict(list)
        self._names: list[Names] = []
        self._labels: list[str] = []
        self._waiting: dict[str, list[int]] = defaultdict(list)
        self._texts: list[str] = []
        self._spoken: dict[str, None] = {}
        self._several = 0
        self._count = 0
        self._known: set[str] = set().union(*(_certain(one) for one in names))
        for unit, one in zip(units, names, strict=True):
            self.append(unit, one)

    @property
    def connecting(self) -> float:
        """The share of units that hold more than one name."""
        return self._several / max(self._count, 1)

    def append(self, unit: Unit, names: Names) -> None:
        """Add a unit; a name that it is the first to show for certain is one in others too."""
        index = len(self.of_unit)
        self._count += unit.text != ""
        for name in _certain(names) - self._known:
            self._known.add(name)
            for other in self._waiting.pop(name, ()):
                self._hold(other)
        for name in {unit.speaker, unit.label} - {""} - self._spoken.keys():
            self._called(name)
        for name in {names.title, _QUALIFIER.sub("", names.title)} - {""}:
            self.titled[name].append(index)
        self._names.append(names)
        self._texts.append(unit.text)
        self._labels.append(unit.label.lower())
        self.of_unit.append({})
        self._hold(index)
        for entity in names.found:
            if entity.name not in self._known and index not in self._waiting[entity.name]:
                self._waiting[entity.name].append(index)

    def _called(self, name: str) -> None:
        """Learn the name of who speaks or is spoken with; Chinese shows no name by its form."""
        if name.isascii() or not 2 <= len(name) <= LONGEST_CALLED:
            return
        self._spoken[name] = None
        for index, text in enumerate(self._texts):
            if name in text:
                self._hold(index)

    def _hold(self, index: int) -> None:
        """Note the names that a unit holds, as far as they are known to be names."""
        title, found = self._names[index]
        held = Counter(e.name for e in found if not e.doubtful or e.name in self._known)
        for name in (title, self._labels[index]):
            if name:
                held[name] += 1
        text = self._texts[index]
        if not text.isascii():
            held.update(name for name in self._spoken if name in text and name not in held)
        before = self.of_unit[index]
        self.of_unit[index] = dict(held)
        self._several += (len(held) > 1) - (len(before) > 1)
        for name in held.keys() - before.keys():
            insort(self.units[name], index)

    def holding(self, name: str, most: int) -> Collection[int]:
        """Give the units that a name leads to: all that hold it, or, of a common one, its own."""
        titled = self.titled.get(name, [])
        held = self.units.get(name, [])
        return set(titled).union(held) if len(held) <= most else set(titled)


def names_of(text: str, extractor: EntityExtractor | None = None) -> Names:
    """Find the names of one text.

    Args:
        text: The text.
        extractor: Finds them; the rules of the core by default.
    """
    found = (extractor or RULES).entities(text)
    return Names(title_of(text), tuple(islice(found, MOST_ENTITIES)))


def title_of(text: str) -> str:
    """Give the title that a text begins with, folded, "" where it has none."""
    found = _TITLE.match(text[:120])
    if found is None or len(found[1].split()) > TITLE_WORDS:
        return ""
    return " ".join(found[1].split()).lower()


def _certain(names: Names) -> set[str]:
    """Give the names that stand capitalised inside a sentence, and the title."""
    return {entity.name for entity in names.found if not entity.doubtful} | {names.title}
