"""Strict arguments: what a tool does not take is refused before anything is done."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from zero_mem import handles
from zero_mem.errors import InvalidInput
from zero_mem.mcp.definitions import Definition

_KINDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "string": ((str,), "text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "object": ((dict,), "an object"),
    "array": ((list,), "a list of texts"),
}

_HALF: Final = re.compile("[\ud800-\udfff]")


def carried(text: str) -> str:
    """Give a text as UTF-8 can carry it: half of a surrogate pair becomes U+FFFD."""
    return _HALF.sub("\ufffd", text)


def checked(tool: Definition, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give a call's arguments without those that are null.

    Raises:
        InvalidInput: One is missing, unknown or of another type; the message says what is taken.
    """
    arguments = {name: value for name, value in (given or {}).items() if value is not None}
    taken = ", ".join(tool.properties)
    for name, value in arguments.items():
        if name not in tool.properties:
            raise InvalidInput(f"{tool.name} has no argument {name[:40]!r}; it takes {taken}")
        _check(name, value, tool.properties[name])
    if _HALF.search(json.dumps(arguments, ensure_ascii=False)):
        raise InvalidInput("a text has half of a surrogate pair, which no UTF-8 can carry")
    for name in tool.required:
        if name not in arguments:
            raise InvalidInput(f"{name} is missing; {tool.name} takes {taken}")
    return arguments


def _check(name: str, value: Any, schema: Mapping[str, Any]) -> None:
    types, words = _KINDS[schema["type"]]
    fits = isinstance(value, types) and (bool in types or not isinstance(value, bool))
    if fits and isinstance(value, list):
        fits = all(isinstance(item, str) for item in value)
    if not fits:
        raise InvalidInput(f"{name} is {words}, not {type(value).__name__}")


def named(text: str) -> handles.Reference:
    """Read what names one memory: its id, handle, receipt or `memo://` address.

    Raises:
        InvalidInput: It names none, or several.
    """
    from zero_mem.mcp.addresses import SCHEME, reference

    if text.startswith(SCHEME):
        return reference(text)
    found = handles.named(text)
    if len(found) > 1:
        raise InvalidInput(f"the handle names {len(found)} memories; give one of them")
    return found[0]
