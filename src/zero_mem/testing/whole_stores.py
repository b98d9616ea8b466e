"""What a store gives and takes as a whole: its backup, and its changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from zero_mem.backup import restore_into, verify_file
from zero_mem.backup.audit import faults
from zero_mem.errors import NotAllowed, NotFound
from zero_mem.memory import Memory
from zero_mem.space import Namespace
from zero_mem.storage.base import Storage
from zero_mem.storage.memory import MemoryStorage
from zero_mem.sync import sync
from zero_mem.testing.fakes import FakeClock
from zero_mem.testing.fixtures import StoreFixtures
from zero_mem.types import Blob, Json, MemoryRecord

_ANY_STATE = {"state": {"in": ["active", "archived", "deleted", "expired"]}}


def _fill(space: Namespace) -> None:
    space.save("v1 退款 lone \ud800 nul \0", key="k", tags=["red"], metadata={"n": [1, None]})
    space.update("1", content="v2 退款")
    space.save(Json({"rows": [1.5]}), form="working", task="t", expires_in=60, hold="owner")
    space.save(Blob(data=b"\0\xff"), idempotency_key="once")
    space.save("archived", memory_id="named")
    space.archive("named")
    space.save("purged")
    space.purge("4")
    space.decide("host", "a", "b", memory_id="1")


def _records(space: Namespace) -> dict[str, MemoryRecord]:
    return {record.uid: record for record in space.each(_ANY_STATE)}


def _everywhere(space: Namespace) -> dict[str, MemoryRecord]:
    """Read all records without what is each store's own."""
    return {
        uid: replace(record, memory_id="", accessed_at=record.created_at, access_count=0)
        for uid, record in _records(space).items()
    }


class WholeStores(StoreFixtures):
    """Backups, and the exchange of changes with a store in memory."""

    @pytest.mark.req("prod:backup")
    def test_an_archive_comes_back_as_it_was(
        self, memory: Memory, storage: Storage, space: Namespace, clock: FakeClock, tmp_path: Path
    ) -> None:
        """In another store, and in this one's own kind of rows from there."""
        _fill(space)
        memory.namespace("b").save("another")
        report = memory.backup(tmp_path / "archive", portable=True)
        assert verify_file(tmp_path / "archive").counts == report.counts
        with Memory(MemoryStorage(), clock=clock) as twin:
            if storage.beneath is storage:
                restore_into(twin.storage, [tmp_path / "archive"])
                there = twin.namespace(*space.path)
                assert _records(there) == _records(space)
                assert there.history("1") == space.history("1")
                assert there.decisions("host") == {"a": "b"}
                assert twin.verify().sound
        with pytest.raises(NotAllowed):
            restore_into(storage.beneath, [tmp_path / "archive"])

    @pytest.mark.req("prod:backup")
    def test_an_archive_is_restored_here(
        self, memory: Memory, storage: Storage, space: Namespace, clock: FakeClock, tmp_path: Path
    ) -> None:
        """From a store in memory, with a later archive; an encrypted store refuses a plain one."""
        with Memory(MemoryStorage(), clock=clock) as twin:
            there = twin.namespace(*space.path)
            _fill(there)
            twin.backup(tmp_path / "first")
            if storage.beneath is not storage:
                with pytest.raises(NotAllowed, match="encrypted"):
                    restore_into(storage.beneath, [tmp_path / "first"])
                return
            there.purge("1")
            there.save("later", key="k")
            twin.backup(tmp_path / "second", since=tmp_path / "first")
            restore_into(storage, [tmp_path / "first", tmp_path / "second"])
            assert _records(space) == _records(there)
            with pytest.raises(NotFound, match="purged"):
                space.get("1")
            assert space.save("new").memory_id == there.save("new").memory_id
        assert faults(storage) == []

    @pytest.mark.req("op:sync")
    def test_changes_are_exchanged_with_another_store(
        self, memory: Memory, storage: Storage, space: Namespace, clock: FakeClock
    ) -> None:
        """Records, ids that meet, a key that meets, conflicts, purges: both end alike."""
        with Memory(MemoryStorage(), clock=clock) as twin:
            there = twin.namespace(*space.path)
            _fill(space)
            clock.advance(1)
            there.save("theirs", key="k")
            there.save("theirs too")
            sync(memory, twin)
            assert _everywhere(space) == _everywhere(there)
            clock.advance(1)
            both = [record for record in space.each() if record.content == "theirs too"]
            space.update(both[0].memory_id, content="changed here")
            clock.advance(1)
            there.update("2", content="changed there")
            there.purge("1")
            report = sync(memory, twin, batch=2)
            assert [len(r.conflicts) for r in (report.received, report.sent)] == [1, 1]
            assert report.received.purged == 1
            assert _everywhere(space).keys() == _everywhere(there).keys()
            assert space.get(both[0].memory_id).content == "changed there"
            assert faults(storage) == faults(twin.storage) == []
            again = sync(memory, twin)
            assert again.received.entries == again.sent.entries == 0

    @pytest.mark.req("op:sync")
    def test_a_clock_that_is_a_day_behind_loses_no_change(
        self, memory: Memory, storage: Storage, space: Namespace
    ) -> None:
        """What was changed knowing the other's version is the later one, whatever a clock says."""
        with Memory(MemoryStorage(), clock=FakeClock()) as twin:
            there = twin.namespace(*space.path)
            space.save("first", memory_id="x")
            sync(memory, twin)
            behind = twin.now() - timedelta(days=1)
            late = Memory(twin.storage, clock=lambda: behind)
            late.namespace(*space.path).update("x", content="second")
            received = sync(memory, late).received
            assert (received.applied, received.conflicts) == (1, [])
            assert space.get("x").text == there.get("x").text == "second"
            space.update("x", content="third")
            sync(memory, twin)
            assert there.get("x").text == "third"
            times = [entry.at for entry in there.history("x")]
            assert times == sorted(times)
            assert faults(storage) == faults(twin.storage) == []

    @pytest.mark.req("op:sync", "history:journal")
    def test_decisions_and_holds_are_listed(
        self, storage: Storage, space: Namespace, other: Namespace
    ) -> None:
        """By scope and by owner, of one namespace."""
        _fill(space)
        other.save("note", hold="other owner")
        other.decide("elsewhere", "a", "b")
        with storage.transaction() as transaction:
            row = transaction.namespace(space.path)
            assert row is not None
            assert transaction.scopes(row) == ["host", "zero-mem:idempotency"]
            uid = space.get("2").uid
            assert transaction.holds(row) == [("owner", uid)]
