"""Checks of a SQLite store's file from outside: what only SQL can see."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from zero_mem.index.document import index_terms
from zero_mem.storage.sqlite import SQLiteStorage
from zero_mem.testing.audit import faults


def file_faults(path: Path) -> list[str]:
    """Name what is wrong with a store's file, its index and its records; [] when sound."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        try:
            # Rank 1: compare with the rows that were indexed, not only the index with itself.
            connection.execute("INSERT INTO lexicon (lexicon, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            found.append(f"lexicon: {error}")
        terms = dict(connection.execute("SELECT term, cnt FROM lexicon_term"))
    with closing(SQLiteStorage(str(path))) as storage:
        found += faults(storage)
        if terms != _rebuilt(storage):
            found.append("the lexicon's terms are not those of the active records")
    return found


def _rebuilt(storage: SQLiteStorage) -> dict[str, int]:
    counts: Counter[str] = Counter()
    with storage.transaction() as transaction:
        for row in transaction.namespaces(()):
            for stored in transaction.scan(row, {}):
                if stored.record.state == "active":
                    counts.update(f"{row.number}\ue001{t}" for t in index_terms(stored.record))
    return dict(counts)
