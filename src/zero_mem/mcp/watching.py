"""Waiting for changes of a namespace, for clients that listen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Final

from zero_mem.errors import ZeroMemError
from zero_mem.mcp.addresses import names_one_of
from zero_mem.operations.history import HistoryEntry
from zero_mem.space import Namespace

AT_ONCE: Final = 100
"""Entries that are read in one visit to the store."""

Look = Callable[[int], Awaitable[Sequence[HistoryEntry]]]
"""Reads the journal's entries after a position."""


def last_position(space: Namespace) -> int:
    """Tell the journal's last position, 0 where nothing was written."""
    return space.decisions_at().position


class News:
    """The changes of a namespace from now on, in batches.

    Args:
        look: Reads the journal; it raises when the key has ended.
        after: The position to begin after.
        ringing: Gives an event that is set when this process has written.
        ended: Set when the connection or the server ends.
        poll: Seconds between two looks at what others wrote.
    """

    def __init__(
        self,
        look: Look,
        *,
        after: int,
        ringing: Callable[[], asyncio.Event],
        ended: asyncio.Event,
        poll: float,
    ) -> None:
        self._look = look
        self._ringing = ringing
        self._ended = ended
        self._poll = poll
        self._after = after

    async def __aiter__(self) -> AsyncIterator[Sequence[HistoryEntry]]:
        # A client that asks again is told what ended it.
        with suppress(ZeroMemError):
            while not self._ended.is_set():
                ring = self._ringing()
                entries = await self._look(self._after)
                if entries:
                    self._after = entries[-1].sequence
                    yield entries
                else:
                    await _any(ring, self._ended, seconds=self._poll)


async def _any(*events: asyncio.Event, seconds: float) -> None:
    """Wait for one of several events, at most so long."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def changed(entries: Sequence[HistoryEntry]) -> list[str]:
    """Name the memories of which entries tell, each once."""
    return list(dict.fromkeys(entry.memory_id for entry in entries))


class Subscriptions:
    """The addresses of which a client of an earlier version asked to hear.

    Args:
        listening: Gives the changes from now on.
    """

    def __init__(self, listening: Callable[[], AbstractAsyncContextManager[News]]) -> None:
        self._listening = listening
        self._stack = AsyncExitStack()
        self._uris: set[str] = set()
        self._beginning = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None

    async def add(self, uri: str, tell: Callable[[str], Awaitable[None]]) -> None:
        """Tell of an address from now on; what had ended, since the store was away, begins anew.

        Raises:
            ZeroMemError: The namespace can't be read.
        """
        async with self._beginning:  # requests come side by side, and one watch is enough
            if self._watch is None or self._watch.done():
                await self._stop()
                news = await self._stack.enter_async_context(self._listening())
                self._watch = asyncio.create_task(self._tell_all(news, tell))
        self._uris.add(uri)

    def drop(self, uri: str) -> None:
        """Tell of an address no more."""
        self._uris.discard(uri)

    async def end(self) -> None:
        """Tell nothing more."""
        await self._stop()

    async def _stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            # A client that is gone can be told nothing; that is no error of anybody's.
            await asyncio.gather(self._watch, return_exceptions=True)
        await self._stack.aclose()

    async def _tell_all(self, news: News, tell: Callable[[str], Awaitable[None]]) -> None:
        async for entries in news:
            ids = changed(entries)
            for uri in sorted(self._uris):
                if names_one_of(uri, ids):
                    await tell(uri)
