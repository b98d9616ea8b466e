"""kill -9 at random points under load: what was acknowledged is there, nothing is half-written."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from processes.launch import command
from processes.sqlite_checks import file_faults

from zero_mem import Memory
from zero_mem.operations.history import HistoryEntry

pytestmark = [
    pytest.mark.fault,
    pytest.mark.req("op:order", "history:journal", "pkg:errors"),
    pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL"),
]

FILES, ROUNDS, WRITERS = 10, 10, 2
"""Each round kills every writer: 10 × 10 × 2 = 200 kills."""

LONGEST_BURST = 25
"""Most acknowledgements of one writer before it is killed."""


@dataclass(slots=True)
class Told:
    """What one writer has told over the rounds: the last acknowledged state of each record."""

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    pending: dict[str, Any] | None = None

    def hear(self, line: bytes) -> None:
        """Take a line in; one that the kill cut short says nothing."""
        if not line.endswith(b"\n"):
            return
        event = json.loads(line)
        if event["event"] == "begin":
            self.pending = event
            return
        self.pending = None
        self.records.update((record["id"], record) for record in event["records"])


def kill_in_full_flight(path: Path, seed: int, told: dict[str, Told]) -> None:
    """Start the writers, let each acknowledge some operations, and kill them."""
    chance = random.Random(seed)
    running = {
        name: subprocess.Popen(command("mixed_writer.py", path, name, seed), stdout=subprocess.PIPE)
        for name in told
    }
    for name, process in running.items():
        assert process.stdout is not None
        for _ in range(2 * chance.randrange(LONGEST_BURST)):
            line = process.stdout.readline()
            assert line, "the writer ended by itself"
            told[name].hear(line)
        # Not to wait for anything: so that the kill falls anywhere in the next operation.
        time.sleep(chance.uniform(0, 0.006))
        process.send_signal(signal.SIGKILL)
        for line in process.stdout:
            told[name].hear(line)
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL


def check(path: Path, told: dict[str, Told]) -> None:
    """Hold the store against what its writers were told."""
    if not path.exists():
        assert all(not each.records for each in told.values())
        return
    assert file_faults(path) == []
    with Memory.open(f"sqlite:///{path}") as memory:
        for name, each in told.items():
            space = memory.namespace("writers", name)
            found = {
                record.memory_id: space.history(record.memory_id)
                for record in space.each({"state": {"in": ["active", "archived", "deleted"]}})
            }
            assert_acknowledged(each, found)


def assert_acknowledged(told: Told, found: dict[str, list[HistoryEntry]]) -> None:
    """Every acknowledged state is there; at most the operation under way has gone further."""
    pending = told.pending or {"touches": [], "makes": 0}
    for memory_id, record in told.records.items():
        entries = found[memory_id]
        assert [entry.version for entry in entries] == list(range(1, len(entries) + 1))
        ahead = len(entries) - record["version"]
        assert ahead in ((0, 1) if memory_id in pending["touches"] else (0,))
        if entries[-1].operation != "purge":
            at = entries[record["version"] - 1].record
            assert at is not None
            assert (at.text, at.state) == (record["text"], record["state"])
        else:
            assert ahead or record["state"] == "purged"
            assert [(entry.record, entry.before) for entry in entries].count((None, None)) == len(
                entries
            )
    made = found.keys() - told.records.keys()
    assert len(made) in (0, pending["makes"])


def take_in(told: Told, path: Path, name: str) -> None:
    """Count what the operation under way has done as acknowledged from here on."""
    told.pending = None
    if not path.exists():
        return
    with Memory.open(f"sqlite:///{path}") as memory:
        space = memory.namespace("writers", name)
        for record in space.each({"state": {"in": ["active", "archived", "deleted"]}}):
            purged = space.history(record.memory_id)[-1].operation == "purge"
            told.records[record.memory_id] = {
                "version": record.version,
                "text": record.text,
                "state": "purged" if purged else record.state,
            }


@pytest.mark.parametrize("file", range(FILES))
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, file: int) -> None:
    path = tmp_path / "store.db"
    told = {f"writer-{number}": Told() for number in range(WRITERS)}
    for turn in range(ROUNDS):
        kill_in_full_flight(path, 1000 * file + turn, told)
        check(path, told)
        for name, each in told.items():
            take_in(each, path, name)
    assert sum(len(each.records) for each in told.values()) > ROUNDS
