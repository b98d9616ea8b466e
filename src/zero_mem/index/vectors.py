"""What a record contributes to the dense index: the text that is embedded, and its vector's bytes.

The text of a short turn is that of the turn that it answers and its own ("yes, on Friday" means
little alone); no other record's text goes in, so a change or a purge knows which vectors it
reaches.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import timedelta

from zero_mem.text.segment import content_terms
from zero_mem.types import MemoryRecord

RECIPE = 1
"""Raised when `embedded_text` or `context_of` changes: vectors of another recipe are not mixed."""

REACH = 32
"""How many records back the turn before is looked for."""

GAP = timedelta(hours=3)
"""A longer silence begins anew."""

SHORT = 40
"""A text of more terms says by itself what it is about (measured: it loses by a context)."""

EMBEDDED_CHARACTERS = 2000
"""Of a text this much is embedded: more than small models read (512 tokens)."""

CONTEXT_CHARACTERS = 600
"""Of the turn before, its end."""

_UNSAFE = {0: " ", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


def context_of(
    record: MemoryRecord, position: int, earlier: Mapping[int, MemoryRecord]
) -> int | None:
    """Find the turn that a turn answers: the one before it, said by somebody else.

    None where the record is no turn of a dialogue, or needs no context: what one speaker
    notes, one thing after the other, is further from its question with the note before.

    Args:
        record: The record to embed.
        position: Its position.
        earlier: Records by position, at least those up to `REACH` before it.
    """
    if record.session is None or record.speaker is None or _is_long(record.text):
        return None
    for place in range(position - 1, position - 1 - REACH, -1):
        other = earlier.get(place)
        if other is not None and _before(other, record):
            return place if other.speaker not in (None, record.speaker) else None
    return None


def _is_long(text: str) -> bool:
    return len(content_terms(text[:EMBEDDED_CHARACTERS])) > SHORT


def _before(other: MemoryRecord, record: MemoryRecord) -> bool:
    same = (other.session, other.kind) == (record.session, record.kind)
    near = timedelta(0) <= record.created_at - other.created_at <= GAP
    return same and near and other.state == "active"


def embedded_text(record: MemoryRecord, context: MemoryRecord | None = None) -> str:
    """Give the text that is embedded for a record, safe for any encoder (no NUL, no surrogate)."""
    text = _line(record)[:EMBEDDED_CHARACTERS]
    if context is not None:
        text = f"{_line(context)[-CONTEXT_CHARACTERS:]}\n{text}"
    return safe_text(text)


def _line(record: MemoryRecord) -> str:
    return ": ".join(part for part in (record.speaker, record.key, record.text) if part)


def safe_text(text: str) -> str:
    """Replace what encoders written in C can't take."""
    return text.translate(_UNSAFE)


def encode(row: Sequence[float]) -> bytes:
    """Write a vector of unit length as little-endian half floats (an error below 0.001)."""
    return struct.pack(f"<{len(row)}e", *row)
