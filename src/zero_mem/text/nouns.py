"""Numbers with their nouns, for people to read."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """Write a number with its noun, such as "1 file" or "1,200 files".

    Args:
        count: How many.
        one: The noun for one.
        many: The noun for any other number; by default `one` with an s.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
