"""Counting what a store holds, by reading it."""

from __future__ import annotations

from zero_mem.backup.reports import Counts
from zero_mem.storage.base import Storage


def count(storage: Storage) -> Counts:
    """Count the records and the journal's entries of a store, row by row."""
    records = entries = 0
    with storage.transaction() as transaction:
        rows = transaction.namespaces(())
        for row in rows:
            records += sum(1 for _ in transaction.scan(row, {}))
            entries += sum(1 for _ in transaction.journal(row))
    return Counts(namespaces=len(rows), records=records, entries=entries)
