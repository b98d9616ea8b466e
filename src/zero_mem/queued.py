"""Accepting saves now and applying them later (`op:queued`)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from zero_mem.errors import ZeroMemError
from zero_mem.operations.queue import WriteQueue
from zero_mem.operations.requests import SaveRequest
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.memory import Memory
    from zero_mem.space.writes import Writes

_RESERVED_AT_ONCE = 50

_Name: TypeAlias = tuple[Path, str, str]
"""What tells that two saves are about one record: a kind and key, or an idempotency key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedFailure:
    """An accepted write that could not be applied, and why."""

    namespace: Path
    memory_id: str
    at: datetime
    error: ZeroMemError


class QueuedWrites:
    """The queued writes of one store: each has its id at once, and is applied in order.

    `failures` lists those that could not be applied; it is kept for the life of the object.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.failures: list[QueuedFailure] = []
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._queue: WriteQueue | None = None
        self._ids: dict[Path, list[str]] = {}
        self._promised: dict[_Name, str] = {}
        self._waiting: Counter[_Name] = Counter()

    @property
    def depth(self) -> int:
        """The number of accepted writes that are still to be applied."""
        queue = self._own()
        return 0 if queue is None else queue.depth

    def _own(self) -> WriteQueue | None:
        """Give this process's queue; a forked child has neither the parent's writes nor its ids."""
        if self._queue is not None and not self._queue.is_here():
            self._reset()
        return self._queue

    def accept(self, space: Writes, request: SaveRequest) -> str:
        """Queue a save and give the id that its record has or will have."""
        self._own()
        names = _names(space.path, request)
        with self._lock:
            memory_id = request.memory_id or self._identity(space, request, names)
            for name in names:
                self._promised[name] = memory_id
                self._waiting[name] += 1
            queue = self._queue = self._queue or WriteQueue()
        named = request._replace(reserved=None if request.memory_id else memory_id)
        queue.put(lambda: self._apply(space, named, memory_id))
        return memory_id

    def _identity(self, space: Writes, request: SaveRequest, names: Sequence[_Name]) -> str:
        promised = (self._promised[name] for name in names if name in self._promised)
        return next(promised, None) or space.expected_id(request) or self._reserved(space)

    def _reserved(self, space: Writes) -> str:
        """Take a number that no record has; a caller may have taken a reserved one since."""
        ids = self._ids.setdefault(space.path, [])
        while True:
            if not ids:
                ids += reversed(space.reserve_ids(_RESERVED_AT_ONCE))
            memory_id = ids.pop()
            if not space.is_taken(memory_id):
                return memory_id

    def _apply(self, space: Writes, request: SaveRequest, memory_id: str) -> None:
        try:
            space.apply_save(request)
        except ZeroMemError as error:
            failure = QueuedFailure(
                namespace=space.path, memory_id=memory_id, at=self._memory.now(), error=error
            )
            self.failures.append(failure)
        finally:
            with self._lock:
                self._applied(_names(space.path, request))

    def _applied(self, names: Sequence[_Name]) -> None:
        for name in names:
            self._waiting[name] -= 1
            if not self._waiting[name]:
                del self._waiting[name], self._promised[name]

    def flush(self) -> None:
        """Apply every queued write before returning."""
        queue = self._own()
        if queue is not None:
            queue.flush()

    def close(self) -> None:
        """Apply what is queued and end the thread."""
        queue = self._own()
        if queue is not None:
            queue.close()


def _names(path: Path, request: SaveRequest) -> list[_Name]:
    named = (("", request.idempotency_key), (request.kind, request.key))
    return [(path, kind, key) for kind, key in named if key is not None]
