"""A disk that is full, or has become read-only: typed errors, nothing half-done, usable later.

The disks are real ones, and small. PostgreSQL's are in tests/test_postgres_disk.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from disks import SmallDisk, failing_disk, only_root_mounts, small_disk
from serving import loopback

from zero_mem import Memory, MemoryReceipt
from zero_mem.access import Grant
from zero_mem.backup import Schedule
from zero_mem.client import connect
from zero_mem.errors import StoreUnavailable
from zero_mem.space import Namespace
from zero_mem.storage.data_keys import Encryption
from zero_mem.storage.keys import MasterKey
from zero_mem.testing.audit import faults

pytestmark = [only_root_mounts, pytest.mark.req("pkg:errors", "op:order")]

BIG = "x" * 40_000

WRITES: dict[str, Callable[[Namespace], object]] = {
    "save": lambda s: s.save(BIG),
    "save of many": lambda s: s.save_many([{"content": f"{n} {BIG}"} for n in range(5)]),
    "update": lambda s: s.update("1", BIG),
    "touch": lambda s: s.touch("1", expires_in=60),
    "hold": lambda s: s.hold("owner", "1"),
    "archive": lambda s: s.archive_many(["1", "2", "3"]),
    "delete": lambda s: s.delete_many({"tag": "t"}),
    "purge": lambda s: s.purge_many(["8", "9"]),
    "rollback": lambda s: s.rollback("4", to_version=1),
    "decision": lambda s: s.decide_many([{"scope": "h", "key": "k", "value": BIG}]),
    "start of a task": lambda s: s.start_task("t"),
    "end of a task": lambda s: s.end_task("t"),
    "sweep": lambda s: s.expire(),
    "settings": lambda s: s.configure(max_memory_items=9000),
    "new namespace": lambda s: s.memory.namespace("new", "one").save(BIG),
    "new key": lambda s: s.memory.keyring.create("app", [Grant.parse("read:acme/**")]),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "3m") as disk:
        yield disk


@pytest.fixture(params=[False, True], ids=["plain", "sealed"])
def memory(disk: SmallDisk, request: pytest.FixtureRequest) -> Iterator[Memory]:
    """Open a store on the small disk."""
    sealing = Encryption(master=MasterKey(bytes(32))) if request.param else None
    url = f"sqlite:///{disk.folder / 'agent.db'}"
    with Memory.open(url, durability="normal", encryption=sealing) as memory:
        yield memory


def fill(memory: Memory) -> Namespace:
    space = memory.namespace("acme")
    for number in range(10):
        space.save(f"text {number}", tags=["t"], task="t", form="working")
    space.update("1", "text 1 changed")
    space.save("due", expires_in=timedelta(microseconds=1))
    return space


def state(memory: Memory) -> Any:
    """Give all that a store says."""
    with memory.transaction() as transaction:
        return [
            (
                row.path,
                row.settings,
                list(transaction.scan(row, {})),
                list(transaction.journal(row)),
                [transaction.decisions(row, scope) for scope in transaction.scopes(row)],
                transaction.holds(row),
            )
            for row in transaction.namespaces(())
        ], memory.storage.notes("")


def until_full(write: Callable[[int], object]) -> tuple[int, StoreUnavailable]:
    """Write until the store refuses; tell how many were acknowledged, and why it refused."""
    for number in range(1000):
        error = refusal(partial(write, number))
        if error is not None:
            return number, error
    raise AssertionError("the disk is never full")


def refusal(write: Callable[[], object]) -> StoreUnavailable | None:
    """Write; tell why it was refused, None where it was done."""
    try:
        write()
    except StoreUnavailable as error:
        return error
    return None


def reads(space: Namespace) -> None:
    """Every kind of read answers."""
    memory = space.memory
    assert space.get("2").text == "text 1"
    assert space.list(limit=3).items
    assert space.search("text", limit=2)
    assert space.recall("text").items
    assert space.recall_for_prompt(["2"]) == "[memo:2] note: text 1"
    assert space.history("1")
    assert space.as_of(memory.now()).get("2").text == "text 1"
    assert space.purge_many(["1"], dry_run=True).erased
    assert memory.stats().records
    assert memory.health().ready
    assert memory.verify().sound


@pytest.mark.req("prod:storage")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_on_a_full_disk_a_write_is_done_or_refused(
    memory: Memory, disk: SmallDisk, write: Callable[[Namespace], object]
) -> None:
    space = fill(memory)
    until_full(lambda number: space.save(BIG))
    disk.fill()
    before = state(memory)
    error = refusal(lambda: write(space))
    if error is not None:
        assert "full" in str(error)
        assert state(memory) == before or "erased, but" in str(error)
    assert faults(memory.storage) == []
    disk.grow("40m")
    memory.scrub()
    space.save(BIG, memory_id="room-again")
    assert faults(memory.storage) == []


def test_a_full_disk_is_read_and_works_again_with_room(memory: Memory, disk: SmallDisk) -> None:
    space = fill(memory)
    disk.fill()
    acknowledged: list[str] = []

    def save(number: int) -> MemoryReceipt:
        return space.save(f"{number} {BIG}", idempotency_key=f"once {number}")

    last, error = until_full(lambda number: acknowledged.append(save(number).memory_id))
    assert "the disk is full; nothing of this operation was written" in str(error)
    reads(space)
    (disk.folder / "ballast").unlink()
    disk.grow("40m")
    for number, memory_id in enumerate(acknowledged):
        assert (save(number).memory_id, save(number).replayed) == (memory_id, True)
    assert not save(last).replayed
    reads(space)


@pytest.mark.req("op:queued")
def test_a_queued_write_that_found_no_room_is_told_of(memory: Memory, disk: SmallDisk) -> None:
    space = fill(memory)
    space.save("in time", mode="queued", memory_id="early")
    memory.flush()
    disk.fill()
    for number in range(100):
        space.save(BIG, mode="queued", memory_id=f"late-{number}")
    memory.flush()
    failed = {failure.memory_id for failure in memory.queued.failures}
    assert failed
    assert all(isinstance(f.error, StoreUnavailable) for f in memory.queued.failures)
    assert memory.health().queue_failures == len(failed)
    stored = {record.memory_id for record in space.each()}
    assert failed.isdisjoint(stored)
    assert "early" in stored
    assert stored | failed >= {f"late-{number}" for number in range(100)}


@pytest.mark.req("history:purge")
def test_a_purge_without_room_to_rewrite_the_file_says_so(memory: Memory, disk: SmallDisk) -> None:
    """The memory is gone at once, its bytes with the next scrub."""
    space = fill(memory)
    space.save("canary-4711 " * 20, memory_id="x")
    for number in range(25):
        space.save(f"{BIG} {number}")
    with pytest.raises(StoreUnavailable, match=r"erased, but.*full.*scrub\(\) again"):
        space.purge("x")
    assert memory.health().scrub_pending
    assert not space.count({"memory_id": "x"})
    disk.grow("40m")
    memory.expire()  # a sweep makes up for it
    assert not memory.health().scrub_pending
    assert not any(b"canary-4711" in path.read_bytes() for path in disk.folder.iterdir())


@pytest.mark.req("prod:backup")
@pytest.mark.parametrize("portable", [False, True], ids=["copy", "archive"])
def test_a_backup_that_does_not_fit_leaves_nothing(
    tmp_path: Path, disk: SmallDisk, portable: bool
) -> None:
    backups = disk.folder / "backups"
    schedule = Schedule(folder=backups, interval=timedelta(days=1), portable=portable, keep=1)
    with Memory.open(f"sqlite:///{tmp_path}/agent.db", durability="normal") as memory:
        fill(memory)
        assert schedule.run(memory.storage, memory.now())
        kept = [path.read_bytes() for path in schedule.backups()]
        (made,) = schedule.backups()
        disk.fill()
        later = memory.now() + timedelta(days=2)
        with pytest.raises(StoreUnavailable, match=r"[Ff]ull|No space"):
            schedule.run(memory.storage, later)
        assert list(backups.iterdir()) == [made]
        assert [made.read_bytes()] == kept
        disk.grow("40m")
        assert schedule.run(memory.storage, later)
        assert memory.verify().sound


@pytest.mark.req("server:bad-input", "server:client")
def test_over_http_a_full_disk_is_the_same_error(disk: SmallDisk) -> None:
    local = Memory.open(f"sqlite:///{disk.folder / 'agent.db'}", durability="normal")
    with loopback() as server, server.serving(local) as url, connect(url) as remote:
        space = remote.namespace("acme")
        space.save("text 1")
        disk.fill()
        saved, error = until_full(lambda number: space.save(BIG))
        assert "disk is full" in str(error)
        assert space.count() == saved + 1
        assert space.recall("text").items[0].memory_id == "1"
        assert space.recall_for_prompt(["1"]) == "[memo:1] note: text 1"
        disk.grow("40m")
        space.save(BIG)
        assert space.count() == saved + 2


@pytest.mark.req("prod:storage")
@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_a_disk_that_becomes_read_only_is_read_and_not_written(
    tmp_path: Path, sealed: bool
) -> None:
    sealing = Encryption(master=MasterKey(bytes(32))) if sealed else None
    with failing_disk(tmp_path / "disk", tmp_path / "image", 32 << 20) as disk:
        url = f"sqlite:///{disk.folder / 'agent.db'}"
        with Memory.open(url, encryption=sealing) as memory:
            space = fill(memory)
            disk.fail()
            before = state(memory)
            for write in WRITES.values():
                with pytest.raises(StoreUnavailable, match=r"agent\.db"):
                    write(space)
            assert state(memory) == before
            reads(space)
            memory.backup(tmp_path / "rescued.backup")
            with Memory.open(url, encryption=sealing) as second:
                reads(second.namespace("acme"))
        with pytest.raises(StoreUnavailable, match="can't make the store"):
            Memory.open(f"sqlite:///{disk.folder / 'new.db'}")
        disk.mend()
        with Memory.open(url, encryption=sealing) as memory:
            assert state(memory) == before
            for write in WRITES.values():
                write(memory.namespace("acme"))
            assert memory.verify().sound
