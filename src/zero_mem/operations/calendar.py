"""What will end and when: by time, by retention, with a task, at a business event (`expire:*`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from zero_mem.operations.rules import retention_end
from zero_mem.operations.tasks import leases
from zero_mem.policy.limits import limits_for
from zero_mem.storage.base import JournalEntry, NamespaceRow, Transaction
from zero_mem.storage.times import from_micros
from zero_mem.types import MemoryRecord, Operation, Path

Cause: TypeAlias = Literal["time", "retention", "task"]

_ENDINGS: Final = frozenset({"expire", "archive", "delete"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One record that will end by itself, and why; `task` is the one whose lease runs out."""

    at: datetime
    cause: Cause
    namespace: Path
    memory_id: str
    kind: str
    key: str | None
    task: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    """What will end in a namespace.

    Attributes:
        endings: What ends up to the moment that was asked for, the earliest first; what is due
            already is the beginning of it.
        later: Records that will end by themselves after that moment.
        kept: Records that no time ends.
        events: How many records each business event would end.
    """

    endings: tuple[Ending, ...]
    later: int
    kept: int
    events: dict[str, int]


def upcoming(transaction: Transaction, row: NamespaceRow, *, until: datetime) -> Upcoming:
    """Tell what a sweep will end, as things stand now; nothing is written.

    Each use of a record moves its retention, and each sign of life a task's lease.

    Args:
        transaction: Reads the namespace.
        row: The namespace.
        until: The last moment to look at.
    """
    due, held = leases(transaction, row), transaction.held(row)
    endings: list[Ending] = []
    events: Counter[str] = Counter()
    kept = later = 0
    for stored in transaction.scan(row, {"state": ("active",)}):
        record = stored.record
        if record.state != "active":
            continue
        events.update(record.invalidated_by)
        ending = _ending(record, row, due, is_held=record.uid in held)
        if ending is None:
            kept += 1
        elif ending.at > until:
            later += 1
        else:
            endings.append(ending)
    return Upcoming(
        endings=tuple(sorted(endings, key=lambda one: (one.at, one.memory_id))),
        later=later,
        kept=kept,
        events=dict(events.most_common()),
    )


def _ending(
    record: MemoryRecord, row: NamespaceRow, due: dict[str, datetime], *, is_held: bool
) -> Ending | None:
    """Give the first of the times at which a record may end."""
    moments: list[tuple[datetime, Cause]] = []
    if record.expires_at is not None:
        moments.append((record.expires_at, "time"))
    lease = due.get(record.task) if record.task is not None else None
    if lease is not None and record.form == "working":
        moments.append((lease, "task"))
    retired = retention_end(record, limits_for(row.settings, record.form, record.kind))
    if retired is not None and not is_held:
        # A sweep leaves what an open task may need, and archives it once the lease has run out.
        moments.append((max(retired, lease) if lease is not None else retired, "retention"))
    if not moments:
        return None
    at, cause = min(moments, key=lambda moment: moment[0])
    return Ending(
        at=at,
        cause=cause,
        namespace=row.path,
        memory_id=record.memory_id,
        kind=record.kind,
        key=record.key,
        task=record.task if cause == "task" else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One record that was ended: how, why, when and by whom."""

    at: datetime
    namespace: Path
    memory_id: str
    operation: Operation
    reason: str
    actor: str
    sequence: int


def ended(transaction: Transaction, row: NamespaceRow, *, last: int = 1000) -> list[Ended]:
    """Read from the journal what sweeps, tasks and events have ended, the newest first.

    Args:
        transaction: Reads the namespace.
        row: The namespace.
        last: How many of its newest changes, of whatever kind, are looked at.
    """
    entries = transaction.journal(row, after=max(0, row.sequence - last))
    found = [_ended(entry) for entry in entries if _is_ending(entry)]
    return found[::-1]


def _is_ending(entry: JournalEntry) -> bool:
    # What somebody archived or deleted by hand has no reason.
    return entry.operation in _ENDINGS and bool(entry.reason)


def _ended(entry: JournalEntry) -> Ended:
    return Ended(
        at=from_micros(entry.at),
        namespace=entry.namespace,
        memory_id=entry.memory_id,
        operation=entry.operation,
        reason=entry.reason,
        actor=entry.actor,
        sequence=entry.sequence,
    )
