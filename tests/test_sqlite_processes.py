"""One file, many writers: processes, threads, forks, and exits with writes in the queue."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from processes.launch import run, run_together
from processes.sqlite_checks import file_faults

from zero_mem import Memory
from zero_mem.errors import Conflict, StoreUnavailable
from zero_mem.storage import sqlite_file
from zero_mem.types import Json


def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.mark.req("op:order", "handle:short")
def test_eight_processes_make_and_fill_one_fresh_file(path: Path) -> None:
    outputs = run_together("save_many_times.py", [(url(path), 200, n) for n in range(8)])
    given = [memory_id for output in outputs for memory_id in output.split()]
    assert sorted(map(int, given)) == list(range(1, 1601))
    with Memory.open(url(path)) as memory:
        assert memory.namespace("acme").count() == 1600
    assert file_faults(path) == []


@pytest.mark.req("op:dedupe-key")
def test_processes_that_race_for_a_key_leave_one_record(path: Path) -> None:
    outputs = run_together("one_key.py", [(url(path), 25, n) for n in range(4)])
    assert [output.split() for output in outputs] == [["1"]] * 4
    with Memory.open(url(path)) as memory:
        (record,) = memory.namespace("acme").each()
        assert record.version == 100
        assert len(memory.namespace("acme").history("1")) == 100
    assert file_faults(path) == []


@pytest.mark.req("op:version")
def test_no_update_is_lost_between_processes_that_compare_versions(path: Path) -> None:
    with Memory.open(url(path)) as memory:
        memory.namespace("acme").save(Json(0), memory_id="counter")
    run_together("count_up.py", [(url(path), 25, n) for n in range(4)])
    with Memory.open(url(path)) as memory:
        record = memory.namespace("acme").get("counter")
    assert (record.content, record.version) == (Json(100), 101)


@pytest.mark.req("op:version")
def test_the_second_of_two_writers_from_one_version_gets_a_conflict(path: Path) -> None:
    with Memory.open(url(path)) as one, Memory.open(url(path)) as two:
        for body in ("1", "2", "3"):
            one.namespace("acme").save(body, memory_id="x")
        one.namespace("acme").update("x", content="first", if_version=3)
        with pytest.raises(Conflict, match="version 4, not 3"):
            two.namespace("acme").update("x", content="second", if_version=3)
        assert two.namespace("acme").get("x").text == "first"


@pytest.mark.req("op:order", "recall:fresh")
def test_a_write_is_seen_by_every_opener_at_once(path: Path) -> None:
    with Memory.open(url(path)) as one, Memory.open(url(path)) as two:
        for number in range(20):
            memory_id = one.namespace("acme").save(f"word{number}").memory_id
            assert two.namespace("acme").get(memory_id).text == f"word{number}"
            assert [h.memory_id for h in two.namespace("acme").search(f"word{number}")] == [
                memory_id
            ]


@pytest.mark.req("op:order")
def test_threads_share_a_store(path: Path) -> None:
    errors: list[BaseException] = []
    with Memory.open(url(path), durability="normal") as memory:

        def work(number: int) -> None:
            try:
                space = memory.namespace("acme", str(number % 2))
                for turn in range(25):
                    memory_id = space.save(f"thread{number} turn{turn}").memory_id
                    assert space.get(memory_id).text == f"thread{number} turn{turn}"
                    assert space.search(f"thread{number} turn{turn}")[0].memory_id == memory_id
            except BaseException as error:  # noqa: BLE001 - told to the test below
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert memory.subtree("acme").count() == 150
    assert file_faults(path) == []


@pytest.mark.req("op:order", "op:queued")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_writes_on_when_its_parent_is_gone(path: Path) -> None:
    wanted = ["child", "child, queued", "parent", "parent, queued"]
    assert run("forked.py", path).splitlines() == wanted
    with Memory.open(url(path)) as memory:
        assert sorted(record.text for record in memory.namespace("acme").each()) == wanted
    assert file_faults(path) == []


@pytest.mark.req("op:queued")
@pytest.mark.parametrize(("how", "code"), [("end", 0), ("error", 3)])
def test_a_script_that_ends_at_once_loses_no_queued_write(path: Path, how: str, code: int) -> None:
    run("exit_with_queue.py", url(path), 100, how, expected=code)
    with Memory.open(url(path)) as memory:
        texts = [record.text for record in memory.namespace("acme").each()]
    assert texts == [f"queued {number}" for number in range(100)]


@pytest.mark.req("pkg:errors", "op:order")
def test_a_lock_that_is_held_too_long_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    with Memory.open(url(path)) as one, Memory.open(url(path)) as two:
        one.namespace("acme").save("kept")
        with one.transaction(write=True):
            with pytest.raises(StoreUnavailable, match=r"store\.db: another process.*try again"):
                two.namespace("acme").save("late")
            assert two.namespace("acme").count() == 1
        two.namespace("acme").save("in time")
        assert one.namespace("acme").count() == 2


@pytest.mark.req("history:purge", "pkg:errors")
def test_a_purge_beside_a_reader_says_what_is_left_to_do(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    with Memory.open(url(path)) as one, Memory.open(url(path)) as two:
        one.namespace("acme").save("canary-4711", memory_id="x")
        with two.transaction() as reader:
            assert reader.namespace(("acme",)) is not None
            with pytest.raises(StoreUnavailable, match=r"erased.*again"):
                one.namespace("acme").purge("x")
        assert two.namespace("acme").count() == 0
        one.scrub()
    assert b"canary-4711" not in path.read_bytes()
