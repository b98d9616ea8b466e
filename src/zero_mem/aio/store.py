"""The store for programs that run on an event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from zero_mem.aio.threads import Calls, Threads
from zero_mem.aio.views.forgetting import AsyncForgetting
from zero_mem.aio.views.journal import AsyncJournal
from zero_mem.aio.views.memory import AsyncOperations
from zero_mem.aio.views.reads import AsyncReads
from zero_mem.aio.views.settings import AsyncSettings
from zero_mem.aio.views.subtree import AsyncSubtree
from zero_mem.aio.views.writes import AsyncWrites
from zero_mem.errors import NotAllowed
from zero_mem.memory import Clock, Memory
from zero_mem.models.date_parsers import DateParser
from zero_mem.models.embedder import Embedder
from zero_mem.operations.requests import check_path
from zero_mem.redaction import Redaction
from zero_mem.space import Namespace
from zero_mem.text.entities import EntityExtractor
from zero_mem.text.tokens import Tokenizer
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.storage.data_keys import Encryption


class AsyncNamespace(AsyncWrites, AsyncReads, AsyncJournal, AsyncForgetting, AsyncSettings):
    """The memories of one namespace; made by `AsyncMemory.namespace`."""

    def __init__(self, memory: AsyncMemory, path: Path, *, actor: str | None) -> None:
        super().__init__(memory.threads, lambda: memory.opened().namespace(*path, actor=actor))
        self._memory = memory
        self._path = path

    def __repr__(self) -> str:
        return f"<AsyncNamespace {'/'.join(self._path)}>"

    @property
    def path(self) -> Path:
        """The segments of the namespace."""
        return self._path

    @property
    def memory(self) -> AsyncMemory:
        """The store that this is a view of."""
        return self._memory

    def blocking(self) -> Namespace:
        """Give the synchronous view, for code that runs in a thread; the first call may block."""
        return self._twin()


class AsyncMemory(AsyncOperations):
    """A store of memories for programs that run on an event loop.

    It has the names of `Memory`; what reads or writes is awaited and never blocks the loop.
    Calls run in a few threads of the store's own. A cancelled await leaves a write done or
    not done, and the store usable. One store may serve several loops at once.

    An asynchronous context manager: leaving it closes the store. Without `async with`, the
    first call opens the store, and `close` must be awaited.

    Args:
        memory: A store that is open; it is closed with this one.
    """

    def __init__(self, memory: Memory) -> None:
        self._begin(lambda: memory)

    def _begin(self, opener: Callable[[], Memory]) -> None:
        self._lock = threading.Lock()
        self._opener = opener
        self._open: Memory | None = None
        Calls.__init__(self, Threads(), self.opened)

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        clock: Clock | None = None,
        durability: str = "full",
        create: bool = True,
        tokens: Tokenizer | str = "o200k",
        actor: str = "",
        embedder: Embedder | str | None = None,
        patience: float = 5.0,
        redaction: Redaction | None = None,
        encryption: Encryption | None = None,
        credential: str | None = None,
        extractor: EntityExtractor | str | None = None,
        date_parser: DateParser | str | None = None,
    ) -> AsyncMemory:
        """Name a store; `async with`, or the first call, opens it and makes it where it is new.

        It takes what `Memory.open` takes.
        """
        memory = cls.__new__(cls)
        memory._begin(
            lambda: Memory.open(
                url,
                clock=clock,
                durability=durability,
                create=create,
                tokens=tokens,
                actor=actor,
                embedder=embedder,
                patience=patience,
                redaction=redaction,
                encryption=encryption,
                credential=credential,
                extractor=extractor,
                date_parser=date_parser,
            )
        )
        return memory

    async def __aenter__(self) -> AsyncMemory:
        try:
            await self._call(lambda _: None)
        except BaseException:
            # Nobody will come back to close what a cancelled opening still opens.
            self.threads.end(self._close)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __enter__(self) -> NoReturn:
        raise NotAllowed("AsyncMemory is opened by `async with`; for `with` there is Memory")

    def __exit__(self, *error: object) -> None:
        """Be here, so that `with` reaches `__enter__` and its message."""

    async def close(self) -> None:
        """Let running calls finish, apply queued writes, and close the store."""
        await self.threads.end(self._close)

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()

    @property
    def threads(self) -> Threads:
        """Where this store's calls run."""
        return self._threads

    def opened(self) -> Memory:
        """Give the synchronous store, opening it on first use; this blocks."""
        with self._lock:
            if self._open is None:
                self._open = self._opener()
            return self._open

    def namespace(self, *segments: str, actor: str | None = None) -> AsyncNamespace:
        """Give the view of one namespace, such as `namespace("acme", "alice")`.

        Raises:
            InvalidInput: No segment was given, or one is not a name.
        """
        return AsyncNamespace(self, check_path(segments), actor=actor)

    async def guarded(self, credential: str) -> AsyncMemory:
        """Give the store as far as an API key opens it; see `Memory.guarded`.

        Raises:
            NotAllowed: The credential is not valid.
        """
        return AsyncMemory(await self._call(lambda memory: memory.guarded(credential)))

    def subtree(self, *segments: str) -> AsyncSubtree:
        """Give reads over every namespace at and below a path; no segment means all."""
        path = check_path(segments) if segments else ()
        return AsyncSubtree(self.threads, lambda: self.opened().subtree(*path))
