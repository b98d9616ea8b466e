"""Durability is counted, not timed: what reaches the disk before a write is acknowledged."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from processes.launch import command

pytestmark = [
    pytest.mark.req("op:order"),
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]

SAVES = 40


def trace(folder: Path, durability: str) -> list[str]:
    """Run the writer under strace; give its fsyncs and acknowledgements in order."""
    log = folder / "trace"
    script = command("acknowledge.py", folder / "store.db", SAVES, durability)
    calls = "trace=fsync,fdatasync,write"
    traced = ["strace", "-f", "-qq", "-s", "64", "-e", calls, "-o", str(log), *script]
    done = subprocess.run(traced, capture_output=True, text=True, check=False)
    if "Operation not permitted" in done.stderr:
        pytest.skip("strace is not permitted here")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"saved-{number}" for number in range(SAVES)]
    found = re.findall(r"(fsync|fdatasync)\(\d+\) += 0|write\(1, \"(saved-\d+)", log.read_text())
    return ["sync" if synced else saved for synced, saved in found]


def test_full_syncs_before_every_acknowledgement(tmp_path: Path) -> None:
    events = trace(tmp_path, "full")
    places = [place for place, event in enumerate(events) if event.startswith("saved")]
    assert len(places) == SAVES
    assert [events[place - 1] for place in places] == ["sync"] * SAVES


def test_normal_syncs_now_and_then(tmp_path: Path) -> None:
    events = trace(tmp_path, "normal")
    first = events.index("saved-0")
    assert events[first:].count("sync") < SAVES // 4
