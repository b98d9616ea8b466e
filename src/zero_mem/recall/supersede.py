"""Newer facts over older ones about the same subject and attribute, among records without keys."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from zero_mem.index.units import Unit

SHORTEST, LONGEST = 4, 40
"""Words of a text that may be one fact."""

COMMON_WORDS = 3
COMMON_SHARE = 0.4
"""How much two facts begin alike, in words and as a share of the longer one."""

HAPPENED = frozenset({"tool_call", "tool_result"})
"""Kinds that say what happened: a later result takes nothing of an earlier one back."""

_READ_CHARACTERS = 400

_WORDS = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+(?:['’-]\w+)*")
_RELATIONS = (
    "is are was were be been has have had do does did plays play speaks speak works work lives "
    "live lived died born created founded developed located performed affiliated associated wrote "
    "written likes like and or but not 是 在 为 叫 住 姓 有 和 也 还 不 没 或 都"
)
_RELATION_WORDS = frozenset(_RELATIONS.split())


def replaced(units: Sequence[Unit]) -> dict[int, int]:
    """Find facts that a newer one replaces.

    Two texts are versions of one fact if they begin alike and their tails, neither of them
    empty, say no relation of their own: `The author of X is A` and `The author of X is B`, but
    not `The author of Y is B`. Speaker and kind have to be the same, neither has a key, and
    neither is the call or the result of a tool.

    Args:
        units: Some units, the likeliest first.

    Returns:
        The index (in `units`) of each replaced fact, and that of the newest one.
    """
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, unit in enumerate(units):
        if unit.key is None and unit.kind not in HAPPENED:
            alike[unit.speaker, unit.kind, *_beginning(unit.text)].append(place)
    newest: dict[int, int] = {}
    for places in alike.values():
        if len(places) > 1:
            newest |= _newest(units, places)
    return {old: new for old, new in newest.items() if old != new}


def _newest(units: Sequence[Unit], places: Sequence[int]) -> dict[int, int]:
    """Tell of each fact among some that begin alike which one is its newest version."""
    words = {place: _words(units[place].text[:_READ_CHARACTERS]) for place in places}
    facts = [place for place in places if SHORTEST <= len(words[place]) <= LONGEST]
    newest: dict[int, int] = {}
    for place in facts:
        if place not in newest:
            group = [o for o in facts if o == place or _same_fact(words[place], words[o])]
            latest = max(group, key=lambda one: _age(units[one]))
            newest.update(dict.fromkeys(group, latest))
    return newest


def _age(unit: Unit) -> tuple[float, int]:
    return (unit.stamp.timestamp() if unit.stamp else 0.0), unit.position


@lru_cache(maxsize=1 << 14)
def _words(text: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORDS.findall(text))


def _beginning(text: str) -> tuple[str, ...]:
    """Give the first words of a text, without reading all of it."""
    found = islice(_WORDS.finditer(text, 0, _READ_CHARACTERS), COMMON_WORDS)
    return tuple(match[0].lower() for match in found)


def _same_fact(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    alike = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), -1)
    if alike < COMMON_WORDS or alike < COMMON_SHARE * max(len(a), len(b)):
        return False
    return _RELATION_WORDS.isdisjoint(a[alike:]) and _RELATION_WORDS.isdisjoint(b[alike:])


def reordered(order: Sequence[int], older: dict[int, int]) -> list[int]:
    """Put each newest fact where the best of its versions stood, and the others right after.

    Args:
        order: Places, best first.
        older: What `replaced` gave for them.
    """
    groups: dict[int, list[int]] = {}
    for place in order:
        groups.setdefault(older.get(place, place), []).append(place)
    return [
        member
        for newest, group in groups.items()
        for member in ([newest, *(p for p in group if p != newest)] if newest in group else group)
    ]
