"""The provider's own usage figures, picked out of an answer that passes by."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

from zero_mem.proxy.codings import Decoder, coding, decoder
from zero_mem.proxy.headers import Headers, first

_MOST: Final = 1 << 25
"""Bytes of a complete body that are kept until its end; a longer one is not read."""

_WORD: Final = b'"usage"'
_ZLIB_ERROR: Final = zlib.error


class UsageTap:
    """Sees each piece of an answer after it was passed on; holds nothing back.

    Args:
        headers: The answer's fields.
    """

    def __init__(self, headers: Headers) -> None:
        kind = first(headers, b"content-type") or b""
        self._streams = kind.split(b";")[0].strip().lower() == b"text/event-stream"
        self._decode: Decoder | None = decoder(coding(headers))
        self._kept: list[bytes] = []
        self._size = 0
        self._line = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next piece, in its coding."""
        if self._decode is None:
            return
        try:
            plain = self._decode(chunk)
        except (ValueError, OSError, EOFError, _ZLIB_ERROR):
            self._decode = None
            return
        if self._streams:
            self._take_lines(plain)
        elif self._size < _MOST:
            self._kept.append(plain)
            self._size += len(plain)

    def _take_lines(self, plain: bytes) -> None:
        if b"\n" not in plain:
            self._line += plain
            return
        complete, _, self._line = (self._line + plain).rpartition(b"\n")
        if _WORD in complete:
            self._kept += [line for line in complete.splitlines() if _WORD in line]

    def figures(self) -> Mapping[str, Any]:
        """Give the usage object, of a stream all of them laid over one another; may be empty."""
        if not self._streams:
            body = _json(b"".join(self._kept)) if self._size < _MOST else None
            return usage_of(body)
        found: dict[str, Any] = {}
        for line in (*self._kept, *([self._line] if _WORD in self._line else [])):
            figures = usage_of(_json(line.removeprefix(b"data:")))
            found |= {name: value for name, value in figures.items() if value is not None}
        return found


def usage_of(body: Any) -> Mapping[str, Any]:
    """Find the usage object of a response, or of an event of a stream; empty where none is."""
    if not isinstance(body, Mapping):
        return {}
    for holder in (body, body.get("message"), body.get("response")):
        found = holder.get("usage") if isinstance(holder, Mapping) else None
        if isinstance(found, Mapping):
            return found
    return {}


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
