"""What the parts of one server share: the store, who may use it, its threads and its news."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final, Protocol, TypeVar

from starlette.types import Receive, Scope, Send

from zero_mem.aio.threads import Threads
from zero_mem.api.problems import Refusal
from zero_mem.memory import Memory
from zero_mem.operations.history import HistoryEntry
from zero_mem.server import feed
from zero_mem.server.access import Doors
from zero_mem.server.settings import Settings
from zero_mem.server.sweeper import Sweeper
from zero_mem.types import Path

R = TypeVar("R")
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


class Part(Protocol):
    """An application served beneath a path of its own, such as `/console`.

    Its `scope["root_path"]` ends with the prefix, as for every mounted application. It checks
    who asks by `Host.view`.
    """

    prefix: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Live as long as the server does; entered before the first request."""

    def stop(self) -> None:
        """Let the server stop: end what would never end by itself."""


class Host:
    """The services of one server for its parts.

    Args:
        memory: The store.
        settings: How to serve it.
        is_open: Whether it may be used without a key as long as there is none: only where
            nobody but this machine's users can reach it.
    """

    def __init__(self, memory: Memory, settings: Settings, *, is_open: bool) -> None:
        self.memory = memory
        self.settings = settings
        self.is_open = is_open
        self.bell = feed.Bell()
        self.stopping = asyncio.Event()
        self.doors = Doors(
            memory,
            is_open=is_open,
            recheck=settings.recheck,
            rate=settings.rate,
            burst=settings.burst,
        )
        self.sweeper = Sweeper(lambda: self._threads.run(memory.expire), every=settings.sweep_every)
        self._names = _LOOPBACK | {name for name in settings.names.split(",") if name}
        self._threads = Threads()
        self._waiting = 0
        self._streams = 0

    async def run(self, work: Callable[[], R]) -> R:
        """Run work in a thread of the store's.

        Raises:
            Refusal: Too many wait already.
        """
        if self._waiting >= self.settings.backlog:
            raise Refusal("busy", f"{self._waiting} requests wait for the store; try again")
        self._waiting += 1
        try:
            return await self._threads.run(work)
        finally:
            self._waiting -= 1

    async def view(self, credential: str | None, headers: Mapping[str, str]) -> Memory:
        """Give the store as a credential opens it, and count the request.

        Args:
            credential: A key; None where none was sent.
            headers: The request's; without a key its `Host` must be a name of this server.

        Raises:
            Refusal: The credential opens nothing, or asks too often.
        """
        memory = self.doors.known(credential)
        if credential is None and self.is_open:
            self._check_name(headers.get("host", ""))
        if memory is None:
            memory = await self.run(lambda: self.doors.opened(credential))
        self.doors.admit(credential)
        return memory

    def _check_name(self, host: str) -> None:
        """Refuse a page of the web that has made its own name lead here; it has no key."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        if name not in self._names:
            raise Refusal("wrong-host", "without keys, this server answers to loopback names only")

    async def follow(
        self, memory: Memory, credential: str | None, path: Path, after: int
    ) -> AsyncIterator[bytes]:
        """Give a namespace's changes as server-sent events, until the key or the server ends.

        Args:
            memory: The store as the credential opens it.
            credential: The key that is looked up again as long as the feed lasts.
            path: The namespace.
            after: The position in the journal to begin after.

        Raises:
            Refusal: Too many feeds are open.
            NotAllowed: The key may not read there. Both are raised before the feed begins.
        """
        space = memory.namespace(*path)

        async def entries(after: int) -> list[HistoryEntry]:
            if self.doors.known(credential) is None:
                await self.run(lambda: self.doors.opened(credential))
            return await self.run(partial(space.changes, after=after, limit=feed.AT_ONCE))

        await entries(after)
        if self._streams >= self.settings.max_streams:
            raise Refusal("busy", f"{self._streams} feeds are open already; try again")
        return self._counted(
            feed.events(
                entries,
                after,
                bell=self.bell,
                stopping=self.stopping,
                poll=self.settings.poll,
                heartbeat=self.settings.heartbeat,
            )
        )

    async def _counted(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._streams += 1
        try:
            async for event in feed.until_refused(events):
                yield event
        finally:
            self._streams -= 1

    def stop(self) -> None:
        """End the feeds: they would keep the server from stopping."""
        self.stopping.set()
        self.bell.ring()

    async def close(self) -> None:
        """Let calls that were taken finish, apply queued writes, close the store."""
        self.stop()
        await self._threads.end(self.memory.close)
