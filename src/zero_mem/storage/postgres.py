"""The PostgreSQL store: one schema of a database, written to by many processes at once.

A write transaction locks the counters of the namespace it enters, so that what it decides on
can't change under it; writers to different namespaces do not meet. A reader has one snapshot.
Record, journal and lexical index change in one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

import psycopg

from zero_mem.errors import InvalidInput
from zero_mem.storage.base import (
    Change,
    Final,
    JournalEntry,
    NamespaceRow,
    PoolState,
    Storage,
    Stored,
    Transaction,
    settle,
)
from zero_mem.storage.codec import encode_body
from zero_mem.storage.postgres_erasing import PostgresErasing
from zero_mem.storage.postgres_rows import (
    BODY_TYPES,
    COLUMNS,
    JOURNAL_TYPES,
    LEXICON_TYPES,
    RECORD_TYPES,
    columns_of,
    fact,
    journal_entry,
    named_values,
    record_columns,
    stored_record,
    texts,
)
from zero_mem.storage.postgres_schema import prepare
from zero_mem.storage.postgres_server import Server, Session, Target, raise_translated, translated
from zero_mem.storage.postgres_text import escape, unescape

MANY = 100
"""So many changes are sent to the server at once, while the next ones are decided."""

_DURABILITY = ("full", "normal")
_ERASED_TABLES = ("body", "journal", "record", "lexicon", "vector", "decision", "hold")


class PostgresStorage(Storage):
    """Memories in a schema of a PostgreSQL database.

    Args:
        url: `postgresql://user@host:port/database` with libpq's options, and of our own:
            `schema` (zero_mem), `connections` (the most, 16), `patience` (seconds to wait for
            one, 30), `prepare_threshold` (none: a pooler may stand between), `migrate` (an older
            store is brought up to date after a "copy", "bare", or the opening is to "refuse").
        durability: "full" answers when the commit is on disk (and at the synchronous replicas,
            if there are any); "normal" may lose the last moments when the server crashes.
        create: False refuses a database that holds no store.
        node: The name of this node where several make up one store.
        origin: The origin that a new store is given.

    Raises:
        InvalidInput: The URL or the durability is wrong.
        StoreUnavailable: The server can't be reached, or there is no store.
        StoreCorrupt: The schema holds something else.
        MigrationNeeded: A newer version wrote it, or an older one and `migrate` says refuse.
    """

    def __init__(
        self,
        url: str,
        *,
        durability: str = "full",
        create: bool = True,
        node: str = "",
        origin: str = "",
    ) -> None:
        if durability not in _DURABILITY:
            raise InvalidInput(f'durability is "full" or "normal", not {durability!r}')
        self.server = Server(Target(url))
        self.node = node
        self.origin, setting = prepare(self.server, create=create, origin=origin)
        self._full = "on" if setting == "off" else ""
        self._relaxed = durability == "normal"

    @contextmanager
    def transaction(self, *, write: bool = False, durable: bool = True) -> Iterator[Transaction]:
        """See `Storage.transaction`; a write waits for the namespaces it enters, no others."""
        session = Session(self.server, write=write)
        relaxed = self._relaxed or not durable
        transaction = PostgresTransaction(
            session,
            self.server.schema,
            write=write,
            synchronous=("off" if relaxed else self._full) if write else "",
            node=self.node,
            origin=self.origin,
        )
        try:
            yield transaction
            session.commit()
        except psycopg.Error as error:
            session.roll_back()
            raise_translated(self.server.name, error)
        except BaseException:
            session.roll_back()
            raise

    def note(self, name: str) -> str | None:
        """See `Storage.note`."""
        sql = f"SELECT value FROM {self.server.schema}.store WHERE name = %s"
        with self._session(write=False) as session:
            found = session.run(sql, (f"note.{escape(name)}",)).fetchone()
        return None if found is None else unescape(found[0])

    def notes(self, prefix: str) -> dict[str, str]:
        """See `Storage.notes`."""
        sql = f"SELECT name, value FROM {self.server.schema}.store WHERE starts_with(name, %s)"
        with self._session(write=False) as session:
            rows = session.run(sql, (f"note.{escape(prefix)}",)).fetchall()
        return {unescape(name[5:]): unescape(value) for name, value in rows}

    def keep_note(self, name: str, value: str) -> None:
        """See `Storage.keep_note`."""
        sql = (
            f"INSERT INTO {self.server.schema}.store VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        )
        with self._session(write=True) as session:
            session.run(sql, (f"note.{escape(name)}", escape(value)))

    def scrub_pending(self) -> bool:
        """Tell whether rows were erased that no vacuum has removed since."""
        return bool(self._erased())

    def _erased(self) -> list[tuple[int, str]]:
        sql = (
            f"SELECT c.namespace, n.path FROM {self.server.schema}.counter c"
            f" JOIN {self.server.schema}.namespace n ON n.number = c.namespace WHERE c.erased"
        )
        with self._session(write=False) as session:
            session.defer("SELECT set_config('zero_mem.path', '[', true)")
            return [(number, path) for number, path in session.run(sql)]

    @contextmanager
    def _session(self, *, write: bool) -> Iterator[Session]:
        session = Session(self.server, write=write)
        with translated(self.server.name):
            try:
                yield session
                session.commit()
            except BaseException:
                session.roll_back()
                raise

    def scrub(self, *, wait: bool = True) -> None:
        """Remove erased rows from tables and indexes (VACUUM), where this user may.

        What was in pages, write-ahead log and backups stays there until PostgreSQL writes over
        it: only erasing an encryption key reaches those.
        """
        erased = self._erased()
        if not erased:
            return
        with translated(self.server.name):
            connection = self.server.take()
            try:
                for table in self._partitions([number for number, _ in erased]):
                    options = "INDEX_CLEANUP ON, TRUNCATE OFF"
                    if not wait:
                        options += ", SKIP_LOCKED ON"
                    connection.execute(f"VACUUM ({options}) {table}".encode())
            finally:
                self.server.give(connection)
        for number, path in erased:
            self._scrubbed(number, path)

    def _partitions(self, numbers: Sequence[int]) -> list[str]:
        """Name the partitions that hold rows of some namespaces."""
        schema = self.server.schema
        parents = [f"{schema}.{table}" for table in _ERASED_TABLES]
        sql = (
            "SELECT DISTINCT i.inhrelid::regclass::text FROM unnest(%s::text[]) AS t (parent)"
            " JOIN pg_inherits i ON i.inhparent = t.parent::regclass"
            " JOIN pg_class c ON c.oid = i.inhrelid CROSS JOIN unnest(%s::integer[]) AS n (number)"
            " CROSS JOIN LATERAL regexp_match(pg_get_expr(c.relpartbound, c.oid),"
            " 'modulus ([0-9]+), remainder ([0-9]+)') AS m"
            " WHERE satisfies_hash_partition(i.inhparent, m[1]::integer, m[2]::integer, n.number)"
            " ORDER BY 1"
        )
        with self._session(write=False) as session:
            return [name for (name,) in session.run(sql, (parents, list(numbers)))]

    def _scrubbed(self, number: int, path: str) -> None:
        sql = f"UPDATE {self.server.schema}.counter SET erased = false WHERE namespace = %s"
        with self._session(write=True) as session:
            session.defer("SELECT set_config('zero_mem.path', %s, true)", (path,))
            session.defer("SELECT set_config('zero_mem.namespace', %s, true)", (str(number),))
            session.run(sql, (number,))

    def size(self) -> int:
        """Tell the bytes of the store's tables and indexes."""
        sql = (
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c"
            " WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'r'"
        )
        with self._session(write=False) as session:
            found = session.run(sql, (self.server.schema,)).fetchone()
        return int(found[0]) if found else 0

    def pools(self) -> Mapping[str, PoolState]:
        """See `Storage.pools`."""
        return {self.node: self.server.pool_state()}

    def close(self) -> None:
        """Close every connection."""
        self.server.close()


class PostgresTransaction(PostgresErasing):
    """The primitives over one session."""

    def __init__(self, session: Session, schema: str, *, origin: str, **place: Any) -> None:
        super().__init__(session, schema, **place)
        self._origin = origin

    # Records

    def by_ids(self, row: NamespaceRow, ids: Collection[str]) -> dict[str, Stored]:
        sql = self._sql.record + self._sql.named
        found = self._stored(row, sql, [row.number, *named_values(row, ids)])
        return {stored.record.memory_id: stored for stored in found}

    def by_keys(
        self, row: NamespaceRow, keys: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Stored]:
        sql = f"{self._sql.record} AND r.fact = ANY(%s::uuid[])"
        found = self._stored(row, sql, [row.number, [fact(*key) for key in keys]])
        return {(s.record.kind, s.dedupe): s for s in found if s.dedupe is not None}

    def by_positions(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Stored]:
        sql = f"{self._sql.record} AND r.position = ANY(%s::bigint[])"
        found = self._stored(row, sql, [row.number, list(positions)])
        return {stored.position: stored for stored in found}

    def _stored(self, row: NamespaceRow, sql: str, values: Sequence[Any]) -> list[Stored]:
        return [stored_record(row, columns) for columns in self._at(row).run(sql, values)]

    def scan(
        self,
        row: NamespaceRow,
        equalities: Mapping[str, Collection[object]],
        *,
        after: int = 0,
        expires_by: int | None = None,
    ) -> Iterator[Stored]:
        sql, values = self._sql.record, list[Any]([row.number])
        if expires_by is not None:
            sql += " AND r.state = 'active' AND r.expires_at <= %s"
            values.append(expires_by)
        elif "memory_id" in equalities:
            sql += self._sql.named
            values += named_values(row, texts(equalities["memory_id"]))
        for column in sorted(COLUMNS & equalities.keys()):
            sql += f" AND r.{column} = ANY(%s::text[])"
            values.append(texts(equalities[column]))
        sql += " AND r.position > %s ORDER BY r.position"
        for columns in self._paged(row, sql, values, [after], lambda found: found[:1]):
            yield stored_record(row, columns)

    def count_active(
        self, row: NamespaceRow, *, now: int, form: str | None, kind: str | None
    ) -> int:
        condition, values = _of_kind(form, kind)
        sql = (
            f"SELECT count(*) FROM {self._schema}.record r WHERE r.namespace = %s{condition}"
            " AND (r.expires_at IS NULL OR r.expires_at > %s)"
        )
        found = self._at(row).run(sql, [row.number, *values, now]).fetchone()
        return int(found[0]) if found else 0

    def by_use(self, row: NamespaceRow, *, form: str | None, kind: str | None) -> Iterator[Stored]:
        condition, values = _of_kind(form, kind)
        order = "greatest(r.updated_at, r.accessed_at), r.access_count, r.position"
        sql = f"{self._sql.by_use}{condition} AND ({order}) > (%s, %s, %s) ORDER BY {order}"
        used = self._paged(row, sql, [row.number, *values], _BEFORE_ALL, _use)
        return (stored_record(row, columns) for columns in used)

    def tally(self, row: NamespaceRow) -> dict[tuple[str, str], int]:
        sql = (
            f"SELECT state, form, count(*) FROM {self._schema}.record"
            " WHERE namespace = %s GROUP BY state, form"
        )
        return {(state, form): n for state, form, n in self._at(row).run(sql, (row.number,))}

    def accessed(self, row: NamespaceRow, ids: Collection[str], at: int) -> None:
        self._at(row).defer(self._sql.accessed, [at, row.number, *named_values(row, ids)])

    # Changes

    def apply(self, row: NamespaceRow, changes: Sequence[Change]) -> None:
        finals = settle(changes)
        updated = [final for final in finals if final.before is not None]
        added = [final for final in finals if final.before is None]
        if updated:
            self._update(row, updated)
        bodies, entries = _journal_rows(changes)
        records = [record_columns(final.after) for final in added]
        lexicon = self._indexed(row, [final for final in finals if _is_indexed(final)])
        session = self._at(row)
        session.defer(
            self._sql.append,
            [
                *columns_of(bodies, BODY_TYPES),
                *columns_of(entries, JOURNAL_TYPES),
                *columns_of(records, RECORD_TYPES),
                *columns_of(lexicon, LEXICON_TYPES),
                self._is_listed(row),
            ],
        )
        self.store_namespace(row)
        if len(changes) >= MANY:
            session.send()

    def _update(self, row: NamespaceRow, finals: Sequence[Final]) -> None:
        """Update records, before any insert: an update can free a key that an insert takes."""
        befores = [final.before for final in finals if final.before is not None]
        columns = [record_columns(final.after) for final in finals]
        if any(before.dedupe is not None for before in befores):
            # One update can take a key that another one frees, whatever the server's order.
            places = [before.position for before in befores]
            self._at(row).defer(self._sql.free_facts, (row.number, places))
        reindexed = [final.after.position for final in finals if final.terms is not None]
        self._drop_terms(row, reindexed)
        self._forget_vectors(row, reindexed)
        self._at(row).defer(self._sql.update, [*columns_of(columns, RECORD_TYPES), row.number])

    # Journal

    def journal(
        self,
        row: NamespaceRow,
        *,
        memory_id: str | None = None,
        group: int | None = None,
        after: int = 0,
        until_at: int | None = None,
    ) -> Iterator[JournalEntry]:
        sql, values = self._sql.journal, list[Any]([row.number])
        if memory_id is not None:
            sql += " AND j.sequence = ANY(%s::bigint[])"
            values.append(self._chain(row, memory_id))
        if until_at is not None:
            sql += " AND j.at <= %s"
            values.append(until_at)
        sql += " AND j.sequence > %s ORDER BY j.sequence"
        first = max(after, (group or 0) - 1)
        rows = self._paged(row, sql, values, [first], lambda found: found[:1])
        entries = (journal_entry(row, found, self._origin) for found in rows)
        # The changes of one operation follow each other in the journal.
        return entries if group is None else takewhile(lambda e: e.group == group, entries)


_BEFORE_ALL = (-(1 << 62), -1, 0)


def _use(columns: Sequence[Any]) -> Sequence[int]:
    """Give the order by use of the columns of `Statements.by_use`."""
    return columns[8], columns[5], columns[0]


def _of_kind(form: str | None, kind: str | None) -> tuple[str, list[object]]:
    """Give the condition that a record is active, of a form and of a kind."""
    condition, values = " AND r.state = 'active'", list[object]()
    if form == "working":
        # Spelt out, so that the partial index on working records serves.
        condition += " AND r.form = 'working'"
    elif form is not None:
        condition, values = f"{condition} AND r.form = %s", [form]
    if kind is not None:
        condition, values = f"{condition} AND r.kind = %s", [*values, escape(kind)]
    return condition, values


def _is_indexed(final: Final) -> bool:
    return final.terms is not None and final.after.record.state == "active"


def _journal_rows(
    changes: Sequence[Change],
) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Give the new bodies and the journal's entries of some changes.

    A body that is new is numbered by its entry's sequence.
    """
    current: dict[str, int | None] = {}
    bodies: list[tuple[object, ...]] = []
    entries: list[tuple[object, ...]] = []
    for change in changes:
        before, after = change.before, change.after
        memory_id, sequence = after.record.memory_id, after.sequence
        if change.body_changed:
            current[memory_id] = sequence
            kind, data = encode_body(after.record.content)
            bodies.append((sequence, escape(kind), data))
        elif memory_id not in current:
            current[memory_id] = before.body or None if before else None
        entries.append(
            (
                sequence,
                before.sequence if before else 0,
                change.group,
                change.at,
                current[memory_id],
                escape(change.actor),
                change.operation,
                escape(change.reason),
                change.fields,
                change.origin,
            )
        )
    return bodies, entries
