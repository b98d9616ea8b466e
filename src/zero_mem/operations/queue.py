"""Queued writes (`op:queued`): answered at once, applied in order by one background thread."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Job: TypeAlias = Callable[[], object]

_BUSY: set[WriteQueue] = set()
"""The queues with jobs: nobody else may hold them any more, and their writes were accepted."""


class WriteQueue:
    """Writes that were accepted and are applied in the order they came.

    `flush` applies what is left in the calling thread, so nothing waits for the scheduler,
    and an exit of the interpreter loses nothing. The thread starts with the first job. In a
    forked child it does nothing: the jobs are the parent's.
    """

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._running = threading.Lock()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._process = os.getpid()
        _flush_at_exit(self)

    def put(self, job: Job) -> None:
        """Take a job; a job handles its own expected errors."""
        with self._changed:
            self._jobs.append(job)
            _BUSY.add(self)
            if self._thread is None:
                idle = _Idle(self._jobs, self._changed, self._closed)
                self._thread = threading.Thread(
                    target=_work, args=(weakref.ref(self), idle), name="zero-mem-queue", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    @property
    def depth(self) -> int:
        """The number of jobs taken and not begun."""
        return len(self._jobs)

    def flush(self) -> None:
        """Apply every job taken so far before returning."""
        while self.is_here() and self._run_one():
            pass

    def is_here(self) -> bool:
        """Tell whether this is the process that took the jobs."""
        return self._process == os.getpid()

    def close(self) -> None:
        """Flush, and end the thread."""
        self.flush()
        with self._changed:
            self._closed.set()
            self._changed.notify()

    def _run_one(self) -> bool:
        with self._running:
            if not self._jobs:
                return False
            self._jobs.popleft()()
        with self._changed:
            if not self._jobs:
                _BUSY.discard(self)
        return True


class _Idle(NamedTuple):
    """What the thread waits with: not the queue itself, which nobody may hold any more."""

    jobs: deque[Job]
    changed: threading.Condition
    closed: threading.Event

    def wait(self) -> bool:
        """Wait for a job, at most a second; tell whether the queue is still open."""
        with self.changed:
            if not self.jobs and not self.closed.is_set():
                self.changed.wait(timeout=1.0)
        return not self.closed.is_set()


def _work(queue: weakref.ref[WriteQueue], idle: _Idle) -> None:
    """Run jobs for as long as the queue is there; a queue nobody holds is let go."""
    while idle.wait():
        alive = queue()
        if alive is None:
            return
        alive.flush()
        del alive


def _flush_at_exit(queue: WriteQueue) -> None:
    known = weakref.ref(queue)

    def flush() -> None:
        alive = known()
        if alive is not None:
            alive.flush()

    atexit.register(flush)
