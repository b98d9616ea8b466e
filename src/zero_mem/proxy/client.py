"""The client's side of one request, over ASGI: no early status, no buffering, no false end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, TypeAlias

from zero_mem.proxy.headers import Field, Headers, end_to_end, first, without

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class Gone(Exception):
    """The client went away before its request was complete."""


class TooLong(Exception):
    """The request's body is longer than allowed."""


class Client:
    """Reads one request and writes its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        raw_path = scope.get("raw_path") or scope["path"].encode()
        whole = raw_path.decode("latin-1").partition("?")[0]
        # What the proxy itself is served beneath is nothing to the upstream.
        self.path: str = whole.removeprefix(scope.get("root_path", ""))
        self.query: str = scope["query_string"].decode("latin-1")
        self.headers: Headers = list(scope["headers"])
        self.started = False
        self.ended = False
        self._receive = receive
        self._send = send

    @property
    def has_body(self) -> bool:
        """Tell whether the request has a body, of length zero or more."""
        lengths = (b"content-length", b"transfer-encoding")
        return any(first(self.headers, name) is not None for name in lengths)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Give the body as it arrives.

        Raises:
            Gone: The client went away.
        """
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone
            more = message.get("more_body", False)
            if message.get("body"):
                yield message["body"]

    async def body(self, limit: int) -> bytes:
        """Read the whole body.

        Raises:
            Gone: The client went away.
            TooLong: It is longer than `limit` bytes.
        """
        if int(first(self.headers, b"content-length") or 0) > limit:
            raise TooLong
        pieces: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            size += len(piece)
            if size > limit:
                raise TooLong
            pieces.append(piece)
        return b"".join(pieces)

    async def while_connected(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, and cancel it as soon as the client goes away."""
        working = asyncio.ensure_future(work)
        watching = asyncio.ensure_future(self._gone())
        try:
            await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            working.cancel()  # does nothing to what is done
            await asyncio.wait({working, watching})
        if not working.cancelled():
            working.result()

    async def _gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def start(self, status: int, headers: Headers) -> None:
        """Send a response's head."""
        self.started = True
        fields = [[name, value] for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": fields})

    async def write(self, data: bytes) -> None:
        """Send a piece of the body; waits while the client is slow to take it."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece. A response without it is cut off, as its source was."""
        self.ended = True
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole response."""
        await self.start(status, headers)
        await self.end(body)


def as_received(headers: Headers) -> list[Field]:
    """Give an answer's fields for a body that is passed on as it is."""
    return list(end_to_end(headers))


def for_new_body(headers: Headers, body: bytes | None) -> list[Field]:
    """Give an answer's fields for a body of our own, None for one that is streamed."""
    kept = without(
        end_to_end(headers), {b"content-length", b"content-encoding", b"content-md5", b"digest"}
    )
    return kept if body is None else [*kept, (b"content-length", str(len(body)).encode())]
