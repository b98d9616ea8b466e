"""What hosts keep beside the records in PostgreSQL: decisions and holds."""

from __future__ import annotations

from collections.abc import Collection

from zero_mem.storage.base import Decision, NamespaceRow
from zero_mem.storage.postgres_text import digest, escape, escape_optional, unescape
from zero_mem.storage.postgres_vectors import PostgresVectors


class PostgresHosts(PostgresVectors):
    """The part of a PostgreSQL transaction that reads and writes what hosts keep."""

    def decision(self, row: NamespaceRow, scope: str, key: str) -> Decision | None:
        sql = f"SELECT value, uid FROM {self._schema}.decision WHERE namespace = %s AND digest = %s"
        found = self._at(row).run(f"{sql}::uuid", (row.number, digest(scope, key))).fetchone()
        if found is None:
            return None
        value = None if found[0] is None else unescape(found[0])
        return Decision(scope=scope, key=key, value=value, uid=found[1])

    def decisions(self, row: NamespaceRow, scope: str) -> list[Decision]:
        sql = (
            f"SELECT key, value, uid FROM {self._schema}.decision WHERE namespace = %s"
            " AND scope = %s ORDER BY number"
        )
        found = self._at(row).run(sql, (row.number, escape(scope)))
        return [
            Decision(
                scope=scope,
                key=unescape(key),
                value=None if value is None else unescape(value),
                uid=uid,
            )
            for key, value, uid in found
        ]

    def scopes(self, row: NamespaceRow) -> list[str]:
        sql = f"SELECT DISTINCT scope FROM {self._schema}.decision WHERE namespace = %s"
        return sorted(unescape(scope) for (scope,) in self._at(row).run(sql, (row.number,)))

    def decided_for(self, row: NamespaceRow, uids: Collection[str]) -> dict[tuple[str, str], int]:
        sql = (
            f"SELECT uid, scope, count(*) FROM {self._schema}.decision WHERE namespace = %s"
            " AND uid = ANY(%s::text[]) AND value IS NOT NULL GROUP BY uid, scope"
        )
        found = self._at(row).run(sql, (row.number, list(uids)))
        return {(uid, unescape(scope)): count for uid, scope, count in found}

    def decide(self, row: NamespaceRow, decision: Decision) -> None:
        self._at(row).defer(
            f"WITH given AS (UPDATE {self._schema}.counter SET decisions = decisions + 1"
            " WHERE namespace = %s RETURNING decisions)"
            f" INSERT INTO {self._schema}.decision"
            " (namespace, number, digest, scope, key, value, uid)"
            " SELECT %s, decisions, %s::uuid, %s::text, %s::text, %s::text, %s::text FROM given"
            " ON CONFLICT (namespace, digest)"
            " DO UPDATE SET value = excluded.value, uid = excluded.uid",
            (
                row.number,
                row.number,
                digest(decision.scope, decision.key),
                escape(decision.scope),
                escape(decision.key),
                escape_optional(decision.value),
                decision.uid,
            ),
        )

    def undecide(self, row: NamespaceRow, scope: str, key: str) -> None:
        sql = f"DELETE FROM {self._schema}.decision WHERE namespace = %s AND digest = %s::uuid"
        self._at(row).defer(sql, (row.number, digest(scope, key)))

    def hold(self, row: NamespaceRow, owner: str, uid: str) -> None:
        sql = f"INSERT INTO {self._schema}.hold VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        self._at(row).defer(sql, (row.number, escape(owner), uid))

    def release(self, row: NamespaceRow, owner: str) -> None:
        sql = f"DELETE FROM {self._schema}.hold WHERE namespace = %s AND owner = %s"
        self._at(row).defer(sql, (row.number, escape(owner)))

    def held(self, row: NamespaceRow) -> set[str]:
        sql = f"SELECT DISTINCT uid FROM {self._schema}.hold WHERE namespace = %s"
        return {uid for (uid,) in self._at(row).run(sql, (row.number,))}

    def holds(self, row: NamespaceRow) -> list[tuple[str, str]]:
        sql = f"SELECT owner, uid FROM {self._schema}.hold WHERE namespace = %s"
        found = self._at(row).run(sql, (row.number,))
        return sorted((unescape(owner), uid) for owner, uid in found)
