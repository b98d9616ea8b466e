"""Text of others as a page may show it, whatever it holds."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""What a browser would not show, or would let turn the text around it."""


def visible(text: str) -> str:
    """Write out the characters that hide: controls, marks of direction, lone surrogates."""
    return _HIDDEN.sub(_code, text)


def _code(found: re.Match[str]) -> str:
    return "\n" if found[0] in "\r\u2028\u2029" else f"⟨U+{ord(found[0]):04X}⟩"


def exact_json(value: Any) -> str:
    """Write a JSON value for people to read and change; what hides is escaped, so it stays."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def finalized(value: Any) -> Any:
    """Give what a template shows for a value; text that is markup already stays as it is."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
