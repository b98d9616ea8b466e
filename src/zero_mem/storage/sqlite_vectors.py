"""The vectors' tables in SQLite: one row a record and model."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from zero_mem.index.vectors import REACH
from zero_mem.storage.base import NamespaceRow, Transaction, Vector, VectorModel
from zero_mem.storage.sqlite_rows import as_list, within


class SQLiteVectors(Transaction):
    """The part of an SQLite transaction that reads and writes vectors."""

    _connection: sqlite3.Connection

    def vectors(
        self,
        row: NamespaceRow,
        model: VectorModel,
        *,
        after: int = 0,
        positions: Collection[int] | None = None,
    ) -> list[Vector]:
        inside, values = within(row)
        if after:
            # The new ones are few: let the range of numbers find them, not that of positions.
            inside = inside.replace("r.position", "+r.position") + " AND r.number > ?"
            values.append(after)
        if positions is not None:
            inside += " AND r.position IN (SELECT value FROM json_each(?))"
            values.append(as_list(positions))
        found = self._connection.execute(
            "SELECT r.position, r.context, r.data, r.number FROM vector r"
            f" JOIN vector_model m ON m.number = r.model WHERE {inside}"
            " AND m.name = ? AND m.dimension = ? ORDER BY r.position",
            (*values, *model),
        )
        return [Vector(*columns) for columns in found]

    def without_vector(self, row: NamespaceRow, model: VectorModel, limit: int) -> list[int]:
        inside, values = within(row)
        found = self._connection.execute(
            f"SELECT r.position FROM record r WHERE {inside} AND r.state = 'active'"
            " AND NOT EXISTS (SELECT 1 FROM vector v WHERE v.position = r.position AND v.model ="
            " (SELECT number FROM vector_model WHERE name = ? AND dimension = ?))"
            " ORDER BY r.position DESC LIMIT ?",
            (*values, *model, limit),
        )
        return [position for (position,) in found]

    def put_vectors(self, row: NamespaceRow, model: VectorModel, vectors: Sequence[Vector]) -> None:
        self._connection.execute(
            "INSERT OR IGNORE INTO vector_model (name, dimension) VALUES (?, ?)", model
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO vector (position, model, context, data)"
            " SELECT ?, number, ?, ? FROM vector_model WHERE name = ? AND dimension = ?",
            [(vector.position, vector.context, vector.data, *model) for vector in vectors],
        )

    def drop_vectors(self, row: NamespaceRow, *, keep: VectorModel) -> int:
        inside, values = within(row)
        gone = self._connection.execute(
            f"DELETE FROM vector AS r WHERE {inside} AND r.model NOT IN"
            " (SELECT number FROM vector_model WHERE name = ? AND dimension = ?)",
            (*values, *keep),
        )
        return gone.rowcount

    def vector_counts(self, row: NamespaceRow) -> dict[VectorModel, int]:
        inside, values = within(row)
        found = self._connection.execute(
            "SELECT m.name, m.dimension, count(*) FROM vector r"
            f" JOIN vector_model m ON m.number = r.model WHERE {inside} GROUP BY m.number",
            values,
        )
        return {VectorModel(name, dimension): count for name, dimension, count in found}

    def _forget_vectors(self, position: int) -> None:
        """Drop the vectors of a record, and of those after it that have it as their context."""
        self._connection.execute(
            "DELETE FROM vector WHERE position BETWEEN ?1 AND ?2"
            " AND (position = ?1 OR context = ?1)",
            (position, position + REACH),
        )
