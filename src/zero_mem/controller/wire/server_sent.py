"""Server-sent events as the providers stream them, read without losing a byte.

Source: the WHATWG HTML standard, section "Server-sent events". Bytes that make no event, such
as comments, stay with the event that follows, so the raw bytes of all events are the input.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_LINE_END = re.compile(r"\r\n|\n|\r")
# Atomic, so that the halves of one CRLF are never taken for two line ends.
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LONGEST_BLANK_LINE = 4
_MARK = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a stream.

    `name` is the event's type, "" where it has none. `data` is its JSON decoded, or its text
    where that is no JSON ("[DONE]", or "" where there is none). `raw` are its exact bytes with
    the blank line, comments and unknown fields; None marks an event that was edited or made
    here. `source` is whatever object the event was made of.
    """

    name: str = ""
    data: Any = ""
    raw: bytes | None = None
    source: Any = None


class EventReader:
    """Cuts a stream of bytes into events, however the bytes arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._at_start = True

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes; give the events that are complete with them."""
        self._buffer += chunk
        events: list[Event] = []
        start = 0
        while found := _BLANK_LINE.search(self._buffer, max(start, self._searched)):
            events.append(self._event(bytes(self._buffer[start : found.end()])))
            start = self._searched = found.end()
        del self._buffer[:start]
        self._searched = max(0, len(self._buffer) - _LONGEST_BLANK_LINE)
        return events

    def close(self) -> list[Event]:
        """Give what came after the last blank line, as the stream ends."""
        rest, self._buffer, self._searched = bytes(self._buffer), bytearray(), 0
        return [self._event(rest)] if rest else []

    def _event(self, raw: bytes) -> Event:
        text = raw.decode("utf-8", errors="replace")
        if self._at_start:
            text = text.removeprefix(_MARK)
            self._at_start = False
        name, lines = "", []
        for line in _LINE_END.split(text):
            field, _, value = line.partition(":")
            if field == "event":
                name = value.removeprefix(" ")
            elif field == "data":
                lines.append(value.removeprefix(" "))
        return Event(name=name, data=_decoded("\n".join(lines)), raw=raw)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def event_bytes(event: Event) -> bytes:
    """Write an event: its own bytes where it was not edited, else as the providers do."""
    if event.raw is not None:
        return event.raw
    name = f"event: {event.name}\n" if event.name else ""
    text = event.data if isinstance(event.data, str) else json_bytes(event.data).decode("utf-8")
    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(text))
    return f"{name}{lines}\n".encode("utf-8", errors="replace")


def json_bytes(value: Any) -> bytes:
    """Write a value as compact JSON in UTF-8; what UTF-8 can't hold is written as an escape."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")
