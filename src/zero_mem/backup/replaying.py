"""The lines of an archive written into a store, in one transaction."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from zero_mem.errors import Conflict
from zero_mem.storage.base import (
    Change,
    Decision,
    NamespaceRow,
    Storage,
    Stored,
    Transaction,
)
from zero_mem.storage.codec import JSON, TEXT, decode_body, decode_fields, encode_fields
from zero_mem.storage.times import from_micros
from zero_mem.types import Body, Path

BATCH: Final = 500
"""Journal entries that are applied at once."""

CURSORS: Final = "zero-mem:sync:from"
"""The scope that says what was taken from other stores; after a cut they are asked again."""

_NO_SCOPE: Final = "zero-mem:none"


def replay(
    storage: Storage,
    archives: Sequence[Iterable[tuple[str, Any]]],
    *,
    until: int | None = None,
    check: Callable[[Transaction], None],
) -> None:
    """Write archives, each after what it continues, into a store: all of them or nothing.

    Args:
        storage: A store without memories, unguarded; of sealed archives, the store beneath.
        archives: The lines of a whole archive, and of those that continue it.
        until: Leave out what was recorded later than this, in microseconds.
        check: Called before the transaction commits.

    Raises:
        Conflict: An archive does not continue the one before.
    """
    cut = _Cut()
    with storage.transaction(write=True) as transaction:
        for number, lines in enumerate(archives, start=1):
            # What is not journalled stands whole in each archive.
            skipped = () if number == len(archives) else ("decision", "hold")
            _take(transaction, lines, until, cut, skipped)
        check(transaction)
        for path, purges in cut.purges.items():
            _say_again(transaction, path, purges)


class _Cut:
    """What a moment leaves out: of which namespaces entries, and the purges among them."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()
        self.purges: dict[Path, dict[str, list[Any]]] = {}

    def leave_out(self, path: Path, entry: list[Any]) -> None:
        self.paths.add(path)
        if entry[4] == "purge":
            self.purges.setdefault(path, {})[entry[7]] = entry


def _say_again(transaction: Transaction, path: Path, purges: Mapping[str, list[Any]]) -> None:
    """Journal the purges of records that are erased here, though they came after the moment.

    What they erased can't be brought back, and only the journal tells other stores of it.
    """
    row = transaction.create_namespace(path)
    erased = [
        stored
        for stored in transaction.by_ids(row, purges.keys()).values()
        if stored.ended_by == "purge"
    ]
    changes = [_purge(row, stored, purges[stored.record.memory_id]) for stored in erased]
    if changes:
        transaction.apply(row, changes)
        transaction.erase(row, [change.after for change in changes], nameless=_NO_SCOPE)
        transaction.store_namespace(row)


def _purge(row: NamespaceRow, before: Stored, entry: list[Any]) -> Change:
    row.sequence += 1
    row.last_at = at = max(row.last_at, entry[2])
    record = replace(
        before.record, version=before.record.version + 1, recorded_at=from_micros(at), content=""
    )
    after = before._replace(record=record, sequence=row.sequence, parent=before.digest)
    return Change(
        operation="purge",
        group=row.sequence,
        at=at,
        actor=entry[3],
        reason=entry[5],
        before=before,
        after=after,
        body_changed=True,
        fields=encode_fields(after),
    )


def _take(
    transaction: Transaction,
    lines: Iterable[tuple[str, Any]],
    until: int | None,
    cut: _Cut,
    skipped: Collection[str],
) -> None:
    """Write the lines of one archive, a namespace after the other."""
    space: _Space | None = None
    for sort, value in lines:
        if sort == "namespace":
            if space is not None:
                space.end()
            space = _Space(transaction, value, until, cut)
        elif space is not None and sort not in skipped:
            getattr(space, sort)(value)
    if space is not None:
        space.end()


class _Space:
    """Writes one namespace."""

    def __init__(
        self,
        transaction: Transaction,
        value: Mapping[str, Any],
        until: int | None,
        cut: _Cut,
    ) -> None:
        self._transaction = transaction
        self._value = value
        self._until = until
        self._cut = cut
        self._row = row = transaction.create_namespace(tuple(value["path"]))
        if row.sequence != value["after"] and row.path not in cut.paths:
            raise Conflict(
                f"namespace {'/'.join(row.path)} ends at entry {row.sequence} and the archive "
                f"goes on after {value['after']}; restore the backup that it continues"
            )
        # Ranges of rows go by this counter.
        row.positions = max(row.positions, value["positions"])
        self._records: dict[str, dict[str, Any]] = {}
        self._entries: list[list[Any]] = []
        self._last: dict[str, Stored] = {}
        self._purged: set[str] = set()
        self._decisions_begun = False

    def record(self, value: dict[str, Any]) -> None:
        self._records[value["id"]] = value

    def entry(self, value: list[Any]) -> None:
        if self._until is not None and value[2] > self._until:
            self._cut.leave_out(self._row.path, value)
            return
        self._entries.append(value)
        if len(self._entries) >= BATCH:
            self._apply()

    def decision(self, value: list[Any]) -> None:
        self._end_journal()
        scope, key, text, uid = value
        if self._until is not None and (scope == CURSORS or not self._is_there(uid)):
            return
        decision = Decision(scope=scope, key=key, value=text, uid=uid)
        self._transaction.decide(self._row, decision)

    def hold(self, value: list[Any]) -> None:
        self._end_journal()
        owner, uid = value
        if self._is_there(uid):
            self._transaction.hold(self._row, owner, uid)

    def end(self) -> None:
        self._end_journal()
        row, value = self._row, self._value
        row.next_id = max(row.next_id, value["next_id"])
        row.highest_id = max(row.highest_id, value["highest_id"])
        row.settings = value["settings"]
        self._transaction.store_namespace(row)

    def _is_there(self, uid: str | None) -> bool:
        return self._until is None or uid is None or uid in self._uids

    def _end_journal(self) -> None:
        """Write what is left of the journal, erase what was purged; what hosts keep follows."""
        if self._decisions_begun:
            return
        self._decisions_begun = True
        self._apply()
        gone = self._transaction.by_ids(self._row, self._purged)
        if gone:
            self._transaction.erase(self._row, list(gone.values()), nameless=_NO_SCOPE)
        every = self._transaction.scan(self._row, {}) if self._until is not None else ()
        self._uids = {stored.record.uid for stored in every}

    def _apply(self) -> None:
        entries, self._entries = self._entries, []
        if not entries:
            return
        names = {entry[7] for entry in entries}
        self._last = self._transaction.by_ids(self._row, names)
        changes = [self._change(entry) for entry in entries]
        self._row.sequence, self._row.last_at = changes[-1].after.sequence, changes[-1].at
        self._transaction.apply(self._row, changes)

    def _change(self, entry: list[Any]) -> Change:
        sequence, group, at, actor, operation, reason, origin, memory_id = entry[:8]
        version, fields, body = entry[8:]
        known, before = self._records[memory_id], self._last.get(memory_id)
        if fields is None:
            self._purged.add(memory_id)
            fields = json.dumps({**json.loads(known["tombstone"]), "version": version})
            body = [TEXT, ""]
        is_last = sequence == known["last"]
        after = decode_fields(
            fields,
            namespace=self._row.path,
            content=_body(body, before),
            accessed_at=known["accessed"] if is_last else at,
            access_count=known["count"] if is_last else 0,
            position=self._row.position(known["place"]),
            sequence=sequence,
        )
        self._last[memory_id] = after
        return Change(
            operation=operation,
            group=group,
            at=at,
            actor=actor,
            reason=reason,
            before=before,
            after=after,
            body_changed=body is not None,
            fields=fields,
            terms=known.get("terms"),
            origin=origin,
        )


def _body(line: list[str] | None, before: Stored | None) -> Body:
    if line is None:
        assert before is not None
        return before.record.content
    kind, text = line
    if kind in (TEXT, JSON):
        return decode_body(kind, text.encode("utf-8", "surrogatepass"))
    return decode_body(kind, base64.b64decode(text))
