"""Whole numbers in addresses and forms."""

from __future__ import annotations

from typing import Final

from zero_mem.errors import InvalidInput

LARGEST: Final = 999_999_999
"""The largest version of a record that can be asked for."""


def whole_number(text: str, what: str, *, most: int = LARGEST) -> int:
    """Read a number from 0.

    Args:
        text: As it was typed.
        what: Names it in the error.
        most: The largest that is taken.

    Raises:
        InvalidInput: It is no such number.
    """
    # The length first: reading a number takes time that grows with its square.
    if text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and int(text) <= most:
        return int(text)
    raise InvalidInput(f"{what} is a whole number up to {most}")
