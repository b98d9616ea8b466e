"""What a namespace keeps for the exchange of its journal, as decisions of the store's own.

| scope | key | value |
|---|---|---|
| `zero-mem:sync:from` | another store's origin | the last sequence that was taken from it |
| `zero-mem:sync:of:UID` | a sequence of this journal | what the version taken there rests on |
| `zero-mem:sync:ids` | a uid | its id here, and the one it has where it was made |
| `zero-mem:sync:owed` | a uid | its id at home: a purge that the right was missing for |
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from zero_mem.storage.base import Decision, Lineage, NamespaceRow, Stored, Transaction
from zero_mem.storage.times import micros
from zero_mem.sync.causality import Cause, Stamp, cause_json, follow

SCOPE: Final = "zero-mem:sync"
CURSORS: Final = f"{SCOPE}:from"
IDS: Final = f"{SCOPE}:ids"
OWED: Final = f"{SCOPE}:owed"


class Mark(NamedTuple):
    """What a journal entry that came from another store rests on, and who sent it."""

    sequence: int
    cause: Cause
    sender: str


class Naming(NamedTuple):
    """The id of a record that could not keep the one it has at `home`, where it was made."""

    memory_id: str
    home: str


class SyncState:
    """The exchange's own notes on one namespace, read and kept in one transaction."""

    def __init__(
        self, transaction: Transaction, row: NamespaceRow, origin: str, lineage: Lineage = ()
    ) -> None:
        self._transaction = transaction
        self._row = row
        self._origin = origin
        self._lineage = lineage
        self._marks: dict[str, list[Mark]] = {}
        # A restore to a moment forgets the cursors, and keeps the marks.
        self._never_received = not lineage and not transaction.decisions(row, CURSORS)
        self._names: dict[str, Naming | None] = {}

    def cursor(self, sender: str) -> int:
        """Tell up to which sequence of a store its changes were taken."""
        found = self._transaction.decision(self._row, CURSORS, sender)
        return int(found.value) if found is not None and found.value else 0

    def advance(self, sender: str, sequence: int) -> None:
        """Keep how far the changes of a store were taken."""
        self._keep(CURSORS, sender, str(sequence))

    def of(self, stored: Stored) -> Cause:
        """Say what the current version of a record rests on."""
        return self.at(stored, stored.sequence)

    def at(self, stored: Stored, sequence: int) -> Cause:
        """Say what the version of a record that was journalled at a sequence rests on."""
        record = stored.record
        mark = self.mark(record.uid, sequence)
        if mark is not None and mark.sequence == sequence:
            return mark.cause
        return follow(
            mark.cause if mark else None,
            (self._writer(sequence), sequence),
            version=record.version,
            recorded=micros(record.recorded_at),
            lives=[(origin, last) for origin, last in self._lineage if last < sequence],
        )

    def mark(self, uid: str, sequence: int) -> Mark | None:
        """Give the last mark of a record at or before a sequence."""
        return next((m for m in reversed(self._all(uid)) if m.sequence <= sequence), None)

    def put(self, uid: str, mark: Mark) -> None:
        """Keep what an entry that was just journalled rests on."""
        self._all(uid).append(mark)
        self._never_received = False
        fields = [cause_json(mark.cause), mark.sender, self._origin]
        value = json.dumps(fields, separators=(",", ":"))
        self._keep(f"{SCOPE}:of:{uid}", str(mark.sequence), value)

    def rename(self, uid: str, naming: Naming) -> None:
        """Keep under which id a record goes here."""
        self._names[uid] = naming
        self._keep(IDS, uid, json.dumps(naming))

    def home(self, uid: str, memory_id: str) -> str:
        """Give the id that a record has where it was made."""
        naming = self.naming(uid)
        return naming.home if naming else memory_id

    def naming(self, uid: str) -> Naming | None:
        """Give the ids of a record that goes under another one here."""
        if uid not in self._names:
            found = self._transaction.decision(self._row, IDS, uid)
            value = found.value if found is not None else None
            self._names[uid] = Naming(*json.loads(value)) if value else None
        return self._names[uid]

    def owed(self) -> dict[str, str]:
        """Give the records whose purge is still to be done here, by uid their id at home."""
        found = self._transaction.decisions(self._row, OWED)
        return {each.key: each.value or "" for each in found}

    def owe(self, uid: str, home: str) -> None:
        """Note that a record is to be purged by somebody with the right."""
        self._keep(OWED, uid, home)

    def paid(self, uid: str) -> None:
        """Note that it was purged."""
        self._transaction.undecide(self._row, OWED, uid)

    def _writer(self, sequence: int) -> str:
        """Name the origin under which an entry was journalled: this one, or an earlier one.

        Numbers after the point of a restore are used again, so a mark is for one origin.
        """
        return next((o for o, last in self._lineage if sequence <= last), self._origin)

    def _all(self, uid: str) -> list[Mark]:
        if uid not in self._marks:
            scope = f"{SCOPE}:of:{uid}"
            found = [] if self._never_received else self._transaction.decisions(self._row, scope)
            marks = [_mark(each) for each in found]
            self._marks[uid] = sorted(m for m, by in marks if by == self._writer(m.sequence))
        return self._marks[uid]

    def _keep(self, scope: str, key: str, value: str) -> None:
        self._transaction.decide(self._row, Decision(scope=scope, key=key, value=value))


def _mark(decision: Decision) -> tuple[Mark, str]:
    """Read a mark, and under which origin it was made."""
    cause, sender, origin = json.loads(decision.value or "")
    return Mark(int(decision.key), cause_from(cause), str(sender)), str(origin)


def cause_from(value: dict[str, Any]) -> Cause:
    """Read a cause that `cause_json` wrote."""
    return Cause(
        seen={str(store): int(last) for store, last in value["seen"].items()},
        heads=frozenset((str(store), int(number)) for store, number in value["heads"]),
        base=int(value["base"]),
        stamp=Stamp(*value["stamp"]),
    )
