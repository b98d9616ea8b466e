"""Connections that never get to a request are ended: the head of one is bounded as its body is."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD: Final = 65_536
"""Bytes of a request's head."""

_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)


class Patient(HttpToolsProtocol):
    """Waits so many seconds for the head of a request, and no longer."""

    seconds: ClassVar[float]
    _timer: asyncio.TimerHandle | None = None
    _head = 0
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on, and count what of it is a head."""
        super().data_received(data)
        self._head = self._head + len(data) if self._in_head else 0
        if self._head > MOST_HEAD:
            self._end(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Wait for the rest of a head."""
        super().on_message_begin()
        self._in_head, self._head = True, 0
        self._wait()

    def on_headers_complete(self) -> None:
        """Stop waiting: the request begins."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.seconds, lambda: self._end(_TOO_SLOW))

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, said: bytes) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.write(said)
            self.transport.close()


def patient(seconds: float) -> type[Patient]:
    """Give the protocol for a time to wait."""
    return type("Patient", (Patient,), {"seconds": seconds})
