"""What a record contributes to the lexical index."""

from __future__ import annotations

from zero_mem.text.segment import terms
from zero_mem.types import MemoryRecord

INDEXED_CHARACTERS = 262_144
"""Of a longer body only this many characters are indexed; all of it is stored."""


def index_terms(record: MemoryRecord) -> list[str]:
    """Give the terms of a record: its key, its tags and the first part of its text."""
    labels = " ".join((record.key or "", *record.tags)).strip()
    text = record.text[:INDEXED_CHARACTERS]
    return terms(f"{labels}\n{text}" if labels else text)


def partly_indexed(record: MemoryRecord) -> bool:
    """Tell whether a part of the text is in no index."""
    return len(record.text) > INDEXED_CHARACTERS
