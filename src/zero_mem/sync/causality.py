"""Which version of a record came after which, on whatever stores they were made.

A store numbers its changes; (store, number) names one change for good. A version rests on a set
of changes, closed under "came before", so the last number of each store says it all: a version
vector. All that stores must agree on (the winner, its version number) is a function of that set,
so it does not matter in which order or by which way the changes came.

Source: Parker et al., "Detection of Mutual Inconsistency in Distributed Systems", IEEE TSE 1983.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Dot: TypeAlias = tuple[str, int]
"""One change: the store that made it, and its sequence there in the namespace's journal."""


class Stamp(NamedTuple):
    """Decides between versions of which none came after the other: the greater one wins.

    `recorded` is never less than that of a version before, and `changes` always greater, so a
    version never loses to one that it came after.
    """

    recorded: int
    changes: int
    store: str
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What a version of a record rests on.

    Attributes:
        seen: By store, the sequence of its last change among them.
        heads: Those that no other came after: one, or several where a conflict was settled.
        base: The greatest version number that one of them had.
        stamp: Of the change whose content the version shows.
    """

    seen: Mapping[str, int]
    heads: frozenset[Dot]
    base: int
    stamp: Stamp

    @property
    def version(self) -> int:
        """The version number: beyond every one that somebody may have read."""
        return self.base + len(self.heads) - 1

    def covers(self, other: Cause) -> bool:
        """Tell whether all changes of another cause are among these."""
        return all(self._has((store, last)) for store, last in other.seen.items())

    def _has(self, dot: Dot) -> bool:
        return self.seen.get(dot[0], 0) >= dot[1]

    def _unsurpassed(self, other: Cause) -> set[Dot]:
        return {dot for dot in self.heads if dot in other.heads or not other._has(dot)}

    def joined(self, other: Cause) -> Cause:
        """Give the cause of both versions settled into one."""
        stores = self.seen.keys() | other.seen.keys()
        return Cause(
            seen={s: max(self.seen.get(s, 0), other.seen.get(s, 0)) for s in stores},
            heads=frozenset(self._unsurpassed(other) | other._unsurpassed(self)),
            base=max(self.base, other.base),
            stamp=max(self.stamp, other.stamp),
        )


def follow(
    before: Cause | None, dot: Dot, *, version: int, recorded: int, lives: Sequence[Dot] = ()
) -> Cause:
    """Give the cause of a change that was made on top of a version, or of none.

    Args:
        before: What it was made on top of.
        dot: The change.
        version: The version number it gave.
        recorded: When, in microseconds.
        lives: The last changes of what its store was restored from: it has them all.
    """
    store, sequence = dot
    seen = dict(before.seen) if before else {}
    for maker, last in (*lives, dot):
        seen[maker] = max(seen.get(maker, 0), last)
    recorded = max(recorded, before.stamp.recorded) if before else recorded
    stamp = Stamp(recorded, sum(seen.values()), store, sequence)
    return Cause(seen=seen, heads=frozenset([dot]), base=version, stamp=stamp)


def cause_json(cause: Cause) -> dict[str, object]:
    """Write a cause as JSON-ready values."""
    return {
        "seen": dict(sorted(cause.seen.items())),
        "heads": sorted(map(list, cause.heads)),
        "base": cause.base,
        "stamp": list(cause.stamp),
    }
