"""The SQLite store's rows: the statements, and how they become records and entries."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from zero_mem.storage.base import JournalEntry, NamespaceRow, Stored
from zero_mem.storage.codec import decode_path
from zero_mem.storage.journal_rows import read_entry
from zero_mem.storage.times import micros

MARK = "\ue001"
"""Separates a namespace's number from a term; FTS5's `ascii` tokenizer keeps it in one token."""

NAMESPACE = (
    "number, path, next_id, highest_id, positions, sequence, last_at, documents, length, settings"
)
RECORD = (
    "SELECT r.position, r.sequence, j.body, j.fields, r.accessed_at, r.access_count,"
    " b.type, b.bytes FROM record r"
    " JOIN journal j ON j.place = (r.namespace << 32) + r.sequence"
    " LEFT JOIN body b ON b.number = j.body"
)
OF_NAMESPACE = f"{RECORD} WHERE r.namespace = ?"
JOURNAL = (
    'SELECT j.place, j."group", j.at, j.actor, j.operation, j.reason, j.origin, j.fields,'
    " b.type, b.bytes, p.fields, pb.type, pb.bytes FROM journal j"
    " LEFT JOIN body b ON b.number = j.body"
    " LEFT JOIN journal p ON p.place = ? + j.previous AND j.previous > 0"
    " LEFT JOIN body pb ON pb.number = p.body"
)
CHAIN = """
    WITH RECURSIVE chain (place, previous) AS (
        SELECT place, previous FROM journal WHERE place = ?1 + ?2
        UNION ALL
        SELECT j.place, j.previous FROM chain c JOIN journal j ON j.place = ?1 + c.previous
        WHERE c.previous > 0
    )
    SELECT place FROM chain ORDER BY place
"""
COLUMNS = {"form", "kind", "task", "session", "state"}
"""The fields that are columns, so that a filter's equalities on them read fewer rows."""

_COUNT = (1 << 32) - 1

NAMED = (
    "r.position IN (SELECT position FROM record WHERE namespace = ? AND alias IN"
    " (SELECT value FROM json_each(?)) UNION ALL SELECT position FROM record"
    " WHERE alias IS NULL AND position IN (SELECT value FROM json_each(?)))"
)
"""The condition that a record has one of some ids, over the values that `named_values` gives."""


def as_list(values: Collection[object]) -> str:
    """Write values for `IN (SELECT value FROM json_each(?))`, so that one statement serves all."""
    return json.dumps(list(values))


_RECORD_COLUMNS = (
    "alias",
    "form",
    "kind",
    "dedupe",
    "task",
    "session",
    "state",
    "expires_at",
    "updated_at",
    "accessed_at",
    "access_count",
    "sequence",
)
INSERT_RECORD = (
    f"INSERT INTO record (position, namespace, {', '.join(_RECORD_COLUMNS)}, length, terms)"
    f" VALUES ({', '.join('?' * (len(_RECORD_COLUMNS) + 4))})"
)
UPDATE_RECORD = (
    f"UPDATE record SET {', '.join(f'{name} = ?' for name in _RECORD_COLUMNS)} WHERE position = ?"
)
INSERT_JOURNAL = f"INSERT INTO journal VALUES ({', '.join('?' * 10)})"


def record_columns(stored: Stored) -> tuple[object, ...]:
    """Give the values of a record's columns, as INSERT_RECORD and UPDATE_RECORD take them."""
    record = stored.record
    count = str(stored.position & _COUNT)
    return (
        None if record.memory_id == count else record.memory_id,
        record.form,
        record.kind,
        stored.dedupe,
        record.task,
        record.session,
        record.state,
        None if record.expires_at is None else micros(record.expires_at),
        micros(record.updated_at),
        micros(record.accessed_at),
        record.access_count,
        stored.sequence,
    )


def first_of(row: NamespaceRow) -> int:
    """Give the number below all positions and journal places of a namespace."""
    return row.number << 32


def named_values(row: NamespaceRow, ids: Collection[str]) -> list[object]:
    """Give the values of `NAMED`: ids as callers gave them, and positions by count."""
    counts = (int(name) for name in ids if name.isdecimal() and len(name) <= 9)
    positions = [row.position(count) for count in counts]
    return [row.number, as_list(ids), as_list(positions)]


def within(row: NamespaceRow, after: int = 0) -> tuple[str, list[object]]:
    """Give the condition that a record is in a namespace, as a range of positions."""
    first = first_of(row)
    return "r.position > ? AND r.position <= ?", [max(first, after), first + row.positions]


def places(row: NamespaceRow, after: int, group: int | None) -> list[object]:
    """Give the range of journal places beyond a sequence, or from an operation's first one."""
    first = first_of(row)
    return [first + max(after, (group or 0) - 1), first + row.sequence]


def namespace_row(columns: Sequence[Any]) -> NamespaceRow:
    """Read the columns of NAMESPACE."""
    (number, path, next_id, highest, positions, sequence, last_at) = columns[:7]
    documents, length, settings = columns[7:]
    return NamespaceRow(
        number=number,
        path=decode_path(path),
        next_id=next_id,
        highest_id=highest,
        positions=positions,
        sequence=sequence,
        last_at=last_at,
        documents=documents,
        length=length,
        settings=settings,
    )


def journal_entry(row: NamespaceRow, columns: Sequence[Any], origin: str) -> JournalEntry:
    """Read the columns of JOURNAL; `origin` is this store's own name."""
    place, *rest = columns
    return read_entry(row, (place - first_of(row), *rest), origin)
