"""Rights over patterns of namespaces, as pure values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from zero_mem.errors import InvalidInput
from zero_mem.operations.requests import check_name
from zero_mem.types import Path

Right: TypeAlias = Literal["read", "write", "admin"]
"""`write` includes `read`, `admin` both; only `admin` purges and configures."""

ANY: Final = "*"
"""Stands for any one segment."""
BELOW: Final = "**"
"""At the end of a pattern: the path so far and everything below it."""

_RANK: Final = {right: rank for rank, right in enumerate(get_args(Right))}
_MOST_SEGMENTS: Final = 16


@dataclass(frozen=True, slots=True)
class Grant:
    """A right over the namespaces that a pattern matches.

    Attributes:
        right: read, write or admin.
        pattern: Segments, each a name or `*`; a last `**` matches the rest of any path. A
            segment that is itself a star can't be named alone.
    """

    right: Right
    pattern: Path

    @classmethod
    def parse(cls, text: str) -> Grant:
        """Read `write:acme/alice/**`; the pattern may be a JSON list instead.

        Raises:
            InvalidInput: The right is unknown, or the pattern is none.
        """
        right, separator, pattern = text.partition(":")
        if not separator:
            raise InvalidInput(f"a grant reads RIGHT:PATTERN, such as read:acme/**, not {text!r}")
        return cls.of(right, _segments(pattern))

    @classmethod
    def of(cls, right: str, pattern: Sequence[str]) -> Grant:
        """Check a right and a pattern.

        Raises:
            InvalidInput: The right is unknown, or the pattern is none.
        """
        for known in get_args(Right):
            if right == known:
                return cls(known, _checked(pattern))
        raise InvalidInput(f"a right is one of {', '.join(get_args(Right))}, not {right!r}")

    def __str__(self) -> str:
        """Write the grant as `parse` reads it."""
        if any("/" in segment for segment in self.pattern) or self.pattern[0].startswith("["):
            return f"{self.right}:{json.dumps(self.pattern, ensure_ascii=False)}"
        return f"{self.right}:{'/'.join(self.pattern)}"

    def covers(self, path: Path) -> bool:
        """Tell whether the pattern matches a namespace."""
        pattern = self.pattern
        if pattern[-1] == BELOW:
            pattern = pattern[:-1]
            if len(path) < len(pattern):
                return False
        elif len(path) != len(pattern):
            return False
        return all(p in (ANY, s) for p, s in zip(pattern, path, strict=False))

    def contains(self, pattern: Path) -> bool:
        """Tell whether the grant's pattern matches every namespace that another one matches."""
        own, other = _fixed(self.pattern), _fixed(pattern)
        if self.pattern[-1] != BELOW and (pattern[-1] == BELOW or len(own) != len(other)):
            return False
        # No segment of `other` alone stands for the any of `own` but the star.
        return len(own) <= len(other) and all(
            mine in (ANY, theirs) for mine, theirs in zip(own, other, strict=False)
        )

    def gives(self, right: Right) -> bool:
        """Tell whether the grant's right includes another."""
        return _RANK[self.right] >= _RANK[right]


def allows(grants: Iterable[Grant], right: Right, path: Path) -> bool:
    """Tell whether one of some grants gives a right over a namespace."""
    return any(grant.gives(right) and grant.covers(path) for grant in grants)


def administers(grants: Sequence[Grant], others: Iterable[Grant]) -> bool:
    """Tell whether some grants give `admin` over all that others reach, each by one of them."""
    return all(
        any(grant.gives("admin") and grant.contains(other.pattern) for grant in grants)
        for other in others
    )


def _fixed(pattern: Path) -> Path:
    """Give the segments before a last `**`; a namespace has at least one."""
    return (pattern[:-1] or (ANY,)) if pattern[-1] == BELOW else pattern


def _segments(pattern: str) -> list[Any]:
    if not pattern.startswith("["):
        return pattern.split("/")
    try:
        segments = json.loads(pattern)
    except ValueError:
        raise InvalidInput("a pattern begins with [ and is no JSON list of strings") from None
    return segments if isinstance(segments, list) else []


def _checked(pattern: Sequence[str]) -> Path:
    if not 1 <= len(pattern) <= _MOST_SEGMENTS:
        raise InvalidInput(f"a pattern has 1 to {_MOST_SEGMENTS} segments, not {len(pattern)}")
    if BELOW in pattern[:-1]:
        raise InvalidInput("** stands only at the end of a pattern")
    return tuple(check_name(segment, "a segment of a pattern") for segment in pattern)
