"""Random operations and interrupted exchanges on three stores, for `test_sync`."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from zero_mem.errors import ZeroMemError
from zero_mem.memory import Memory
from zero_mem.restore import restore
from zero_mem.space import Namespace
from zero_mem.storage.base import JournalEntry
from zero_mem.sync import changes, cursor, receive, sync
from zero_mem.sync.receiving import receive_all
from zero_mem.sync.state import SyncState
from zero_mem.testing import FakeClock
from zero_mem.testing.audit import faults
from zero_mem.types import MemoryRecord

PATH = ("acme", "alice")
STORES = st.integers(0, 2)
SELDOM = st.sampled_from([True, False, False, False])
IDS = st.integers(1, 8).map(str)
WORDS = st.sampled_from(["refund", "order 57", "退款", "bicycle"])
ANY_STATE = {"state": {"in": ["active", "archived", "deleted", "expired"]}}


class SyncMachine(RuleBasedStateMachine):
    """Three stores, of which each pair may exchange at any time, in part or in whole."""

    stores: list[Memory]

    @initialize(kinds=st.lists(st.sampled_from(["memory", "sqlite"]), min_size=3, max_size=3))
    def open(self, kinds: list[str]) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FakeClock()
        self.said: dict[str, str] = {}
        self.count = 0
        self.backups: dict[int, Path] = {}
        self.stores = [
            self.opened(
                f"sqlite:///{self.folder / str(n)}.db" if kind == "sqlite" else "memory://", n
            )
            for n, kind in enumerate(kinds)
        ]

    def opened(self, url: str, n: int) -> Memory:
        return Memory.open(url, clock=self.clock, durability="normal", actor=f"store {n}")

    def space(self, n: int) -> Namespace:
        return self.stores[n].namespace(*PATH)

    def body(self, word: str) -> str:
        """Make a body that is written once in the whole run."""
        return f"{word} {self.number()}"

    def keep(self, space: Namespace, memory_id: str, body: str) -> None:
        self.said[body] = space.get(memory_id).uid

    @rule(seconds=st.sampled_from([0, 0, 1, 3600]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    @rule(n=STORES, word=WORDS, key=st.sampled_from([None, None, "k", "l"]), lasts=st.booleans())
    def save(self, n: int, word: str, key: str | None, lasts: bool) -> None:
        space, body = self.space(n), self.body(word)
        receipt = space.save(body, key=key, expires_in=None if lasts else 1800)
        self.keep(space, receipt.memory_id, body)

    @rule(n=STORES, memory_id=IDS, word=WORDS)
    def update(self, n: int, memory_id: str, word: str) -> None:
        space, body = self.space(n), self.body(word)
        if _tried(lambda: space.update(memory_id, content=body)):
            self.keep(space, memory_id, body)

    @rule(n=STORES, memory_id=IDS, what=st.sampled_from(["archive", "restore", "delete", "touch"]))
    def change(self, n: int, memory_id: str, what: str) -> None:
        space = self.space(n)
        options: dict[str, Any] = {"expires_in": 600} if what == "touch" else {}
        _tried(lambda: getattr(space, what)(memory_id, **options))

    @rule(n=STORES, memory_id=IDS, version=st.integers(1, 4))
    def roll_back(self, n: int, memory_id: str, version: int) -> None:
        _tried(lambda: self.space(n).rollback(memory_id, to_version=version))

    @rule(n=STORES, memory_id=IDS)
    def purge(self, n: int, memory_id: str) -> None:
        _tried(lambda: self.space(n).purge(memory_id))

    @rule(n=STORES)
    def sweep(self, n: int) -> None:
        self.space(n).expire()

    @rule(n=STORES, m=STORES, limit=st.integers(1, 5), times=st.integers(1, 4), cut=st.booleans())
    def exchange(self, n: int, m: int, limit: int, times: int, cut: bool) -> None:
        """Send a few messages one way; the last may be cut off inside its transaction."""
        if n == m:
            return
        source, target = self.space(n), self.space(m)
        origin, to = source.memory.storage.origin, target.memory.storage.origin
        for count in range(times):
            message = changes(source, cursor(target, origin), to=to, limit=limit)
            if cut and count == times - 1:
                receive_all(target, [message], dry_run=True)
                continue
            receive(target, message)
            again = receive(target, message)
            assert again.applied == 0

    @rule(n=STORES, seldom=SELDOM)
    def back_up(self, n: int, seldom: bool) -> None:
        if seldom and self.stores[n].storage.size():
            self.backups[n] = self.folder / f"{self.number()}.backup"
            self.stores[n].backup(self.backups[n])

    @rule(n=STORES, moment=st.booleans(), seldom=SELDOM)
    def restore(self, n: int, moment: bool, seldom: bool) -> None:
        """Lose a store, and go on with what its last backup has."""
        if n not in self.backups or not seldom:
            return
        self.stores[n].close()
        url = f"sqlite:///{self.folder}/restored-{self.number()}.db"
        until = self.clock() - timedelta(seconds=1) if moment else None
        restore(self.backups.pop(n), url, until=until, verify=False)
        self.stores[n] = self.opened(url, n)
        # What only this store had may be lost with it.
        self.said = {body: uid for body, uid in self.said.items() if self.known_elsewhere(n, body)}

    def known_elsewhere(self, n: int, body: str) -> bool:
        others = [memory for m, memory in enumerate(self.stores) if m != n]
        return any(body in _bodies(memory) for memory in others)

    def number(self) -> int:
        self.count += 1
        return self.count

    def teardown(self) -> None:
        if not hasattr(self, "stores"):
            return
        try:
            self.settle()
            self.check()
        finally:
            for memory in self.stores:
                memory.close()
            shutil.rmtree(self.folder)

    def settle(self) -> None:
        """Let all stores exchange until nothing is new to anyone."""
        for _ in range(12):
            applied = 0
            for one, other in ((0, 1), (1, 2), (0, 2)):
                report = sync(self.stores[one], self.stores[other], batch=7)
                applied += report.received.applied + report.sent.applied
            if not applied:
                return
        raise AssertionError("the stores never come to rest")

    def check(self) -> None:
        first, *others = [_records(memory) for memory in self.stores]
        for other in others:
            assert other == first
        for memory in self.stores:
            assert faults(memory.storage) == []
            assert _taken_twice(memory) == []
            kept = {body for body, uid in self.said.items() if first[uid] is not None}
            assert kept <= _bodies(memory)


def _tried(action: Any) -> bool:
    try:
        action()
    except ZeroMemError:
        return False
    return True


def _records(memory: Memory) -> dict[str, MemoryRecord | None]:
    """Read every record by uid, without what is each store's own; None for a purged one."""
    with memory.transaction() as transaction:
        row = transaction.namespace(PATH)
        found = list(transaction.scan(row, {})) if row else []
    return {
        stored.record.uid: None
        if stored.ended_by == "purge"
        else replace(
            stored.record,
            memory_id="",
            accessed_at=stored.record.created_at,
            access_count=0,
        )
        for stored in found
    }


def _journal(memory: Memory) -> Iterator[JournalEntry]:
    with memory.transaction() as transaction:
        row = transaction.namespace(PATH)
        yield from transaction.journal(row) if row else ()


def _bodies(memory: Memory) -> set[object]:
    """Read every body that a journal has."""
    return {entry.record.record.content for entry in _journal(memory) if entry.record is not None}


def _taken_twice(memory: Memory) -> list[object]:
    """Name the changes of other stores that stand in a journal more than once."""
    with memory.transaction() as transaction:
        row = transaction.namespace(PATH)
        if row is None:
            return []
        lineage = memory.storage.lineage(PATH)
        state = SyncState(transaction, row, memory.storage.origin, lineage)
        marks = [state.mark(entry.uid, entry.sequence) for entry in transaction.journal(row)]
        uids = [entry.uid for entry in transaction.journal(row)]
        sequences = [entry.sequence for entry in transaction.journal(row)]
    taken = Counter(
        (uid, tuple(mark.cause.heads))
        for uid, sequence, mark in zip(uids, sequences, marks, strict=True)
        if mark is not None and mark.sequence == sequence and len(mark.cause.heads) == 1
    )
    return [change for change, times in taken.items() if times > 1]
