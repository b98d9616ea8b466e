"""What a record contributes to the lexical index."""

from __future__ import annotations

from zero_mem.text.segment import content_terms
from zero_mem.types import MemoryRecord

INDEXED_CHARACTERS = 262_144
"""Of a longer body only this many characters are indexed; all of it is stored."""


def searched_text(record: MemoryRecord) -> str:
    """Give what a search looks at: the key, the tags and the first part of the text."""
    text = record.text[:INDEXED_CHARACTERS]
    if record.key is None and not record.tags:
        return text
    return "\n".join((record.key or "", *record.tags, text))


def index_terms(record: MemoryRecord) -> list[str]:
    """Give the terms that the index holds of a record, in order and with repeats."""
    return content_terms(searched_text(record))


def partly_indexed(record: MemoryRecord) -> bool:
    """Tell whether a part of the text is in no index."""
    return len(record.text) > INDEXED_CHARACTERS
