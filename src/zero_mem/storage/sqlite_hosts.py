"""The SQLite store's part for what hosts keep beside the records: decisions and holds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from sqlite3 import Cursor

from zero_mem.storage.base import Decision, NamespaceRow, Transaction
from zero_mem.storage.sqlite_rows import as_list


class SQLiteHosts(Transaction):
    """The primitives over decisions and holds."""

    _run: Callable[..., Cursor]

    def decision(self, row: NamespaceRow, scope: str, key: str) -> Decision | None:
        sql = "SELECT value, uid FROM decision WHERE namespace = ? AND scope = ? AND key = ?"
        found = self._run(sql, (row.number, scope, key)).fetchone()
        if found is None:
            return None
        return Decision(scope=scope, key=key, value=found[0], uid=found[1])

    def decisions(self, row: NamespaceRow, scope: str) -> list[Decision]:
        sql = (
            "SELECT key, value, uid FROM decision WHERE namespace = ? AND scope = ? ORDER BY number"
        )
        found = self._run(sql, (row.number, scope))
        return [Decision(scope=scope, key=key, value=value, uid=uid) for key, value, uid in found]

    def scopes(self, row: NamespaceRow) -> list[str]:
        sql = "SELECT DISTINCT scope FROM decision WHERE namespace = ? ORDER BY scope"
        return [scope for (scope,) in self._run(sql, (row.number,))]

    def decided_for(self, row: NamespaceRow, uids: Collection[str]) -> dict[tuple[str, str], int]:
        sql = (
            "SELECT uid, scope, count(*) FROM decision"
            " WHERE uid IN (SELECT value FROM json_each(?)) AND namespace = ?"
            " AND value IS NOT NULL GROUP BY uid, scope"
        )
        found = self._run(sql, (as_list(uids), row.number))
        return {(uid, scope): count for uid, scope, count in found}

    def decide(self, row: NamespaceRow, decision: Decision) -> None:
        self._run(
            "INSERT INTO decision (namespace, scope, key, value, uid) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (namespace, scope, key)"
            " DO UPDATE SET value = excluded.value, uid = excluded.uid",
            (row.number, decision.scope, decision.key, decision.value, decision.uid),
        )

    def undecide(self, row: NamespaceRow, scope: str, key: str) -> None:
        sql = "DELETE FROM decision WHERE namespace = ? AND scope = ? AND key = ?"
        self._run(sql, (row.number, scope, key))

    def hold(self, row: NamespaceRow, owner: str, uid: str) -> None:
        self._run("INSERT OR IGNORE INTO hold VALUES (?, ?, ?)", (row.number, owner, uid))

    def release(self, row: NamespaceRow, owner: str) -> None:
        self._run("DELETE FROM hold WHERE namespace = ? AND owner = ?", (row.number, owner))

    def held(self, row: NamespaceRow) -> set[str]:
        sql = "SELECT DISTINCT uid FROM hold WHERE namespace = ?"
        return {uid for (uid,) in self._run(sql, (row.number,))}

    def holds(self, row: NamespaceRow) -> list[tuple[str, str]]:
        sql = "SELECT owner, uid FROM hold WHERE namespace = ? ORDER BY owner, uid"
        return [(owner, uid) for owner, uid in self._run(sql, (row.number,))]
