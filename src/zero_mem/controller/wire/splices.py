"""Edits of a JSON body as splices: bytes that no edit touches stay as they were sent.

The decoded body is edited by copies that share every untouched object with it
(`sites.splice`). So the identity of objects tells what is new, and only that is written as
new text; duplicate keys, escapes, white space and numbers such as 1.0 or 1e400 elsewhere
stay the sender's own.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from zero_mem.controller.wire.server_sent import json_bytes

_BOM: Final = codecs.BOM_UTF8
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_COMMA: Final = re.compile(r"[ \t\n\r]*(?:,[ \t\n\r]*)?")
_PLAIN_KEY: Final = re.compile(r'"([^"\\]*)"[ \t\n\r]*:[ \t\n\r]*')
_DECODER: Final = json.JSONDecoder()
_NEAR: Final = 64
"""Elements of an array that are looked through for the one that a new element is a copy of."""

Edit: TypeAlias = tuple[int, int, str]
"""A stretch of the text (start, end) and what takes its place."""


def read_json(raw: bytes) -> Any:
    """Decode a body as `spliced` reads it.

    Raises:
        ValueError: It is not JSON in UTF-8, or nested too deeply to be read.
    """
    try:
        return json.loads(raw.removeprefix(_BOM).decode("utf-8"))
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None


def spliced(raw: bytes, before: Any, after: Any) -> bytes:
    """Write an edited body, with the sender's own bytes wherever nothing changed.

    Args:
        raw: The body as it was sent.
        before: What `read_json` made of it.
        after: The edited value; what it shares with `before` is kept as it stands in `raw`.

    Returns:
        Bytes that decode to `after`; `raw` itself where nothing changed. Of a repeated key
        the last value is the one that counts, and the one that is edited.
    """
    if after is before:
        return raw
    text = raw.removeprefix(_BOM).decode("utf-8")
    start = _skip(text, 0)
    _, edits = _edited(text, start, before, after)
    if not edits:
        return raw
    pieces: list[str] = []
    at = 0
    for first, last, new in edits:
        pieces += text[at:first], new
        at = last
    pieces.append(text[at:])
    mark = _BOM if raw.startswith(_BOM) else b""
    return mark + "".join(pieces).encode("utf-8")


class _Slot(NamedTuple):
    """A place of an object or array: a member that stays or goes, or a new one.

    A member's stretch of the text is from `start` to `end`, with its key; `edits` are those
    inside it. A new one has its text in `new`.
    """

    start: int = 0
    end: int = 0
    edits: Sequence[Edit] = ()
    gone: bool = False
    new: str = ""


class _Mismatch(Exception):
    """The text holds something else than `before`: it is an earlier value of a repeated key."""


_Found: TypeAlias = tuple[int, list[Edit]]
"""Where a value ends, and the edits inside it, in order."""


def _written(value: Any) -> str:
    return json_bytes(value).decode("utf-8")


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _next(text: str, at: int) -> int:
    """Go from the end of a member to the next one, or to the closing bracket."""
    found = _COMMA.match(text, at)
    return found.end() if found else at


def _end(text: str, at: int) -> int:
    return _DECODER.raw_decode(text, at)[1]


def _edited(text: str, at: int, before: Any, after: Any) -> _Found:
    """Find the edits that make the value at `at` become `after`.

    Each stretch of the text is passed over once: an edited container is walked through, and
    that tells where it ends.
    """
    if _same(before, after):
        return _end(text, at), []
    if isinstance(before, dict) and isinstance(after, Mapping):
        return _object(text, at, before, after)
    if isinstance(before, list) and isinstance(after, list | tuple):
        return _array(text, at, before, after)
    end = _end(text, at)
    return end, [(at, end, _written(after))]


def _same(before: Any, after: Any) -> bool:
    if before is after:
        return True
    if type(before) is not type(after) or _is_container(before):
        return False
    # 0.0 equals -0.0 and nothing equals a NaN, but each is written in its own way.
    return repr(before) == repr(after) if isinstance(before, float) else bool(before == after)


def _object(text: str, at: int, before: dict[str, Any], after: Mapping[str, Any]) -> _Found:
    if text[at] != "{":
        raise _Mismatch
    slots: dict[str, _Slot] = {}
    place = _skip(text, at + 1)
    while text[place] != "}":
        key, value = _key(text, place)
        if key in slots or key not in before:
            return _repeating(text, at, before, after)
        try:
            slot = _slot(text, place, value, before[key], after, key)
        except _Mismatch:
            return _repeating(text, at, before, after)
        slots[key] = slot
        place = _next(text, slot.end)
    if before.keys() == after.keys():
        return place + 1, [edit for slot in slots.values() for edit in slot.edits]
    return place + 1, list(_laid_out(at, place, [*slots.values(), *_new(before, after)]))


def _repeating(text: str, at: int, before: dict[str, Any], after: Mapping[str, Any]) -> _Found:
    """Edit an object with repeated keys: of each, the last value."""
    members: list[tuple[str, int, int]] = []
    place = _skip(text, at + 1)
    while text[place] != "}":
        key, value = _key(text, place)
        members.append((key, place, value))
        place = _next(text, _end(text, value))
    if {key for key, _, _ in members} != before.keys():
        raise _Mismatch
    last = {key: start for key, start, _ in members}
    slots = [
        _slot(text, start, value, before[key], after, key)
        if last[key] == start
        else _Slot(start, _end(text, value), gone=key not in after)
        for key, start, value in members
    ]
    return place + 1, list(_laid_out(at, place, [*slots, *_new(before, after)]))


def _key(text: str, at: int) -> tuple[str, int]:
    """Read the key at `at` and find its value."""
    plain = _PLAIN_KEY.match(text, at)
    if plain is not None:
        return plain.group(1), plain.end()
    key, end = _DECODER.raw_decode(text, at)
    return key, _skip(text, _skip(text, end) + 1)


def _slot(
    text: str, start: int, value: int, before: Any, after: Mapping[str, Any], key: str
) -> _Slot:
    if key not in after:
        return _Slot(start, _end(text, value), gone=True)
    return _Slot(start, *_edited(text, value, before, after[key]))


def _new(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[_Slot]:
    added = (key for key in after if key not in before)
    return [_Slot(new=f"{_written(key)}:{_written(after[key])}") for key in added]


def _array(text: str, at: int, before: list[Any], after: Sequence[Any]) -> _Found:
    if text[at] != "[":
        raise _Mismatch
    if len(before) == len(after):
        return _one_by_one(text, at, before, after)
    slots: list[_Slot] = []
    place = _skip(text, at + 1)
    for old, new in _aligned(before, after):
        if old is None:
            slots.append(_Slot(new=_written(after[new or 0])))
            continue
        if text[place] == "]":
            raise _Mismatch
        end, edits = _edited(text, place, before[old], before[old] if new is None else after[new])
        slots.append(_Slot(place, end, edits, new is None))
        place = _next(text, end)
    if text[place] != "]":
        raise _Mismatch
    return place + 1, list(_laid_out(at, place, slots))


def _one_by_one(text: str, at: int, before: list[Any], after: Sequence[Any]) -> _Found:
    """Edit an array whose elements stay at their places."""
    edits: list[Edit] = []
    place = _skip(text, at + 1)
    for old, new in zip(before, after, strict=True):
        if text[place] == "]":
            raise _Mismatch
        end, inside = _edited(text, place, old, new)
        edits += inside
        place = _next(text, end)
    if text[place] != "]":
        raise _Mismatch
    return place + 1, edits


def _laid_out(opening: int, closing: int, slots: Sequence[_Slot]) -> Iterator[Edit]:
    """Give the edits of an object or array whose members come and go, with the commas right."""
    if not any(slot.end and not slot.gone for slot in slots):
        if slots:
            yield opening + 1, closing, ",".join(slot.new for slot in slots if slot.new)
        return
    starts = [slot.start for slot in slots if slot.end]
    following = dict(pairwise(starts))
    at, first = starts[0], True
    for slot in slots:
        if not slot.end:
            yield at, at, f"{slot.new}," if first else f",{slot.new}"
        elif not slot.gone:
            yield from slot.edits
            at, first = slot.end, False
        else:  # with the comma after it while nothing stands before it, else the one before
            end = following[slot.start] if first else slot.end
            yield at, end, ""
            at = end


def _aligned(before: list[Any], after: Sequence[Any]) -> Iterator[tuple[int | None, int | None]]:
    """Pair the elements of two arrays, in order; None stands for one that went or is new."""
    places = {id(value): place for place, value in enumerate(before) if _is_container(value)}
    old = 0
    for new, value in enumerate(after):
        match = places.get(id(value), -1)
        if match < old:
            near = range(old, min(old + _NEAR, len(before)))
            match = next((place for place in near if _kin(before[place], value)), -1)
        if match < old:
            yield None, new
            continue
        for gone in range(old, match):
            yield gone, None
        yield match, new
        old = match + 1
    for gone in range(old, len(before)):
        yield gone, None


def _kin(old: Any, new: Any) -> bool:
    """Tell whether one is an edited copy of the other: they share a part, or are the same."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return any(new.get(key) is value and _tells(value) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        parts = {id(value) for value in old if _tells(value)}
        return any(id(value) in parts for value in new)
    return _same(old, new)


def _tells(value: Any) -> bool:
    """Tell whether an object that two values share can't be shared by chance."""
    return _is_container(value) or (isinstance(value, str) and len(value) > 1)


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list)
