"""The SQLite store: one file, opened by many processes at once.

Write-ahead logging lets readers go on while one writer writes; a write transaction takes the
lock at its start, so that what it decides on can't change under it. Record, journal and
lexical index change in that one transaction.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Any

from zero_mem.errors import StoreUnavailable
from zero_mem.storage.base import (
    Change,
    Final,
    JournalEntry,
    NamespaceRow,
    Posting,
    Storage,
    Stored,
    Transaction,
    settle,
)
from zero_mem.storage.codec import (
    below,
    decode_body,
    decode_fields,
    encode_body,
    encode_path,
    erase_fields,
    purged_key,
)
from zero_mem.storage.sqlite_file import SQLiteFile, empty_log
from zero_mem.storage.sqlite_hosts import SQLiteHosts
from zero_mem.storage.sqlite_rows import (
    CHAIN,
    COLUMNS,
    INSERT_JOURNAL,
    INSERT_RECORD,
    JOURNAL,
    MARK,
    NAMED,
    NAMESPACE,
    OF_NAMESPACE,
    RECORD,
    UPDATE_RECORD,
    as_list,
    first_of,
    journal_entry,
    named_values,
    namespace_row,
    places,
    record_columns,
    within,
)
from zero_mem.storage.sqlite_vectors import SQLiteVectors
from zero_mem.types import Path


class SQLiteStorage(Storage):
    """Memories in one SQLite file, created for its owner only.

    Args:
        path: The file; its folder must exist.
        durability: "full" fsyncs before a write is acknowledged; "normal" may lose the
            last moments on power loss, never on a killed process.
        create: False refuses a file that is not there.

    Raises:
        StoreUnavailable: The file can't be opened or written.
        StoreCorrupt: The file is not a Zero-Mem store, or is damaged.
        MigrationNeeded: A newer version wrote it.
    """

    def __init__(self, path: str, *, durability: str = "full", create: bool = True) -> None:
        self._file = SQLiteFile(path, durability=durability, create=create)
        self.origin = self._file.origin
        if self.scrub_pending():
            # A purge was cut short. Whoever still reads the old pages only delays it again.
            with suppress(StoreUnavailable):
                self.scrub(wait=False)

    @contextmanager
    def transaction(self, *, write: bool = False, durable: bool = True) -> Iterator[Transaction]:
        """See `Storage.transaction`."""
        with self._file.transaction(write=write, durable=durable) as connection:
            transaction = SQLiteTransaction(connection, self.origin)
            try:
                yield transaction
            finally:
                transaction.end_reads()

    def note(self, name: str) -> str | None:
        """See `Storage.note`."""
        with self._file.transaction(write=False, durable=True) as connection:
            sql = "SELECT value FROM store WHERE name = ?"
            found = connection.execute(sql, (f"note.{name}",)).fetchone()
        return None if found is None else str(found[0])

    def notes(self, prefix: str) -> dict[str, str]:
        """See `Storage.notes`."""
        with self._file.transaction(write=False, durable=True) as connection:
            rows = connection.execute("SELECT name, value FROM store").fetchall()
        begin = f"note.{prefix}"
        return {name[5:]: value for name, value in rows if name.startswith(begin)}

    def keep_note(self, name: str, value: str) -> None:
        """See `Storage.keep_note`."""
        with self._file.transaction(write=True, durable=True) as connection:
            sql = "INSERT OR REPLACE INTO store VALUES (?, ?)"
            connection.execute(sql, (f"note.{name}", value))

    def copy_to(self, path: str, step: Callable[[], None] = lambda: None) -> None:
        """Copy the store as it is at this moment into a new file; see `SQLiteFile.copy_to`."""
        self._file.copy_to(path, step)

    def renew_origin(self) -> str:
        """Give the store an origin of its own, after it was copied; tell the one before.

        What was journalled so far keeps the old one.
        """
        before, self.origin = self.origin, secrets.token_hex(8)
        with self._file.transaction(write=True, durable=True) as connection:
            connection.execute("UPDATE journal SET origin = ? WHERE origin = ''", (before,))
            connection.execute("UPDATE store SET value = ? WHERE name = 'origin'", (self.origin,))
        return before

    def check(self) -> list[str]:
        """Look for damaged pages, and for an index that does not fit its records."""
        return self._file.check()

    def scrub_pending(self) -> bool:
        """Tell whether erased bytes may still be in the files."""
        with self.transaction() as transaction:
            assert isinstance(transaction, SQLiteTransaction)
            return transaction.scrub_pending()

    def scrub(self, *, wait: bool = True) -> None:
        """Rebuild the index, rewrite every page and empty the write-ahead log.

        The pages are written anew before the old ones are given up: as much room as the store
        takes has to be free.
        """
        with self._file.exclusive(wait=wait) as connection:
            try:
                emptied = _rewritten(connection, wait=wait)
            except sqlite3.OperationalError as error:
                raise StoreUnavailable(
                    f"{self._file.path}: erased, but the file could not be rewritten ({error}), "
                    "and still has the bytes; call scrub() again when that is mended (the next "
                    "open does it too)"
                ) from error
        if not emptied:
            raise StoreUnavailable(
                f"{self._file.path}: erased, but another process still reads the old pages; "
                "call scrub() again when it has finished (the next open does it too)"
            )

    def size(self) -> int:
        """Tell the size of the file and its write-ahead log in bytes."""
        return self._file.size()

    def close(self) -> None:
        """Close every connection."""
        self._file.close()


class SQLiteTransaction(SQLiteVectors, SQLiteHosts):
    """The primitives over one connection inside BEGIN … COMMIT."""

    def __init__(self, connection: sqlite3.Connection, origin: str) -> None:
        self._connection = connection
        self._run = connection.execute
        self._origin = origin
        self._reads: list[sqlite3.Cursor] = []

    def end_reads(self) -> None:
        """End the scans that nobody read to their end.

        An open one would keep its snapshot, and so give the connection's next user old rows.
        """
        for cursor in self._reads:
            cursor.close()

    def _read(self, sql: str, values: Sequence[Any]) -> sqlite3.Cursor:
        """Run a query whose rows are read lazily, at most until the transaction ends."""
        self._reads.append(self._run(sql, values))
        return self._reads[-1]

    def scrub_pending(self) -> bool:
        """Tell whether a purge has erased rows and not yet their bytes."""
        return self._run("SELECT 1 FROM store WHERE name = 'scrub'").fetchone() is not None

    # Namespaces

    def namespace(self, path: Path) -> NamespaceRow | None:
        sql = f"SELECT {NAMESPACE} FROM namespace WHERE path = ?"
        row = self._run(sql, (encode_path(path),)).fetchone()
        return None if row is None else namespace_row(row)

    def create_namespace(self, path: Path) -> NamespaceRow:
        found = self.namespace(path)
        if found is not None:
            return found
        self._run("INSERT INTO namespace (path) VALUES (?)", (encode_path(path),))
        created = self.namespace(path)
        assert created is not None
        return created

    def namespaces(self, prefix: Path) -> list[NamespaceRow]:
        rows = self._run(f"SELECT {NAMESPACE} FROM namespace ORDER BY number")
        return [row for row in map(namespace_row, rows) if below(prefix, row.path)]

    def store_namespace(self, row: NamespaceRow) -> None:
        self._run(
            "UPDATE namespace SET next_id = ?, highest_id = ?, positions = ?, sequence = ?,"
            " last_at = ?, documents = ?, length = ?, settings = ? WHERE number = ?",
            (
                row.next_id,
                row.highest_id,
                row.positions,
                row.sequence,
                row.last_at,
                row.documents,
                row.length,
                row.settings,
                row.number,
            ),
        )

    # Records

    def by_ids(self, row: NamespaceRow, ids: Collection[str]) -> dict[str, Stored]:
        sql = f"{RECORD} WHERE {NAMED}"
        found = self._stored(row, sql, named_values(row, ids))
        return {stored.record.memory_id: stored for stored in found}

    def by_keys(
        self, row: NamespaceRow, keys: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Stored]:
        # That a key is there is said aloud: a row value alone leaves the partial index aside.
        sql = (
            f"{OF_NAMESPACE} AND r.state = 'active' AND r.dedupe IS NOT NULL"
            " AND (r.kind, r.dedupe) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))"
        )
        found = self._stored(row, sql, (row.number, as_list(keys)))
        return {(s.record.kind, s.dedupe): s for s in found if s.dedupe is not None}

    def by_positions(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Stored]:
        sql = f"{RECORD} WHERE r.position IN (SELECT value FROM json_each(?))"
        return {s.position: s for s in self._stored(row, sql, (as_list(positions),))}

    def scan(
        self,
        row: NamespaceRow,
        equalities: Mapping[str, Collection[object]],
        *,
        after: int = 0,
        expires_by: int | None = None,
    ) -> Iterator[Stored]:
        sql, values = within(row, after)
        if expires_by is not None:
            sql += " AND r.namespace = ? AND r.state = 'active' AND r.expires_at <= ?"
            values += [row.number, expires_by]
        elif "memory_id" in equalities:
            sql += f" AND {NAMED}"
            values += named_values(row, [str(name) for name in equalities["memory_id"]])
        elif "task" in equalities:
            # With the namespace named, the index on tasks serves; else the range does.
            sql += " AND r.namespace = ?"
            values.append(row.number)
        for column in sorted(COLUMNS & equalities.keys()):
            sql += f" AND r.{column} IN (SELECT value FROM json_each(?))"
            values.append(as_list(equalities[column]))
        return self._stored(row, f"{RECORD} WHERE {sql} ORDER BY r.position", values)

    def _stored(self, row: NamespaceRow, sql: str, values: Sequence[Any]) -> Iterator[Stored]:
        for position, sequence, body, fields, accessed_at, count, kind, data in self._run(
            sql, values
        ):
            yield decode_fields(
                fields,
                namespace=row.path,
                content="" if kind is None else decode_body(kind, data),
                position=position,
                sequence=sequence,
                body=body or 0,
                accessed_at=accessed_at,
                access_count=count,
            )

    def count_active(
        self, row: NamespaceRow, *, now: int, form: str | None, kind: str | None
    ) -> int:
        sql, values = _of_kind(row, form, kind)
        sql = f"SELECT count(*) FROM record r WHERE {sql}"
        sql += " AND (r.expires_at IS NULL OR r.expires_at > ?)"
        return int(self._run(sql, [*values, now]).fetchone()[0])

    def by_use(self, row: NamespaceRow, *, form: str | None, kind: str | None) -> Iterator[Stored]:
        sql, values = _of_kind(row, form, kind)
        order = "max(r.updated_at, r.accessed_at), r.access_count, r.position"
        return self._stored(row, f"{RECORD} WHERE {sql} ORDER BY {order}", values)

    def tally(self, row: NamespaceRow) -> dict[tuple[str, str], int]:
        inside, values = within(row)
        sql = f"SELECT state, form, count(*) FROM record r WHERE {inside} GROUP BY state, form"
        return {(state, form): count for state, form, count in self._run(sql, values)}

    def accessed(self, row: NamespaceRow, ids: Collection[str], at: int) -> None:
        self._run(
            "UPDATE record AS r SET accessed_at = max(accessed_at, ?),"
            f" access_count = access_count + 1 WHERE {NAMED}",
            (at, *named_values(row, ids)),
        )

    # Changes

    def apply(self, row: NamespaceRow, changes: Sequence[Change]) -> None:
        self._write_journal(row, changes)
        self._write_records(row, settle(changes))
        self.store_namespace(row)

    def _write_journal(self, row: NamespaceRow, changes: Sequence[Change]) -> None:
        """Append the changes; a body that is new takes the place of its entry as its number."""
        first = first_of(row)
        current: dict[str, int | None] = {}
        bodies: list[tuple[int, str, bytes]] = []
        entries: list[tuple[object, ...]] = []
        for change in changes:
            before, after = change.before, change.after
            memory_id, place = after.record.memory_id, first + after.sequence
            if change.body_changed:
                current[memory_id] = place
                bodies.append((place, *encode_body(after.record.content)))
            elif memory_id not in current:
                current[memory_id] = before.body or None if before else None
            entries.append(
                (
                    place,
                    before.sequence if before else 0,
                    change.group,
                    change.at,
                    change.actor,
                    change.operation,
                    change.reason,
                    change.origin,
                    current[memory_id],
                    change.fields,
                )
            )
        self._connection.executemany("INSERT INTO body VALUES (?, ?, ?)", bodies)
        self._connection.executemany(INSERT_JOURNAL, entries)

    def _write_records(self, row: NamespaceRow, finals: Sequence[Final]) -> None:
        """Update and insert records with their part of the index."""
        self._let_go_of_keys(finals)
        inserts: list[tuple[object, ...]] = []
        for final in finals:
            if final.before is not None:
                # Before any insert: an update can free a key that an insert takes.
                self._update_record(row, final)
                continue
            terms = None if final.terms is None else self._indexed(row, final.terms)
            length = len(final.terms or ())
            columns = record_columns(final.after)
            inserts.append((final.after.position, row.number, *columns, length, terms))
        self._connection.executemany(INSERT_RECORD, inserts)
        self._connection.executemany(
            "INSERT INTO lexicon (rowid, terms) VALUES (?, ?)",
            [(record[0], record[-1]) for record in inserts if record[-1] is not None],
        )

    def _let_go_of_keys(self, finals: Sequence[Final]) -> None:
        """Free the keys that records lose, before another one takes them."""
        freed = [
            (final.before.position,)
            for final in finals
            if final.before is not None and _key(final.before) not in (None, _key(final.after))
        ]
        self._connection.executemany("UPDATE record SET dedupe = NULL WHERE position = ?", freed)

    def _update_record(self, row: NamespaceRow, final: Final) -> None:
        assert final.before is not None
        position = final.before.position
        if final.terms is not None:
            self._drop_terms(row, position)
            self._forget_vectors(position)
        self._run(UPDATE_RECORD, (*record_columns(final.after), position))
        if final.terms is not None and final.after.record.state == "active":
            self._add_terms(row, position, final.terms)

    def _indexed(self, row: NamespaceRow, terms: Sequence[str]) -> str:
        """Write terms for the index, and count them in the namespace's statistics."""
        row.documents += 1
        row.length += len(terms)
        prefix = f"{row.number}{MARK}"
        return prefix + f" {prefix}".join(terms) if terms else ""

    def _add_terms(self, row: NamespaceRow, position: int, terms: Sequence[str]) -> None:
        written = self._indexed(row, terms)
        sql = "UPDATE record SET terms = ?, length = ? WHERE position = ?"
        self._run(sql, (written, len(terms), position))
        self._run("INSERT INTO lexicon (rowid, terms) VALUES (?, ?)", (position, written))

    def _drop_terms(self, row: NamespaceRow, position: int) -> None:
        sql = "SELECT length, terms FROM record WHERE position = ?"
        length, terms = self._run(sql, (position,)).fetchone()
        if terms is None:
            return
        delete = "INSERT INTO lexicon (lexicon, rowid, terms) VALUES ('delete', ?, ?)"
        self._run(delete, (position, terms))
        self._run("UPDATE record SET terms = NULL, length = 0 WHERE position = ?", (position,))
        row.documents -= 1
        row.length -= length

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
        sql = f"{JOURNAL} WHERE j.place > ? AND j.place <= ?"
        values = [first_of(row), *places(row, after, group)]
        if memory_id is not None:
            sql += " AND j.place IN (SELECT value FROM json_each(?))"
            values.append(as_list(self._chain(row, memory_id)))
        if until_at is not None:
            sql += " AND j.at <= ?"
            values.append(until_at)
        entries = (
            journal_entry(row, found, self._origin)
            for found in self._run(f"{sql} ORDER BY j.place", values)
        )
        # The changes of one operation follow each other in the journal.
        return entries if group is None else takewhile(lambda e: e.group == group, entries)

    def _chain(self, row: NamespaceRow, memory_id: str) -> list[int]:
        """List the places of a record's journal entries, the oldest first."""
        sql = f"SELECT sequence FROM record r WHERE {NAMED}"
        last = self._run(sql, named_values(row, [memory_id])).fetchone()
        found = self._run(CHAIN, (first_of(row), last[0])) if last else ()
        return [place for (place,) in found]

    # Lexical index

    def frequencies(self, row: NamespaceRow, terms: Collection[str]) -> dict[str, int]:
        prefix = f"{row.number}{MARK}"
        sql = "SELECT doc FROM lexicon_term WHERE term = ?"
        found = {term: self._run(sql, (prefix + term,)).fetchone() for term in terms}
        return {term: count[0] for term, count in found.items() if count is not None}

    def postings(self, row: NamespaceRow, term: str) -> list[Posting]:
        sql = (
            "SELECT i.doc, count(*), r.length FROM lexicon_instance i"
            " JOIN record r ON r.position = i.doc WHERE i.term = ? GROUP BY i.doc"
        )
        found = self._run(sql, (f"{row.number}{MARK}{term}",))
        return [Posting(position, count, length) for position, count, length in found]

    def documents(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Sequence[str]]:
        skip = len(f"{row.number}{MARK}")
        sql = (
            "SELECT position, terms FROM record WHERE terms IS NOT NULL"
            " AND position IN (SELECT value FROM json_each(?))"
        )
        found = self._run(sql, (as_list(positions),))
        return {position: [t[skip:] for t in text.split()] for position, text in found}

    # Erasing

    def erase(self, row: NamespaceRow, stored: Sequence[Stored], *, nameless: str) -> None:
        for one in stored:
            self._erase_journal(row, one.record.memory_id)
            self._drop_terms(row, one.position)
            self._forget_vectors(one.position)
            self._run(
                "UPDATE record SET kind = 'purged', dedupe = NULL, task = NULL, session = NULL,"
                " state = 'deleted', expires_at = NULL WHERE position = ?",
                (one.position,),
            )
            self._erase_decisions(one.record.uid, nameless)
            self._run("DELETE FROM hold WHERE uid = ?", (one.record.uid,))
        self._run("INSERT OR REPLACE INTO store VALUES ('scrub', 'pending')")
        self.store_namespace(row)

    def _erase_decisions(self, uid: str, nameless: str) -> None:
        self._run("UPDATE decision SET value = NULL WHERE uid = ?", (uid,))
        sql = "SELECT number, key FROM decision WHERE uid = ? AND scope = ?"
        found = self._run(sql, (uid, nameless)).fetchall()
        self._connection.executemany(
            "UPDATE decision SET key = ? WHERE number = ?",
            [(purged_key(key), number) for number, key in found],
        )

    def _erase_journal(self, row: NamespaceRow, memory_id: str) -> None:
        """Delete the bodies of every version, and keep of each entry that it was there."""
        entries = self._run(
            "SELECT place, fields, body FROM journal"
            " WHERE place IN (SELECT value FROM json_each(?))",
            (as_list(self._chain(row, memory_id)),),
        ).fetchall()
        bodies = {body for _, _, body in entries if body is not None}
        sql = "DELETE FROM body WHERE number IN (SELECT value FROM json_each(?))"
        self._run(sql, (as_list(bodies),))
        self._connection.executemany(
            "UPDATE journal SET fields = ?, body = NULL, reason = '' WHERE place = ?",
            [(erase_fields(fields), place) for place, fields, _ in entries],
        )


def _rewritten(connection: sqlite3.Connection, *, wait: bool) -> bool:
    """Write every page of a file anew; tell whether the log has none of the old ones any more."""
    connection.execute("INSERT INTO lexicon (lexicon) VALUES ('rebuild')")
    connection.execute("VACUUM")
    emptied = empty_log(connection, wait=wait)
    if emptied:
        connection.execute("DELETE FROM store WHERE name = 'scrub'")
    return emptied


def _key(stored: Stored) -> tuple[str, str] | None:
    """Give the unique key that a record holds, None where it holds none."""
    active = stored.record.state == "active"
    return (stored.record.kind, stored.dedupe) if stored.dedupe and active else None


def _of_kind(row: NamespaceRow, form: str | None, kind: str | None) -> tuple[str, list[object]]:
    """Give the condition that a record is active, of a form and of a kind."""
    sql, values = within(row)
    sql += " AND r.state = 'active'"
    if form == "working":
        # Spelt out, so that the partial index on working records serves.
        sql, values = f"{sql} AND r.form = 'working' AND r.namespace = ?", [*values, row.number]
    elif form is not None:
        sql, values = f"{sql} AND r.form = ?", [*values, form]
    if kind is not None:
        sql, values = f"{sql} AND r.kind = ?", [*values, kind]
    return sql, values
