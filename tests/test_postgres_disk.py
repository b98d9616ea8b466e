"""PostgreSQL on disks that are full or have failed: typed errors, nothing half-done."""

from __future__ import annotations

import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from disks import SmallDisk, failing_disk, only_root_mounts, small_disk
from postgres_server import NoServer, Server, new_database, owned, refuse_or_skip

from zero_mem import Blob, Memory
from zero_mem.errors import StoreUnavailable
from zero_mem.space import Namespace
from zero_mem.testing.audit import faults

pytestmark = [
    only_root_mounts,
    pytest.mark.req("prod:storage", "pkg:errors", "op:order", "op:idempotency"),
]

SETTINGS = {
    "synchronous_commit": "on",
    "fsync": "on",
    "max_wal_size": "32MB",
    "min_wal_size": "32MB",
    "restart_after_crash": "off",
}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give a folder that every user can reach (pytest's own is its owner's only)."""
    with tempfile.TemporaryDirectory(prefix="zero-mem-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def save(space: Namespace, number: int) -> bool:
    """Save a body that does not compress; tell whether it was there already."""
    body = Blob(data=random.Random(number).randbytes(1 << 19), media_type="image/png")
    return space.save(body, tags=["red"], idempotency_key=f"once {number}").replayed


def until_refused(write: Callable[[int], object]) -> tuple[int, StoreUnavailable]:
    """Write until the store refuses; tell how many were acknowledged, and why it refused."""
    for number in range(2000):
        try:
            write(number)
        except StoreUnavailable as error:
            return number, error
    raise AssertionError("the disk is never full")


def assert_acknowledged(space: Namespace, count: int) -> None:
    """What was acknowledged is there; the one that was refused can be saved."""
    assert all(save(space, number) for number in range(count))
    save(space, count)
    assert space.count() == count + 1
    assert faults(space.memory.storage) == []


def test_tables_on_a_full_disk_are_read_and_work_again_with_room(
    postgres: Server, open_folder: Path
) -> None:
    with small_disk(open_folder / "disk", "48m") as disk:
        place = owned(disk.folder / "tables")
        postgres.run(f"CREATE TABLESPACE small LOCATION '{place}'")
        url = new_database(postgres, "small")
        postgres.run("ALTER DATABASE small SET TABLESPACE small")
        try:
            with Memory.open(f"{url}?connections=2", durability="normal") as memory:
                _fill_and_go_on(memory, disk)
        finally:
            postgres.run("DROP DATABASE small WITH (FORCE)")
            postgres.run("DROP TABLESPACE small")


def _fill_and_go_on(memory: Memory, disk: SmallDisk) -> None:
    space = memory.namespace("acme")
    count, error = until_refused(lambda number: save(space, number))
    assert "the server's disk is full; nothing of this operation was written" in str(error)
    assert count > 10
    assert space.count() == count
    assert space.search("red")
    assert len(space.history("1")) == 1
    assert memory.health().ready
    assert faults(memory.storage) == []
    disk.grow("128m")
    assert_acknowledged(space, count)
    space.purge_many(["1", "2"])
    assert space.count() == count - 1


@pytest.fixture
def cluster() -> Callable[[Path], Server]:
    def made(folder: Path) -> Server:
        try:
            server = Server.made(SETTINGS, home=owned(folder / "cluster"))
        except NoServer as error:
            refuse_or_skip(error)
        new_database(server, "store")
        # A cluster is made without a sync; what the server writes from now on it syncs itself.
        subprocess.run(["sync", "-f", str(folder)], check=True)
        return server

    return made


@pytest.mark.fault
def test_a_server_whose_log_has_no_room_loses_nothing_acknowledged(
    cluster: Callable[[Path], Server], open_folder: Path
) -> None:
    """PostgreSQL stops where it can't write its log; with room it is started again."""
    with small_disk(open_folder / "disk", "160m") as disk:
        server = cluster(disk.folder)
        try:
            url = f"{server.url('store', 'app')}?connections=2&patience=2"
            with Memory.open(url) as memory:
                space = memory.namespace("acme")
                count, error = until_refused(lambda number: save(space, number))
                assert count > 10
                assert "postgresql://127.0.0.1" in str(error)
                server.kill()
                disk.grow("400m")
                server.start()
                assert_acknowledged(space, count)
        finally:
            server.kill()


@pytest.mark.fault
def test_a_server_on_a_disk_that_becomes_read_only_loses_nothing_acknowledged(
    cluster: Callable[[Path], Server], open_folder: Path
) -> None:
    with failing_disk(open_folder / "disk", open_folder / "image", 400 << 20) as disk:
        server = cluster(disk.folder)
        try:
            url = f"{server.url('store', 'app')}?connections=2&patience=2"
            with Memory.open(url) as memory:
                space = memory.namespace("acme")
                for number in range(5):
                    save(space, number)
                disk.fail()
                count, error = until_refused(lambda number: save(space, 5 + number))
                assert "postgresql://127.0.0.1" in str(error)
                server.kill()
                disk.mend()
                server.start()
                assert_acknowledged(space, 5 + count)
        finally:
            server.kill()
