"""The figures of a pool of connections, each under one name in every form that metrics take."""

from __future__ import annotations

from typing import Final, NamedTuple

from zero_mem.storage.base import PoolState


class PoolFigure(NamedTuple):
    """One figure: its name, what it says, and whether it only grows."""

    name: str
    field: str
    text: str
    counts: bool = False

    def of(self, state: PoolState) -> float:
        """Read the figure."""
        return float(getattr(state, self.field))


POOL_FIGURES: Final = (
    PoolFigure("limit", "most", "Most connections that the store opens."),
    PoolFigure("connections", "size", "Connections that are open."),
    PoolFigure("in_use", "in_use", "Connections inside a transaction."),
    PoolFigure("waiting", "waiting", "Threads that wait for a connection."),
    PoolFigure("requests", "requests", "Connections asked for.", True),
    PoolFigure("waits", "waits", "Requests that found no free connection.", True),
    PoolFigure("wait_seconds", "wait_seconds", "How long those waited.", True),
    PoolFigure("timeouts", "timeouts", "Requests that gave up.", True),
    PoolFigure("lost", "lost", "Connections found broken.", True),
)
