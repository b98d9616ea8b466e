"""Counters of one process; reading them is left to Prometheus, OpenTelemetry or a log."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Final, Literal, TypeAlias, get_args

from zero_mem.errors import ZeroMemError
from zero_mem.storage.base import PoolState

Timed: TypeAlias = Literal["write", "read", "recall"]

BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the classes of durations, in seconds; one more class is above them all."""


@dataclass(slots=True)
class Durations:
    """How long calls took: a count for each class of `BOUNDS`, and their sum in seconds."""

    classes: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one call."""
        self.classes[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        """The number of calls."""
        return sum(self.classes)

    def copy(self) -> Durations:
        """Give the durations as they are now."""
        return Durations(list(self.classes), self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backed:
    """Backups: made and failed in this process; of the last, when, in Unix time, and its bytes."""

    made: int = 0
    failed: int = 0
    last_at: float = 0.0
    last_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What a server has under way: requests in or before the store's threads, and open feeds."""

    requests: int
    feeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The counters at one moment.

    Attributes:
        operations: Changes written, by operation (save, update, expire …).
        errors: Refused or failed calls, by the name of the error.
        durations: By what was timed.
        recalled: Items that recalls gave; `recall_tokens` counts their text.
        queued: Accepted writes that are still to be applied; `queue_failures` could not be.
        sweeps: Sweeps run; what they ended is among the operations.
        calls: Calls of models that a ledger took in; `tokens` has what they took, by column.
        pools: The pools of connections to a server, by node; none where the store has no server.
        backups: Of those made by the clock, how many were verified, and the last one.
        serving: What a server's process has under way; None where there is no server.
    """

    operations: dict[str, int]
    errors: dict[str, int]
    durations: dict[str, Durations]
    recalled: int
    recall_tokens: int
    queued: int
    queue_failures: int
    sweeps: int
    calls: int
    tokens: dict[str, int]
    pools: Mapping[str, PoolState]
    backups: Backed
    serving: Serving | None


class Metrics:
    """Counts what one `Memory` does; safe to share between threads.

    `serving` is a server's to set: it tells what the server has under way.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._durations = {what: Durations() for what in get_args(Timed)}
        self._recalled = 0
        self._recall_tokens = 0
        self._sweeps = 0
        self._calls = 0
        self._tokens: Counter[str] = Counter()
        self._backups = Backed()
        self.serving: Callable[[], Serving] | None = None

    def wrote(self, operations: Iterable[str], begun: float) -> None:
        """Count the changes of a write that began at a reading of `perf_counter`."""
        with self._lock:
            for operation in operations:  # faster than Counter.update for one
                self._operations[operation] += 1
            self._timed("write", begun)

    def read(self, begun: float) -> None:
        """Count a read."""
        with self._lock:
            self._timed("read", begun)

    def recalled(self, items: int, tokens: int, begun: float) -> None:
        """Count a recall and what it gave."""
        with self._lock:
            self._recalled += items
            self._recall_tokens += tokens
            self._timed("recall", begun)

    def failed(self, error: ZeroMemError) -> None:
        """Count a call that was refused or failed."""
        with self._lock:
            self._errors[type(error).__name__] += 1

    def _timed(self, what: Timed, begun: float) -> None:
        self._durations[what].add(perf_counter() - begun)

    def swept(self) -> None:
        """Count a sweep."""
        with self._lock:
            self._sweeps += 1

    def called(self, tokens: Mapping[str, int]) -> None:
        """Count a call of a model that a ledger took in, and its tokens by column."""
        with self._lock:
            self._calls += 1
            self._tokens.update(tokens)

    def backed_up(self, at: float, size: int, *, earlier: bool = False) -> None:
        """Count a backup that was verified, or note one that was there before this process."""
        with self._lock:
            made = self._backups.made + (not earlier)
            self._backups = replace(self._backups, made=made, last_at=at, last_bytes=size)

    def backup_failed(self) -> None:
        """Count a backup that could not be made, or was not sound."""
        with self._lock:
            self._backups = replace(self._backups, failed=self._backups.failed + 1)

    def snapshot(
        self,
        *,
        queued: int = 0,
        queue_failures: int = 0,
        pools: Mapping[str, PoolState] | None = None,
    ) -> Snapshot:
        """Read every counter at once."""
        with self._lock:
            return Snapshot(
                operations=dict(self._operations),
                errors=dict(self._errors),
                durations={what: each.copy() for what, each in self._durations.items()},
                recalled=self._recalled,
                recall_tokens=self._recall_tokens,
                queued=queued,
                queue_failures=queue_failures,
                sweeps=self._sweeps,
                calls=self._calls,
                tokens=dict(self._tokens),
                pools=pools or {},
                backups=self._backups,
                serving=None if self.serving is None else self.serving(),
            )
