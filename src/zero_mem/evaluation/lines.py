"""Lines of JSON whose faults say the file and the line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from zero_mem.errors import InvalidInput

_REQUIRED: Final = "\0required"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file, an object of named fields."""

    path: Path
    number: int
    fields: dict[str, Any]

    def wrong(self, problem: str) -> InvalidInput:
        """Make the error that says what is wrong with this line."""
        return InvalidInput(f"{self.path}:{self.number}: {problem}")

    def having(self, name: str, value: Any) -> Line:
        """Give this line with another value of one field."""
        return Line(self.path, self.number, {**self.fields, name: value})

    def text(self, name: str, default: str = _REQUIRED) -> str:
        """Give a field that is a string; the default where it is missing or null.

        Raises:
            InvalidInput: It is something else, or missing without a default.
        """
        value = self.fields.get(name)
        if value is None and default is not _REQUIRED:
            return default
        if not isinstance(value, str):
            raise self.wrong(f"{name!r} is a string, {_what(value)}")
        return value

    def texts(self, name: str) -> list[str]:
        """Give a field that is a list of strings; a single string or number is a list of one.

        Raises:
            InvalidInput: It is something else.
        """
        value = self.fields.get(name)
        if value is None:
            return []
        if isinstance(value, str | int | float):
            return [str(value)]
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.wrong(f"{name!r} is a list of strings, {_what(value)}")
        return value


def _what(value: Any) -> str:
    return "and it is missing" if value is None else f"not {type(value).__name__}"


def json_lines(path: Path) -> Iterator[Line]:
    """Read a file of JSON lines, gzipped where its name ends in `.gz`; empty lines are none.

    Raises:
        InvalidInput: It can't be read, or a line is no JSON object.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if raw.strip():
                    yield Line(path, number, _object(path, number, raw))
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"{path}: can't be read after line {number}: {reason}") from error


def _object(path: Path, number: int, raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path}:{number}: this line is no JSON") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{path}:{number}: a line is a JSON object, not {type(found).__name__}")
    return found
