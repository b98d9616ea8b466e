"""The change feed: a namespace's journal as server-sent events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Final

from zero_mem.api.forms import form_of
from zero_mem.api.text import dump
from zero_mem.errors import InvalidInput, ZeroMemError
from zero_mem.operations.history import HistoryEntry

LOG: Final = logging.getLogger("zero_mem.server")
AT_ONCE: Final = 100
"""Entries that are read in one visit to the store."""

_LONGEST_POSITION: Final = 18
_ENTRY: Final = form_of(HistoryEntry)


def position(text: str) -> int:
    """Read a position in the journal as a client names it.

    Raises:
        InvalidInput: It is none.
    """
    if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_POSITION:
        return int(text)
    raise InvalidInput("a position in the journal is a whole number from 0")


class Bell:
    """Rings when this process has written, so that feeds need not wait for their next look."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake every feed that waits."""
        self._event.set()
        self._event = asyncio.Event()

    def next(self) -> asyncio.Event:
        """Give what the next ring sets; taken before a look, no ring after it is missed."""
        return self._event


async def _either(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, at most so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


async def events(
    read: Callable[[int], Awaitable[list[HistoryEntry]]],
    after: int,
    *,
    bell: Bell,
    stopping: asyncio.Event,
    poll: float,
    heartbeat: float,
) -> AsyncIterator[bytes]:
    """Give the events of a feed until the server stops.

    Each has the journal's position as its id: a client that lost the connection goes on from
    the last one it saw, and misses nothing.

    Args:
        read: Reads the entries after a position; it raises when the key has ended.
        after: The position to begin after.
        bell: Rings on writes of this process.
        stopping: Set when the server stops.
        poll: Seconds between two looks at what others wrote.
        heartbeat: Seconds of silence before a comment is sent.
    """
    yield b": follows the journal\n\n"
    loop = asyncio.get_running_loop()
    spoken = loop.time()
    while not stopping.is_set():
        ring = bell.next()
        entries = await read(after)
        for entry in entries:
            after = entry.sequence
            yield b"id: %d\nevent: change\ndata: %s\n\n" % (after, dump(_ENTRY.write(entry)))
        if entries:
            spoken = loop.time()
        elif loop.time() - spoken >= heartbeat:
            yield b": nothing new\n\n"
            spoken = loop.time()
        if len(entries) < AT_ONCE:
            await _either(ring, min(poll, heartbeat))


async def until_refused(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Give the events until the key has ended, or the store: asking again tells which."""
    try:
        async for event in events:
            yield event
    except ZeroMemError as error:
        LOG.info("a feed ended: %s", type(error).__name__)
