"""Erasing in PostgreSQL: what a record leaves when it changes, and all of it when it is purged."""

from __future__ import annotations

from collections.abc import Sequence

from zero_mem.storage.base import NamespaceRow, Stored
from zero_mem.storage.codec import erase_fields, purged_key
from zero_mem.storage.postgres_lexicon import PostgresLexicon
from zero_mem.storage.postgres_rows import named_values
from zero_mem.storage.postgres_text import digest, escape, unescape


class PostgresErasing(PostgresLexicon):
    """The part of a PostgreSQL transaction that takes rows away."""

    def _chain(self, row: NamespaceRow, memory_id: str) -> list[int]:
        """List the sequences of a record's journal entries, the oldest first."""
        values = [row.number, *named_values(row, [memory_id]), row.number]
        return [sequence for (sequence,) in self._at(row).run(self._sql.chain, values)]

    def erase(self, row: NamespaceRow, stored: Sequence[Stored], *, nameless: str) -> None:
        for one in stored:
            self._erase_journal(row, one.record.memory_id)
            self._erase_decisions(row, one.record.uid, nameless)
        positions = [one.position for one in stored]
        self._drop_terms(row, positions)
        self._forget_vectors(row, positions)
        session, schema = self._at(row), self._schema
        session.defer(
            f"UPDATE {schema}.record SET kind = 'purged', fact = NULL, task = NULL, session = NULL,"
            " state = 'deleted', expires_at = NULL"
            " WHERE namespace = %s AND position = ANY(%s::bigint[])",
            (row.number, positions),
        )
        session.defer(
            f"DELETE FROM {schema}.hold WHERE namespace = %s AND uid = ANY(%s::text[])",
            (row.number, [one.record.uid for one in stored]),
        )
        session.defer(
            f"UPDATE {schema}.counter SET erased = true WHERE namespace = %s", (row.number,)
        )
        self.store_namespace(row)

    def _erase_decisions(self, row: NamespaceRow, uid: str, nameless: str) -> None:
        session, schema = self._at(row), self._schema
        sql = f"SELECT key FROM {schema}.decision WHERE namespace = %s AND uid = %s AND scope = %s"
        keys = session.run(sql, (row.number, uid, escape(nameless))).fetchall()
        session.defer(
            f"UPDATE {schema}.decision SET value = NULL WHERE namespace = %s AND uid = %s",
            (row.number, uid),
        )
        for (written,) in keys:
            key = unescape(written)
            purged = purged_key(key)
            session.defer(
                f"UPDATE {schema}.decision SET key = %s, digest = %s::uuid"
                " WHERE namespace = %s AND digest = %s::uuid",
                (escape(purged), digest(nameless, purged), row.number, digest(nameless, key)),
            )

    def _erase_journal(self, row: NamespaceRow, memory_id: str) -> None:
        """Delete the bodies of every version, and keep of each entry that it was there."""
        session, schema = self._at(row), self._schema
        chain = self._chain(row, memory_id)
        entries = session.run(
            f"SELECT sequence, fields, body FROM {schema}.journal"
            " WHERE namespace = %s AND sequence = ANY(%s::bigint[])",
            (row.number, chain),
        ).fetchall()
        session.defer(
            f"DELETE FROM {schema}.body WHERE namespace = %s AND number = ANY(%s::bigint[])",
            (row.number, [body for _, _, body in entries if body is not None]),
        )
        session.defer(
            f"UPDATE {schema}.journal j SET fields = u.fields, body = NULL, reason = ''"
            " FROM unnest(%s::bigint[], %s::text[]) AS u (sequence, fields)"
            " WHERE j.namespace = %s AND j.sequence = u.sequence",
            (
                [sequence for sequence, _, _ in entries],
                [erase_fields(fields) for _, fields, _ in entries],
                row.number,
            ),
        )
