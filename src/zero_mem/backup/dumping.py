"""A store's rows as the lines of an archive."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from zero_mem.storage.base import JournalEntry, NamespaceRow, Storage, Stored, Transaction
from zero_mem.storage.codec import JSON, TEXT, encode_body, encode_fields
from zero_mem.storage.times import micros
from zero_mem.types import Body, Path

Line: TypeAlias = tuple[str, Any]
"""The sort of a line, and what it says."""


def dump(storage: Storage, *, sealed: bool, since: Mapping[Path, int]) -> Iterator[Line]:
    """Give all of a store as lines, or what its journal has beyond a sequence of each namespace.

    Args:
        storage: The store that holds the rows, unguarded.
        sealed: Its rows are sealed, so that their terms can't be cut anew.
        since: By namespace, the sequence after which entries are given.
    """
    for name, value in sorted(storage.notes("").items()):
        yield "note", [name, value]
    with storage.transaction() as transaction:
        for row in transaction.namespaces(()):
            yield from _namespace(transaction, row, sealed, since.get(row.path, 0))


def _namespace(
    transaction: Transaction, row: NamespaceRow, sealed: bool, after: int
) -> Iterator[Line]:
    counters = {
        "next_id": row.next_id,
        "highest_id": row.highest_id,
        "positions": row.positions,
        "sequence": row.sequence,
        "last_at": row.last_at,
        "settings": row.settings,
    }
    yield "namespace", {"path": list(row.path), "after": after, **counters}
    for stored in transaction.scan(row, {}):
        if stored.sequence > after:
            terms = list(_terms(transaction, row, stored)) if sealed else None
            # A position counts from its namespace's own number, which is the store's.
            yield "record", _record(stored, stored.position - row.position(0), terms)
    for entry in transaction.journal(row, after=after):
        yield "entry", _entry(entry)
    for scope in transaction.scopes(row):
        for each in transaction.decisions(row, scope):
            yield "decision", [each.scope, each.key, each.value, each.uid]
    for owner, uid in transaction.holds(row):
        yield "hold", [owner, uid]


def _terms(transaction: Transaction, row: NamespaceRow, stored: Stored) -> tuple[str, ...]:
    return tuple(transaction.documents(row, [stored.position]).get(stored.position, ()))


def _record(stored: Stored, place: int, terms: list[str] | None) -> dict[str, Any]:
    record = stored.record
    return {
        "id": record.memory_id,
        "place": place,
        "accessed": micros(record.accessed_at),
        "count": record.access_count,
        "last": stored.sequence,
        **({} if terms is None else {"terms": terms}),
        **({"tombstone": encode_fields(stored)} if stored.ended_by == "purge" else {}),
    }


def _entry(entry: JournalEntry) -> list[Any]:
    fields = body = None
    if entry.record is not None:
        fields = encode_fields(entry.record)
        content = entry.record.record.content
        # `before` is None too where the body before was purged.
        if entry.before is None or not _same(content, entry.before):
            body = body_line(content)
    return [
        entry.sequence,
        entry.group,
        entry.at,
        entry.actor,
        entry.operation,
        entry.reason,
        entry.origin,
        entry.memory_id,
        entry.version,
        fields,
        body,
    ]


def _same(one: Body, other: Body) -> bool:
    return encode_body(one) == encode_body(other)


def body_line(body: Body) -> list[str]:
    """Write a body as its type and a string."""
    kind, data = encode_body(body)
    if kind in (TEXT, JSON):
        return [kind, data.decode("utf-8", "surrogatepass")]
    return [kind, base64.b64encode(data).decode("ascii")]
