"""Where a PostgreSQL transaction is: the namespace that the server lets it see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from zero_mem.errors import StoreCorrupt, StoreUnavailable
from zero_mem.storage.base import NamespaceRow, Transaction
from zero_mem.storage.codec import below, decode_path, encode_path
from zero_mem.storage.postgres_rows import (
    counter_values,
    namespace_row,
    statements,
)
from zero_mem.storage.postgres_server import Session
from zero_mem.storage.postgres_text import digest, escape, unescape
from zero_mem.types import Path

FIRST_ROWS, MOST_ROWS = 500, 2000
"""A scan reads so many rows at first, then twice as many each time, and at most so many."""


class Elsewhere(StoreUnavailable):
    """Another node answers for the namespace.

    Args:
        path: The namespace.
        node: The node's name, as the routing table knows it; "" where none is named.
    """

    def __init__(self, path: Path, node: str) -> None:
        super().__init__(
            f"the node {node!r} answers for the namespace {'/'.join(path)}; "
            "open the store by its routing table"
        )
        self.path = path
        self.node = node


class PostgresPlace(Transaction):
    """The part of a PostgreSQL transaction that enters namespaces.

    Entering names the namespace in the transaction's settings, which the policies of the tables
    compare with every row, and, in a write transaction, locks the namespace's counters. Whoever
    writes to several namespaces enters them in the order of their numbers.

    Args:
        session: The transaction on the server.
        schema: The store's schema.
        write: Whether entering a namespace locks it.
        synchronous: What `synchronous_commit` becomes, "" to leave it.
        node: The name of this node where several make up the store.
    """

    def __init__(
        self, session: Session, schema: str, *, write: bool, synchronous: str, node: str
    ) -> None:
        self.session = session
        self._schema = schema
        self._sql = statements(schema)
        self._write = write
        self._synchronous = synchronous
        self._node = node
        self._here = 0
        self._locked: set[int] = set()
        self._without_vectors: set[int] = set()
        self._listed: set[int] = set()

    def namespace(self, path: Path) -> NamespaceRow | None:
        return self._enter(path, making=False)

    def create_namespace(self, path: Path) -> NamespaceRow:
        row = self._enter(path, making=True)
        if row is None:
            raise StoreCorrupt("a namespace that was made is not there; restore a backup")
        return row

    def _enter(self, path: Path, *, making: bool) -> NamespaceRow | None:
        written = escape(encode_path(path))
        found = self.session.run(
            self._sql.enter,
            (written, digest(written), self._node, self._write, making, self._synchronous),
        ).fetchone()
        if found is None:
            return None
        number, home, *counters = found
        if number is None:
            raise Elsewhere(path, home)
        self._here = number
        if self._write:
            self._locked.add(number)
        self._note_parts(number, *counters[-2:])
        return namespace_row(number, written, counters)

    def _note_parts(self, number: int, vectors: int, listed: bool) -> None:
        """Note whether a namespace has vectors, and whether it is in the inverted list."""
        if not vectors:
            self._without_vectors.add(number)
        if listed:
            self._listed.add(number)

    def namespaces(self, prefix: Path) -> list[NamespaceRow]:
        scope = escape(encode_path(prefix))[:-1]
        self.session.defer("SELECT set_config('zero_mem.path', %s, true)", (scope,))
        sql = self._sql.locked_namespaces if self._write else self._sql.namespaces
        found = self.session.run(sql, (scope, self._node))
        rows = []
        for number, path, *rest in found:
            rows.append(namespace_row(number, path, rest))
            self._note_parts(number, *rest[-2:])
        if self._write:
            self._locked.update(row.number for row in rows)
        return [row for row in rows if below(prefix, row.path)]

    def departures(self, prefix: Path) -> dict[int, str]:
        """Name the namespaces at and below a path that are still here, but another node's."""
        scope = escape(encode_path(prefix))[:-1]
        self.session.defer("SELECT set_config('zero_mem.path', %s, true)", (scope,))
        found = self.session.run(self._sql.departures, (scope, self._node))
        return {
            number: home
            for number, path, home in found
            if below(prefix, decode_path(unescape(path)))
        }

    def store_namespace(self, row: NamespaceRow) -> None:
        self._at(row).defer(self._sql.store_namespace, counter_values(row))

    def _at(self, row: NamespaceRow) -> Session:
        """Make sure that the transaction sees this namespace, and has locked it to write."""
        if self._here != row.number:
            name = "SELECT set_config('zero_mem.namespace', %s, true)"
            self.session.defer(name, (str(row.number),))
            self._here = row.number
        if self._write and row.number not in self._locked:
            self.session.run(self._sql.lock, (row.number,))
            self._locked.add(row.number)
        return self.session

    def _paged(
        self,
        row: NamespaceRow,
        sql: str,
        values: Sequence[Any],
        start: Sequence[int],
        key: Callable[[Sequence[Any]], Sequence[int]],
    ) -> Iterator[Sequence[Any]]:
        """Read rows in order, some at a time: `sql` ends with what comes after `start`."""
        size = FIRST_ROWS
        while True:
            found = self._at(row).run(f"{sql} LIMIT {size}", [*values, *start]).fetchall()
            yield from found
            if len(found) < size:
                return
            start, size = key(found[-1]), min(2 * size, MOST_ROWS)

    def _is_listed(self, row: NamespaceRow) -> bool:
        return row.number in self._listed

    def _may_have_vectors(self, row: NamespaceRow) -> bool:
        return row.number not in self._without_vectors

    def _has_vectors(self, row: NamespaceRow) -> None:
        self._without_vectors.discard(row.number)
