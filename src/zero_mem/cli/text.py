"""Text for a terminal: what a body holds can't steer it."""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT: Final = 80


def clean(text: str) -> str:
    """Replace control characters, which could move the cursor or hide text, by U+FFFD."""
    return _CONTROL.sub("\ufffd", text)


def short(text: str, limit: int = _SHORT) -> str:
    """Put a text on one line of at most `limit` characters."""
    line = " ".join(clean(text[: 4 * limit]).split())
    return line if len(line) <= limit and len(text) <= 4 * limit else f"{line[: limit - 1]}…"
