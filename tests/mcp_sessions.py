"""What the tests of the protocol share: a session in memory, and short ways to call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import mcp_types as types
from mcp import Client

from zero_mem.mcp.server import server
from zero_mem.mcp.watching import AT_ONCE, News, last_position
from zero_mem.operations.history import HistoryEntry
from zero_mem.space import Namespace

R = TypeVar("R")


class MemorySession:
    """A session without a transport."""

    def __init__(self, space: Namespace) -> None:
        self.space = space
        self.ended = asyncio.Event()
        self.ring = asyncio.Event()
        self.gate: asyncio.Event | None = None

    async def run(self, work: Callable[[], R]) -> R:
        if self.gate is not None:
            await self.gate.wait()
        return await asyncio.to_thread(work)

    def wrote(self) -> None:
        self.ring.set()
        self.ring = asyncio.Event()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[News]:
        async def look(after: int) -> list[HistoryEntry]:
            return await self.run(partial(self.space.changes, after=after, limit=AT_ONCE))

        after = await self.run(partial(last_position, self.space))
        yield News(look, after=after, ringing=lambda: self.ring, ended=self.ended, poll=60.0)


@asynccontextmanager
async def connected(space: Namespace) -> AsyncIterator[Client]:
    """Connect the official client to a namespace, in this process."""
    session = MemorySession(space)
    async with Client(server(lambda context: session)) as client:
        yield client


def run(space: Namespace, talk: Callable[[Client], Coroutine[Any, Any, R]]) -> R:
    """Let the official client talk to a namespace, in this process."""

    async def whole() -> R:
        async with connected(space) as client:
            # What fails in there would come out in groups of groups.
            talking = asyncio.ensure_future(talk(client))
            await asyncio.wait([talking])
        return talking.result()

    return asyncio.run(whole())


def text_of(result: Any) -> str:
    """Give the text of a tool's result, which is all of its content."""
    assert isinstance(result, types.CallToolResult)
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


async def called(client: Client, name: str, **arguments: Any) -> str:
    """Call a tool that must succeed and give its text."""
    result = await client.call_tool(name, arguments)
    text = text_of(result)
    assert not result.is_error, text
    return text


async def refused(client: Client, name: str, **arguments: Any) -> str:
    """Call a tool that must refuse and give its text."""
    result = await client.call_tool(name, arguments)
    assert result.is_error
    assert result.structured_content is None
    return text_of(result)
