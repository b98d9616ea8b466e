"""Reading the journal: a record's history, the past as it was, and the way back to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from zero_mem.errors import Conflict, InvalidInput, NotAllowed, NotFound
from zero_mem.operations.plan import Plan
from zero_mem.operations.rules import missing
from zero_mem.storage.base import JournalEntry, NamespaceRow, Transaction
from zero_mem.storage.times import from_micros, to_micros
from zero_mem.types import Body, MemoryReceipt, MemoryRecord, Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One change of a record: who, when, which operation, and what stood before it.

    `sequence` is the position in the namespace's journal; `operation_id` is shared by all
    changes of one call and is what `rollback(operation=…)` takes. `record` is the record
    after the change, None once purged; `before` the body before it.
    """

    sequence: int
    operation_id: int
    at: datetime
    actor: str
    operation: Operation
    reason: str
    memory_id: str
    version: int
    before_version: int
    before: Body | None
    record: MemoryRecord | None


def history_entry(entry: JournalEntry) -> HistoryEntry:
    """Give a journal entry as callers see it."""
    return HistoryEntry(
        sequence=entry.sequence,
        operation_id=entry.group,
        at=from_micros(entry.at),
        actor=entry.actor,
        operation=entry.operation,
        reason=entry.reason,
        memory_id=entry.memory_id,
        version=entry.version,
        before_version=entry.before_version,
        before=entry.before,
        record=entry.record.record if entry.record else None,
    )


def latest(entries: Iterable[JournalEntry]) -> dict[str, JournalEntry]:
    """Keep the last entry of each record, in order of first appearance."""
    found: dict[str, JournalEntry] = {}
    for entry in entries:
        found[entry.memory_id] = entry
    return found


def records_at(
    transaction: Transaction, row: NamespaceRow, moment: datetime
) -> dict[str, MemoryRecord]:
    """Give every record of a namespace as it was recorded at a moment (`history:as-of`).

    A version that has been purged since is left out.
    """
    entries = transaction.journal(row, until_at=to_micros(moment))
    return {
        memory_id: entry.record.record
        for memory_id, entry in latest(entries).items()
        if entry.record is not None
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackRequest:
    """What to bring back (a memory, a task, an operation, or the namespace) and to when."""

    memory_id: str | None = None
    task: str | None = None
    operation: int | None = None
    to_version: int | None = None
    to_moment: datetime | None = None


def check_rollback(request: RollbackRequest) -> None:
    """Refuse a rollback that does not say clearly what goes back to when.

    Raises:
        InvalidInput: Saying which arguments go together.
    """
    for name, number in (("operation", request.operation), ("to_version", request.to_version)):
        if number is not None and type(number) is not int:
            raise InvalidInput(f"{name} is a whole number, not {type(number).__name__}")
    named = [request.memory_id, request.task, request.operation]
    if sum(value is not None for value in named) > 1:
        raise InvalidInput("roll back one of memory_id, task, operation; not several")
    if request.operation is not None:
        if request.to_version is not None or request.to_moment is not None:
            raise InvalidInput("operation= needs no target: it goes back to before it")
        return
    if request.to_version is not None and request.memory_id is None:
        raise InvalidInput("to_version= goes with a memory id")
    if (request.to_version is None) == (request.to_moment is None):
        raise InvalidInput("say where to roll back to: to_version= or to_moment=")


def roll_back(plan: Plan, request: RollbackRequest) -> list[MemoryReceipt]:
    """Bring records back as a new change each (`history:rollback`).

    Raises:
        NotFound: The record, version or operation is not in the journal.
        NotAllowed: What to go back to has been purged.
        Conflict: A record was changed after the operation that is to be undone.
    """
    if request.operation is not None:
        return _undo(plan, request.operation)
    entries = list(plan.transaction.journal(plan.row, memory_id=request.memory_id))
    if request.memory_id is not None:
        if not entries:
            raise NotFound(missing(request.memory_id, None))
        _refuse_purged(plan, request.memory_id)
    if request.to_version is not None:
        entry = _version(entries, request.to_version)
        return [_to(plan, entry.memory_id, entry, f"to version {request.to_version}")]
    assert request.to_moment is not None
    return _to_moment(plan, entries, request.to_moment, request.task)


def _to_moment(
    plan: Plan, entries: list[JournalEntry], moment: datetime, task: str | None
) -> list[MemoryReceipt]:
    limit = to_micros(moment)
    targets = latest(entry for entry in entries if entry.at <= limit)
    changed = {entry.memory_id: entry for entry in entries if entry.at > limit}
    if task is not None:
        of_task = {e.memory_id for e in entries if e.record and e.record.record.task == task}
        changed = {key: entry for key, entry in changed.items() if key in of_task}
    plan.prefetch(changed)
    reason = f"to {moment.isoformat()}"
    # What must not exist any more goes first, so that its key is free for what comes back.
    order = sorted(changed, key=lambda key: _is_active(targets.get(key)))
    return [_to(plan, key, targets.get(key), reason) for key in order if not _purged(plan, key)]


def _is_active(entry: JournalEntry | None) -> bool:
    return entry is not None and entry.record is not None and entry.record.record.state == "active"


def _purged(plan: Plan, memory_id: str) -> bool:
    stored = plan.stored(memory_id)
    return stored is not None and stored.ended_by == "purge"


def _refuse_purged(plan: Plan, memory_id: str) -> None:
    if _purged(plan, memory_id):
        raise NotAllowed(f"memory {memory_id} was purged; nothing of it can come back")


def _to(plan: Plan, memory_id: str, entry: JournalEntry | None, reason: str) -> MemoryReceipt:
    current = plan.stored(memory_id)
    assert current is not None
    _refuse_purged(plan, memory_id)
    target = None if entry is None else entry.record
    return plan.roll_back(current, target, reason)


def _version(entries: list[JournalEntry], version: int) -> JournalEntry:
    for entry in reversed(entries):
        if entry.version == version:
            return entry
    known = sorted({entry.version for entry in entries})
    raise NotFound(f"there is no version {version}; there are {known[0]} to {known[-1]}")


def _undo(plan: Plan, operation: int) -> list[MemoryReceipt]:
    known = 0 < operation <= plan.row.sequence
    undone = list(plan.transaction.journal(plan.row, group=operation)) if known else []
    if not undone:
        raise NotFound(f"there is no operation {operation} in this namespace's journal")
    firsts: dict[str, JournalEntry] = {}
    for entry in undone:
        firsts.setdefault(entry.memory_id, entry)
    _check_unchanged(plan, latest(undone))
    receipts = []
    for memory_id, first in firsts.items():
        entries = list(plan.transaction.journal(plan.row, memory_id=memory_id))
        before = [entry for entry in entries if entry.sequence < first.sequence]
        target = before[-1] if before else None
        receipts.append(_to(plan, memory_id, target, f"undo of {operation}"))
    return receipts


def _check_unchanged(plan: Plan, lasts: Mapping[str, JournalEntry]) -> None:
    for memory_id, last in lasts.items():
        current = plan.stored(memory_id)
        if current is not None and current.record.version != last.version:
            raise Conflict(
                f"memory {memory_id} is at version {current.record.version}; the operation "
                f"left it at {last.version}. Roll that memory back by version instead"
            )
