"""Backups by the clock while the server runs, and by hand."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from zero_mem.aio.threads import Threads
from zero_mem.backup import BackupReport, Schedule
from zero_mem.backup.schedule import made_at
from zero_mem.errors import Conflict, StoreUnavailable, ZeroMemError
from zero_mem.memory import Memory
from zero_mem.server.settings import Settings

LOG: Final = logging.getLogger("zero_mem.server.backups")
_KEPT: Final = 100
_PAUSE: Final = 300.0
"""Most seconds until it is looked again whether a backup is due, or one that failed is retried."""
_BY_HAND: Final = timedelta(days=36_500)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFailure:
    """A backup that was not made: when, and why."""

    at: datetime
    problem: str


class Backups:
    """Makes the backups of a schedule until it is cancelled, one at a time.

    Attributes:
        schedule: Where they go, how often they are made, and how many stay.
        reports: Of those made in this process, the last ones, the newest last.
        failures: Of those that failed, likewise.
    """

    def __init__(self, memory: Memory, threads: Threads, settings: Settings) -> None:
        every = settings.backup_every
        self.schedule = Schedule(
            folder=Path(settings.backup_folder),
            interval=timedelta(seconds=every) if every else _BY_HAND,
            keep=settings.backup_keep,
            portable=settings.backup_portable,
        )
        self.reports: deque[BackupReport] = deque(maxlen=_KEPT)
        self.failures: deque[BackupFailure] = deque(maxlen=_KEPT)
        self.every = every
        self._memory = memory
        self._threads = threads
        self._one = asyncio.Lock()
        self._stopping = threading.Event()

    @property
    def under_way(self) -> bool:
        """Whether a backup is being made now."""
        return self._one.locked()

    async def run(self) -> None:
        """Make each backup that is due, for ever; what failed is tried again."""
        # What can't be read now, or went meanwhile, is said by the first backup.
        with suppress(StoreUnavailable, FileNotFoundError):
            await self._threads.run(self._note_earlier)
        while self.every:
            await self.once()
            await asyncio.sleep(min(self.every, _PAUSE))

    async def once(self) -> None:
        """Make a backup if one is due, and log it, or why there is none."""
        try:
            async with self._one:
                await self._threads.run(lambda: self._made(self.schedule.run))
        except ZeroMemError as error:
            LOG.warning("the backup failed: %s: %s", type(error).__name__, error)

    async def make(self) -> BackupReport:
        """Make a backup now, due or not.

        Raises:
            Conflict: One is being made already.
            ZeroMemError: As `Schedule.make` does; it is among the failures too.
        """
        if self._one.locked():
            raise Conflict("a backup is being made already; wait for it")
        async with self._one:
            report = await self._threads.run(lambda: self._made(self.schedule.make))
        assert report is not None
        return report

    def stop(self) -> None:
        """End a backup that is under way; nothing of it stays."""
        self._stopping.set()

    def _made(self, make: Callable[..., BackupReport | None]) -> BackupReport | None:
        """Make a backup in one of the store's threads."""
        now = self._memory.now()
        try:
            self._memory.flush()
            report = make(self._memory.storage, now, step=self._go_on)
        except ZeroMemError as error:
            if not self._stopping.is_set():
                self._memory.metrics.backup_failed()
                problem = f"{type(error).__name__}: {error}"
                self.failures.append(BackupFailure(at=now, problem=problem))
            raise
        if report is not None:
            self._memory.metrics.backed_up(report.made_at.timestamp(), report.bytes)
            self.reports.append(report)
            LOG.info("%s: %s, %d bytes", report.path.name, report.form, report.bytes)
        return report

    def _go_on(self) -> None:
        if self._stopping.is_set():
            raise StoreUnavailable("the server stops; the backup was given up")

    def _note_earlier(self) -> None:
        """Let the metrics know of the last backup that an earlier process made."""
        there = self.schedule.backups()
        if there:
            size = there[-1].stat().st_size
            self._memory.metrics.backed_up(made_at(there[-1]).timestamp(), size, earlier=True)
