"""The ledger of every conversation that passes, kept beside the traffic.

Nothing of it delays an answer: a call is handed over when it is over, counted and priced in
the background, and added to the conversation's account in the store. Each process keeps an
account of its own there, so that several on one store never overwrite each other's.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from zero_mem.errors import ZeroMemError
from zero_mem.ledger.entries import LedgerEntry, Mode
from zero_mem.ledger.prices import PriceTable
from zero_mem.ledger.reading import OF_ALL, conversation_of, key_of, summed_up
from zero_mem.ledger.stored import read, written
from zero_mem.proxy.counting import Counter, Passed
from zero_mem.space import Namespace

_logger = logging.getLogger(__name__)

_WAITING: Final = 512
"""Calls that may wait to be counted; those beyond are left out, and that is said."""

_EVERY: Final = 1.0
"""Seconds between two writes of the accounts."""

_HELD: Final = 2 * 86_400.0
"""Seconds for which an account is held after its last call. It is of one day, so by then it is
whole, and the store has it."""

Work: TypeAlias = Callable[[], Passed]
"""Gives the call; run beside the traffic."""


@dataclass(slots=True)
class _Book:
    """This process's accounts, and what of them is not in the store yet."""

    accounts: dict[str, LedgerEntry] = field(default_factory=dict)
    unwritten: set[str] = field(default_factory=set)


class Ledger:
    """Keeps the accounts.

    Args:
        space: Holds them.
        counter: Counts the calls.
        prices: The table that they are priced by.
    """

    def __init__(self, space: Namespace, counter: Counter, *, prices: PriceTable) -> None:
        self._space = space
        self._counter = counter
        self._prices = prices
        self._process = secrets.token_hex(6)
        self._book = _Book()
        self._lock = threading.Lock()
        self._left_out = 0
        self._version = 0
        self._queue: queue.Queue[Work | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, name="zero-mem-ledger", daemon=True)
        self._thread.start()

    @property
    def version(self) -> int:
        """Grows whenever an account changed in this process."""
        return self._version

    def add(self, work: Work) -> None:
        """Hand a call over; never waits."""
        try:
            self._queue.put_nowait(work)
        except queue.Full:
            self._left_out += 1

    def close(self) -> None:
        """Count what waits, write all accounts, and end the thread."""
        self._queue.put(None)
        self._thread.join()
        self._counter.close()

    def read(self, mode: Mode) -> dict[str, Any]:
        """Give every conversation's account, newest first, and their sum as a mode sees it."""
        with self._lock:
            own = dict(self._book.accounts)
        stored = self._space.decisions(OF_ALL)
        others = (
            read(conversation_of(key), value)
            for key, value in stored.items()
            if value is not None and key not in own
        )
        found = summed_up([*others, *own.values()], prices=self._prices)
        total = found.total.as_dict(mode)
        return {
            "prices": found.prices,
            "left_out": self._left_out,
            "total": total if found.total.calls else {},
            "conversations": [entry.as_dict() for entry in found.conversations],
        }

    # In the thread

    def _run(self) -> None:
        due = time.monotonic() + _EVERY
        while True:
            try:
                work = self._queue.get(timeout=max(0.01, due - time.monotonic()))
            except queue.Empty:
                due = time.monotonic() + _EVERY
                self._write()
                continue
            if work is None:
                self._write()
                return
            self._count(work)
            if time.monotonic() >= due:
                due = time.monotonic() + _EVERY
                self._write()

    def _count(self, work: Work) -> None:
        entry, now = self._counter.count(work()), time.time()
        if entry is None:
            self._left_out += 1
        else:
            self._enter(replace(entry, began=now, last=now))
            self._space.memory.metrics.called(entry.columns.by_column())
        self._version += 1

    def _enter(self, entry: LedgerEntry) -> None:
        key = key_of(entry.conversation, self._process, entry.last)
        with self._lock:
            before = self._book.accounts.get(key)
            self._book.accounts[key] = entry if before is None else before + entry
            self._book.unwritten.add(key)

    def _write(self) -> None:
        with self._lock:
            due = {key: self._book.accounts[key] for key in self._book.unwritten}
            self._book.unwritten.clear()
        for key, entry in due.items():
            item = {"scope": OF_ALL, "key": key, "value": written(entry)}
            try:
                self._space.decide_many([item], durable=False)
            except ZeroMemError as error:  # the traffic goes on; the next write tries again
                _logger.warning("the ledger cannot be written: %s", error)
                with self._lock:
                    self._book.unwritten |= due.keys()
                return
        if due:
            self._let_go(before=time.time() - _HELD)

    def _let_go(self, *, before: float) -> None:
        book = self._book
        with self._lock:
            book.accounts = {
                key: entry
                for key, entry in book.accounts.items()
                if key in book.unwritten or entry.last >= before
            }
