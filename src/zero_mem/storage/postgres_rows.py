"""The PostgreSQL store's rows: the statements, and how they become records and entries.

`{schema}` stands for the store's schema; `Statements` puts it in.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from zero_mem.storage.base import JournalEntry, NamespaceRow, Stored
from zero_mem.storage.codec import decode_body, decode_fields, decode_path
from zero_mem.storage.journal_rows import read_entry
from zero_mem.storage.postgres_text import digest, escape, escape_optional, unescape
from zero_mem.storage.times import micros

_COUNT = (1 << 32) - 1

_COUNTERS = "next_id, highest_id, positions, sequence, last_at, documents, length, settings"
_RECORD = (
    "SELECT r.position, r.sequence, j.body, j.fields, r.accessed_at, r.access_count,"
    " b.type, b.bytes{more} FROM {schema}.record r"
    " JOIN {schema}.journal j ON j.namespace = r.namespace AND j.sequence = r.sequence"
    " LEFT JOIN {schema}.body b ON b.namespace = r.namespace AND b.number = j.body"
    " WHERE r.namespace = %s"
)
_NAMED = " AND (r.alias = ANY(%s::text[]) OR r.alias IS NULL AND r.position = ANY(%s::bigint[]))"
_JOURNAL = (
    'SELECT j.sequence, j."group", j.at, j.actor, j.operation, j.reason, j.origin, j.fields,'
    " b.type, b.bytes, p.fields, pb.type, pb.bytes FROM {schema}.journal j"
    " LEFT JOIN {schema}.body b ON b.namespace = j.namespace AND b.number = j.body"
    " LEFT JOIN {schema}.journal p ON p.namespace = j.namespace AND p.sequence = j.previous"
    " AND j.previous > 0"
    " LEFT JOIN {schema}.body pb ON pb.namespace = p.namespace AND pb.number = p.body"
    " WHERE j.namespace = %s"
)
_CHAIN = (
    "WITH RECURSIVE chain (sequence, previous) AS ("
    " SELECT j.sequence, j.previous FROM {schema}.record r"
    " JOIN {schema}.journal j ON j.namespace = r.namespace AND j.sequence = r.sequence"
    f" WHERE r.namespace = %s{_NAMED}"
    " UNION ALL SELECT j.sequence, j.previous FROM chain c JOIN {schema}.journal j"
    " ON j.namespace = %s AND j.sequence = c.previous WHERE c.previous > 0"
    ") SELECT sequence FROM chain ORDER BY sequence"
)
_RECORD_COLUMNS = (
    ("sequence", "bigint"),
    ("updated_at", "bigint"),
    ("accessed_at", "bigint"),
    ("access_count", "bigint"),
    ("expires_at", "bigint"),
    ("fact", "uuid"),
    ("state", "text"),
    ("form", "text"),
    ("kind", "text"),
    ("alias", "text"),
    ("task", "text"),
    ("session", "text"),
)
BODY_TYPES = ("bigint", "text", "bytea")
JOURNAL_TYPES = ("bigint",) * 5 + ("text",) * 5
RECORD_TYPES = ("bigint", *(kind for _, kind in _RECORD_COLUMNS))
LEXICON_TYPES = ("bigint", "integer", "text", "text")

COLUMNS = {"form", "kind", "task", "session", "state"}
"""The fields that are columns, so that a filter's equalities on them read fewer rows."""


def _arrays(types: Sequence[str]) -> str:
    return ", ".join(f"%s::{kind}[]" for kind in types)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The statements over one schema."""

    enter: str
    lock: str
    namespaces: str
    locked_namespaces: str
    departures: str
    store_namespace: str
    record: str
    by_use: str
    named: str
    journal: str
    chain: str
    append: str
    free_facts: str
    update: str
    accessed: str


@lru_cache(maxsize=64)
def statements(schema: str) -> Statements:
    """Write the statements over a schema."""
    counters = f"c.{_COUNTERS.replace(', ', ', c.')}"
    names = [name for name, _ in _RECORD_COLUMNS]
    listed = (
        f"SELECT n.number, n.path, {counters}, c.vectors, c.listed FROM {schema}.namespace n"
        f" JOIN {schema}.counter c ON c.namespace = n.number"
        " WHERE starts_with(n.path, %s) AND c.home = %s ORDER BY n.number"
    )
    each = (*BODY_TYPES, *JOURNAL_TYPES, *RECORD_TYPES, *LEXICON_TYPES)
    return Statements(
        enter=(
            f"SELECT namespace, home, {_COUNTERS}, vectors, listed FROM {schema}.enter"
            "(%s::text, %s::uuid, %s::text, %s::boolean, %s::boolean, %s::text)"
        ),
        lock=f"SELECT FROM {schema}.counter WHERE namespace = %s FOR UPDATE",
        namespaces=listed,
        locked_namespaces=f"{listed} FOR UPDATE OF c",
        departures=(
            f"SELECT n.number, n.path, c.home FROM {schema}.namespace n"
            f" JOIN {schema}.counter c ON c.namespace = n.number"
            " WHERE starts_with(n.path, %s) AND c.home <> %s"
        ),
        store_namespace=(
            f"UPDATE {schema}.counter SET ({_COUNTERS}) ="
            f" ROW({', '.join(['%s'] * 8)}) WHERE namespace = %s"
        ),
        record=_RECORD.format(schema=schema, more=""),
        by_use=_RECORD.format(schema=schema, more=", greatest(r.updated_at, r.accessed_at)"),
        named=_NAMED,
        journal=_JOURNAL.format(schema=schema),
        chain=_CHAIN.format(schema=schema),
        append=f"SELECT {schema}.append({_arrays(each)}, %s::boolean)",
        free_facts=(
            f"UPDATE {schema}.record SET fact = NULL WHERE namespace = %s"
            " AND position = ANY(%s::bigint[])"
        ),
        update=(
            f"UPDATE {schema}.record r SET ({', '.join(names)}) ="
            f" ROW({', '.join(f'u.{name}' for name in names)})"
            f" FROM unnest({_arrays(RECORD_TYPES)}) AS u (position, {', '.join(names)})"
            " WHERE r.namespace = %s AND r.position = u.position"
        ),
        accessed=(
            f"UPDATE {schema}.record r SET accessed_at = greatest(accessed_at, %s),"
            f" access_count = access_count + 1 WHERE r.namespace = %s{_NAMED}"
        ),
    )


def fact(kind: str, dedupe: str) -> str:
    """Give the digest of what is unique among a namespace's active records."""
    return digest(kind, dedupe)


def record_columns(stored: Stored) -> tuple[object, ...]:
    """Give the position of a record and the values of its columns."""
    record = stored.record
    count = str(stored.position & _COUNT)
    held = stored.dedupe if record.state == "active" else None
    return (
        stored.position,
        stored.sequence,
        micros(record.updated_at),
        micros(record.accessed_at),
        record.access_count,
        None if record.expires_at is None else micros(record.expires_at),
        None if held is None else fact(record.kind, held),
        record.state,
        record.form,
        escape(record.kind),
        None if record.memory_id == count else record.memory_id,
        escape_optional(record.task),
        escape_optional(record.session),
    )


def columns_of(rows: Sequence[Sequence[Any]], types: Sequence[str]) -> list[str]:
    """Turn rows into columns, each written as an array of its type."""
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    return [array(column, kind) for column, kind in zip(columns, types, strict=True)]


_BETWEEN = "\x1f"


def array(values: Sequence[Any], kind: str) -> str:
    """Write an array as PostgreSQL reads it: many values take a few steps, not one each."""
    if kind == "bytea":
        return (
            '{"\\\\x' + '","\\\\x'.join([data.hex() for data in values]) + '"}' if values else "{}"
        )
    if kind != "text":
        return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"
    if None in values:
        return "{" + ",".join([_item(value) for value in values]) + "}"
    joined = _BETWEEN.join(values)
    if not values or joined.count(_BETWEEN) != len(values) - 1:
        return "{" + ",".join([_item(value) for value in values]) + "}"
    return '{"' + _quoted(joined).replace(_BETWEEN, '","') + '"}'


def _item(value: str | None) -> str:
    return "NULL" if value is None else f'"{_quoted(value)}"'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def named_values(row: NamespaceRow, ids: Collection[str]) -> list[Any]:
    """Give the values of `Statements.named`: ids as callers gave them, and positions by count."""
    counts = (int(name) for name in ids if name.isdecimal() and len(name) <= 9)
    return [[escape(name) for name in ids], [row.position(count) for count in counts]]


def texts(values: Collection[object]) -> list[str]:
    """Give the strings of some values, as columns hold them: nothing else equals a column."""
    return [escape(value) for value in values if isinstance(value, str)]


def namespace_row(number: int, path: str, counters: Sequence[Any]) -> NamespaceRow:
    """Read the counters of a namespace."""
    next_id, highest, positions, sequence, last_at, documents, length, settings = counters[:8]
    return NamespaceRow(
        number=number,
        path=decode_path(unescape(path)),
        next_id=next_id,
        highest_id=highest,
        positions=positions,
        sequence=sequence,
        last_at=last_at,
        documents=documents,
        length=length,
        settings=unescape(settings),
    )


def counter_values(row: NamespaceRow) -> tuple[object, ...]:
    """Give the values of `Statements.store_namespace`."""
    return (
        row.next_id,
        row.highest_id,
        row.positions,
        row.sequence,
        row.last_at,
        row.documents,
        row.length,
        escape(row.settings),
        row.number,
    )


def stored_record(row: NamespaceRow, columns: Sequence[Any]) -> Stored:
    """Read the columns of `Statements.record`."""
    position, sequence, body, fields, accessed_at, count, kind, data = columns[:8]
    return decode_fields(
        fields,
        namespace=row.path,
        content="" if kind is None else decode_body(unescape(kind), data),
        position=position,
        sequence=sequence,
        body=body or 0,
        accessed_at=accessed_at,
        access_count=count,
    )


def journal_entry(row: NamespaceRow, columns: Sequence[Any], origin: str) -> JournalEntry:
    """Read the columns of `Statements.journal`; `origin` is this store's own name."""
    plain = list(columns)
    for place in _ESCAPED:
        if plain[place] is not None:
            plain[place] = unescape(plain[place])
    return read_entry(row, plain, origin)


_ESCAPED = (3, 5, 8, 11)
"""The places of actor, reason, and the types of both bodies."""
