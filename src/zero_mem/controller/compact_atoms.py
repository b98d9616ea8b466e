"""Scalars of the compact form: when a string may stand bare, and how numbers are spelled."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from zero_mem.errors import InvalidInput

NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
BARE_KEY: Final = re.compile(r"\w[\w\-/@$]*")
LITERALS: Final = {"true": True, "false": False, "null": None}
_CONTROL: Final = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_OPENING: Final = frozenset('"[{^')


class ExactFloat(float):
    """A float that remembers how its JSON text spelled it, so that 1.50 stays 1.50."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> ExactFloat:
        """Read the number; `text` keeps its spelling."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def quoted(text: str) -> str:
    """Write a JSON string; lone surrogates alone force ASCII escapes."""
    return json.dumps(text, ensure_ascii=_SURROGATE.search(text) is not None)


def key(name: str) -> str:
    """Write a key, bare where it is a plain word."""
    return name if BARE_KEY.fullmatch(name) else quoted(name)


def looks_typed(text: str) -> bool:
    """Tell whether a bare text would be read as a number, true, false or null."""
    return text in LITERALS or NUMBER.fullmatch(text) is not None


def typed(text: str) -> Any:
    """Read a text that `looks_typed`."""
    if text in LITERALS:
        return LITERALS[text]
    return ExactFloat(text) if any(char in ".eE" for char in text) else int(text)


def _plain(text: str) -> bool:
    return (
        bool(text)
        and text[0] not in _OPENING
        and text == text.strip()
        and not _CONTROL.search(text)
    )


def bare_in_line(text: str) -> bool:
    """Tell whether a string may stand bare up to the end of its line."""
    return _plain(text) and not looks_typed(text)


def bare_in_flow(text: str) -> bool:
    """Tell whether a string may stand bare inside `{…}` and `[…]`."""
    return bare_in_line(text) and not any(char in ",[]{}" for char in text)


def bare_in_spaces(text: str) -> bool:
    """Tell whether a cell may stand bare between spaces; its type is not looked at."""
    return _plain(text) and text != "-" and not any(char.isspace() for char in text)


def bare_in_commas(text: str) -> bool:
    """Tell whether a cell may stand bare between commas; its type is not looked at."""
    return _plain(text) and "," not in text


def bare_in_header(text: str) -> bool:
    """Tell whether a value may stand bare after `name=` in a header."""
    return bare_in_flow(text) and bare_in_spaces(text)


def same(left: Any, right: Any) -> bool:
    """Tell equal scalars, keeping 1, 1.0, 1.00 and true apart."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return _number(left) == _number(right)
    return bool(left == right)


def scalar(value: Any) -> str:
    """Write null, a boolean or a number.

    Raises:
        InvalidInput: the value is not JSON.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    raise InvalidInput(f"a value of type {type(value).__name__} is not JSON")


def _number(value: float) -> str:
    if isinstance(value, ExactFloat):
        return value.text
    if value - value != 0:
        raise InvalidInput(f"{value} is not JSON: only finite numbers are")
    return json.dumps(value)
