"""Backups by the clock inside the server: made, counted, tried again, ended by a stop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from serving import Loopback, loopback

from zero_mem import Conflict, Memory
from zero_mem.access import Grant
from zero_mem.backup import making, verify_file
from zero_mem.backup.dumping import dump
from zero_mem.doctor import examine
from zero_mem.errors import StoreUnavailable
from zero_mem.server.app import App
from zero_mem.server.backups import Backups
from zero_mem.server.settings import Settings
from zero_mem.testing import FakeClock

pytestmark = pytest.mark.req("prod:backup", "server:serve")


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture
def local(tmp_path: Path, clock: FakeClock) -> Memory:
    memory = Memory.open(f"sqlite:///{tmp_path}/store.db", clock=clock)
    memory.namespace("acme").save("tea")
    return memory


def settings(tmp_path: Path, **given: Any) -> Settings:
    return Settings(backup_folder=f"{tmp_path}/backups", **given)


@dataclass
class Running:
    url: str
    backups: Backups
    loop: asyncio.AbstractEventLoop

    def once(self) -> None:
        """Look whether a backup is due, after the one that is under way."""
        asyncio.run_coroutine_threadsafe(self.backups.once(), self.loop).result()

    def metrics(self) -> dict[str, float]:
        lines = httpx.get(f"{self.url}/metrics").text.splitlines()
        found = [line.split(" ") for line in lines if line.startswith("zero_mem_backup")]
        return {name: float(value) for name, value in found}

    def names(self) -> list[str]:
        return sorted(each.name for each in self.backups.schedule.folder.iterdir())


@contextmanager
def running(server: Loopback, memory: Memory, given: Settings) -> Iterator[Running]:
    with server.serving(memory, given) as url:
        assert server.switch.app is not None
        assert server.switch.app.host.backups is not None
        assert server.switch.loop is not None
        yield Running(url, server.switch.app.host.backups, server.switch.loop)


def test_a_running_server_makes_the_backups_that_are_due(
    server: Loopback, local: Memory, tmp_path: Path, clock: FakeClock
) -> None:
    given = settings(tmp_path, backup_every=3600.0, backup_keep=2)
    with running(server, local, given) as run:
        run.once()
        first = run.names()
        assert len(first) == 1
        run.once()
        assert run.names() == first
        for _ in range(3):
            clock.advance(timedelta(hours=1))
            run.once()
        assert len(run.names()) == 2
        assert first[0] not in run.names()
        assert [report.path.name for report in run.backups.reports][-2:] == run.names()
        assert run.metrics() == {
            "zero_mem_backups_total": 4,
            "zero_mem_backup_failures_total": 0,
            "zero_mem_backup_timestamp_seconds": clock().timestamp(),
            "zero_mem_backup_bytes": run.backups.reports[-1].bytes,
        }
        (answer,) = [each for each in examine(local).answers if "backup" in each.question]
        assert answer.verdict == "good"
        assert verify_file(run.backups.schedule.backups()[-1]).sound
        assert not run.backups.failures


def test_the_last_backup_is_known_after_a_restart(
    server: Loopback, local: Memory, tmp_path: Path, clock: FakeClock
) -> None:
    with running(server, local, settings(tmp_path)) as run:
        run.once()
        made = run.metrics()
    again = Memory.open(f"sqlite:///{tmp_path}/store.db", clock=clock)
    clock.advance(timedelta(minutes=1))
    with running(server, again, settings(tmp_path)) as run:
        run.once()
        assert run.metrics() == made | {"zero_mem_backups_total": 0}


def test_what_failed_is_told_and_tried_again(
    server: Loopback, local: Memory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "backups").write_text("in the way")
    with running(server, local, settings(tmp_path)) as run:
        run.once()
        assert {each.problem.partition(":")[0] for each in run.backups.failures} == {
            "StoreUnavailable"
        }
        assert run.metrics()["zero_mem_backup_failures_total"] == len(run.backups.failures) > 0
        assert "the backup failed: StoreUnavailable" in caplog.text
        assert httpx.get(f"{run.url}/ready").status_code == 200
        (tmp_path / "backups").unlink()
        run.once()
        assert len(run.names()) == 1


def test_an_old_backup_that_can_not_be_removed_ends_no_schedule(
    server: Loopback, local: Memory, tmp_path: Path, clock: FakeClock
) -> None:
    stuck = tmp_path / "backups" / "zero-mem-20010101T000000Z.backup"
    (stuck / "inside").mkdir(parents=True)
    with running(server, local, settings(tmp_path, backup_every=3600.0, backup_keep=1)) as run:
        run.once()
        assert {each.problem.rpartition(": ")[0] for each in run.backups.failures} == {
            f"StoreUnavailable: {stuck}: can't be removed"
        }
        (stuck / "inside").rmdir()
        stuck.rmdir()
        clock.advance(timedelta(hours=1))
        run.once()
        (name,) = run.names()
        assert verify_file(run.backups.schedule.folder / name).sound
        assert [report.path.name for report in run.backups.reports] == [name]


class Gate:
    """Holds an archive's writing up after its first line."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

        def held(*given: Any, **named: Any) -> Iterator[Any]:
            for line in dump(*given, **named):
                yield line
                self.reached.set()
                assert self.opened.wait(60)

        monkeypatch.setattr(making, "dump", held)


def test_a_stop_ends_a_backup_under_way_and_leaves_nothing_of_it(
    local: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.keyring.create("app", [Grant.parse("read:**")])
    gate = Gate(monkeypatch)
    app = App(local, settings(tmp_path, backup_portable=True, sweep_every=0.0))
    backups = app.host.backups
    assert backups is not None

    async def program() -> None:
        async with app.living():
            await asyncio.to_thread(gate.reached.wait)
            assert backups.under_way
            with pytest.raises(Conflict, match="already"):
                await backups.make()
            app.stop()
            gate.opened.set()

    asyncio.run(program())
    assert not backups.under_way
    assert list((tmp_path / "backups").iterdir()) == []
    assert not backups.failures
    with pytest.raises(StoreUnavailable):
        local.namespace("acme").get("1")
    with Memory.open(f"sqlite:///{tmp_path}/store.db") as again:
        assert again.verify().sound


def test_by_hand_a_backup_is_made_at_once(
    server: Loopback, local: Memory, tmp_path: Path, clock: FakeClock
) -> None:
    given = settings(tmp_path, backup_every=0.0, backup_portable=True)
    with running(server, local, given) as run:
        assert run.metrics()["zero_mem_backups_total"] == 0
        local.namespace("acme").save("accepted", memory_id="q", mode="queued")
        making_one = asyncio.run_coroutine_threadsafe(run.backups.make(), run.loop)
        report = making_one.result()
        assert (report.form, report.counts.records) == ("archive", 2)
        assert [report.path.name] == run.names()


def test_what_a_killed_server_left_unfinished_goes_after_a_day(
    server: Loopback, local: Memory, tmp_path: Path, clock: FakeClock
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    stamp = "zero-mem-20260101T000000Z.backup"
    for name, hours in ((f".{stamp}.abc.part", 25), (f"..{stamp}.abc.part.d.part", 25),
                        (f".{stamp}.def.part", 1), ("mine.part", 25)):  # fmt: skip
        (folder / name).write_text("half")
        at = clock().timestamp() - 3600 * hours
        os.utime(folder / name, (at, at))
    with running(server, local, settings(tmp_path)) as run:
        run.once()
        names = run.names()
    assert names[0] == f".{stamp}.def.part"
    assert "mine.part" in names
    assert len(names) == 3
