"""Accepting saves now and applying them later (`op:queued`)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from zero_mem.errors import ZeroMemError
from zero_mem.operations.queue import WriteQueue
from zero_mem.operations.requests import SaveRequest
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.memory import Memory
    from zero_mem.space.writes import Writes

_RESERVED_AT_ONCE = 50


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
        self._lock = threading.Lock()
        self._queue: WriteQueue | None = None
        self._ids: dict[Path, list[str]] = {}
        self._keys: dict[tuple[Path, str, str], str] = {}
        self.failures: list[QueuedFailure] = []

    def accept(self, space: Writes, request: SaveRequest) -> str:
        """Queue a save and give the id that its record has or will have."""
        with self._lock:
            memory_id = self._identity(space, request)
            if self._queue is None:
                self._queue = WriteQueue()
        named = replace(request, memory_id=memory_id)
        self._queue.put(lambda: self._apply(space, named))
        return memory_id

    def _identity(self, space: Writes, request: SaveRequest) -> str:
        if request.key is None:
            return request.memory_id or self._reserved(space)
        key = (space.path, request.kind, request.key)
        if key not in self._keys:
            holder = space.key_holder(request.kind, request.key)
            self._keys[key] = holder or request.memory_id or self._reserved(space)
        return self._keys[key]

    def _reserved(self, space: Writes) -> str:
        ids = self._ids.setdefault(space.path, [])
        if not ids:
            ids += reversed(space.reserve_ids(_RESERVED_AT_ONCE))
        return ids.pop()

    def _apply(self, space: Writes, request: SaveRequest) -> None:
        try:
            space.apply_save(request)
        except ZeroMemError as error:
            failure = QueuedFailure(
                namespace=space.path,
                memory_id=request.memory_id or "",
                at=self._memory.now(),
                error=error,
            )
            self.failures.append(failure)
        finally:
            if request.key is not None:
                self._keys.pop((space.path, request.kind, request.key), None)

    def flush(self) -> None:
        """Apply every queued write before returning."""
        if self._queue is not None:
            self._queue.flush()

    def close(self) -> None:
        """Apply what is queued and end the thread."""
        if self._queue is not None:
            self._queue.close()
