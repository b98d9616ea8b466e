"""Near-equal records: grouped by rules, so that a person or a sweep can merge them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from zero_mem.operations.requests import canonical
from zero_mem.text.segment import terms
from zero_mem.types import MemoryRecord

NEAR = 0.9
"""Share of pairs of neighbouring words in common (Jaccard) from which two texts are near-equal.

Pairs keep who did what to whom apart; stop words count, for a "not" makes another fact.
"""

_MOST_SHARED = 200
"""A term in more records than this pairs nothing: it is too common to tell them apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateGroup:
    """Records that say nearly the same; `memory_id` is the newest, `others` the rest."""

    memory_id: str
    others: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many records are in the group."""
        return 1 + len(self.others)


def group_duplicates(records: Iterable[MemoryRecord]) -> list[DuplicateGroup]:
    """Group records whose texts are equal or nearly so, the largest group first.

    Records that differ in their metadata, or in a word with a digit, are different facts.
    """
    alike: dict[tuple[str, ...], list[MemoryRecord]] = defaultdict(list)
    for record in records:
        alike[_told_apart_by(record)].append(record)
    groups = [group for listed in alike.values() for group in _near_equal(listed)]
    return sorted(groups, key=lambda group: -group.count)


def _told_apart_by(record: MemoryRecord) -> tuple[str, ...]:
    figures = (word for word in terms(record.text) if any(map(str.isdigit, word)))
    return canonical(record.metadata), *figures


def _near_equal(listed: list[MemoryRecord]) -> Iterable[DuplicateGroup]:
    sets = [_pairs_of_words(record) for record in listed]
    groups = _Groups(len(listed))
    for first, second in _pairs(sets):
        if groups.root(first) != groups.root(second) and _near(sets[first], sets[second]):
            groups.join(first, second)
    return (_group([listed[place] for place in places]) for places in groups.several())


def _pairs_of_words(record: MemoryRecord) -> frozenset[str]:
    words = terms(record.text) or [record.text]
    return frozenset(f"{one} {other}" for one, other in pairwise(["", *words, ""]))


class _Groups:
    """Disjoint sets with path halving."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def root(self, place: int) -> int:
        while self._parent[place] != place:
            self._parent[place] = self._parent[self._parent[place]]
            place = self._parent[place]
        return place

    def join(self, one: int, other: int) -> None:
        self._parent[self.root(other)] = self.root(one)

    def several(self) -> list[list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for place in range(len(self._parent)):
            found[self.root(place)].append(place)
        return [places for places in found.values() if len(places) > 1]


def _pairs(sets: list[frozenset[str]]) -> Iterable[tuple[int, int]]:
    """Pair records that could be near-equal: equal sets, and those that share a rare term."""
    equal: dict[frozenset[str], int] = {}
    holders: dict[str, list[int]] = defaultdict(list)
    for place, words in enumerate(sets):
        if words in equal:
            yield equal[words], place
            continue
        equal[words] = place
        for term in words:
            holders[term].append(place)
    for places in holders.values():
        if len(places) <= _MOST_SHARED:
            for number, first in enumerate(places):
                for second in places[number + 1 :]:
                    yield first, second


def _near(one: frozenset[str], other: frozenset[str]) -> bool:
    smaller, larger = sorted((len(one), len(other)))
    if smaller < NEAR * larger:
        return False
    shared = len(one & other)
    return shared >= NEAR * (len(one) + len(other) - shared)


def _group(records: list[MemoryRecord]) -> DuplicateGroup:
    order = sorted(records, key=lambda record: (record.updated_at, record.recorded_at))
    *others, newest = order
    return DuplicateGroup(
        memory_id=newest.memory_id, others=tuple(record.memory_id for record in others)
    )
