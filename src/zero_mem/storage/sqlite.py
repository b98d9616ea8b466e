"""The SQLite store: one file, opened by many processes at once.

Write-ahead logging lets readers go on while one writer writes; a write transaction takes the
lock at its start, so that what it decides on can't change under it. Record, journal and
lexical index change in that one transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from zero_mem.errors import StoreUnavailable
from zero_mem.storage.base import (
    Change,
    Decision,
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
    decode_path,
    encode_body,
    encode_fields,
    encode_path,
    erase_fields,
)
from zero_mem.storage.sqlite_file import SQLiteFile
from zero_mem.storage.times import to_micros
from zero_mem.types import Body, Path

_MARK = "\ue001"
"""Separates a namespace's number from a term; FTS5's `ascii` tokenizer keeps it in one token."""

_NAMESPACE = "number, path, next_id, sequence, last_at, documents, length, settings"
_RECORD = (
    "SELECT r.position, r.body, r.fields, r.accessed_at, r.access_count, b.type, b.bytes"
    " FROM record r LEFT JOIN body b ON b.number = r.body WHERE r.namespace = ?"
)
_JOURNAL = (
    'SELECT j.sequence, j."group", j.at, j.actor, j.operation, j.reason, j.origin,'
    " j.memory_id, j.parent, j.fields, b.type, b.bytes, j.before_version, p.type, p.bytes"
    " FROM journal j LEFT JOIN body b ON b.number = j.body"
    " LEFT JOIN body p ON p.number = j.before_body WHERE j.namespace = ?"
)
_COLUMNS = {"memory_id", "form", "kind", "task", "session", "state"}
"""The fields that are columns, so that a filter's equalities on them read fewer rows."""


def _list(values: Collection[object]) -> str:
    return json.dumps(list(values))


class SQLiteStorage(Storage):
    """Memories in one SQLite file, created for its owner only.

    Args:
        path: The file; its folder must exist.
        durability: "full" fsyncs before a write is acknowledged; "normal" may lose the
            last moments on power loss, never on a killed process.

    Raises:
        StoreUnavailable: The file can't be opened or written.
        StoreCorrupt: The file is not a Zero-Mem store, or is damaged.
        MigrationNeeded: A newer version wrote it.
    """

    def __init__(self, path: str, *, durability: str = "full") -> None:
        self._file = SQLiteFile(path, durability=durability)
        self.origin = self._file.origin

    @contextmanager
    def transaction(self, *, write: bool = False, durable: bool = True) -> Iterator[Transaction]:
        """See `Storage.transaction`."""
        with self._file.transaction(write=write, durable=durable) as connection:
            yield SQLiteTransaction(connection, self.origin)

    def scrub(self) -> None:
        """Rebuild the index, rewrite every page and empty the write-ahead log."""
        with self._file.exclusive() as connection:
            connection.execute("INSERT INTO lexicon (lexicon) VALUES ('rebuild')")
            connection.execute("VACUUM")
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise StoreUnavailable(
                f"{self._file.path}: erased, but another process still reads the old pages; "
                "run the purge's scrub again when it has finished"
            )

    def size(self) -> int:
        """Tell the size of the file and its write-ahead log in bytes."""
        return self._file.size()

    def close(self) -> None:
        """Close every connection."""
        self._file.close()


class SQLiteTransaction(Transaction):
    """The primitives over one connection inside BEGIN … COMMIT."""

    def __init__(self, connection: sqlite3.Connection, origin: str) -> None:
        self._connection = connection
        self._run = connection.execute
        self._origin = origin

    # Namespaces

    def namespace(self, path: Path) -> NamespaceRow | None:
        sql = f"SELECT {_NAMESPACE} FROM namespace WHERE path = ?"
        row = self._run(sql, (encode_path(path),)).fetchone()
        return None if row is None else _namespace(row)

    def create_namespace(self, path: Path) -> NamespaceRow:
        found = self.namespace(path)
        if found is not None:
            return found
        self._run("INSERT INTO namespace (path) VALUES (?)", (encode_path(path),))
        created = self.namespace(path)
        assert created is not None
        return created

    def namespaces(self, prefix: Path) -> list[NamespaceRow]:
        rows = self._run(f"SELECT {_NAMESPACE} FROM namespace ORDER BY number")
        return [row for row in map(_namespace, rows) if below(prefix, row.path)]

    def store_namespace(self, row: NamespaceRow) -> None:
        self._run(
            "UPDATE namespace SET next_id = ?, sequence = ?, last_at = ?, documents = ?,"
            " length = ?, settings = ? WHERE number = ?",
            (
                row.next_id,
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
        sql = f"{_RECORD} AND r.memory_id IN (SELECT value FROM json_each(?))"
        found = self._stored(row, sql, (row.number, _list(ids)))
        return {stored.record.memory_id: stored for stored in found}

    def by_keys(
        self, row: NamespaceRow, keys: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Stored]:
        sql = (
            f"{_RECORD} AND r.state = 'active' AND (r.kind, r.dedupe) IN"
            " (SELECT value ->> 0, value ->> 1 FROM json_each(?))"
        )
        found = self._stored(row, sql, (row.number, _list(keys)))
        return {(s.record.kind, s.dedupe): s for s in found if s.dedupe is not None}

    def by_positions(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Stored]:
        sql = f"{_RECORD} AND r.position IN (SELECT value FROM json_each(?))"
        return {s.position: s for s in self._stored(row, sql, (row.number, _list(positions)))}

    def scan(
        self,
        row: NamespaceRow,
        equalities: Mapping[str, Collection[object]],
        *,
        after: int = 0,
        expires_by: int | None = None,
    ) -> Iterator[Stored]:
        sql = f"{_RECORD} AND r.position > ?"
        values: list[object] = [row.number, after]
        for column in sorted(_COLUMNS & equalities.keys()):
            sql += f" AND r.{column} IN (SELECT value FROM json_each(?))"
            values.append(_list(equalities[column]))
        if expires_by is not None:
            sql += " AND r.state = 'active' AND r.expires_at <= ?"
            values.append(expires_by)
        return self._stored(row, f"{sql} ORDER BY r.position", values)

    def _stored(self, row: NamespaceRow, sql: str, values: Sequence[Any]) -> Iterator[Stored]:
        for position, body, fields, accessed_at, count, kind, data in self._run(sql, values):
            yield decode_fields(
                fields,
                namespace=row.path,
                content="" if kind is None else decode_body(kind, data),
                position=position,
                body=body or 0,
                accessed_at=accessed_at,
                access_count=count,
            )

    def count_active(
        self, row: NamespaceRow, *, now: int, form: str | None, kind: str | None
    ) -> int:
        sql = (
            "SELECT count(*) FROM record WHERE namespace = ? AND state = 'active'"
            " AND (expires_at IS NULL OR expires_at > ?)"
        )
        values: list[object] = [row.number, now]
        for column, value in (("form", form), ("kind", kind)):
            if value is not None:
                sql += f" AND {column} = ?"
                values.append(value)
        return int(self._run(sql, values).fetchone()[0])

    def tally(self, row: NamespaceRow) -> dict[tuple[str, str], int]:
        sql = "SELECT state, form, count(*) FROM record WHERE namespace = ? GROUP BY state, form"
        return {(state, form): n for state, form, n in self._run(sql, (row.number,))}

    def accessed(self, row: NamespaceRow, ids: Collection[str], at: int) -> None:
        self._run(
            "UPDATE record SET accessed_at = max(accessed_at, ?),"
            " access_count = access_count + 1 WHERE namespace = ?"
            " AND memory_id IN (SELECT value FROM json_each(?))",
            (at, row.number, _list(ids)),
        )

    # Changes

    def apply(self, row: NamespaceRow, changes: Sequence[Change]) -> None:
        finals = settle(changes)
        bodies = self._write_bodies(changes)
        latest = {
            c.after.record.memory_id: body for c, (_, body) in zip(changes, bodies, strict=True)
        }
        positions = self._write_records(row, finals, latest)
        self._write_journal(row, changes, bodies)
        self._write_index(row, finals, positions)
        self.store_namespace(row)

    def _write_bodies(self, changes: Sequence[Change]) -> list[tuple[int | None, int | None]]:
        """Insert new bodies; give each change's body number before and after."""
        following = 1 + self._maximum("body", "number")
        current = {c.after.record.memory_id: c.before.body for c in reversed(changes) if c.before}
        numbers: list[tuple[int | None, int | None]] = []
        rows: list[tuple[int, str, bytes]] = []
        for change in changes:
            memory_id = change.after.record.memory_id
            before = current.get(memory_id)
            if change.body_changed:
                current[memory_id] = following + len(rows)
                rows.append((current[memory_id], *encode_body(change.after.record.content)))
            numbers.append((before, current.get(memory_id)))
        self._connection.executemany("INSERT INTO body VALUES (?, ?, ?)", rows)
        return numbers

    def _maximum(self, table: str, column: str) -> int:
        sql = f"SELECT coalesce(max({column}), 0) FROM {table}"
        return int(self._run(sql).fetchone()[0])

    def _write_records(
        self, row: NamespaceRow, finals: Sequence[Final], bodies: Mapping[str, int | None]
    ) -> list[int]:
        """Insert new records, update the others; give the position of each."""
        following = 1 + self._maximum("record", "position")
        inserts: list[tuple[object, ...]] = []
        updates: list[tuple[object, ...]] = []
        positions: list[int] = []
        for final in finals:
            columns = _columns(final.after, bodies[final.after.record.memory_id])
            if final.before is None:
                positions.append(following + len(inserts))
                inserts.append((positions[-1], row.number, *columns))
            else:
                positions.append(final.before.position)
                updates.append((*columns, final.before.position))
        # Updates first: they can free a key that an insert takes.
        self._connection.executemany(_UPDATE_RECORD, updates)
        self._connection.executemany(_INSERT_RECORD, inserts)
        return positions

    def _write_journal(
        self,
        row: NamespaceRow,
        changes: Sequence[Change],
        bodies: Sequence[tuple[int | None, int | None]],
    ) -> None:
        self._connection.executemany(
            _INSERT_JOURNAL,
            [
                (
                    row.number,
                    change.sequence,
                    change.group,
                    change.at,
                    change.actor,
                    change.operation,
                    change.reason,
                    self._origin,
                    change.after.record.memory_id,
                    change.before.digest if change.before else "",
                    encode_fields(change.after),
                    after,
                    change.before.record.version if change.before else 0,
                    before,
                )
                for change, (before, after) in zip(changes, bodies, strict=True)
            ],
        )

    def _write_index(
        self, row: NamespaceRow, finals: Sequence[Final], positions: Sequence[int]
    ) -> None:
        prefix = f"{row.number}{_MARK}"
        units: list[tuple[int, int, str]] = []
        for final, position in zip(finals, positions, strict=True):
            if final.terms is None:
                continue
            if final.before is not None:
                self._drop_unit(row, position)
            if final.after.record.state == "active":
                text = " ".join([prefix + term for term in final.terms])
                units.append((position, len(final.terms), text))
        row.documents += len(units)
        row.length += sum(length for _, length, _ in units)
        self._connection.executemany("INSERT INTO unit VALUES (?, ?, ?)", units)
        self._connection.executemany(
            "INSERT INTO lexicon (rowid, terms) VALUES (?, ?)",
            [(position, text) for position, _, text in units],
        )

    def _drop_unit(self, row: NamespaceRow, position: int) -> None:
        sql = "SELECT length, terms FROM unit WHERE position = ?"
        found = self._run(sql, (position,)).fetchone()
        if found is None:
            return
        self._run(
            "INSERT INTO lexicon (lexicon, rowid, terms) VALUES ('delete', ?, ?)",
            (position, found[1]),
        )
        self._run("DELETE FROM unit WHERE position = ?", (position,))
        row.documents -= 1
        row.length -= found[0]

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
        sql = f"{_JOURNAL} AND j.sequence > ?"
        values: list[object] = [row.number, after]
        limits: list[tuple[str, object]] = [
            ("j.memory_id =", memory_id),
            ('j."group" =', group),
            ("j.sequence >=", group),
            ("j.at <=", until_at),
        ]
        for condition, value in limits:
            if value is not None:
                sql += f" AND {condition} ?"
                values.append(value)
        for columns in self._run(f"{sql} ORDER BY j.sequence", values):
            yield _entry(row, columns)

    # Lexical index

    def frequencies(self, row: NamespaceRow, terms: Collection[str]) -> dict[str, int]:
        prefix = f"{row.number}{_MARK}"
        sql = "SELECT doc FROM lexicon_term WHERE term = ?"
        found = {term: self._run(sql, (prefix + term,)).fetchone() for term in terms}
        return {term: count[0] for term, count in found.items() if count is not None}

    def postings(self, row: NamespaceRow, term: str) -> list[Posting]:
        sql = (
            "SELECT i.doc, count(*), u.length FROM lexicon_instance i"
            " JOIN unit u ON u.position = i.doc WHERE i.term = ? GROUP BY i.doc"
        )
        found = self._run(sql, (f"{row.number}{_MARK}{term}",))
        return [Posting(position, count, length) for position, count, length in found]

    def documents(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Sequence[str]]:
        skip = len(f"{row.number}{_MARK}")
        sql = "SELECT position, terms FROM unit WHERE position IN (SELECT value FROM json_each(?))"
        found = self._run(sql, (_list(positions),))
        return {position: [t[skip:] for t in text.split()] for position, text in found}

    # What hosts keep beside the records

    def decision(self, row: NamespaceRow, scope: str, key: str) -> Decision | None:
        sql = "SELECT value, uid FROM decision WHERE namespace = ? AND scope = ? AND key = ?"
        found = self._run(sql, (row.number, scope, key)).fetchone()
        if found is None:
            return None
        return Decision(scope=scope, key=key, value=found[0], uid=found[1])

    def decisions(self, row: NamespaceRow, scope: str) -> list[Decision]:
        sql = (
            "SELECT key, value, uid FROM decision WHERE namespace = ? AND scope = ? ORDER BY number"
        )
        found = self._run(sql, (row.number, scope))
        return [Decision(scope=scope, key=key, value=value, uid=uid) for key, value, uid in found]

    def decide(self, row: NamespaceRow, decision: Decision) -> None:
        self._run(
            "INSERT INTO decision (namespace, scope, key, value, uid) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (namespace, scope, key)"
            " DO UPDATE SET value = excluded.value, uid = excluded.uid",
            (row.number, decision.scope, decision.key, decision.value, decision.uid),
        )

    def undecide(self, row: NamespaceRow, scope: str, key: str) -> None:
        sql = "DELETE FROM decision WHERE namespace = ? AND scope = ? AND key = ?"
        self._run(sql, (row.number, scope, key))

    def hold(self, row: NamespaceRow, owner: str, uid: str) -> None:
        self._run("INSERT OR IGNORE INTO hold VALUES (?, ?, ?)", (row.number, owner, uid))

    def release(self, row: NamespaceRow, owner: str) -> None:
        self._run("DELETE FROM hold WHERE namespace = ? AND owner = ?", (row.number, owner))

    def held(self, row: NamespaceRow) -> set[str]:
        sql = "SELECT DISTINCT uid FROM hold WHERE namespace = ?"
        return {uid for (uid,) in self._run(sql, (row.number,))}

    # Erasing

    def erase(self, row: NamespaceRow, stored: Sequence[Stored]) -> None:
        for one in stored:
            self._erase_bodies(row, one.record.memory_id)
            self._erase_fields(row, one)
            self._drop_unit(row, one.position)
            self._run("UPDATE decision SET value = NULL WHERE uid = ?", (one.record.uid,))
            self._run("DELETE FROM hold WHERE uid = ?", (one.record.uid,))
        self.store_namespace(row)

    def _erase_bodies(self, row: NamespaceRow, memory_id: str) -> None:
        found = self._run(
            "SELECT body, before_body FROM journal WHERE namespace = ? AND memory_id = ?",
            (row.number, memory_id),
        )
        numbers = {number for pair in found for number in pair if number is not None}
        sql = "DELETE FROM body WHERE number IN (SELECT value FROM json_each(?))"
        self._run(sql, (_list(numbers),))
        self._run(
            "UPDATE journal SET body = NULL, before_body = NULL, parent = ''"
            " WHERE namespace = ? AND memory_id = ?",
            (row.number, memory_id),
        )

    def _erase_fields(self, row: NamespaceRow, stored: Stored) -> None:
        memory_id = stored.record.memory_id
        written = self._run(
            "SELECT sequence, fields FROM journal WHERE namespace = ? AND memory_id = ?",
            (row.number, memory_id),
        ).fetchall()
        self._connection.executemany(
            "UPDATE journal SET fields = ?, reason = '' WHERE namespace = ? AND sequence = ?",
            [(erase_fields(fields), row.number, sequence) for sequence, fields in written],
        )
        self._run(
            "UPDATE record SET kind = 'purged', dedupe = NULL, task = NULL, session = NULL,"
            " state = 'deleted', expires_at = NULL, body = NULL, fields = ? WHERE position = ?",
            (erase_fields(encode_fields(stored)), stored.position),
        )


_RECORD_COLUMNS = (
    "memory_id",
    "form",
    "kind",
    "dedupe",
    "task",
    "session",
    "state",
    "expires_at",
    "accessed_at",
    "access_count",
    "body",
    "fields",
)
_INSERT_RECORD = (
    f"INSERT INTO record (position, namespace, {', '.join(_RECORD_COLUMNS)})"
    f" VALUES (?, ?, {', '.join('?' * len(_RECORD_COLUMNS))})"
)
_UPDATE_RECORD = (
    f"UPDATE record SET {', '.join(f'{name} = ?' for name in _RECORD_COLUMNS)} WHERE position = ?"
)
_INSERT_JOURNAL = f"INSERT INTO journal VALUES ({', '.join('?' * 14)})"


def _columns(stored: Stored, body: int | None) -> tuple[object, ...]:
    record = stored.record
    return (
        record.memory_id,
        record.form,
        record.kind,
        stored.dedupe,
        record.task,
        record.session,
        record.state,
        None if record.expires_at is None else to_micros(record.expires_at),
        to_micros(record.accessed_at),
        record.access_count,
        body,
        encode_fields(stored),
    )


def _namespace(columns: Sequence[Any]) -> NamespaceRow:
    number, path, next_id, sequence, last_at, documents, length, settings = columns
    return NamespaceRow(
        number=number,
        path=decode_path(path),
        next_id=next_id,
        sequence=sequence,
        last_at=last_at,
        documents=documents,
        length=length,
        settings=settings,
    )


def _entry(row: NamespaceRow, columns: Sequence[Any]) -> JournalEntry:
    (sequence, group, at, actor, operation, reason, origin, memory_id, parent, fields) = columns[
        :10
    ]
    kind, data, before_version, before_kind, before_data = columns[10:]
    stored = decode_fields(
        fields,
        namespace=row.path,
        content="" if kind is None else decode_body(kind, data),
        accessed_at=at,
        access_count=0,
    )
    before: Body | None = None if before_kind is None else decode_body(before_kind, before_data)
    return JournalEntry(
        namespace=row.path,
        sequence=sequence,
        group=group,
        at=at,
        actor=actor,
        operation=operation,
        reason=reason,
        origin=origin,
        memory_id=memory_id,
        uid=stored.record.uid,
        version=stored.record.version,
        parent=parent,
        record=None if kind is None else stored,
        before_version=before_version,
        before=before,
    )
