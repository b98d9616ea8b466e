"""Tasks and their leases, kept as decisions of the namespace."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from zero_mem.storage.base import Decision, NamespaceRow, Transaction
from zero_mem.storage.times import from_micros, to_micros

TASKS = "zero-mem:task"
"""The decision scope that maps an open task to the end of its lease."""

LEASE = timedelta(hours=24)
"""How long a task counts as open after its last sign of life."""


def open_task(
    transaction: Transaction, row: NamespaceRow, task: str, now: datetime, lease: timedelta
) -> None:
    """Open a task, or renew its lease."""
    value = json.dumps({"until": to_micros(now + lease), "lease": lease.total_seconds()})
    transaction.decide(row, Decision(scope=TASKS, key=task, value=value))


def renew_task(transaction: Transaction, row: NamespaceRow, task: str, now: datetime) -> None:
    """Renew the lease of a task that is open; others are left alone."""
    found = transaction.decision(row, TASKS, task)
    if found is not None and found.value is not None:
        lease = timedelta(seconds=json.loads(found.value)["lease"])
        open_task(transaction, row, task, now, lease)


def close_task(transaction: Transaction, row: NamespaceRow, task: str) -> None:
    """Forget a task's lease."""
    transaction.undecide(row, TASKS, task)


def leases(transaction: Transaction, row: NamespaceRow) -> dict[str, datetime]:
    """List the tasks that were opened and not closed, with the end of each one's lease."""
    found = transaction.decisions(row, TASKS)
    return {d.key: from_micros(json.loads(d.value)["until"]) for d in found if d.value}


def open_tasks(transaction: Transaction, row: NamespaceRow, now: datetime) -> set[str]:
    """Name the tasks whose lease has not run out."""
    return {task for task, until in leases(transaction, row).items() if until > now}
