"""Counting what a store holds, by reading it."""

from __future__ import annotations

from zero_mem.backup.reports import Counts
from zero_mem.errors import StoreCorrupt
from zero_mem.storage.base import Storage


def count(storage: Storage) -> Counts:
    """Count the records and the journal's entries of a store, row by row.

    Raises:
        StoreCorrupt: One can't be read.
    """
    records = entries = 0
    with storage.transaction() as transaction:
        rows = transaction.namespaces(())
        for row in rows:
            try:
                records += sum(1 for _ in transaction.scan(row, {}))
                entries += sum(1 for _ in transaction.journal(row))
            except (ValueError, KeyError) as error:
                raise StoreCorrupt(
                    f"namespace {'/'.join(row.path)}: a row can't be read any more; "
                    "restore a backup, or export what can still be read"
                ) from error
    return Counts(namespaces=len(rows), records=records, entries=entries)
