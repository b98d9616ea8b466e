"""Selecting inside one body (`recall:where`): a JSON Pointer, rows, lines, a pattern.

A body has *pieces*: text has its lines, an array its elements, an object its entries. Each
piece is shown under its number, index or key, so that a reader under a budget can take
whole pieces and say where to read on. A line too long to show at once is cut into parts,
each under its line and the offset in it (`3+800`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zero_mem.errors import InvalidInput
from zero_mem.filters import parse_rows
from zero_mem.text.pattern import Pattern
from zero_mem.types import Blob, Body, Json, body_text

PART_LENGTH = 800
_MOST_LISTED = 20
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*+)*+")
_INDEX = re.compile(r"0|[1-9][0-9]*")
_LINES = re.compile(r"\s*([0-9]+)\s*(-\s*([0-9]*)\s*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The chosen part of a body.

    `text` is what a reader sees, `value` the part itself (JSON, or the text of the lines).
    `matched` of `total` pieces were chosen; `pieces` are those, each as a line of its own
    with its index, key or line number.
    """

    text: str
    value: Any
    matched: int
    total: int
    pieces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


def select(
    body: Body,
    *,
    pointer: str | None = None,
    rows: Mapping[str, Any] | None = None,
    lines: Sequence[int] | str | None = None,
    pattern: str | None = None,
) -> Selection:
    """Select a part of a body; without a choice, the whole of it.

    Args:
        body: Text, JSON or a blob. `pointer` and `rows` also work on text that is JSON.
        pointer: A JSON Pointer (RFC 6901) to the part that the other choices look into.
        rows: A filter over the fields of the rows there: an array of objects, or an object
            of objects. The operators are those of `where`.
        lines: First and last line (or piece), from 1, both included: `(10, 20)`, `"10-20"`,
            `"10-"` or `"10"`.
        pattern: A regular expression that a line (or piece) must hold, of the kind that
            can be searched in linear time; see `zero_mem.text.pattern`.

    Raises:
        InvalidInput: The choice does not fit the body; the message says what is there.
    """
    if rows is not None and (lines or pattern):
        raise InvalidInput("rows cannot be combined with lines or a pattern")
    if isinstance(body, Blob) and (pointer or rows is not None or lines or pattern):
        raise InvalidInput(f"a binary body ({body.media_type}) has no parts to select")
    value: Any = body.value if isinstance(body, Json) else body_text(body)
    if isinstance(value, str) and (pointer or rows is not None):
        value = _parsed(value)
    value = resolve_pointer(value, pointer or "")
    if rows is not None:
        return _select_rows(value, rows)
    return _select_pieces(value, lines or None, pattern or None)


def resolve_pointer(value: Any, pointer: str) -> Any:
    """Follow a JSON Pointer into a value.

    Args:
        value: Parsed JSON.
        pointer: "" for the whole, or `/key/0/…` with `~` as `~0` and `/` as `~1`.

    Raises:
        InvalidInput: Not a pointer, or nothing is there; the message lists what is.

    Source: RFC 6901.
    """
    if not _POINTER.fullmatch(pointer):
        raise InvalidInput("a JSON Pointer is empty or begins with '/'; '~' is written '~0'")
    passed = ""
    for step in pointer.split("/")[1:]:
        value = _step(value, step.replace("~1", "/").replace("~0", "~"), passed or "the top")
        passed += f"/{step}"
    return value


def _step(value: Any, key: str, place: str) -> Any:
    if isinstance(value, Mapping):
        if key not in value:
            raise InvalidInput(f"no such key at {place}; {_listed('keys', value)}")
        return value[key]
    if isinstance(value, list):
        if not _INDEX.fullmatch(key) or len(key) > 18 or int(key) >= len(value):
            raise InvalidInput(f"no such index at {place}; it has {len(value)} elements, from 0")
        return value[int(key)]
    raise InvalidInput(f"nothing below {place}: a {_json_type(value)} has no parts")


def _listed(what: str, names: Iterable[Any]) -> str:
    every = [name if len(name) <= 40 else f"{name[:39]}…" for name in map(str, names)]
    if not every:
        return f"there are no {what}"
    more = f" and {len(every) - _MOST_LISTED} more" if len(every) > _MOST_LISTED else ""
    return f"{what} there: {', '.join(every[:_MOST_LISTED])}{more}"


def _json_type(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    return "array" if isinstance(value, list) else "object"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"the body is text of {len(_lines_of(text))} lines, not JSON; use lines or a pattern"
        ) from error


# ---- rows


def _select_rows(value: Any, rows: Mapping[str, Any]) -> Selection:
    named = _named_rows(value)
    wanted = parse_rows(rows)
    unknown = wanted.unknown_fields(row for _, row in named)
    if named and unknown:
        fields = dict.fromkeys(field for _, row in named for field in row)
        raise InvalidInput(f"no row has the field {unknown[0]!r}; {_listed('fields', fields)}")
    kept = [(name, row) for name, row in named if wanted.matches(row)]
    pieces = tuple(str(_Piece(str(name), _json(row))) for name, row in kept)
    return Selection(
        text="\n".join(pieces),
        value=dict(kept) if isinstance(value, Mapping) else [row for _, row in kept],
        matched=len(kept),
        total=len(named),
        pieces=pieces,
    )


def _named_rows(value: Any) -> list[tuple[Any, Mapping[str, Any]]]:
    """Give the rows of an array or an object of objects, with their index or key."""
    if isinstance(value, Mapping):
        named: list[tuple[Any, Any]] = list(value.items())
    elif isinstance(value, list):
        named = list(enumerate(value))
    else:
        raise InvalidInput(f"rows need an array or an object of objects, not a {_json_type(value)}")
    found = [(name, row) for name, row in named if isinstance(row, Mapping)]
    if named and not found:
        there = _listed("keys", value) if isinstance(value, Mapping) else "its elements are none"
        raise InvalidInput(f"rows need objects here; {there}; point at the rows with a pointer")
    return found


def _json(value: Any) -> str:
    return body_text(Json(value=value))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


# ---- lines and other pieces


def _select_pieces(value: Any, lines: Sequence[int] | str | None, pattern: str | None) -> Selection:
    every = _pieces(value)
    first, last = (1, len(every)) if lines is None else _range(lines, len(every))
    chosen = every[first - 1 : last]
    if pattern is not None:
        return _select_matching(chosen, Pattern(pattern), len(every))
    whole = lines is None
    text = _shown(value) if whole else "\n".join(_verbatim(value, chosen))
    return Selection(
        text=text,
        value=value if whole else text,
        matched=len(chosen),
        total=len(every),
        pieces=tuple(part for piece in chosen for part in _parts(piece)),
    )


def _select_matching(chosen: Sequence[_Piece], pattern: Pattern, total: int) -> Selection:
    found = [(piece, end) for piece in chosen if (end := pattern.first_end(piece.text)) is not None]
    pieces = tuple(_around(piece, end) for piece, end in found)
    return Selection(
        text="\n".join(pieces),
        value="\n".join(piece.text for piece, _ in found),
        matched=len(found),
        total=total,
        pieces=pieces,
    )


def _pieces(value: Any) -> list[_Piece]:
    if isinstance(value, str):
        return [_Piece(str(number), line) for number, line in enumerate(_lines_of(value), 1)]
    if isinstance(value, Mapping):
        return [_Piece(str(key), _json(each)) for key, each in value.items()]
    if isinstance(value, list):
        return [_Piece(str(index), _json(each)) for index, each in enumerate(value)]
    return [_Piece("1", _shown(value))]


def _lines_of(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _verbatim(value: Any, chosen: Iterable[_Piece]) -> Iterator[str]:
    for piece in chosen:
        yield str(piece) if isinstance(value, Mapping | list) else piece.text


def _parts(piece: _Piece) -> Iterator[str]:
    """Cut a piece that is too long to show at once."""
    if len(piece.text) <= PART_LENGTH:
        yield str(piece)
        return
    for start in range(0, len(piece.text), PART_LENGTH):
        yield f"{piece.name}+{start}: {piece.text[start : start + PART_LENGTH]}"


def _around(piece: _Piece, end: int) -> str:
    """Show a piece, or of a long one the surroundings of a match that ends at `end`."""
    if len(piece.text) <= PART_LENGTH:
        return str(piece)
    start = max(0, end - PART_LENGTH // 2)
    return f"{piece.name}+{start}: {piece.text[start : start + PART_LENGTH]}"


def _range(lines: Sequence[int] | str, total: int) -> tuple[int, int]:
    first, last = _first_and_last(lines, total)
    if first < 1 or last < first:
        raise InvalidInput("lines are counted from 1, the first not after the last")
    if first > total:
        raise InvalidInput(f"no line {first}: there are {total}")
    return first, min(last, total)


def _first_and_last(lines: Sequence[int] | str, total: int) -> tuple[int, int]:
    if isinstance(lines, str):
        match = _LINES.fullmatch(lines)
        if match is None or len(lines) > 40:
            raise InvalidInput("lines are written '10-20', '10-' or '10'")
        first = int(match[1])
        return first, int(match[3] or max(total, first)) if match[2] else first
    if len(lines) != 2 or not all(type(each) is int for each in lines):
        raise InvalidInput("lines are two integers, the first and the last, or '10-20'")
    return lines[0], lines[1]
