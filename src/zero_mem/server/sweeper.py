"""The sweeper: ends what is due in the background, and says what went and why."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from zero_mem.errors import ZeroMemError
from zero_mem.operations.sweep import SweepReport

LOG: Final = logging.getLogger("zero_mem.server.sweeper")
_KEPT: Final = 100


class Sweeper:
    """Sweeps again and again until it is cancelled.

    Args:
        sweep: Runs one sweep of the whole store.
        every: Seconds between the end of one and the beginning of the next.
    """

    def __init__(self, sweep: Callable[[], Awaitable[SweepReport]], *, every: float) -> None:
        self._sweep = sweep
        self._every = every
        self.reports: deque[SweepReport] = deque(maxlen=_KEPT)

    async def run(self) -> None:
        """Sweep for ever; a store that can't be used now is tried again next time."""
        while True:
            await self.once()
            await asyncio.sleep(self._every)

    async def once(self) -> None:
        """Sweep, and log each record that was ended: where, how and why, no body."""
        try:
            report = await self._sweep()
        except ZeroMemError as error:
            LOG.warning("the sweep failed: %s: %s", type(error).__name__, error)
            return
        if report.count or report.tasks:
            self.reports.append(report)
        for each in report.swept:
            place = "/".join(each.namespace)
            LOG.info("%s [memo:%s] %s: %s", place, each.memory_id, each.operation, each.reason)
        for task in report.tasks:
            LOG.info("task %s ended with its lease", task)
