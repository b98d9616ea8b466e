"""The checks that the fault tests rely on see what they are there to see."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from processes.sqlite_checks import file_faults

from zero_mem import Memory

pytestmark = pytest.mark.req("op:order", "history:journal")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with Memory.open(f"sqlite:///{path}") as memory:
        space = memory.namespace("acme")
        space.save("red bicycle", memory_id="x")
        space.update("x", content="blue car")
        space.save("用户退款", memory_id="y")
    return path


def test_a_sound_store_has_no_faults(path: Path) -> None:
    assert file_faults(path) == []


@pytest.mark.parametrize(
    ("damage", "seen"),
    [
        ("UPDATE namespace SET documents = documents + 1", "the index counts 3 records"),
        ("UPDATE namespace SET sequence = sequence + 1", "3 entries, not 4"),
        (
            "UPDATE body SET bytes = CAST('blue cat' AS BLOB)"
            " WHERE bytes = CAST('blue car' AS BLOB)",
            "terms",
        ),
        (
            "DELETE FROM record WHERE position = (SELECT max(position) FROM record)",
            "not both in journal and records: ['y']",
        ),
        ("INSERT INTO lexicon (rowid, terms) VALUES (99, '1\ue001stray')", "lexicon"),
        ("DELETE FROM body", "a body missing"),
    ],
)
def test_damage_is_seen(path: Path, damage: str, seen: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    assert any(seen in fault for fault in file_faults(path))
