"""Backups made while a store is in use, checked, and restored whole (`prod:backup`)."""

from __future__ import annotations

import gzip
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from zero_mem import Blob, Conflict, InvalidInput, Json, Memory, NotAllowed, NotFound
from zero_mem.access import Grant
from zero_mem.aio import AsyncMemory
from zero_mem.backup import Schedule, verify_file
from zero_mem.backup.archive import read_lines, writing
from zero_mem.encryption import Encryption, KeyFile, MasterKey
from zero_mem.errors import StoreCorrupt, StoreUnavailable
from zero_mem.restore import restore
from zero_mem.space import Namespace
from zero_mem.testing import FakeClock

pytestmark = pytest.mark.req("prod:backup")

CANARY = "zyxwvutcanary"
ANY_STATE = {"state": {"in": ["active", "archived", "deleted", "expired"]}}


@pytest.fixture(params=["memory", "sqlite", "sealed"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Memory]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/agent.db"
    encryption = sealing() if request.param == "sealed" else None
    with Memory.open(url, clock=clock, encryption=encryption, durability="normal") as opened:
        fill(opened)
        yield opened


@pytest.fixture(params=["copy", "archive"])
def portable(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "archive")


def sealing() -> Encryption:
    return Encryption(master=MasterKey(b"m" * 32))


def fill(memory: Memory) -> None:
    """Write something of every sort that a store can hold."""
    space = memory.namespace("acme", "alice")
    space.configure(kind="note", max_memory_items=50)
    space.save("v1 退款 lone \ud800", key="k", tags=["red"], metadata={"n": [1, 2.5, None]})
    space.update("1", content="v2 退款")
    space.save(Json({"rows": [1]}), form="working", task="t", expires_in=60)
    space.save(Blob(data=b"\0\xff", media_type="image/png"), hold="owner")
    space.save("archived", memory_id="named")
    space.archive("named")
    space.restore("named")
    space.archive("named")
    space.save(CANARY, key=CANARY, idempotency_key=CANARY)
    space.purge("4")
    space.save("once", idempotency_key="once")
    space.decide("host", "a", "b", memory_id="1")
    space.touch("1")
    memory.namespace("b").save("another")
    memory.keyring.create("app", [Grant.parse("read:acme/**")])


def state(memory: Memory) -> Any:
    """Read all of a store that can be seen."""
    found: dict[str, Any] = {}
    for path in memory.subtree().namespaces():
        space = memory.namespace(*path)
        records = {record.memory_id: record for record in space.each(ANY_STATE)}
        found["/".join(path)] = (
            records,
            {memory_id: space.history(memory_id) for memory_id in records},
            space.settings(),
            space.decisions("host"),
            {query: [hit.memory_id for hit in space.search(query)] for query in ("退款", "once")},
        )
        with memory.transaction() as transaction:
            row = transaction.namespace(path)
            assert row is not None
            found["/".join(path)] += (
                (row.next_id, row.highest_id, row.sequence, row.documents, row.length),
                transaction.holds(row),
            )
    return found, memory.keyring.every()


def bodies(space: Namespace) -> list[str]:
    return [record.text for record in space.each()]


def restored(
    tmp_path: Path,
    clock: FakeClock,
    *backups: Path,
    encryption: Encryption | None = None,
    **options: Any,
) -> Memory:
    """Restore into a new file and open it."""
    url = f"sqlite:///{tmp_path}/restored{len(list(tmp_path.glob('restored*')))}.db"
    report = restore(backups, url, encryption=encryption, **options)
    opened = Memory.open(url, clock=clock, encryption=encryption)
    assert report.counts.records == opened.stats().records
    assert opened.verify().sound
    return opened


def keys_of(memory: Memory) -> Encryption | None:
    return None if memory.storage.beneath is memory.storage else sealing()


# Making and restoring


def test_a_store_comes_back_with_all_it_held(
    memory: Memory, tmp_path: Path, clock: FakeClock, portable: bool
) -> None:
    report = memory.backup(tmp_path / "b", portable=portable)
    assert report.path.stat().st_mode & 0o777 == 0o600
    assert report.made_at == clock()
    found = verify_file(tmp_path / "b", keys_of(memory))
    assert (found.faults, found.counts) == ((), report.counts)
    wanted = state(memory)
    with restored(tmp_path, clock, tmp_path / "b", encryption=keys_of(memory)) as back:
        assert state(back) == wanted
        space = back.namespace("acme", "alice")
        assert space.save("once", idempotency_key="once").replayed
        new = space.save("new").memory_id
        assert new == memory.namespace("acme", "alice").save("new").memory_id
        assert back.storage.origin != memory.storage.origin


def test_an_archive_goes_into_any_kind_of_store(tmp_path: Path, clock: FakeClock) -> None:
    from zero_mem.backup import restore_into
    from zero_mem.storage.memory import MemoryStorage

    with Memory.open(f"sqlite:///{tmp_path}/agent.db", clock=clock) as memory:
        fill(memory)
        memory.backup(tmp_path / "copy")
        memory.backup(tmp_path / "archive", portable=True)
        wanted = state(memory)
    for name in ("copy", "archive"):
        storage = MemoryStorage()
        restore_into(storage, [tmp_path / name])
        with Memory(storage, clock=clock) as back:
            assert state(back) == wanted
    report = restore(tmp_path / "archive", "memory://")
    assert report.verified


def test_writers_go_on_while_a_backup_is_made(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, portable: bool
) -> None:
    monkeypatch.setattr("zero_mem.storage.sqlite_file.COPY_PAGES", 1)
    with Memory.open(f"sqlite:///{tmp_path}/agent.db", durability="normal") as memory:
        space = memory.namespace("acme")
        space.save_many([{"content": f"before {n} " + "x" * 500} for n in range(300)])
        done = threading.Event()
        written: list[int] = []

        def write() -> None:
            while not done.is_set():
                written.append(int(space.save("during " + "y" * 500).memory_id))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            while not written:
                pass
            reports = [memory.backup(tmp_path / f"b{n}", portable=portable) for n in range(3)]
        finally:
            done.set()
            writer.join()
        sizes = [report.counts.records for report in reports]
        assert 300 < sizes[0] <= sizes[1] <= sizes[2] <= 300 + len(written)
        assert len(written) > 3
    for n, size in enumerate(sizes):
        assert verify_file(tmp_path / f"b{n}").sound
        with restored(tmp_path, clock, tmp_path / f"b{n}") as back:
            ids = [record.memory_id for record in back.namespace("acme").each()]
            # A snapshot: every write up to one moment, and none after it.
            assert ids == [str(number + 1) for number in range(size)]


def test_a_backup_is_there_whole_or_not_at_all(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portable: bool
) -> None:
    target = tmp_path / "folder" / "b"
    with pytest.raises(StoreUnavailable):
        memory.backup(target, portable=portable)
    target.parent.mkdir()
    target.write_text("mine")
    with pytest.raises(InvalidInput, match="there already"):
        memory.backup(target, portable=portable)
    assert target.read_text() == "mine"

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("zero_mem.backup.files.sync_file", full)
        with pytest.raises(StoreUnavailable, match="No space"):
            memory.backup(target.with_name("c"), portable=portable)
    assert [path.name for path in target.parent.iterdir()] == ["b"]


def test_a_backup_needs_the_whole_store(memory: Memory, tmp_path: Path) -> None:
    new = memory.keyring.create("all", [Grant.parse("admin:**")])
    guarded = memory.guarded(new.credential)
    with pytest.raises(NotAllowed, match="credential"):
        guarded.backup(tmp_path / "b")
    with pytest.raises(NotAllowed, match="credential"):
        guarded.verify()
    assert not (tmp_path / "b").exists()


def test_what_was_purged_is_in_no_backup(
    memory: Memory, tmp_path: Path, portable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = memory.namespace("acme", "alice")
    memory_id = space.save(f"again {CANARY} " * 900).memory_id
    monkeypatch.setattr(type(memory.storage.beneath), "scrub", lambda self, wait=True: None)
    space.purge(memory_id)
    monkeypatch.undo()
    memory.backup(tmp_path / "b", portable=portable)
    content = (tmp_path / "b").read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    assert CANARY.encode() not in content


def test_an_encrypted_store_stays_so_in_its_backups(
    tmp_path: Path, clock: FakeClock, portable: bool
) -> None:
    encryption = Encryption(master=MasterKey(b"m" * 32), keys=KeyFile(tmp_path / "keys.json"))
    url = f"sqlite:///{tmp_path}/agent.db"
    with Memory.open(url, clock=clock, encryption=encryption) as memory:
        memory.namespace("acme").save(f"the word is {CANARY}", key=CANARY, tags=[CANARY])
        memory.backup(tmp_path / "b", portable=portable)
    content = (tmp_path / "b").read_bytes()
    content = gzip.decompress(content) if portable else content
    assert CANARY.encode() not in content
    without = verify_file(tmp_path / "b")
    assert (without.sound, without.sealed) == (True, True)
    assert not verify_file(tmp_path / "b", encryption).sealed
    restore(tmp_path / "b", f"sqlite:///{tmp_path}/back.db")
    with pytest.raises(NotAllowed, match="encrypted"):
        Memory.open(f"sqlite:///{tmp_path}/back.db")
    with Memory.open(f"sqlite:///{tmp_path}/back.db", encryption=encryption) as back:
        assert [hit.record.key for hit in back.namespace("acme").search(CANARY)] == [CANARY]
        assert back.verify().sound
        # Old backups go with the key.
        assert back.storage.beneath is not back.storage
        back.storage.erase_keys(("acme",))  # type: ignore[attr-defined]
    restore(tmp_path / "b", f"sqlite:///{tmp_path}/later.db")
    later = Memory.open(f"sqlite:///{tmp_path}/later.db", encryption=encryption)
    with later, pytest.raises(NotAllowed, match="erased"):
        later.namespace("acme").get("1")


# Points in time


def test_a_store_as_of_a_moment(
    memory: Memory, tmp_path: Path, clock: FakeClock, portable: bool
) -> None:
    space = memory.namespace("acme", "alice")
    clock.advance(10)
    space.update("1", content="v3")
    space.save("late")
    moment, wanted = clock(), bodies(space)
    clock.advance(10)
    space.update("1", content="v4")
    space.save("later", idempotency_key="later")
    memory.namespace("c").save("a namespace of later")
    memory.backup(tmp_path / "b", portable=portable)
    with restored(
        tmp_path, clock, tmp_path / "b", until=moment, encryption=keys_of(memory)
    ) as back:
        twin = back.namespace("acme", "alice")
        assert bodies(twin) == wanted
        assert twin.get("1").content == "v3"
        assert not twin.save("later", idempotency_key="later").replayed
        assert len(back.namespace("c").list()) == 0


def test_later_backups_hold_only_what_came_after(
    memory: Memory, tmp_path: Path, clock: FakeClock
) -> None:
    space = memory.namespace("acme", "alice")
    memory.backup(tmp_path / "whole", portable=True)
    clock.advance(10)
    moment = clock()
    space.update("1", content="v3")
    space.purge("3")
    memory.namespace("new").save("a namespace of later")
    space.release("owner")
    memory.backup(tmp_path / "second", since=tmp_path / "whole")
    clock.advance(10)
    space.save("last")
    report = memory.backup(tmp_path / "third", since=tmp_path / "second")
    assert report.counts.entries == report.counts.records == 1
    wanted = state(memory)
    chain = [tmp_path / name for name in ("whole", "second", "third")]
    keys = keys_of(memory)
    with restored(tmp_path, clock, *chain, encryption=keys) as back:
        assert state(back) == wanted
        with pytest.raises(NotFound, match="purged"):
            back.namespace("acme", "alice").get("3")
    with restored(tmp_path, clock, *chain, until=moment, encryption=keys) as back:
        assert "last" not in bodies(back.namespace("acme", "alice"))
        assert back.namespace("acme", "alice").get("1").content == "v3"
    for wrong, error, kind in (
        ([chain[1]], "came after another", InvalidInput),
        ([chain[0], chain[2]], "goes on after", Conflict),
        ([], "name a backup", InvalidInput),
    ):
        with pytest.raises(kind, match=error):
            restore(wrong, f"sqlite:///{tmp_path}/wrong.db")
    assert not (tmp_path / "wrong.db").exists()


def test_a_copy_can_be_continued_too(tmp_path: Path, clock: FakeClock) -> None:
    with Memory.open(f"sqlite:///{tmp_path}/agent.db", clock=clock) as memory:
        fill(memory)
        memory.backup(tmp_path / "copy")
        memory.namespace("acme", "alice").save("after")
        report = memory.backup(tmp_path / "rest", since=tmp_path / "copy")
        assert report.counts.entries == 1
        wanted = state(memory)
    other = Memory.open(f"sqlite:///{tmp_path}/other.db", clock=clock)
    with other, pytest.raises(InvalidInput, match="another store"):
        other.backup(tmp_path / "wrong", since=tmp_path / "copy")
    with restored(tmp_path, clock, tmp_path / "copy", tmp_path / "rest") as back:
        assert state(back) == wanted


# Refusals


def test_a_store_with_memories_is_not_restored_over(tmp_path: Path, clock: FakeClock) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    with Memory.open(url, clock=clock) as memory:
        memory.namespace("a").save("backed up")
        memory.backup(tmp_path / "b")
        memory.namespace("a").save("after")
        with pytest.raises(NotAllowed, match="holds memories"):
            restore(tmp_path / "b", url)
        assert bodies(memory.namespace("a")) == ["backed up", "after"]
    restore(tmp_path / "b", url, overwrite=True)
    with Memory.open(url) as memory:
        assert bodies(memory.namespace("a")) == ["backed up"]
    with Memory.open(f"{url}.before-restore") as memory:
        assert bodies(memory.namespace("a")) == ["backed up", "after"]
    with pytest.raises(NotAllowed, match="earlier restore"):
        restore(tmp_path / "b", url, overwrite=True)
    Memory.open(f"sqlite:///{tmp_path}/empty.db").close()
    restore(tmp_path / "b", f"sqlite:///{tmp_path}/empty.db")
    assert not (tmp_path / "empty.db.before-restore").exists()


Harm = Callable[[Path], None]


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def rewritten(change: Callable[[list[tuple[str, Any]]], list[tuple[str, Any]]]) -> Harm:
    """Write an archive anew with other lines, and a digest that fits them."""

    def harm(path: Path) -> None:
        lines = list(read_lines(path))
        path.unlink()
        with writing(path, lines[0][1]) as writer:
            for sort, value in change(lines[1:]):
                writer.write(sort, value)

    return harm


def without_an_entry(lines: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    place = next(n for n, (sort, value) in enumerate(lines) if sort == "entry" and value[0] == 2)
    return lines[:place] + lines[place + 1 :]


def other_body(lines: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    for sort, value in lines:
        if sort == "entry" and value[-1] == ["text", "v1"]:
            value[-1] = ["text", "forged"]
    return lines


@pytest.mark.parametrize(
    "harm",
    [truncated, flipped, rewritten(without_an_entry), rewritten(other_body)],
    ids=["truncated", "flipped", "an entry less", "another body"],
)
def test_a_damaged_archive_restores_nothing(tmp_path: Path, harm: Harm) -> None:
    with Memory.open("memory://") as memory:
        space = memory.namespace("a")
        space.save("v1", key="k")
        space.save_many([{"content": os.urandom(300).hex()} for _ in range(20)])
        space.update("1", content="v2")
        memory.backup(tmp_path / "b")
    harm(tmp_path / "b")
    assert not verify_file(tmp_path / "b").sound
    with pytest.raises(StoreCorrupt):
        restore(tmp_path / "b", f"sqlite:///{tmp_path}/back.db")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_damaged_copy_restores_nothing(tmp_path: Path) -> None:
    with Memory.open(f"sqlite:///{tmp_path}/agent.db") as memory:
        memory.namespace("a").save_many([{"content": f"note {n} " * 50} for n in range(200)])
        memory.backup(tmp_path / "b")
    content = bytearray((tmp_path / "b").read_bytes())
    content[4096 * 12 : 4096 * 14] = b"\x55" * 8192
    (tmp_path / "b").write_bytes(bytes(content))
    assert not verify_file(tmp_path / "b").sound
    with pytest.raises(StoreUnavailable):
        restore(tmp_path / "b", f"sqlite:///{tmp_path}/back.db")
    assert not (tmp_path / "back.db").exists()


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a note")
    (tmp_path / "lines").write_bytes(gzip.compress(b'{"a": 1}\n'))
    with closing(sqlite3.connect(tmp_path / "foreign")) as connection:
        connection.execute("CREATE TABLE t (x)")
    for name in ("text", "lines", "foreign"):
        with pytest.raises(StoreCorrupt):
            restore(tmp_path / name, f"sqlite:///{tmp_path}/back.db")
        assert not verify_file(tmp_path / name).sound
    with pytest.raises(StoreUnavailable):
        restore(tmp_path / "missing", f"sqlite:///{tmp_path}/back.db")


# Checks


HARMS = {
    "UPDATE body SET bytes = x'66' WHERE number = (SELECT min(number) FROM body)": "digest",
    "DELETE FROM journal WHERE place IN (SELECT place FROM journal LIMIT 1 OFFSET 3)": "journal",
    "UPDATE record SET terms = replace(terms, 'note', 'other')": "index",
    "UPDATE namespace SET documents = documents + 1": "index counts",
    "DELETE FROM lexicon_data WHERE id > 10": "index",
    "UPDATE journal SET fields = '{' WHERE place = (SELECT max(place) FROM journal)": "read",
    "UPDATE journal SET fields = '{}' WHERE place = (SELECT max(place) FROM journal)": "read",
    "UPDATE body SET bytes = x'ff' WHERE number = (SELECT max(number) FROM body)": "read",
}


@pytest.mark.parametrize("sql", HARMS)
def test_a_check_finds_what_is_wrong(tmp_path: Path, sql: str) -> None:
    with Memory.open(f"sqlite:///{tmp_path}/agent.db") as memory:
        space = memory.namespace("a")
        space.save_many([{"content": f"note {n}", "key": f"k{n}"} for n in range(5)])
        space.update("1", content="note changed")
        assert memory.verify().sound
        with closing(sqlite3.connect(tmp_path / "agent.db")) as connection:
            connection.execute(sql)
            connection.commit()
        found = memory.verify()
        assert any(HARMS[sql] in fault for fault in found.faults), found.faults


# By the clock


def test_backups_by_the_clock(tmp_path: Path) -> None:
    now = datetime(2026, 3, 1, 4, 0, tzinfo=UTC)
    schedule = Schedule(folder=tmp_path / "backups", interval=timedelta(hours=6), keep=2)
    with Memory.open(f"sqlite:///{tmp_path}/agent.db") as memory:
        made = []
        for hour in range(0, 24, 3):
            memory.namespace("a").save(f"hour {hour}")
            made.append(schedule.run(memory.storage, now + timedelta(hours=hour)) is not None)
        noted = memory.storage.note("backed-up")
    assert made == [True, False] * 4
    assert noted == "2026-03-01T22:00:00+00:00"
    names = [path.name for path in schedule.backups()]
    assert names == ["zero-mem-20260301T160000Z.backup", "zero-mem-20260301T220000Z.backup"]
    assert (tmp_path / "backups").stat().st_mode & 0o777 == 0o700
    with pytest.raises(InvalidInput):
        replace(schedule, keep=0)


@pytest.mark.parametrize("keep", [1, 3])
def test_a_clock_that_was_set_back_puts_off_no_backup(tmp_path: Path, keep: int) -> None:
    now = datetime(2026, 3, 2, tzinfo=UTC)
    schedule = Schedule(folder=tmp_path / "backups", interval=timedelta(hours=6), keep=keep)
    with Memory.open(f"sqlite:///{tmp_path}/agent.db") as memory:
        assert schedule.run(memory.storage, now)
        back = now - timedelta(days=1)
        made = []
        for hour in range(0, 12, 3):
            memory.namespace("a").save(f"hour {hour}")
            made.append(schedule.run(memory.storage, back + timedelta(hours=hour)) is not None)
            assert 1 <= len(schedule.backups()) <= keep
    assert made == [True, False, True, False]
    newest = "zero-mem-20260301T060000Z.backup"
    assert newest in [path.name for path in schedule.backups()]
    assert verify_file(tmp_path / "backups" / newest).counts.records == 3


def test_old_backups_stay_until_the_new_one_is_found_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    schedule = Schedule(folder=tmp_path / "backups", interval=timedelta(days=1), keep=1)
    with Memory.open(f"sqlite:///{tmp_path}/agent.db") as memory:
        memory.namespace("a").save("note")
        schedule.run(memory.storage, now)
        (tmp_path / "backups" / "other.txt").write_text("mine")
        before = sorted(path.name for path in (tmp_path / "backups").iterdir())
        with closing(sqlite3.connect(tmp_path / "agent.db")) as connection:
            connection.execute("UPDATE body SET bytes = x'666f72676564'")
            connection.execute("UPDATE namespace SET sequence = 9")
            connection.commit()
        with pytest.raises(StoreCorrupt, match="old ones stay"):
            schedule.run(memory.storage, now + timedelta(days=1))
    assert sorted(path.name for path in (tmp_path / "backups").iterdir()) == before


# In numbers


def backed_up_and_restored(tmp_path: Path, number: int) -> None:
    """Report 18: as many records come back as there were, by either form."""
    with Memory.open(f"sqlite:///{tmp_path}/agent.db", durability="normal") as memory:
        space = memory.namespace("a")
        for start in range(0, number, 1000):
            rest = range(start, min(start + 1000, number))
            space.save_many([{"content": f"order {n} was sent", "key": f"k{n}"} for n in rest])
        for name, portable in (("copy", False), ("archive", True)):
            report = memory.backup(tmp_path / name, portable=portable)
            assert report.counts.records == report.counts.entries == number
    for name in ("copy", "archive"):
        report_of = restore(tmp_path / name, f"sqlite:///{tmp_path}/{name}.db", verify=False)
        assert report_of.counts.records == number
        with Memory.open(f"sqlite:///{tmp_path}/{name}.db") as back:
            assert back.stats().records == number
            assert back.namespace("a").get(str(number)).key == f"k{number - 1}"


def test_many_records_come_back(tmp_path: Path) -> None:
    backed_up_and_restored(tmp_path, 2_500)


@pytest.mark.fault
def test_67000_records_come_back(tmp_path: Path) -> None:
    backed_up_and_restored(tmp_path, 67_000)
    with Memory.open(f"sqlite:///{tmp_path}/archive.db") as back:
        assert back.verify().sound


def test_backups_of_an_asynchronous_store(tmp_path: Path) -> None:
    import asyncio

    async def run() -> None:
        async with AsyncMemory.open(f"sqlite:///{tmp_path}/agent.db") as memory:
            await memory.namespace("a").save("note")
            report = await memory.backup(tmp_path / "b")
            assert report.counts.records == 1
            assert (await memory.verify()).sound

    asyncio.run(run())
    restore(tmp_path / "b", f"sqlite:///{tmp_path}/back.db")
