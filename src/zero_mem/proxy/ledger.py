"""The ledger of every conversation that passes, kept beside the traffic.

Nothing of it delays an answer: a call is handed over when it is over, counted and priced in
the background, and added to the conversation's account in the store. Each process keeps an
account of its own there, so that several on one store never overwrite each other's.
"""

from __future__ import annotations

import json
import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from zero_mem.errors import ZeroMemError
from zero_mem.ledger.columns import PROMPT_COLUMNS, CallTokens
from zero_mem.proxy.accounts import Account, added, total
from zero_mem.proxy.counting import Counter, Entry, Passed
from zero_mem.space import Namespace

SCOPE: Final = "proxy.ledger"

_logger = logging.getLogger(__name__)

_WAITING: Final = 512
"""Calls that may wait to be counted; those beyond are left out, and that is said."""

_EVERY: Final = 1.0
"""Seconds between two writes of the accounts."""

Work: TypeAlias = Callable[[], Passed]
"""Gives the call; run beside the traffic."""


@dataclass(slots=True)
class _Book:
    """This process's accounts, and what of them is not in the store yet."""

    accounts: dict[str, dict[str, Any]] = field(default_factory=dict)
    unwritten: set[str] = field(default_factory=set)


class Ledger:
    """Keeps the accounts.

    Args:
        space: Holds them.
        counter: Counts the calls.
        prices: The date of the price table, to show.
    """

    def __init__(self, space: Namespace, counter: Counter, *, prices: str) -> None:
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

    def read(self) -> dict[str, Any]:
        """Give every conversation's account, newest first, and their sum."""
        stored = self._space.decisions(SCOPE)
        by_name: dict[str, list[Account]] = {}
        with self._lock:
            own = {name: dict(account) for name, account in self._book.accounts.items()}
        for key, value in stored.items():
            name, _, process = key.rpartition(":")
            if process != self._process and value is not None:
                by_name.setdefault(name, []).append(json.loads(value))
        for name, account in own.items():
            by_name.setdefault(name, []).append(account)
        rows = [{"conversation": name} | _row(several) for name, several in by_name.items()]
        rows.sort(key=lambda row: row.get("last", 0), reverse=True)
        return {
            "prices": self._prices,
            "left_out": self._left_out,
            "total": _figures(total(rows)),
            "conversations": rows,
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
        entry = self._counter.count(work())
        if entry is None:
            self._left_out += 1
        else:
            self._enter(entry, time.time())
            self._space.memory.metrics.called(_tokens(entry.account))
        self._version += 1

    def _enter(self, entry: Entry, now: float) -> None:
        with self._lock:
            before = self._book.accounts.get(entry.conversation, {"began": now})
            account = {**added(before, entry.account), **entry.said, "last": now}
            self._book.accounts[entry.conversation] = account
            self._book.unwritten.add(entry.conversation)

    def _write(self) -> None:
        with self._lock:
            due = {name: self._book.accounts[name] for name in self._book.unwritten}
            self._book.unwritten.clear()
        for name, account in due.items():
            try:
                self._space.decide_many(
                    [_stored(f"{name}:{self._process}", account)], durable=False
                )
            except ZeroMemError as error:  # the traffic goes on; the next write tries again
                _logger.warning("the ledger cannot be written: %s", error)
                with self._lock:
                    self._book.unwritten |= due.keys()
                return


def _tokens(account: Account) -> CallTokens:
    """Give what a call really took, by column."""
    tokens = account["paid"]["tokens"]
    return CallTokens(**{name: tokens[name] for name in (*PROMPT_COLUMNS, "output")})


def _stored(key: str, account: Account) -> dict[str, str]:
    return {"scope": SCOPE, "key": key, "value": json.dumps(account)}


def _row(accounts: Sequence[Account]) -> dict[str, Any]:
    """Join the accounts that several processes kept of one conversation."""
    in_order = sorted(accounts, key=lambda account: account.get("last", 0))
    joined = total(in_order)
    return {
        **joined,
        "began": min(account["began"] for account in in_order),
        "last": in_order[-1]["last"],
    }


def _figures(account: Account) -> dict[str, Any]:
    names = ("calls", "requests", "estimated", "unpriced", "paid", "other")
    return {name: account[name] for name in names if name in account}
