"""One store on several PostgreSQL nodes: a namespace is on one of them, and only there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path as FilePath
from types import TracebackType
from typing import TypeVar

from zero_mem.errors import InvalidInput, NotAllowed, StoreUnavailable
from zero_mem.storage.base import (
    Change,
    Decision,
    JournalEntry,
    NamespaceRow,
    PoolState,
    Posting,
    Storage,
    Stored,
    Transaction,
    Vector,
    VectorModel,
)
from zero_mem.storage.postgres import PostgresStorage
from zero_mem.storage.postgres_place import Elsewhere, PostgresPlace
from zero_mem.storage.postgres_schema import NODES, become_node
from zero_mem.storage.routing import Routes, read_routes
from zero_mem.types import Path

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds that a transaction waits for a namespace on its way from one node to another."""

_PAUSE = 0.02


class RoutedStorage(Storage):
    """Memories on several PostgreSQL nodes, by a routing table.

    A node is opened when it is first needed, so that one that is down stops only what is on it.

    Args:
        file: The routing table; it is read again when it changes.
        durability: As for `PostgresStorage`.
        create: Whether a node that holds no store is made one.

    Raises:
        InvalidInput: The file is no routing table.
        StoreUnavailable: It can't be read.
    """

    def __init__(self, file: str, *, durability: str = "full", create: bool = True) -> None:
        self._file = FilePath(file)
        self._durability = durability
        self._create = create
        self._opening = threading.Lock()
        self._open: dict[str, PostgresStorage] = {}
        self._learnt: dict[Path, str] = {}
        self._closed = False
        self._read = self._stamp()
        self._routes = read_routes(self._file)
        self.origin = self._routes.origin
        if len(self._routes.nodes) > NODES:
            raise InvalidInput(f"{file}: a store has at most {NODES} nodes")

    def _stamp(self) -> tuple[int, int]:
        try:
            found = self._file.stat()
        except OSError as error:
            raise StoreUnavailable(f"{self._file}: the routes are gone: {error.strerror}") from None
        return found.st_mtime_ns, found.st_ino

    def routes(self) -> Routes:
        """Give the routing table as it is now."""
        stamp = self._stamp()
        if stamp != self._read:
            self._routes, self._read = read_routes(self._file), stamp
            self._learnt.clear()
        return self._routes

    def first_node(self, path: Path) -> str:
        """Name the node to ask first for a namespace."""
        routes = self.routes()
        return self._learnt.get(path) or routes.node_of(path)

    def learn(self, elsewhere: Elsewhere) -> str:
        """Take in that another node has a namespace, and name it."""
        node = elsewhere.node if elsewhere.node in self.routes().nodes else ""
        if node:
            self._learnt[elsewhere.path] = node
        return node or self._routes.node_of(elsewhere.path)

    def node(self, name: str) -> PostgresStorage:
        """Give a node's store, opening it where it is not open yet.

        Raises:
            StoreUnavailable: It can't be reached.
            StoreCorrupt: It is another node, or of another store.
        """
        found = self._open.get(name)
        if found is not None:
            return found
        with self._opening:
            if self._closed:
                raise StoreUnavailable(f"{self._file}: the store is closed; open it again")
            if name not in self._open:
                self._open[name] = self._opened(name)
            return self._open[name]

    def _opened(self, name: str) -> PostgresStorage:
        node = PostgresStorage(
            self._routes.nodes[name],
            durability=self._durability,
            create=self._create,
            node=name,
            origin=self.origin,
        )
        try:
            if node.origin != self.origin:
                raise InvalidInput(f"the node {name!r} is of another store than {self._file}")
            become_node(node.server, name, list(self._routes.nodes).index(name))
        except BaseException:
            node.close()
            raise
        return node

    @contextmanager
    def transaction(self, *, write: bool = False, durable: bool = True) -> Iterator[Transaction]:
        """See `Storage.transaction`; one that writes stays on one node."""
        with ExitStack() as stack:
            transaction = RoutedTransaction(self, write=write, durable=durable)
            stack.push(transaction.end)
            yield transaction

    def _each(self, ask: Callable[[PostgresStorage], T]) -> list[T]:
        return [ask(self.node(name)) for name in self.routes().nodes]

    def note(self, name: str) -> str | None:
        """See `Storage.note`; the default node has the notes."""
        return self.node(self.routes().default).note(name)

    def notes(self, prefix: str) -> dict[str, str]:
        """See `Storage.notes`."""
        return self.node(self.routes().default).notes(prefix)

    def keep_note(self, name: str, value: str) -> None:
        """See `Storage.keep_note`."""
        self.node(self.routes().default).keep_note(name, value)

    def scrub(self, *, wait: bool = True) -> None:
        """See `Storage.scrub`."""
        self._each(lambda node: node.scrub(wait=wait))

    def scrub_pending(self) -> bool:
        """See `Storage.scrub_pending`."""
        return any(self._each(lambda node: node.scrub_pending()))

    def size(self) -> int:
        """See `Storage.size`."""
        return sum(self._each(lambda node: node.size()))

    def pools(self) -> Mapping[str, PoolState]:
        """See `Storage.pools`; a node that was not needed yet has none."""
        found: dict[str, PoolState] = {}
        for node in list(self._open.values()):
            found |= node.pools()
        return found

    def close(self) -> None:
        """Close every node's connections."""
        self._closed = True
        for node in self._open.values():
            node.close()


class RoutedTransaction(Transaction):
    """The primitives, each on the node of its namespace.

    A reader has a snapshot of each node that it reads, not one of all of them.

    Args:
        storage: The store.
        write: Whether it is to write.
        durable: As for `Storage.transaction`.
    """

    def __init__(self, storage: RoutedStorage, *, write: bool, durable: bool) -> None:
        self._storage = storage
        self._write = write
        self._durable = durable
        self._contexts: dict[str, AbstractContextManager[Transaction]] = {}
        self._begun: dict[str, PostgresPlace] = {}
        self._places: dict[int, PostgresPlace] = {}

    def end(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the transaction on every node, as it ended here."""
        with ExitStack() as stack:
            for context in self._contexts.values():
                stack.push(context)
            if error is not None:
                raise error

    def _on(self, node: str) -> PostgresPlace:
        """Give the transaction on a node, which begins now where it has not begun."""
        if node not in self._begun:
            if self._write and self._begun:
                raise NotAllowed(
                    "a write stays on one node; these namespaces are on "
                    f"{node!r} and {next(iter(self._begun))!r}: write to them one by one"
                )
            context = self._storage.node(node).transaction(write=self._write, durable=self._durable)
            place = context.__enter__()
            assert isinstance(place, PostgresPlace)
            self._contexts[node], self._begun[node] = context, place
        return self._begun[node]

    def _leave(self, node: str) -> None:
        """End a node's transaction, which has done nothing: a new one sees what is there now."""
        del self._begun[node]
        self._contexts.pop(node).__exit__(None, None, None)

    def _of(self, row: NamespaceRow) -> PostgresPlace:
        return self._places[row.number]

    def _found(
        self, path: Path, ask: Callable[[PostgresPlace], NamespaceRow | None]
    ) -> NamespaceRow | None:
        """Ask the node that has a namespace; wait while it is on its way to another one."""
        until = time.monotonic() + PATIENCE
        node = self._storage.first_node(path)
        asked = set[str]()
        while True:
            place = self._on(node)
            try:
                row = ask(place)
            except Elsewhere as elsewhere:
                self._leave(node)
                asked.add(node)
                node = self._storage.learn(elsewhere)
                if node in asked:
                    asked.clear()
                    if time.monotonic() > until:
                        raise
                    time.sleep(_PAUSE)
                continue
            if row is not None:
                self._places[row.number] = place
            return row

    def namespace(self, path: Path) -> NamespaceRow | None:
        return self._found(path, lambda place: place.namespace(path))

    def create_namespace(self, path: Path) -> NamespaceRow:
        row = self._found(path, lambda place: place.create_namespace(path))
        assert row is not None
        return row

    def namespaces(self, prefix: Path) -> list[NamespaceRow]:
        until = time.monotonic() + PATIENCE
        while True:
            rows, missing = self._listed(prefix)
            if not missing:
                return rows
            if time.monotonic() > until:
                raise StoreUnavailable("a namespace is on its way to another node; try again")
            time.sleep(_PAUSE)
            for node in list(self._begun):
                self._leave(node)

    def _listed(self, prefix: Path) -> tuple[list[NamespaceRow], set[int]]:
        """List the namespaces of every node, and those that have left one and reached none."""
        rows: list[NamespaceRow] = []
        left: set[int] = set()
        for node in self._storage.routes().nodes:
            place = self._on(node)
            left |= place.departures(prefix).keys()
            for row in place.namespaces(prefix):
                self._places[row.number] = place
                rows.append(row)
        rows.sort(key=lambda row: row.number)
        return rows, left - {row.number for row in rows}

    # All else is the node's.

    def store_namespace(self, row: NamespaceRow) -> None:
        self._of(row).store_namespace(row)

    def by_ids(self, row: NamespaceRow, ids: Collection[str]) -> dict[str, Stored]:
        return self._of(row).by_ids(row, ids)

    def by_keys(
        self, row: NamespaceRow, keys: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Stored]:
        return self._of(row).by_keys(row, keys)

    def by_positions(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Stored]:
        return self._of(row).by_positions(row, positions)

    def scan(
        self,
        row: NamespaceRow,
        equalities: Mapping[str, Collection[object]],
        *,
        after: int = 0,
        expires_by: int | None = None,
    ) -> Iterator[Stored]:
        return self._of(row).scan(row, equalities, after=after, expires_by=expires_by)

    def count_active(
        self, row: NamespaceRow, *, now: int, form: str | None, kind: str | None
    ) -> int:
        return self._of(row).count_active(row, now=now, form=form, kind=kind)

    def by_use(self, row: NamespaceRow, *, form: str | None, kind: str | None) -> Iterator[Stored]:
        return self._of(row).by_use(row, form=form, kind=kind)

    def tally(self, row: NamespaceRow) -> dict[tuple[str, str], int]:
        return self._of(row).tally(row)

    def apply(self, row: NamespaceRow, changes: Sequence[Change]) -> None:
        self._of(row).apply(row, changes)

    def accessed(self, row: NamespaceRow, ids: Collection[str], at: int) -> None:
        self._of(row).accessed(row, ids, at)

    def journal(
        self,
        row: NamespaceRow,
        *,
        memory_id: str | None = None,
        group: int | None = None,
        after: int = 0,
        until_at: int | None = None,
    ) -> Iterator[JournalEntry]:
        return self._of(row).journal(
            row, memory_id=memory_id, group=group, after=after, until_at=until_at
        )

    def frequencies(self, row: NamespaceRow, terms: Collection[str]) -> dict[str, int]:
        return self._of(row).frequencies(row, terms)

    def postings(self, row: NamespaceRow, term: str) -> list[Posting]:
        return self._of(row).postings(row, term)

    def documents(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Sequence[str]]:
        return self._of(row).documents(row, positions)

    def vectors(
        self,
        row: NamespaceRow,
        model: VectorModel,
        *,
        after: int = 0,
        positions: Collection[int] | None = None,
    ) -> list[Vector]:
        return self._of(row).vectors(row, model, after=after, positions=positions)

    def without_vector(self, row: NamespaceRow, model: VectorModel, limit: int) -> list[int]:
        return self._of(row).without_vector(row, model, limit)

    def put_vectors(self, row: NamespaceRow, model: VectorModel, vectors: Sequence[Vector]) -> None:
        self._of(row).put_vectors(row, model, vectors)

    def drop_vectors(self, row: NamespaceRow, *, keep: VectorModel) -> int:
        return self._of(row).drop_vectors(row, keep=keep)

    def vector_counts(self, row: NamespaceRow) -> dict[VectorModel, int]:
        return self._of(row).vector_counts(row)

    def decision(self, row: NamespaceRow, scope: str, key: str) -> Decision | None:
        return self._of(row).decision(row, scope, key)

    def decisions(self, row: NamespaceRow, scope: str) -> list[Decision]:
        return self._of(row).decisions(row, scope)

    def scopes(self, row: NamespaceRow) -> list[str]:
        return self._of(row).scopes(row)

    def decided_for(self, row: NamespaceRow, uids: Collection[str]) -> dict[tuple[str, str], int]:
        return self._of(row).decided_for(row, uids)

    def decide(self, row: NamespaceRow, decision: Decision) -> None:
        self._of(row).decide(row, decision)

    def undecide(self, row: NamespaceRow, scope: str, key: str) -> None:
        self._of(row).undecide(row, scope, key)

    def hold(self, row: NamespaceRow, owner: str, uid: str) -> None:
        self._of(row).hold(row, owner, uid)

    def release(self, row: NamespaceRow, owner: str) -> None:
        self._of(row).release(row, owner)

    def held(self, row: NamespaceRow) -> set[str]:
        return self._of(row).held(row)

    def holds(self, row: NamespaceRow) -> list[tuple[str, str]]:
        return self._of(row).holds(row)

    def erase(self, row: NamespaceRow, stored: Sequence[Stored], *, nameless: str) -> None:
        self._of(row).erase(row, stored, nameless=nameless)
