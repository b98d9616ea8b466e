"""Writers that tell what was acknowledged, and holding a store against it after a kill."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from processes.launch import command

from zero_mem import Memory
from zero_mem.operations.history import HistoryEntry

LONGEST_BURST = 25
"""Most acknowledgements of one writer before it is killed."""

ANY_STATE = {"state": {"in": ["active", "archived", "deleted"]}}


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


def begin_writing(
    url: str, seed: int, told: Mapping[str, Told], chance: random.Random
) -> dict[str, subprocess.Popen[bytes]]:
    """Start a writer for each name and let each acknowledge some operations."""
    running = {
        name: subprocess.Popen(command("mixed_writer.py", url, name, seed), stdout=subprocess.PIPE)
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
    return running


def kill_writer(process: subprocess.Popen[bytes], told: Told) -> None:
    """Kill a writer and take in what it still told."""
    process.send_signal(signal.SIGKILL)
    assert hear_out(process, told) == -signal.SIGKILL


def hear_out(process: subprocess.Popen[bytes], told: Told) -> int:
    """Take in what a writer tells until it ends; give its exit status."""
    assert process.stdout is not None
    for line in process.stdout:
        told.hear(line)
    process.stdout.close()
    return process.wait()


def compare(url: str, told: Mapping[str, Told]) -> None:
    """Hold the store against what its writers were told."""
    with Memory.open(url) as memory:
        for name, each in told.items():
            space = memory.namespace("writers", name)
            found = {
                record.memory_id: space.history(record.memory_id)
                for record in space.each(ANY_STATE)
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


def take_in(url: str, told: Mapping[str, Told]) -> None:
    """Count what the operations under way have done as acknowledged from here on."""
    with Memory.open(url) as memory:
        for name, each in told.items():
            each.pending = None
            space = memory.namespace("writers", name)
            for record in space.each(ANY_STATE):
                purged = space.history(record.memory_id)[-1].operation == "purge"
                each.records[record.memory_id] = {
                    "version": record.version,
                    "text": record.text,
                    "state": "purged" if purged else record.state,
                }
