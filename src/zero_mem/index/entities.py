"""The names of a namespace: which unit speaks of which, decided by the texts themselves."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from zero_mem.index.units import Unit
from zero_mem.text.entities import Entity, EntityExtractor, RuleEntities

MOST_ENTITIES = 40
"""Of a unit's names the first count."""

TITLE_WORDS = 10
"""A text that begins with so few words and a full stop or a line break has a title."""

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
        connecting: The share of units that hold more than one name.
    """

    def __init__(self, units: Sequence[Unit], names: Sequence[Names]) -> None:
        known = _known(names)
        spoken = {unit.speaker.lower() for unit in units} | {unit.label.lower() for unit in units}
        self.titled = _by_title(names)
        self.of_unit: list[Mapping[str, int]] = []
        self.units: dict[str, list[int]] = defaultdict(list)
        for index, (title, found) in enumerate(names):
            kept = Counter(e.name for e in found if not e.doubtful or e.name in known)
            for name in (title, units[index].label.lower()):
                if name and (name == title or name in spoken):
                    kept[name] += 1
            self.of_unit.append(dict(kept))
            for name in kept:
                self.units[name].append(index)
        several = sum(len(held) > 1 for held in self.of_unit)
        self.connecting = several / max(len(self.of_unit), 1)

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
    found = (extractor or RuleEntities()).entities(text)
    return Names(title_of(text), tuple(islice(found, MOST_ENTITIES)))


def title_of(text: str) -> str:
    """Give the title that a text begins with, folded, "" where it has none."""
    found = _TITLE.match(text[:120])
    if found is None or len(found[1].split()) > TITLE_WORDS:
        return ""
    return " ".join(found[1].split()).lower()


def _known(names: Iterable[Names]) -> frozenset[str]:
    """Give the names that stand capitalised inside a sentence somewhere, or are a title."""
    inside = {e.name for one in names for e in one.found if not e.doubtful}
    return frozenset(inside | {one.title for one in names})


def _by_title(names: Sequence[Names]) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for index, (title, _) in enumerate(names):
        for name in {title, _QUALIFIER.sub("", title)} - {""}:
            found[name].append(index)
    return found
