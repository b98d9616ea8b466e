"""Running blocking calls in a few threads of the store's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from typing import Final, Generic, TypeVar

from zero_mem.errors import StoreUnavailable

T = TypeVar("T")
R = TypeVar("R")

MOST: Final = 8
"""Threads of one store. Writes take turns in any case; this many readers run beside them."""

_AT_ONCE: Final = 100
"""Records that an iteration fetches in one visit to a thread."""


class Threads:
    """Threads for one store, started by its first call and ended with it.

    No thread belongs to an event loop, so that one store serves several loops.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._ended: Future[None] | None = None

    async def run(self, work: Callable[[], R]) -> R:
        """Run `work` in a thread, in the caller's context.

        A cancelled await gives up waiting only: work that has begun runs to its end, work
        that has not never begins. Neither stops half-way.

        Raises:
            StoreUnavailable: The store is closed.
        """
        context = copy_context()
        with self._lock:
            future = self._started().submit(context.run, work)
        return await asyncio.wrap_future(future)

    def _started(self) -> ThreadPoolExecutor:
        if self._ended is not None:
            raise StoreUnavailable("the store is closed; open it again")
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MOST, thread_name_prefix="zero-mem")
        return self._pool

    def end(self, last: Callable[[], None]) -> Awaitable[None]:
        """Refuse new calls, let those taken finish, then run `last`; all that in a thread.

        Returns:
            What waits for it; it ends all the same if nobody does, or the wait is cancelled.
        """
        with self._lock:
            if self._ended is None:
                closer = ThreadPoolExecutor(1, thread_name_prefix="zero-mem-close")
                self._ended = closer.submit(self._finish, last)
                closer.shutdown(wait=False)
            return asyncio.shield(asyncio.wrap_future(self._ended))

    def _finish(self, last: Callable[[], None]) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        last()


class Calls(Generic[T]):
    """What every asynchronous view shares: its synchronous twin, and where calls to it run.

    Args:
        threads: The store's threads.
        twin: Gives the twin; called in a thread, since the first call opens the store.
    """

    def __init__(self, threads: Threads, twin: Callable[[], T]) -> None:
        self._threads = threads
        self._twin = twin

    async def _call(self, work: Callable[[T], R]) -> R:
        return await self._threads.run(lambda: work(self._twin()))

    async def _iterate(self, start: Callable[[T], Iterator[R]]) -> AsyncIterator[R]:
        items = await self._call(start)
        while taken := await self._threads.run(lambda: list(islice(items, _AT_ONCE))):
            for item in taken:
                yield item
