"""The vectors' table in PostgreSQL: one row a record and model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from zero_mem.index.vectors import REACH
from zero_mem.storage.base import NamespaceRow, Vector, VectorModel
from zero_mem.storage.postgres_place import PostgresPlace
from zero_mem.storage.postgres_text import escape, unescape


class PostgresVectors(PostgresPlace):
    """The part of a PostgreSQL transaction that reads and writes vectors."""

    def vectors(
        self,
        row: NamespaceRow,
        model: VectorModel,
        *,
        after: int = 0,
        positions: Collection[int] | None = None,
    ) -> list[Vector]:
        values: list[object] = [row.number, escape(model.name), model.dimension, after]
        sql = (
            f"SELECT position, context, data, number FROM {self._schema}.vector"
            " WHERE namespace = %s AND model = %s AND dimension = %s AND number > %s"
        )
        if positions is not None:
            sql += " AND position = ANY(%s::bigint[])"
            values.append(list(positions))
        found = self._at(row).run(f"{sql} ORDER BY position", values)
        return [Vector(*columns) for columns in found]

    def without_vector(self, row: NamespaceRow, model: VectorModel, limit: int) -> list[int]:
        found = self._at(row).run(
            f"SELECT position FROM {self._schema}.record r WHERE namespace = %s"
            f" AND state = 'active' AND NOT EXISTS (SELECT FROM {self._schema}.vector v"
            " WHERE v.namespace = r.namespace AND v.position = r.position"
            " AND v.model = %s AND v.dimension = %s) ORDER BY position DESC LIMIT %s",
            (row.number, escape(model.name), model.dimension, limit),
        )
        return [position for (position,) in found]

    def put_vectors(self, row: NamespaceRow, model: VectorModel, vectors: Sequence[Vector]) -> None:
        last = {vector.position: vector for vector in vectors}.values()
        if not last:
            return
        self._has_vectors(row)
        self._at(row).defer(
            f"WITH given AS (UPDATE {self._schema}.counter SET vectors = vectors + %s"
            " WHERE namespace = %s RETURNING vectors - %s AS before)"
            f" INSERT INTO {self._schema}.vector"
            " (namespace, position, number, context, dimension, model, data)"
            " SELECT %s, u.position, before + u.place, u.context, %s, %s, u.data FROM given,"
            " unnest(%s::bigint[], %s::bigint[], %s::bytea[]) WITH ORDINALITY"
            " AS u (position, context, data, place)"
            " ON CONFLICT (namespace, position, model, dimension) DO UPDATE SET"
            " number = excluded.number, context = excluded.context, data = excluded.data",
            (
                len(last),
                row.number,
                len(last),
                row.number,
                model.dimension,
                escape(model.name),
                [vector.position for vector in last],
                [vector.context for vector in last],
                [vector.data for vector in last],
            ),
        )

    def drop_vectors(self, row: NamespaceRow, *, keep: VectorModel) -> int:
        gone = self._at(row).run(
            f"DELETE FROM {self._schema}.vector WHERE namespace = %s"
            " AND (model, dimension) <> (%s, %s)",
            (row.number, escape(keep.name), keep.dimension),
        )
        return gone.rowcount

    def vector_counts(self, row: NamespaceRow) -> dict[VectorModel, int]:
        found = self._at(row).run(
            f"SELECT model, dimension, count(*) FROM {self._schema}.vector"
            " WHERE namespace = %s GROUP BY model, dimension",
            (row.number,),
        )
        return {VectorModel(unescape(name), width): count for name, width, count in found}

    def _forget_vectors(self, row: NamespaceRow, positions: Sequence[int]) -> None:
        """Drop the vectors of records, and of those after them that have them as their context."""
        if not positions or not self._may_have_vectors(row):
            return
        near = {place for one in positions for place in range(one, one + REACH + 1)}
        self._at(row).defer(
            f"DELETE FROM {self._schema}.vector WHERE namespace = %s"
            " AND position = ANY(%s::bigint[])"
            " AND (position = ANY(%s::bigint[]) OR context = ANY(%s::bigint[]))",
            (row.number, list(near), list(positions), list(positions)),
        )
