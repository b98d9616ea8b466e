"""The file under a SQLite store: whose it is, what may stand there, and what can befall it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from processes.launch import run
from processes.sqlite_checks import file_faults

from zero_mem import Memory
from zero_mem.errors import InvalidInput, MigrationNeeded, StoreCorrupt, StoreUnavailable
from zero_mem.space import Namespace
from zero_mem.storage import network_fs
from zero_mem.storage.network_fs import NetworkFileSystemWarning, file_system_type
from zero_mem.storage.sqlite import SQLiteStorage
from zero_mem.storage.sqlite_file import SQLiteFile

MOUNTS = r"""
/dev/vda1 / ext4 rw,relatime 0 0
tmpfs /tmp tmpfs rw 0 0
server:/export /home nfs4 rw,vers=4.2 0 0
/dev/vdb /home/local ext4 rw 0 0
//nas/share /mnt/My\040Share cifs rw 0 0
user@host: /mnt/ssh fuse.sshfs rw 0 0
server:/d /mnt/数据 nfs rw 0 0
"""


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def fill(path: Path, *texts: str) -> None:
    with Memory.open(url(path)) as memory:
        for text in texts:
            memory.namespace("acme").save(text)


def read_all(path: Path) -> list[str]:
    with Memory.open(url(path)) as memory:
        return [record.text for record in memory.namespace("acme").each()]


def save_for_ever(space: Namespace, saved: list[str]) -> None:
    while True:
        text = f"text {len(saved)} " + "x" * 9000
        saved.append(space.save(text).memory_id)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Give the path of a store with one record."""
    path = tmp_path / "store.db"
    fill(path, "kept")
    return path


# Whose the file is


@pytest.mark.req("prod:files")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_store_and_its_log_are_the_owners_only(tmp_path: Path, mask: int) -> None:
    old = os.umask(mask)
    try:
        with Memory.open(url(tmp_path / "store.db")) as memory:
            memory.namespace("acme").save("text")
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(old)
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)


@pytest.mark.req("prod:files")
def test_the_default_store_is_in_the_users_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ZERO_MEM_URL", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "made" / "here"))
    with Memory.open() as memory:
        memory.namespace("acme").save("text")
    folder = tmp_path / "made" / "here" / "zero-mem"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "memory.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.req("prod:files")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/store.db", "ext4"),
        ("/home/ann/store.db", "nfs4"),
        ("/home/local/store.db", "ext4"),
        ("/homework/store.db", "ext4"),
        ("/mnt/My Share/store.db", "cifs"),
        ("/mnt/数据/store.db", "nfs"),
        ("/mnt/ssh/a/../store.db", "fuse.sshfs"),
        ("/mnt/ssh/../store.db", "ext4"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_its_nearest_mount(path: str, kind: str) -> None:
    assert file_system_type(path, MOUNTS) == kind


@pytest.mark.req("prod:files")
def test_a_network_file_system_gets_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "store.db")
    monkeypatch.setattr(network_fs, "file_system_type", lambda path, mounts: "nfs4")
    with pytest.warns(NetworkFileSystemWarning, match=r"store\.db.*nfs4"):
        SQLiteStorage(path).close()
    monkeypatch.undo()
    SQLiteStorage(path).close()


# What may stand there already


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    "content",
    [b"not a database, but long enough to have a header of its own ..." * 99, b"short", b"\0" * 9],
    ids=["garbage", "short", "zeros"],
)
def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"notes\.txt"):
        Memory.open(url(path))
    assert path.read_bytes() == content


@pytest.mark.req("pkg:errors")
def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "browser.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE record (namespace, memory_id)")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match=r"browser\.sqlite.*another program"):
        Memory.open(url(path))
    assert path.read_bytes() == before


@pytest.mark.req("pkg:errors")
def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch()
    fill(path, "text")
    assert file_faults(path) == []


@pytest.mark.req("pkg:errors")
def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=str(tmp_path)):
        Memory.open(url(tmp_path))


@pytest.mark.req("pkg:errors")
def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"no/such/store\.db.*folder"):
        Memory.open(url(tmp_path / "no" / "such" / "store.db"))


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///", "mysql://x/y", "store.db", "x:"])
def test_an_address_of_no_known_store_says_which_there_are(address: str) -> None:
    with pytest.raises(InvalidInput, match=r"sqlite:///.*memory://"):
        Memory.open(address)


@pytest.mark.req("pkg:errors")
def test_an_unknown_durability_is_refused_before_a_file_is_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="normal"):
        Memory.open(url(tmp_path / "store.db"), durability="hopeful")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_truncated_store_is_called_damaged(tmp_path: Path, share: float) -> None:
    path = tmp_path / "store.db"
    fill(path, *(f"text {number} " + "x" * 3000 for number in range(40)))
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(StoreCorrupt, match=r"store\.db.*(damaged|not a)"):
        read_all(path)


@pytest.mark.req("pkg:errors")
def test_a_store_of_a_newer_version_is_left_alone(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = store.read_bytes()
    with pytest.raises(MigrationNeeded, match=r"store\.db.*99.*upgrade"):
        Memory.open(url(store))
    assert store.read_bytes() == before


# What can befall it


@pytest.mark.req("pkg:errors", "op:order")
def test_a_store_that_was_deleted_is_not_made_again_in_secret(store: Path) -> None:
    with Memory.open(url(store)) as memory:
        space = memory.namespace("acme")
        assert space.get("1").text == "kept"
        shutil.rmtree(store.parent)
        for call in (lambda: space.save("late"), lambda: space.get("1"), space.count):
            with pytest.raises(StoreUnavailable, match="gone"):
                call()
    assert not store.parent.exists()


@pytest.mark.req("pkg:errors", "recall:fresh")
def test_a_store_that_was_replaced_is_not_mixed_with_the_new_one(
    store: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    fill(other, "another", "and one more")
    with Memory.open(url(store)) as memory:
        space = memory.namespace("acme")
        space.count()
        for path in tmp_path.glob("store.db-*"):
            path.unlink()
        os.replace(other, store)
        for call in (lambda: space.save("late"), lambda: space.get("1")):
            with pytest.raises(StoreUnavailable, match="replaced"):
                call()
    with Memory.open(url(store)) as memory:
        assert memory.namespace("acme").count() == 2


@pytest.mark.req("pkg:errors")
def test_a_closed_store_says_so_and_closes_again(store: Path) -> None:
    memory = Memory.open(url(store))
    space = memory.namespace("acme")
    memory.close()
    memory.close()
    for call in (lambda: space.save("late"), lambda: space.get("1"), memory.stats):
        with pytest.raises(StoreUnavailable, match="closed"):
            call()
    assert {path.name for path in store.parent.iterdir()} == {"store.db"}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give a folder that every user can reach (pytest's own is its owner's only)."""
    with tempfile.TemporaryDirectory(prefix="zero-mem-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.req("pkg:errors", "prod:files")
@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs a second user")
def test_a_folder_that_is_read_only_gets_no_store(open_folder: Path) -> None:
    os.chmod(open_folder, 0o555)
    said = run("as_nobody.py", open_folder / "store.db")
    os.chmod(open_folder, 0o755)
    assert said.startswith(f"StoreUnavailable {open_folder}/store.db: ")
    assert "writable" in said
    assert list(open_folder.iterdir()) == []


@pytest.mark.req("pkg:errors", "prod:files")
@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs a second user")
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_store_that_is_anothers_is_not_written(open_folder: Path, mode: int) -> None:
    path = open_folder / "store.db"
    fill(path, "kept")
    os.chmod(path, mode & (0o444 if os.getuid() else 0o777))
    said = run("as_nobody.py", path)
    assert "StoreUnavailable" in said
    assert str(path) in said
    assert "saved" not in said
    os.chmod(path, 0o600)
    assert file_faults(path) == []
    with Memory.open(url(path)) as memory:
        assert memory.namespace("acme").count() == 1


@pytest.mark.req("pkg:errors", "op:order")
def test_when_the_file_can_not_grow_what_was_acknowledged_stays(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    acknowledged, said = run("fill.py", path, 400_000).split(" ", 1)
    assert said.startswith(f"{path}: ")
    assert "nothing of this operation" in said
    assert int(acknowledged) > 3
    assert file_faults(path) == []
    with Memory.open(url(path)) as memory:
        assert memory.namespace("acme").count() == int(acknowledged) + 1


@pytest.mark.req("pkg:errors", "op:order")
def test_when_the_disk_is_full_nothing_is_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = SQLiteFile._connect

    def bounded(file: SQLiteFile) -> sqlite3.Connection:
        connection = connect(file)
        connection.execute("PRAGMA max_page_count = 80")
        return connection

    monkeypatch.setattr(SQLiteFile, "_connect", bounded)
    path = tmp_path / "store.db"
    saved: list[str] = []
    with Memory.open(url(path)) as memory:
        space = memory.namespace("acme")
        with pytest.raises(StoreUnavailable, match=r"store\.db: the disk is full"):
            save_for_ever(space, saved)
        assert [record.memory_id for record in space.each()] == saved
        space.delete(saved[0])
    assert file_faults(path) == []


@pytest.mark.req("pkg:errors", "op:order")
@pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="only root may mount a small disk"
)
def test_a_really_full_disk_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a container without the right to mount")
    try:
        acknowledged, said = run("fill.py", tmp_path / "store.db", 0).split(" ", 1)
        assert "the disk is full; nothing of this operation was written" in said
        assert int(acknowledged) > 3
        assert file_faults(tmp_path / "store.db") == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
