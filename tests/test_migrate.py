"""Stores of earlier versions open, after they were copied (`prod:migrate`)."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from zero_mem import Blob, Json, Memory, NotFound
from zero_mem.errors import MigrationNeeded, StoreUnavailable
from zero_mem.storage import sqlite_schema
from zero_mem.storage.sqlite_file import SQLiteFile

pytestmark = pytest.mark.req("prod:migrate")

KEPT = sorted((Path(__file__).parent / "fixtures" / "stores").glob("schema*.db"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Give a copy of a store that the first version wrote."""
    return Path(shutil.copy(KEPT[0], tmp_path / "agent.db"))


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let this version know one schema more; give the script that leads to it."""
    scripts = Path(shutil.copytree(sqlite_schema.SCRIPTS, tmp_path / "scripts"))
    number = sqlite_schema.schema_version() + 1
    script = scripts / f"{number:04}_next.sql"
    script.write_text(
        "ALTER TABLE namespace ADD COLUMN color TEXT NOT NULL DEFAULT 'red';\n"
        "CREATE TABLE extra (name TEXT PRIMARY KEY);\n"
        "INSERT INTO extra SELECT path FROM namespace;\n"
    )
    monkeypatch.setattr(sqlite_schema, "SCRIPTS", scripts)
    return script


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def dump(path: Path) -> list[str]:
    """Give all that a file says."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def schema(path: Path) -> object:
    return rows(path, "PRAGMA user_version")[0][0]


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.schema*.backup"))


def check_content(memory: Memory) -> None:
    """Find all that tools/make_store.py wrote."""
    space = memory.namespace("acme", "alice")
    assert space.get("1").content == "Prefers aisle seats"
    assert [entry.before for entry in space.history("1")] == [None, "Prefers window seats"]
    assert [hit.memory_id for hit in space.search("退款")] == ["2"]
    assert space.get("3").content == Json({"items": [{"id": "a1", "price": 9.5}]})
    assert space.get("4").content == Blob(data=b"\x89PNG\0", media_type="image/png")
    assert space.get("old").state == "archived"
    for gone in ("5", "6"):
        with pytest.raises(NotFound):
            space.get(gone)
    assert space.save("once", idempotency_key="once", hold="conversation").replayed
    assert space.decision("host", "prompt") == "[1]"
    assert space.limits(kind="note").max_memory_items == 100
    assert [key.name for key in memory.keyring.every()] == ["app"]
    assert memory.namespace("acme").get("1").content == "another namespace"
    assert memory.verify().sound


def test_there_is_a_store_of_every_schema() -> None:
    numbers = [int(path.stem.removeprefix("schema")) for path in KEPT]
    assert numbers == list(range(1, sqlite_schema.schema_version() + 1))
    for path in KEPT:
        assert path.stat().st_size < 200_000


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: str(path.stem))
def test_a_store_of_every_schema_opens_with_all_it_held(kept: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(kept, tmp_path / "agent.db"))
    with Memory.open(f"sqlite:///{path}") as memory:
        check_content(memory)
        memory.namespace("acme", "alice").save("written by this version")
    assert schema(path) == sqlite_schema.schema_version()
    assert len(backups(path)) == (schema(kept) != schema(path))


def test_an_older_store_is_copied_and_brought_up_to_date(store: Path, newer: Path) -> None:
    before = dump(store)
    with Memory.open(f"sqlite:///{store}") as memory:
        check_content(memory)
    assert rows(store, "SELECT count(*) FROM extra") == [(2,)]
    assert schema(store) == 2
    (backup,) = backups(store)
    assert backup.name == "agent.db.schema1.backup"
    assert backup.stat().st_mode & 0o777 == 0o600
    assert dump(backup) == before
    with Memory.open(f"sqlite:///{store}"):
        assert backups(store) == [backup]


def test_the_copy_opens_in_the_version_that_wrote_it(
    store: Path, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Memory.open(f"sqlite:///{store}").close()
    (backup,) = backups(store)
    monkeypatch.undo()
    with pytest.raises(MigrationNeeded, match="schema 2; this one knows 1"):
        Memory.open(f"sqlite:///{store}")
    with Memory.open(f"sqlite:///{backup}") as memory:
        check_content(memory)


@pytest.mark.parametrize(
    "broken",
    ["ALTER TABLE absent ADD COLUMN x;\n", "INSERT INTO extra VALUES (NULL), (NULL);\nX;\n"],
)
def test_a_script_that_fails_leaves_the_store_as_it_was(
    store: Path, newer: Path, broken: str
) -> None:
    before = dump(store)
    newer.write_text(newer.read_text() + broken)
    with pytest.raises(StoreUnavailable, match="as it was") as failed:
        Memory.open(f"sqlite:///{store}")
    (backup,) = backups(store)
    assert str(backup) in str(failed.value)
    assert (dump(store), dump(backup), schema(store)) == (before, before, 1)
    with pytest.raises(StoreUnavailable):
        Memory.open(f"sqlite:///{store}")
    assert len(backups(store)) == 2


def test_nothing_is_changed_where_the_copy_fails(
    store: Path, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: SQLiteFile, path: str) -> None:
        raise OSError(28, "No space left on device")

    before = dump(store)
    with monkeypatch.context() as patch:
        patch.setattr(SQLiteFile, "_copy", full)
        with pytest.raises(StoreUnavailable, match=r"No space.*as it was"):
            Memory.open(f"sqlite:///{store}")
    assert backups(store) == []
    assert (dump(store), schema(store)) == (before, 1)
    with Memory.open(f"sqlite:///{store}") as memory:
        check_content(memory)


def test_of_many_openers_one_migrates(store: Path, newer: Path) -> None:
    opened: list[Memory] = []
    threads = [
        threading.Thread(target=lambda: opened.append(Memory.open(f"sqlite:///{store}")))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 6
    for memory in opened:
        memory.close()
    assert len(backups(store)) == 1
    assert rows(store, "SELECT count(*) FROM extra") == [(2,)]


def test_a_broken_index_keeps_no_body_from_being_read(store: Path, newer: Path) -> None:
    # Report 19: an older version's file, with a broken index.
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("DELETE FROM lexicon_data WHERE id > 10")
        connection.execute("UPDATE lexicon_data SET block = zeroblob(3) WHERE id = 10")
        connection.commit()
    with Memory.open(f"sqlite:///{store}") as memory:
        assert len(backups(store)) == 1
        space = memory.namespace("acme", "alice")
        assert [record.memory_id for record in space.each()] == ["1", "2", "3", "4", "7"]
        assert space.get("2").text.startswith("用户")
        found = memory.verify()
        assert not found.sound
        assert any("zero-mem verify --rebuild" in fault for fault in found.faults)
        memory.scrub()
        check_content(memory)
