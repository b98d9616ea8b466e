"""An upstream on loopback that answers in exact bytes, and keeps the exact bytes it got."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Fields = list[tuple[bytes, bytes]]


@dataclass
class Received:
    """One request: its head as it came, and its body without the chunks' framing."""

    method: str
    target: str
    fields: Fields
    body: bytes

    def field(self, name: str) -> str | None:
        values = [value for key, value in self.fields if key.lower() == name.encode()]
        return values[0].decode("latin-1") if values else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Exchange:
    """The upstream's side of one request, for an answer of any shape."""

    def __init__(self, received: Received, writer: asyncio.StreamWriter) -> None:
        self.received = received
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: int, *fields: tuple[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in fields)]
        await self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def last_chunk(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def whole(self, status: int, body: bytes, *fields: tuple[str, str]) -> None:
        await self.head(status, *fields, ("Content-Length", str(len(body))))
        await self.send(body)

    async def json(self, value: Any, status: int = 200, *fields: tuple[str, str]) -> None:
        body = json.dumps(value).encode()
        await self.whole(status, body, ("Content-Type", "application/json"), *fields)

    async def events(self, *events: bytes) -> None:
        await self.head(
            200, ("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")
        )
        for event in events:
            await self.chunk(event)
        await self.last_chunk()

    def drop(self) -> None:
        self.writer.transport.abort()


Answer = Callable[[Exchange], Awaitable[None]]


@dataclass
class ScriptedUpstream:
    """Answers each request with the next of `script`, or `always`."""

    url: str = ""
    script: list[Answer] = field(default_factory=list)
    always: Answer | None = None
    requests: list[Received] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (received := await _read(reader)) is not None:
                self.requests.append(received)
                answer = self.script.pop(0) if self.script else self.always
                assert answer is not None, f"nothing is scripted for {received.target}"
                await answer(Exchange(received, writer))
        except ConnectionError:
            self.gone.set()
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head[:-4].split(b"\r\n")
    method, target, _ = first.decode("latin-1").split(" ")
    fields = [(name, value.strip(b" ")) for name, _, value in (li.partition(b":") for li in lines)]
    named = {name.lower(): value for name, value in fields}
    body = b""
    if named.get(b"transfer-encoding") == b"chunked":
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    elif b"content-length" in named:
        body = await reader.readexactly(int(named[b"content-length"]))
    return Received(method, target, fields, body)


@contextmanager
def scripted_upstream() -> Iterator[ScriptedUpstream]:
    """Serve on a free port of loopback until the block ends."""
    upstream = ScriptedUpstream()
    started = threading.Event()
    stop: list[Callable[[], object]] = []

    async def run() -> None:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(done.set))
        server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0, limit=1 << 20)
        upstream.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        await done.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    started.wait()
    try:
        yield upstream
    finally:
        stop[0]()
        thread.join()
