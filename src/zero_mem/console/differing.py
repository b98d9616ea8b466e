"""The difference between two versions of a record, line by line; this does no I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final, Literal, TypeAlias

from zero_mem.operations.rules import same_body
from zero_mem.types import Blob, Body, Json, MemoryRecord, body_text

Kind: TypeAlias = Literal["same", "changed", "added", "removed", "skipped"]

MOST_LINES: Final = 2000
"""Lines of one side; comparing takes time that grows with their square."""
MOST_CHARACTERS: Final = 400_000
_AROUND: Final = 3
"""Lines that are the same are shown so far around a change."""
_LONGEST: Final = 2000
"""Characters of a line that is compared word by word."""
_WORD: Final = re.compile(r"\w+|\s+|.", re.DOTALL)

FIELDS: Final = (
    "form", "kind", "key", "tags", "task", "session", "speaker", "source", "state",
    "created_at", "expires_at", "invalidated_by", "metadata",
)  # fmt: skip
"""What is compared beside the body."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line: whether it is only on this side."""

    text: str
    is_changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of both sides; a side that has none here has no number."""

    kind: Kind
    left_number: int | None = None
    left: tuple[Piece, ...] = ()
    right_number: int | None = None
    right: tuple[Piece, ...] = ()


def fields_between(left: MemoryRecord, right: MemoryRecord) -> list[tuple[str, Any, Any]]:
    """Give the fields that differ, with both values."""
    pairs = ((name, getattr(left, name), getattr(right, name)) for name in FIELDS)
    return [(name, before, after) for name, before, after in pairs if before != after]


def lines_between(left: Body, right: Body) -> list[Line] | None:
    """Compare two bodies line by line, JSON as it is written for people.

    Returns:
        The lines around each change, none where the bodies are equal; None where a body is
        binary or too large to compare.
    """
    if same_body(left, right):
        return []
    if isinstance(left, Blob) or isinstance(right, Blob):
        return None
    ours, theirs = shown(left), shown(right)
    if max(len(ours), len(theirs)) > MOST_CHARACTERS:
        return None
    before, after = ours.splitlines(), theirs.splitlines()
    if max(len(before), len(after)) > MOST_LINES:
        return None
    return list(_lines(before, after))


def shown(body: Body) -> str:
    """Write a body for people to read; of a blob its label."""
    if isinstance(body, Json):
        return json.dumps(body.value, ensure_ascii=False, indent=2)
    return body_text(body)


def _lines(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    last = 0
    for group in SequenceMatcher(None, before, after).get_grouped_opcodes(_AROUND):
        if group[0][1] > last:
            yield Line(kind="skipped")
        for _, start, end, other, other_end in group:
            yield from _block(before[start:end], after[other:other_end], start, other)
        last = group[-1][2]
    if last < len(before):
        yield Line(kind="skipped")


def _block(before: Sequence[str], after: Sequence[str], start: int, other: int) -> Iterator[Line]:
    for place in range(max(len(before), len(after))):
        left = before[place] if place < len(before) else None
        right = after[place] if place < len(after) else None
        ours, theirs = _pieces(left, right)
        yield Line(
            kind=_kind(left, right),
            left_number=None if left is None else start + place + 1,
            left=ours,
            right_number=None if right is None else other + place + 1,
            right=theirs,
        )


def _kind(left: str | None, right: str | None) -> Kind:
    if left is None:
        return "added"
    if right is None:
        return "removed"
    return "same" if left == right else "changed"


def _pieces(left: str | None, right: str | None) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    if left is None or right is None or max(len(left), len(right)) > _LONGEST:
        return _whole(left, left != right), _whole(right, left != right)
    before, after = _WORD.findall(left), _WORD.findall(right)
    ours: list[Piece] = []
    theirs: list[Piece] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        for side, words in ((ours, before[a:b]), (theirs, after[c:d])):
            if words:
                side.append(Piece("".join(words), tag != "equal"))
    return tuple(ours), tuple(theirs)


def _whole(text: str | None, is_changed: bool) -> tuple[Piece, ...]:
    return () if text is None else (Piece(text, is_changed),)
