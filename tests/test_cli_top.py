"""`zero-mem top`: what it shows of a store and of a server, and how it leaves the terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from served import ROOT, ZERO_MEM, Served
from serving import Loopback, loopback
from test_cli import parsed, run, said
from test_cli import store as store  # the fixture: a store and a folder of its own

from zero_mem import Memory
from zero_mem.access import Grant
from zero_mem.cli.watching.rates import History, quantile
from zero_mem.cli.watching.sources import Sample, StoreSource
from zero_mem.ledger.entries import Account
from zero_mem.memory import Health, Stats
from zero_mem.metrics.registry import Durations
from zero_mem.server.settings import Settings
from zero_mem.storage.opening import shown
from zero_mem.testing import FakeClock

pytestmark = pytest.mark.req("pkg:cli", "prod:metrics")

EMPTY = Stats(namespaces=0, records=0, by_state={}, by_form={}, journal=0, bytes=0)


def sample(at: float, *, since: float | None = None, **operations: int) -> Sample:
    return Sample(
        at=at,
        since=since,
        moment=datetime(2026, 1, 1, tzinfo=UTC),
        health=Health(ready=True),
        stats=EMPTY,
        account=Account(),
        operations=operations,
    )


def saves(each: Sample) -> float:
    return each.operations.get("save", 0)


# Rates


def test_a_rate_is_of_the_last_seconds_and_of_the_last_minute() -> None:
    history = History()
    history.add(sample(0.0, save=100))
    assert history.rate(saves) is None
    for second in range(1, 101):
        history.add(sample(float(second), save=100 + (second if second <= 90 else 90)))
    assert history.rate(saves, seconds=10) == 0.0
    assert history.rate(saves, seconds=20) == 0.5
    assert history.rate(saves, seconds=60) == pytest.approx(50 / 60)


def test_counting_that_began_earlier_has_a_rate_at_once() -> None:
    history = History()
    history.add(sample(1000.0, since=940.0, save=30))
    assert history.rate(saves, seconds=60) == 0.5


def test_after_a_restart_no_rate_is_below_nothing() -> None:
    history = History()
    for at, count in ((0.0, 500), (1.0, 510), (2.0, 3), (3.0, 4)):
        history.add(sample(at, save=count))
    assert history.rate(saves) == 1.0


def test_a_quantile_is_the_bound_of_its_class() -> None:
    classes = [0] * 13
    assert quantile(Durations(list(classes)), 0.5) is None
    classes[3], classes[12] = 99, 1
    assert quantile(Durations(list(classes)), 0.5) == 0.005
    assert quantile(Durations(list(classes)), 0.99) == 0.005
    assert quantile(Durations(list(classes)), 0.999) == float("inf")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://me:secret@db.example:5432/store?sslmode=require", "postgresql://db.example:5432/store"),
        ("http://me:secret@h.example:1", "http://h.example:1"),
        ("sqlite:////tmp/a@b.db", "sqlite:////tmp/a@b.db"),
        ("memory://", "memory://"),
    ],
)  # fmt: skip
def test_no_password_is_shown(url: str, name: str) -> None:
    assert shown(url) == name


# A store


def test_the_changes_of_a_store_are_those_of_its_journal(tmp_path: Path, clock: FakeClock) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    with Memory.open(url, clock=clock) as memory, Memory.open(url, clock=clock) as other:
        space = other.namespace("a")
        space.save_many([{"content": f"old {n}"} for n in range(1500)])
        clock.advance(61)
        space.save_many([{"content": f"new {n}"} for n in range(1200)])
        source = StoreSource(memory, url)
        assert source.read().operations == {"save": 1200}
        space.update("1", "changed")
        other.namespace("b").save_many([{"content": "x"}, {"content": "y"}])
        found = source.read()
        assert found.operations == {"save": 1202, "update": 1}
        assert found.health.ready
        assert found.snapshot is None


def test_one_picture_of_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    run("save", "the body of a note")
    run("save", "another")
    run("delete", "1")
    run("expire")
    text = said("top", "--once")
    assert "sqlite:///agent.db" in text
    assert "ready in" in text
    for row in (
        r"active +1",
        r"deleted +1",
        r"save +\S+ +\S+ +2",
        r"delete +\S+ +\S+ +1",
        "last sweep",
    ):
        assert re.search(row, text), (row, text)
    assert "body" not in text
    assert said("top").split()[:2] == ["zero-mem", "top"]  # no terminal: shown once
    for width in ("30", "40", "71", "72", "200"):
        monkeypatch.setenv("COLUMNS", width)
        lines = said("top", "--once").splitlines()
        assert max(map(len, lines)) <= int(width)
        assert any("journal entries" in line for line in lines) or width == "30"


def test_it_as_json() -> None:
    run("save", "tea")
    found = parsed("top", "--once")
    assert found["changes"] == {"save": 1}
    assert 0 < found["changes_per_minute"]["save"] <= 1
    assert (found["records"], found["ready"], found["calls"]) == ({"active": 1}, True, None)


def test_what_is_no_server_is_refused() -> None:
    assert "http" in run("top", "agent.db", code=2).stderr
    assert "no server answers" in run("top", "http://127.0.0.1:1", code=5).stderr
    run("top", code=5)  # there is no store yet
    run("top", "--every", "0", code=2)


# A server


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


def test_a_server_tells_its_calls(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = Memory.open(f"sqlite:///{tmp_path}/served.db")
    space = local.namespace("a")
    space.save_many([{"content": f"note {n} on tea"} for n in range(20)])
    space.recall("tea")
    local.expire()
    credential = local.keyring.create("watcher", [Grant.parse("read:a")]).credential
    with server.serving(local, Settings(backup_folder=f"{tmp_path}/b")) as url:
        assert "Bearer" in run("top", url, "--once", code=4).stderr
        monkeypatch.setenv("ZERO_MEM_CREDENTIAL", credential)
        found = parsed("top", url, "--once")
        assert found["source"] == url
        assert found["changes"] == {"save": 20}
        assert found["calls"]["recall"]["p50"] is not None or found["recalled"] > 0
        assert found["sweeps"] == 1
        text = " ".join(said("top", url, "--once").split())
        for row in ("save – – 20", "open feeds 0", "sweeps 1", "recall –", "requests under way"):
            assert row in text
        assert json.loads(json.dumps(found, allow_nan=False)) == found


# On a terminal


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, *arguments: str, rows: int = 30, columns: int = 90) -> None:
        self.ours, self._theirs = pty.openpty()
        termios.tcsetwinsize(self._theirs, (rows, columns))
        self.before = termios.tcgetattr(self._theirs)
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "TERM": "xterm-256color"}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            [*ZERO_MEM, "top", "--every", "0.1", *arguments],
            stdin=self._theirs, stdout=self._theirs, stderr=self._theirs,
            env=environment, start_new_session=True,
        )  # fmt: skip
        self.shown = b""

    def until(self, text: bytes) -> None:
        """Read until a text is on the screen."""
        while text not in self.shown:
            assert select.select([self.ours], [], [], 60)[0], self.shown[-2000:]
            self.shown += os.read(self.ours, 65_536)

    def ended(self) -> int:
        """Read the rest and give the exit code."""
        while self.process.poll() is None or select.select([self.ours], [], [], 0)[0]:
            if select.select([self.ours], [], [], 0.05)[0]:
                self.shown += os.read(self.ours, 65_536)
        return self.process.returncode

    def is_as_before(self) -> bool:
        shown = self.shown
        left = shown.rfind(b"\x1b[?1049l") > shown.rfind(b"\x1b[?1049h") >= 0
        visible = shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l") >= 0
        return left and visible and termios.tcgetattr(self._theirs) == self.before

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self._theirs)


@pytest.fixture
def terminal(store: Path) -> Iterator[Any]:
    opened: list[Terminal] = []

    def begin(*arguments: str, **size: int) -> Terminal:
        opened.append(Terminal(*arguments, **size))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty")


@posix
@pytest.mark.parametrize("leave", ["q", "arrow and q", "ctrl-c"])
def test_it_goes_on_and_leaves_the_terminal_as_it_was(terminal: Any, leave: str) -> None:
    run("save", "tea")
    running = terminal()
    running.until(b"journal entries")
    run("save", "coffee", "--kind", "other")
    run("archive", "1")
    running.until(b"archive")
    if leave != "ctrl-c":
        os.write(running.ours, b"q" if leave == "q" else b"\x1b[Aq")
    else:
        running.process.send_signal(signal.SIGINT)
    assert running.ended() == 0
    assert running.is_as_before()
    assert b"Traceback" not in running.shown


@posix
def test_a_narrow_and_low_terminal_is_enough(terminal: Any) -> None:
    run("save", "tea")
    running = terminal(rows=6, columns=24)
    running.until(b"records")
    os.write(running.ours, b"q")
    assert running.ended() == 0
    assert running.is_as_before()


@posix
def test_a_server_that_goes_away_is_said_and_may_come_back(terminal: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/served.db"
    with Served(url) as server:
        running = terminal(server.url)
        running.until(b"ready in")
    running.until(b"no answer")
    running.shown = b""
    with Served(url, "--port", server.url.rpartition(":")[2]):
        running.until(b"ready in")
        os.write(running.ours, b"q")
        assert running.ended() == 0


@posix
def test_lines_of_json_go_on_until_nobody_reads_them(terminal: Any) -> None:
    run("save", "tea")
    running = terminal("--json")
    running.until(b"\n")
    first = json.loads(running.shown.splitlines()[0])
    assert first["changes"] == {"save": 1}
    running.shown = b""
    running.until(b"changes_per_second")
    running.process.send_signal(signal.SIGINT)
    assert running.ended() == 130
