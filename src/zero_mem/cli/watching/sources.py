"""Where the figures come from: a server's own counters, or the journal of a store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from zero_mem.errors import NotAllowed
from zero_mem.memory import SWEPT, Health, Memory, Stats
from zero_mem.storage.opening import shown
from zero_mem.storage.times import to_micros
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.client import RemoteMemory
    from zero_mem.ledger.entries import Account
    from zero_mem.metrics import Snapshot

T = TypeVar("T")

MINUTE: Final = 60.0
_AT_ONCE: Final = 1000
_SHARE: Final = 0.05
"""Most of the time that the reading of one costly figure may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a source told at one moment.

    Attributes:
        at: Seconds on a clock that only goes forward.
        since: When the counting of `operations` began on it, None where that is not known.
        moment: The time there.
        health: Whether the store answers.
        stats: What it holds.
        account: What conversations cost, and what memory kept out of their prompts.
        operations: Changes since then, by operation.
        snapshot: The counters of a server's process, None of a store that is read directly.
        swept_at: When the store was last swept, where that is known.
    """

    at: float
    since: float | None
    moment: datetime
    health: Health
    stats: Stats
    account: Account
    operations: Mapping[str, int]
    snapshot: Snapshot | None = None
    swept_at: datetime | None = None


class Source(Protocol):
    """Something to watch."""

    name: str

    def read(self) -> Sample:
        """Read all figures.

        Raises:
            ZeroMemError: They can't be read now.
        """


@dataclass(slots=True)
class _Seldom(Generic[T]):
    """A figure that is costly to read, read as seldom as that asks for."""

    read: Callable[[], T]
    _kept: list[T] = field(default_factory=list)
    _next: float = 0.0

    def value(self) -> T:
        begun = time.monotonic()
        if not self._kept or begun >= self._next:
            self._kept = [self.read()]
            ended = time.monotonic()
            self._next = ended + (ended - begun) / _SHARE
        return self._kept[0]


class ServerSource:
    """A server, over HTTP.

    Args:
        memory: Its client.
    """

    def __init__(self, memory: RemoteMemory) -> None:
        self.name = shown(memory.connection.url)
        self._memory = memory
        self._stats = _Seldom(memory.stats)
        self._account = _Seldom(memory.ledger)

    def read(self) -> Sample:
        """Read the counters of the server's process."""
        snapshot = self._memory.snapshot()
        return Sample(
            at=time.monotonic(),
            since=None,
            moment=self._memory.now(),
            health=self._memory.health(),
            stats=self._stats.value(),
            account=self._account.value(),
            operations=snapshot.operations,
            snapshot=snapshot,
        )


class StoreSource:
    """A store that is read directly: its changes are counted in its journal, whoever wrote them.

    Counting begins a minute before the first reading.

    Args:
        memory: The store.
        url: How it was named.
    """

    def __init__(self, memory: Memory, url: str | None) -> None:
        self.name = shown(url)
        self._memory = memory
        self._stats = _Seldom(memory.stats)
        self._account = _Seldom(memory.ledger)
        self._from = memory.now() - timedelta(seconds=MINUTE)
        self._since = time.monotonic() - MINUTE
        self._seen: dict[Path, int] = {}
        self._is_first = True
        self._operations: Counter[str] = Counter()

    def read(self) -> Sample:
        """Read the journal from where the last reading ended."""
        self._count()
        return Sample(
            at=time.monotonic(),
            since=self._since,
            moment=self._memory.now(),
            health=self._memory.health(),
            stats=self._stats.value(),
            account=self._account.value(),
            operations=dict(self._operations),
            swept_at=self._swept_at(),
        )

    def _count(self) -> None:
        with self._memory.transaction() as transaction:
            rows: list[Any] = list(transaction.namespaces(()))
        for row in rows:
            seen = self._seen.get(row.path)
            if seen is None:
                seen = self._beginning(row) if self._is_first else 0
            self._seen[row.path] = self._follow(row.path, seen, row.sequence)
        self._is_first = False

    def _beginning(self, row: Any) -> int:
        """Find a position before the counted time: pages back, until one begins early enough."""
        seen: int = row.sequence
        if row.last_at < to_micros(self._from):
            return seen
        space = self._memory.namespace(*row.path)
        while seen > 0:
            seen = max(0, seen - _AT_ONCE)
            if space.changes(after=seen, limit=1)[0].at < self._from:
                break
        return seen

    def _follow(self, path: Path, seen: int, until: int) -> int:
        space = self._memory.namespace(*path)
        while seen < until:
            entries = space.changes(after=seen, limit=_AT_ONCE)
            if not entries:
                break
            counted = (entry.operation for entry in entries if entry.at >= self._from)
            self._operations.update(counted)
            seen = entries[-1].sequence
        return seen

    def _swept_at(self) -> datetime | None:
        try:
            text = self._memory.storage.note(SWEPT)
        except NotAllowed:
            return None
        return None if text is None else datetime.fromisoformat(text)
