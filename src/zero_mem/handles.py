"""The grammar of handles: `[memo:7]`, `[memo:7,9,12]`, `[memo:7#/payment_methods/0/id]`.

    handle    = "[memo:" id ( *( "," id ) / "#" fragment ) "]"
    id        = ( letter / digit ) *63( letter / digit / "." / "_" / ":" / "-" )   ; ASCII
    fragment  = a JSON Pointer (RFC 6901) in its URI-fragment form; `]` and `,` are always
                percent-encoded, letters beyond ASCII may stand for themselves

This is the only parser of handles. What does not follow the grammar is ordinary text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from zero_mem.errors import InvalidInput
from zero_mem.text.fence import HANDLE_OPENING, unescaped_at
from zero_mem.text.fence import escape_handles as escape
from zero_mem.text.fence import unescape_handles as unescape

__all__ = [
    "Handle",
    "Reference",
    "check_memory_id",
    "escape",
    "find",
    "named",
    "parse_whole",
    "render",
    "undecided",
    "unescape",
    "unescaped_at",
]

MAX_ID_LENGTH = 64

# Possessive quantifiers: a failed attempt never backs up, so hostile text costs linear time.
_ID = rf"[A-Za-z0-9][A-Za-z0-9._:-]{{0,{MAX_ID_LENGTH - 1}}}+"
# RFC 3986 `fragment` less the comma, plus letters of every script.
_FRAGMENT = r"(?:[\w/?:@!$&'()*+;=.~-]|%[0-9A-Fa-f]{2})*+"
_HANDLE = re.compile(
    rf"{re.escape(HANDLE_OPENING)}({_ID})(?:((?:,{_ID})++)|\#({_FRAGMENT}))?\]", re.VERBOSE
)
_MEMORY_ID = re.compile(_ID)
# All that could still become a handle, or text that was escaped because it looks like one.
_BEGUN = re.compile(
    rf"\[(?:m(?:e(?:mo?)?)?|memo:(?:{_ID}(?:(?:,{_ID})*+,?|\#{_FRAGMENT}(?:%[0-9A-Fa-f]?)?))?)?"
)
_ESCAPED_BEGUN = re.compile(r"\[\\+(?:m(?:e(?:mo?)?)?)?", re.IGNORECASE)
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*+)*+")
_LETTERS_KEPT_IN_FRAGMENTS = "/?:@!$&'()*+;=.~-_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One memory that a handle names.

    `pointer` is the decoded JSON Pointer of a part ("" is the whole body, by a pointer),
    or None where the handle names no part.
    """

    memory_id: str
    pointer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """One handle in a text: `text[start:end]` is the handle, references in written order."""

    start: int
    end: int
    references: tuple[Reference, ...]


def check_memory_id(value: str | int) -> str:
    """Give the memory id as text, or refuse one that no handle could name.

    Args:
        value: ASCII letters, digits and `._:-`, at most 64, beginning with a letter or a
            digit. A non-negative integer becomes its digits.

    Raises:
        InvalidInput: The id does not follow the grammar.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise InvalidInput(f"memory_id must be a string or an integer, not {type(value).__name__}")
    if not _MEMORY_ID.fullmatch(value):
        raise InvalidInput(f"memory_id {_id_fault(value)}; use 1 to 64 of A-Z a-z 0-9 . _ : -")
    return value


def _id_fault(value: str) -> str:
    if not value:
        return "is empty"
    if len(value) > MAX_ID_LENGTH:
        return f"has {len(value)} characters, more than {MAX_ID_LENGTH}"
    legal = _MEMORY_ID.match(value)
    if legal is None:
        return f"begins with {value[0]!r}, not with a letter or a digit"
    return f"has {value[legal.end()]!r} at position {legal.end()}"


def find(text: str) -> list[Handle]:
    """Find every handle of a text, in order; look-alikes are left alone.

    Returns:
        Handles that do not overlap. Time is linear in the length of the text.
    """
    if HANDLE_OPENING not in text:
        return []
    handles = (_handle(match) for match in _HANDLE.finditer(text))
    return [handle for handle in handles if handle is not None]


def parse_whole(text: str) -> Handle | None:
    """Parse a text that is one handle and nothing else, or give None."""
    match = _HANDLE.fullmatch(text)
    return None if match is None else _handle(match)


def named(text: str) -> tuple[Reference, ...]:
    """Read what names memories: an id, a handle, or a receipt, which begins with its handle.

    Raises:
        InvalidInput: It names none.
    """
    given = text.strip()
    if not given.startswith("["):
        return (Reference(memory_id=check_memory_id(given)),)
    first = next(iter(find(given)), None)
    if first is None or first.start:
        raise InvalidInput("an id that begins with [ is a handle, such as [memo:7]")
    return first.references


def undecided(text: str) -> int:
    """Find where the end of a text may be the beginning of a handle, of which more is to come.

    What comes before is settled: `find` and `unescape` see in it and in the rest what they see
    in the whole.

    Returns:
        The index of that beginning; the text's length where nothing is in doubt.
    """
    start = text.rfind("[")
    if start < 0:
        return len(text)
    begun = _BEGUN.fullmatch(text, start) or _ESCAPED_BEGUN.fullmatch(text, start)
    return len(text) if begun is None else start


def _handle(match: re.Match[str]) -> Handle | None:
    first, others, fragment = match.groups()
    if fragment is None:
        ids = [first, *(others or "").split(",")[1:]]
        references = tuple(Reference(memory_id=memory_id) for memory_id in ids)
    else:
        pointer = _decode(fragment)
        if pointer is None:
            return None
        references = (Reference(memory_id=first, pointer=pointer),)
    return Handle(start=match.start(), end=match.end(), references=references)


def _decode(fragment: str) -> str | None:
    try:
        pointer = unquote_to_bytes(fragment).decode("utf-8")
    except UnicodeError:
        return None
    return pointer if _POINTER.fullmatch(pointer) else None


def render(*memory_ids: str | int, pointer: str | None = None) -> str:
    """Write a handle that `find` reads back.

    Args:
        memory_ids: One id or several.
        pointer: A JSON Pointer such as `/rows/0`, with one id only.

    Raises:
        InvalidInput: No id, an id or a pointer outside the grammar, or a pointer with several ids.
    """
    if not memory_ids:
        raise InvalidInput("a handle needs at least one memory id")
    listed = ",".join(check_memory_id(memory_id) for memory_id in memory_ids)
    if pointer is None:
        return f"{HANDLE_OPENING}{listed}]"
    if len(memory_ids) > 1:
        raise InvalidInput("a handle to a part names one memory; write one handle for each part")
    return f"{HANDLE_OPENING}{listed}#{_encode(pointer)}]"


def _encode(pointer: str) -> str:
    if not _POINTER.fullmatch(pointer):
        raise InvalidInput("a JSON Pointer is empty or begins with '/'; '~' is written '~0'")
    try:
        return quote(pointer, safe=_LETTERS_KEPT_IN_FRAGMENTS)
    except UnicodeError as error:
        raise InvalidInput("a JSON Pointer with a lone surrogate cannot be a handle") from error
