"""The protocol on stdin and stdout, for a host that starts the server as its own process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeVar, cast

from zero_mem.aio.threads import Threads
from zero_mem.mcp.sdk import SessionMessage, ValidationError, stdio_server, types
from zero_mem.mcp.server import server
from zero_mem.mcp.watching import AT_ONCE, News, Subscriptions, last_position
from zero_mem.memory import Memory
from zero_mem.operations.history import HistoryEntry
from zero_mem.space import Namespace

R = TypeVar("R")

_READ: Final = 65_536
_GRACE: Final = 10.0
"""Seconds that requests get to be answered once the host has closed stdin."""
_POLL: Final = 1.0
"""Seconds between two looks at what other processes wrote, while a client listens."""


def serve(memory: Memory, space: Namespace) -> None:
    """Serve a namespace on stdin and stdout until stdin ends or a signal comes.

    Requests that were taken are answered, and the store is closed.

    Args:
        memory: The store, local or behind a server; it is closed at the end.
        space: The namespace in it.
    """
    asyncio.run(_serve(memory, space))


async def _serve(memory: Memory, space: Namespace) -> None:
    threads = Threads()
    session = _StdioSession(space, threads)
    lines = _Lines(asyncio.get_running_loop())
    try:
        with _ended_by_signals(lines.end):
            await _converse(session, lines)
    except* BrokenPipeError:
        pass  # a host that is gone reads nothing; what it had asked for is written all the same
    finally:
        await threads.end(memory.close)


async def _converse(session: _StdioSession, lines: _Lines) -> None:
    subscriptions = Subscriptions(session.listening)
    protocol = server(lambda context: session, subscriptions=subscriptions)
    open_requests = _OpenRequests()
    async with stdio_server(stdin=cast("Any", lines)) as (read, write):
        out = _Outgoing(write, open_requests)
        incoming = _Incoming(read, open_requests, session.ended, out)
        try:
            await protocol.run(incoming, out, protocol.create_initialization_options())
        finally:
            await subscriptions.end()


class _StdioSession:
    """The one session of the process."""

    def __init__(self, space: Namespace, threads: Threads) -> None:
        self.space = space
        self.ended = asyncio.Event()
        self._threads = threads
        self._ring = asyncio.Event()

    async def run(self, work: Callable[[], R]) -> R:
        return await self._threads.run(work)

    def wrote(self) -> None:
        self._ring.set()
        self._ring = asyncio.Event()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[News]:
        async def look(after: int) -> list[HistoryEntry]:
            return await self.run(partial(self.space.changes, after=after, limit=AT_ONCE))

        yield News(
            look,
            after=await self.run(partial(last_position, self.space)),
            ringing=lambda: self._ring,
            ended=self.ended,
            poll=_POLL,
        )


class _Lines:
    """Lines of stdin, read by a thread that nothing waits for.

    A read can't be interrupted, and the process has to end on a signal all the same.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(64)  # what is not taken yet stays in the pipe
        self._ended = False
        threading.Thread(target=self._read, name="zero-mem-stdin", daemon=True).start()

    def end(self) -> None:
        """Take no more lines."""
        self._ended = True
        self._queue.put_nowait(None)

    def _read(self) -> None:
        # Closed under this thread, or at the end of the process: there is nobody to tell.
        with suppress(OSError, RuntimeError):
            begun: list[bytes] = []
            while part := os.read(0, _READ):
                *ended, rest = part.split(b"\n")
                for line in ended:
                    self._put(b"".join([*begun, line]))
                    begun = []
                begun.append(rest)
            self._put(b"".join(begun))
            self._loop.call_soon_threadsafe(self.end)

    def _put(self, line: bytes) -> None:
        self._room.acquire()
        text = line.decode("utf-8", "replace")
        self._loop.call_soon_threadsafe(self._queue.put_nowait, text)

    async def __aiter__(self) -> AsyncIterator[str]:
        while not (self._ended and self._queue.empty()):
            line = await self._queue.get()
            if line is None:
                return
            self._room.release()
            if line.strip():
                yield line


class _OpenRequests:
    """The requests that wait for an answer."""

    def __init__(self) -> None:
        self._ids: set[Any] = set()
        self._none = asyncio.Event()
        self._none.set()

    def came(self, message: Any) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._ids.add(message.id)
            self._none.clear()
        elif _is_cancelling(message):
            # It is never answered.
            self._went(message.params.get("requestId"))

    def answered(self, message: Any) -> None:
        if isinstance(message, (types.JSONRPCResponse, types.JSONRPCError)):
            self._went(message.id)

    def _went(self, identity: Any) -> None:
        self._ids.discard(identity)
        if not self._ids:
            self._none.set()

    async def settled(self, seconds: float) -> None:
        """Wait until all are answered, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._none.wait()


def _is_cancelling(message: Any) -> bool:
    return (
        isinstance(message, types.JSONRPCNotification)
        and message.method == "notifications/cancelled"
        and message.params is not None
    )


class _Stream:
    """A stream of the SDK's with something done beside."""

    def __init__(self, inner: Any, open_requests: _OpenRequests) -> None:
        self._inner = inner
        self._open = open_requests

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Any:
        return await self._inner.__aexit__(kind, error, trace)


class _Incoming(_Stream):
    """What the host sends; its end is passed on when all is answered.

    The SDK gives up every request at the end of the stream, and passes over lines that it can't
    read: one that is JSON and has an id gets its answer here.
    """

    def __init__(
        self, inner: Any, open_requests: _OpenRequests, ended: asyncio.Event, out: _Outgoing
    ) -> None:
        super().__init__(inner, open_requests)
        self._ended = ended
        self._out = out

    @property
    def last_context(self) -> Any:
        return self._inner.last_context

    async def receive(self) -> Any:
        return await self._noted(await self._inner.receive())

    def __aiter__(self) -> _Incoming:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._noted(await self._inner.__anext__())
        except StopAsyncIteration:
            self._ended.set()
            await self._open.settled(_GRACE)
            raise

    async def _noted(self, item: Any) -> Any:
        if isinstance(item, SessionMessage):
            self._open.came(item.message)
        elif isinstance(item, ValidationError) and (refusal := _refusal_of(item)) is not None:
            await self._out.send(SessionMessage(refusal))
        return item


def _refusal_of(error: ValidationError) -> types.JSONRPCError | None:
    """Answer a line that is JSON with an id, and yet no message: a half character is in it."""
    with suppress(ValueError, RecursionError):
        given = error.errors()[0]["input"]
        message = json.loads(given) if isinstance(given, str) else given
        identity = message.get("id") if isinstance(message, dict) else None
        if isinstance(identity, (int, str)) and "method" in message:
            problem = types.ErrorData(
                code=types.INVALID_REQUEST,
                message="this is no message: a text in it has half of a surrogate pair, or its "
                "form is wrong",
            )
            return types.JSONRPCError(jsonrpc="2.0", id=identity, error=problem)
    return None


class _Outgoing(_Stream):
    """What the server sends."""

    async def send(self, item: SessionMessage) -> None:
        await self._inner.send(item)
        self._open.answered(item.message)


@contextmanager
def _ended_by_signals(end: Callable[[], None]) -> Iterator[None]:
    """Take the first signal as the end of stdin; a second one ends the process as usual."""
    loop = asyncio.get_running_loop()
    taken = _signals_here()

    def first() -> None:
        for each in taken:
            loop.remove_signal_handler(each)
        end()

    for each in taken:
        loop.add_signal_handler(each, first)
    try:
        yield
    finally:
        for each in taken:
            loop.remove_signal_handler(each)


def _signals_here() -> tuple[signal.Signals, ...]:
    """Name the signals that a loop can take: on Windows none, elsewhere in the main thread only."""
    if os.name == "nt" or threading.current_thread() is not threading.main_thread():
        return ()
    return (signal.SIGINT, signal.SIGTERM)
