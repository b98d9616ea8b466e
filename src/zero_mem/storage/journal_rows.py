"""A row of the journal, as a store reads it, to the entry that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zero_mem.storage.base import JournalEntry, NamespaceRow, Stored
from zero_mem.storage.codec import decode_body, decode_fields


def read_entry(row: NamespaceRow, columns: Sequence[Any], origin: str) -> JournalEntry:
    """Read an entry.

    Args:
        row: The namespace.
        columns: sequence, group, at, actor, operation, reason, origin ("" for the store's own),
            fields, and the body's type and bytes; then fields, type and bytes of the version
            before.
        origin: The store's own name.
    """
    sequence, group, at, actor, operation, reason, elsewhere, fields, kind, data = columns[:10]
    before_fields, before_kind, before_data = columns[10:]
    stored = _journalled(row, fields, kind, data, sequence, at)
    before = None
    if before_fields is not None:
        before = _journalled(row, before_fields, before_kind, before_data, 0, at)
    return JournalEntry(
        namespace=row.path,
        sequence=stored.sequence,
        group=group,
        at=at,
        actor=actor,
        operation=operation,
        reason=reason,
        origin=elsewhere or origin,
        memory_id=stored.record.memory_id,
        uid=stored.record.uid,
        version=stored.record.version,
        parent=stored.parent,
        record=None if kind is None else stored,
        before_version=before.record.version if before else 0,
        before=None if before is None or before_kind is None else before.record.content,
    )


def _journalled(
    row: NamespaceRow, fields: str, kind: str | None, data: bytes, sequence: int, at: int
) -> Stored:
    """Read a record as the journal has it; accesses are not journalled."""
    return decode_fields(
        fields,
        namespace=row.path,
        content="" if kind is None else decode_body(kind, data),
        sequence=sequence,
        accessed_at=at,
        access_count=0,
    )
