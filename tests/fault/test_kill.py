"""kill -9 at random points under load: what was acknowledged is there, nothing is half-written.

`make test-all ARGS="--kills 500 -k test_kill"` is the full form.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from acknowledged import Told, begin_writing, compare, kill_writer, take_in
from processes.sqlite_checks import file_faults

pytestmark = [
    pytest.mark.fault,
    pytest.mark.req("op:order", "history:journal", "pkg:errors"),
    pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL"),
]

WRITERS = 2
"""Each round kills every writer."""


@pytest.mark.kills(200)
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, kills: range) -> None:
    path = tmp_path / "store.db"
    url = f"sqlite:///{path}"
    told = {f"writer-{number}": Told() for number in range(WRITERS)}
    for seed in kills[::WRITERS]:
        for name, process in begin_writing(url, seed, told, random.Random(seed)).items():
            kill_writer(process, told[name])
        if path.exists():
            assert file_faults(path) == []
            compare(url, told)
            take_in(url, told)
        else:
            assert all(not each.records for each in told.values())
    assert sum(len(each.records) for each in told.values()) > len(kills) // WRITERS
