"""The store behind a server, as its users see it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from types import TracebackType
from typing import Any, TextIO, cast

from zero_mem.aio import AsyncMemory
from zero_mem.api.arguments import argument, namespace_text
from zero_mem.api.forms import form_of
from zero_mem.api.problems import error_from
from zero_mem.api.text import dump, parse
from zero_mem.client.calls import moment_text
from zero_mem.client.connection import Connection
from zero_mem.client.views.forgetting import RemoteForgetting
from zero_mem.client.views.journal import RemoteJournal
from zero_mem.client.views.keys import RemoteKeyring as KeyCalls
from zero_mem.client.views.memory import RemoteOperations
from zero_mem.client.views.past import RemotePast as PastCalls
from zero_mem.client.views.reads import RemoteReads
from zero_mem.client.views.settings import RemoteSettings
from zero_mem.client.views.subtree import RemoteSubtree as SubtreeCalls
from zero_mem.client.views.writes import RemoteWrites
from zero_mem.memory import Memory
from zero_mem.operations.history import HistoryEntry
from zero_mem.operations.requests import check_path, check_text
from zero_mem.space.reads import Where
from zero_mem.types import MemoryRecord, Path

_ENTRY = form_of(HistoryEntry)


class RemotePast(PastCalls):
    """The records of a namespace as they stood at `moment`; made by `RemoteNamespace.as_of`."""

    target = "past"

    def __init__(self, connection: Connection, place: dict[str, str], moment: datetime) -> None:
        super().__init__(connection, place | {"moment": moment_text(moment)})
        self.moment = moment


class RemoteSubtree(SubtreeCalls):
    """The namespaces at and below a path; made by `RemoteMemory.subtree`."""

    target = "subtree"


class RemoteKeyring(KeyCalls):
    """The keys of the store, as far as the client's own administers them."""

    target = "keyring"


class RemoteNamespace(RemoteWrites, RemoteReads, RemoteJournal, RemoteForgetting, RemoteSettings):
    """The memories of one namespace behind a server; made by `RemoteMemory.namespace`."""

    def __init__(self, memory: RemoteMemory, path: Path, *, actor: str | None) -> None:
        place = {"namespace": namespace_text(path)}
        super().__init__(memory.connection, place if actor is None else place | {"actor": actor})
        self._memory = memory
        self._path = path

    def __repr__(self) -> str:
        return f"<RemoteNamespace {'/'.join(self._path)}>"

    @property
    def path(self) -> Path:
        """The segments of the namespace."""
        return self._path

    @property
    def memory(self) -> RemoteMemory:
        """The store that this is a view of."""
        return self._memory

    def each(self, where: Where | None = None) -> Iterator[MemoryRecord]:
        """Read all records that a filter matches, page by page."""
        page = self.list(where)
        yield from page
        while page.next_cursor is not None:
            page = self.list(where, cursor=page.next_cursor)
            yield from page

    def as_of(self, moment: datetime) -> RemotePast:
        """Give the namespace as it was recorded at a moment: get, list, search, recall."""
        place = {"namespace": self._place["namespace"]}
        return RemotePast(self._connection, place, moment)

    def follow(self, *, after: int = 0) -> Iterator[HistoryEntry]:
        """Wait for changes beyond a journal position and give each as it comes, for ever.

        Go on with the `sequence` of the last entry after a fault; nothing is left out.

        Raises:
            StoreUnavailable: The connection broke off, or the server stopped.
        """
        query = {"namespace": self._place["namespace"], "after": str(after)}
        with self._connection.stream("/v1/changes/stream", query, {}) as answer:
            if answer.status_code != 200:
                raise error_from(parse(answer.read(), "the server's answer"))
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield _ENTRY.read(parse(line[6:], "an event"))

    def export(self, out: TextIO, *, where: Where | None = None) -> int:
        """Write the records as JSON lines, as `zero-mem export` does.

        Returns:
            How many were written.
        """
        query = {"namespace": self._place["namespace"]}
        if where is not None:
            query["where"] = dump(argument("where").write(where)).decode("utf-8")
        count = 0
        with self._connection.stream("/v1/export", query, {}) as answer:
            if answer.status_code != 200:
                raise error_from(parse(answer.read(), "the server's answer"))
            for line in answer.iter_lines():
                out.write(line + "\n")
                count += 1
        return count


class RemoteMemory(RemoteOperations):
    """A store behind a server; reads and writes go through its namespaces.

    Safe to share between threads. A context manager: leaving it closes the connections.
    """

    target = "store"

    def __init__(self, connection: Connection, *, actor: str | None = None) -> None:
        super().__init__(connection, {})
        self._actor = actor

    def __enter__(self) -> RemoteMemory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def connection(self) -> Connection:
        """The server."""
        return self._connection

    def namespace(self, *segments: str, actor: str | None = None) -> RemoteNamespace:
        """Give the view of one namespace, such as `namespace("acme", "alice")`.

        Raises:
            InvalidInput: No segment was given, or one is not a name.
        """
        writer = self._actor if actor is None else check_text(actor, "actor")
        return RemoteNamespace(self, check_path(segments), actor=writer)

    def subtree(self, *segments: str) -> RemoteSubtree:
        """Give reads over every namespace at and below a path; no segment means all."""
        below = {"below": namespace_text(check_path(segments))} if segments else {}
        return RemoteSubtree(self._connection, below)

    @property
    def keyring(self) -> RemoteKeyring:
        """The store's API keys, as far as the client's own administers them."""
        return RemoteKeyring(self._connection, {})

    def close(self) -> None:
        """Close the connections; the store stays open at the server."""
        self._connection.close()


def connect(
    url: str, *, credential: str | None = None, actor: str | None = None, timeout: float = 30.0
) -> RemoteMemory:
    """Give the store behind a server, with the names of a local `Memory`.

    Args:
        url: Where `zero-mem serve` listens, such as http://127.0.0.1:8765.
        credential: A key of the store; not needed where it serves this machine without keys.
        actor: Who writes, for the journal.
        timeout: Seconds without a sign of life after which a request is given up.

    Raises:
        InvalidInput: The URL names no server.
        MissingExtra: The extra `client` is not installed.
    """
    connection = Connection(url, credential=credential, timeout=timeout)
    return RemoteMemory(connection, actor=actor)


def connect_async(
    url: str, *, credential: str | None = None, actor: str | None = None, timeout: float = 30.0
) -> AsyncMemory:
    """Give the same store for programs that run on an event loop.

    It is the asynchronous view of `connect`'s: each call runs in one of a few threads.
    """
    remote: Any = connect(url, credential=credential, actor=actor, timeout=timeout)
    return AsyncMemory(cast("Memory", remote))
