"""A purge reaches the bytes: of the file, its log, its index and its journal."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes.launch import command
from processes.sqlite_checks import file_faults

from zero_mem import Blob, Json, Memory
from zero_mem.errors import NotFound, StoreUnavailable
from zero_mem.testing.fakes import FakeClock

pytestmark = pytest.mark.req("history:purge")

CANARY = "zyxwvutcanary"
CHINESE = "鼋鼍貔貅"
BIGRAMS = [CHINESE[place : place + 2] for place in range(len(CHINESE) - 1)]
WRITTEN = [CANARY, CHINESE, *BIGRAMS, *CHINESE]


def traces(folder: Path) -> set[tuple[str, str]]:
    """Find the canaries in the files of a store: plain, and escaped as JSON writes them."""
    found = set()
    for path in folder.iterdir():
        content = path.read_bytes()
        for canary in WRITTEN:
            forms = [canary.encode(), json.dumps(canary)[1:-1].encode()]
            # Two bytes of one character stand in any file by chance.
            forms += [canary.encode("utf-16-le")] if len(canary) > 1 else []
            if any(form in content for form in forms):
                found.add((path.name, canary))
    return found


def fill(memory: Memory) -> None:
    """Save neighbours, and records with canaries in every place that can hold one."""
    space = memory.namespace("acme")
    secret = f"{CANARY} {CHINESE}"
    neighbours = [
        {"content": f"neighbour {n} 退款申请 " + "x" * (n * 40), "memory_id": f"n{n}"}
        for n in range(60)
    ]
    space.save_many(neighbours[:30])
    space.save(
        secret,
        memory_id="s1",
        kind=f"kind-{CANARY}",
        key=f"key-{CANARY}",
        metadata={CANARY: {"deep": [secret]}},
        tags=[CANARY, CHINESE],
        task=CANARY,
        session=CANARY,
        speaker=CHINESE,
        invalidated_by=[CANARY],
        idempotency_key=f"once-{CANARY}",
        hold="owner",
    )
    space.save(Json({CANARY: [secret]}), memory_id="s2")
    space.save(Blob(data=secret.encode() * 900, media_type=f"text/{CANARY}"), memory_id="s3")
    space.save(secret * 3000, memory_id="s4")
    space.save_many(neighbours[30:])
    for number in range(8):
        space.update("s1", content=f"{secret} again {number}", metadata={f"{CANARY}{number}": 1})
    space.update("s1", content="harmless at last", tags=["harmless"])
    space.decide("host", "k", secret, memory_id="s2")
    space.archive("s2")
    space.delete("s4")
    space.rollback("s4", to_version=1)


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_no_byte_of_a_purged_memory_is_left(tmp_path: Path, durability: str) -> None:
    with Memory.open(f"sqlite:///{tmp_path / 'store.db'}", durability=durability) as memory:
        fill(memory)
        assert {canary for _, canary in traces(tmp_path)} >= {CANARY, CHINESE, *BIGRAMS}
        space = memory.namespace("acme")
        space.purge_many(["s1", "s2", "s3", "s4"])
        assert traces(tmp_path) == set()
        assert space.count() == 60
        assert len(space.search("neighbour", limit=100)) == 60
        assert len(space.search("退款", limit=100)) == 60
        assert space.get("n59").text.startswith("neighbour 59")
        assert len(space.history("n0")) == 1
        space.save("after", memory_id="after")
        assert [hit.memory_id for hit in space.search("after")] == ["after"]
    assert traces(tmp_path) == set()
    assert file_faults(tmp_path / "store.db") == []


DRY_RUNS: dict[str, Callable[[Memory], Any]] = {
    "purge": lambda m: (
        m.namespace("acme").purge_many(["s1", "s2", "s3", "s4"], dry_run=True).erased
    ),
    "expire": lambda m: m.expire(dry_run=True).swept,
    "end of a task": lambda m: m.namespace("acme").end_task("t", dry_run=True).swept,
    "event": lambda m: m.namespace("acme").raise_event(CANARY, dry_run=True).swept,
}


@pytest.mark.req("expire:task-end", "expire:event", "expire:sweeper")
@pytest.mark.parametrize("dry_run", DRY_RUNS.values(), ids=DRY_RUNS)
def test_a_dry_run_changes_no_byte(
    tmp_path: Path, clock: FakeClock, dry_run: Callable[[Memory], Any]
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with Memory.open(url, clock=clock) as memory:
        fill(memory)
        space = memory.namespace("acme")
        space.save_many([{"content": "w" * 999, "form": "working", "task": "t"} for _ in range(99)])
        space.save("due", expires_in=60)
        clock.advance(61)
        before = {name: (tmp_path / name).read_bytes() for name in ("store.db", "store.db-wal")}
        assert dry_run(memory)
        assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_deleting_alone_keeps_the_history(tmp_path: Path) -> None:
    with Memory.open(f"sqlite:///{tmp_path / 'store.db'}") as memory:
        space = memory.namespace("acme")
        space.save(CANARY, memory_id="x")
        space.delete("x")
        assert space.history("x")[1].before == CANARY


def test_a_purge_through_one_opener_reaches_the_log_of_all(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'store.db'}"
    with Memory.open(address) as one, Memory.open(address) as two:
        two.namespace("acme").save(CANARY, memory_id="x")
        one.namespace("acme").count()
        two.namespace("acme").update("x", content=CHINESE)
        one.namespace("acme").purge("x")
        assert traces(tmp_path) == set()
        assert two.namespace("acme").count() == 0


@pytest.fixture
def cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store whose purge committed and was stopped before the file was rewritten."""
    url = f"sqlite:///{tmp_path}/a.db"
    with Memory.open(url) as memory:
        fill(memory)
        monkeypatch.setattr(memory.storage, "scrub", lambda: None)
        memory.namespace("acme").purge_many(["s1", "s2", "s3", "s4"])
        assert memory.storage.scrub_pending()
    assert traces(tmp_path)
    return url


def test_the_next_open_ends_a_purge_that_was_cut_short(cut_short: str, tmp_path: Path) -> None:
    with Memory.open(cut_short) as memory:
        assert not memory.storage.scrub_pending()
        with pytest.raises(NotFound, match="purged"):
            memory.namespace("acme").purge("s1")
    assert traces(tmp_path) == set()


def test_a_purge_that_a_reader_delayed_can_be_asked_for_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with Memory.open(url) as memory, Memory.open(url) as other:
        fill(memory)
        space = memory.namespace("acme")
        with other.transaction() as reading:
            assert reading.namespaces(())
            with pytest.raises(StoreUnavailable, match="scrub"):
                memory.storage.scrub(wait=False)
            monkey = pytest.MonkeyPatch()
            with monkey.context() as patch:
                patch.setattr(memory.storage, "scrub", lambda: None)
                space.purge_many(["s1", "s2", "s3", "s4"])
            memory.expire()
            assert memory.storage.scrub_pending()
        assert space.purge("s1").unchanged
        assert not memory.storage.scrub_pending()
    assert traces(tmp_path) == set()


@pytest.mark.skipif(os.name != "posix", reason="takes a lock of POSIX")
def test_a_purge_waits_for_another_process_that_empties_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says at once that it is busy then, however long it was told to wait."""
    path = tmp_path / "store.db"
    with Memory.open(f"sqlite:///{path}") as memory:
        space = memory.namespace("acme")
        space.save(CANARY, memory_id="x")
        holder = subprocess.Popen(
            command("hold_checkpoint.py", path), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        paused: list[float] = []

        def pause(seconds: float) -> None:
            """Let the other process end, as a pause does in time."""
            paused.append(seconds)
            holder.communicate(b"end\n")

        monkeypatch.setattr("zero_mem.storage.sqlite_file.time.sleep", pause)
        space.purge("x")
        assert len(paused) == 1
        assert not memory.storage.scrub_pending()
        assert traces(tmp_path) == set()
