"""Forgetting: tasks, events, sweeps, and the merging of near-equal records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from zero_mem.errors import InvalidInput
from zero_mem.operations import sweep
from zero_mem.operations.duplicates import DuplicateGroup, group_duplicates
from zero_mem.operations.plan import Plan
from zero_mem.operations.requests import check_expiry, check_metadata, check_name
from zero_mem.operations.sweep import Ending, SweepReport, Swept, check_ending
from zero_mem.operations.tasks import LEASE, open_task, renew_task
from zero_mem.space.view import View
from zero_mem.types import UNSET


class _DryRun(Exception):
    """Rolls a sweep's transaction back; nothing of it was written."""


class Forgetting(View):
    """What ends records in numbers, each with a dry run."""

    def start_task(self, task: str, *, lease: float | timedelta = LEASE) -> None:
        """Open a task: its memories are not evicted until it ends or its lease runs out.

        Args:
            task: The task's name.
            lease: Seconds or a timedelta; every write that names the task renews it.
        """
        name, duration = check_name(task, "task"), check_expiry(lease, UNSET).lifetime
        if duration is None:
            raise InvalidInput("lease is a duration; a task without an end needs no start_task")
        with self._write_after_queue() as plan:
            open_task(plan.transaction, plan.row, plan.redactor.name(name), plan.now, duration)

    def renew_task(self, task: str) -> None:
        """Let the lease of an open task begin anew; a task that is not open is left alone."""
        name = check_name(task, "task")
        with self._write_after_queue() as plan:
            renew_task(plan.transaction, plan.row, plan.redactor.name(name), plan.now)

    def end_task(
        self, task: str, *, action: Ending = "expire", dry_run: bool = False
    ) -> SweepReport:
        """End a task and its working memories.

        Args:
            task: The task's name.
            action: "expire" or "delete" hides them, "archive" keeps them readable by id.
            dry_run: Only say what would happen.
        """
        name = check_name(task, "task")
        ending = check_ending(action)
        return self._sweep(
            lambda plan: sweep.end_task(plan, plan.redactor.name(name), ending), dry_run
        )

    def raise_event(
        self,
        event: str,
        *,
        match: Mapping[str, Any] | None = None,
        action: Ending = "expire",
        dry_run: bool = False,
    ) -> SweepReport:
        """Tell that a business event has happened, and end the memories it invalidates.

        Args:
            event: The name given in `invalidated_by`.
            match: Metadata values that a record must have, all of them.
            action: As in `end_task`.
            dry_run: Only say what would happen.
        """
        name, ending = check_name(event, "event"), check_ending(action)
        wanted = check_metadata(match or {})

        def run(plan: Plan) -> list[Swept]:
            redactor = plan.redactor
            values = redactor.asked_where(wanted, "metadata")
            return sweep.raise_event(plan, redactor.name(name), values, ending)

        return self._sweep(run, dry_run)

    def expire(self, *, action: Ending = "expire", dry_run: bool = False) -> SweepReport:
        """Sweep this namespace: what is past its time, its task's lease or its retention."""
        ending = check_ending(action)
        tasks: list[str] = []

        def run(plan: Plan) -> list[Swept]:
            swept, closed = sweep.sweep(plan, ending)
            tasks.extend(closed)
            return swept

        report = self._sweep(run, dry_run)
        return SweepReport(swept=report.swept, tasks=tuple(tasks), dry_run=dry_run)

    def _sweep(self, run: Callable[[Plan], list[Swept]], dry_run: bool) -> SweepReport:
        self._memory.flush()
        try:
            with self._writing() as plan:
                swept = run(plan)
                if dry_run:
                    raise _DryRun
            self._memory.metrics.swept()
        except _DryRun:
            pass
        return SweepReport(swept=tuple(swept), dry_run=dry_run)

    def duplicates(self, kind: str, *, merge: bool = False) -> list[DuplicateGroup]:
        """Group the near-equal live records of a kind that have no key, largest group first.

        Args:
            kind: The kind to look at.
            merge: Keep the newest record of each group and archive the others.
        """
        check_name(kind, "kind")
        with self._write_after_queue() as plan:
            scanned = plan.transaction.scan(plan.row, {"kind": (kind,), "state": ("active",)})
            of_kind = (s.record for s in scanned if s.record.kind == kind and s.record.key is None)
            live = (r for r in of_kind if r.state == "active" and not r.expired(plan.now))
            groups = group_duplicates(live)
            if merge:
                for identity in (key for group in groups for key in group.others):
                    plan.archive(identity, if_version=None, reason="duplicate")
        return groups
