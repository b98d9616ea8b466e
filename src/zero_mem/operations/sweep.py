"""Forgetting: by time, with a task, by a business event (`expire:*`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from zero_mem.errors import InvalidInput
from zero_mem.operations.plan import Plan
from zero_mem.operations.requests import canonical
from zero_mem.operations.rules import retention_end
from zero_mem.operations.tasks import close_task, leases, open_tasks
from zero_mem.storage.base import EndedBy, Stored
from zero_mem.storage.times import to_micros
from zero_mem.types import MemoryRecord, Path

Ending: TypeAlias = Literal["expire", "archive", "delete"]
"""What happens to a record that is to be forgotten: expire and delete hide it from every
read (a handle then says "expired"), archive keeps it readable by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """One record that a sweep has ended, or would end."""

    namespace: Path
    memory_id: str
    operation: Ending
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """What a sweep did, or in a dry run would do; `tasks` are those whose lease ran out."""

    swept: tuple[Swept, ...]
    tasks: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def count(self) -> int:
        """The number of records ended."""
        return len(self.swept)


def check_ending(action: object) -> Ending:
    """Accept "expire", "archive" or "delete"."""
    for known in get_args(Ending):
        if action == known:
            return known  # type: ignore[no-any-return]
    raise InvalidInput(f"action is one of {', '.join(get_args(Ending))}, not {action!r}")


def sweep(plan: Plan, action: Ending) -> tuple[list[Swept], list[str]]:
    """End what is past its time, its task's lease or its retention.

    Returns:
        What was ended in order, and the tasks that were closed.
    """
    overdue = plan.transaction.scan(plan.row, {}, expires_by=to_micros(plan.now))
    swept = _end(plan, overdue, action, "expire", "expired")
    ended = [
        task for task, until in leases(plan.transaction, plan.row).items() if until <= plan.now
    ]
    for task in ended:
        swept += end_task(plan, task, "expire")
    swept += _retire(plan)
    return swept, ended


def _retire(plan: Plan) -> list[Swept]:
    """Archive what nobody has used for its retention, nor holds (`limits:defaults`)."""
    held = plan.transaction.held(plan.row)
    busy = open_tasks(plan.transaction, plan.row, plan.now)
    active = plan.transaction.scan(plan.row, {"state": ("active",)})
    unused = [
        stored
        for stored in active
        if _is_unused(plan, stored.record)
        and stored.record.uid not in held
        and stored.record.task not in busy
    ]
    return _end(plan, unused, "archive", "", "retention")


def _is_unused(plan: Plan, record: MemoryRecord) -> bool:
    end = retention_end(record, plan.limits(record))
    return end is not None and end <= plan.now


def end_task(plan: Plan, task: str, action: Ending) -> list[Swept]:
    """End a task's working memories and close its lease."""
    close_task(plan.transaction, plan.row, task)
    found = plan.transaction.scan(plan.row, {"task": (task,), "state": ("active",)})
    working = (s for s in found if s.record.task == task and s.record.form == "working")
    return _end(plan, working, action, "task", f"end of task {task}")


def raise_event(plan: Plan, event: str, match: Mapping[str, Any], action: Ending) -> list[Swept]:
    """End the memories that an event invalidates and whose metadata match it."""
    found = plan.transaction.scan(plan.row, {"state": ("active",)})
    hit = (s for s in found if event in s.record.invalidated_by and _matches(s.record, match))
    return _end(plan, hit, action, "event", f"event {event}")


def _matches(record: MemoryRecord, match: Mapping[str, Any]) -> bool:
    metadata = record.metadata
    return all(
        name in metadata and canonical(metadata[name]) == canonical(value)
        for name, value in match.items()
    )


def _end(
    plan: Plan, found: Iterable[Stored], action: Ending, ended_by: EndedBy, reason: str
) -> list[Swept]:
    swept = []
    # Listed first: a store may not change under its own scan.
    for stored in list(found):
        current = plan.stored(stored.record.memory_id)
        if current is None or current.record.state != "active":
            continue
        if action == "archive":
            plan.end(current, "archive", reason=reason)
        else:
            how: EndedBy = "delete" if action == "delete" else ended_by
            plan.end(current, action, ended_by=how, reason=reason)
        memory_id = current.record.memory_id
        swept.append(
            Swept(namespace=plan.row.path, memory_id=memory_id, operation=action, reason=reason)
        )
    return swept
