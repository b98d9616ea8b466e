"""PostgreSQL stores of earlier versions open, after they were copied (`prod:migrate`)."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from postgres_server import Server, new_database
from test_migrate import check_content

from zero_mem import Memory
from zero_mem.errors import InvalidInput, MigrationNeeded, StoreUnavailable
from zero_mem.storage import postgres_schema

pytestmark = pytest.mark.req("prod:migrate", "prod:storage")

KEPT = sorted((Path(__file__).parent / "fixtures" / "stores").glob("postgres*.sql.gz"))
NEXT = postgres_schema.SCHEMA_VERSION + 1
COPY = f"zero_mem_schema{postgres_schema.SCHEMA_VERSION}"
NEWER = (
    "ALTER TABLE {schema}.record ADD COLUMN later text DEFAULT 'red';"
    "CREATE TABLE {schema}.extra AS SELECT count(*) AS stores FROM {schema}.store"
)


@pytest.fixture
def fresh(postgres: Server) -> Iterator[str]:
    """Give the URL of a database that holds nothing."""
    yield new_database(postgres, "migrating")
    postgres.run("DROP DATABASE migrating WITH (FORCE)")


@pytest.fixture
def store(fresh: str, postgres: Server) -> str:
    """Give the URL of a store that the newest kept version wrote."""
    load(postgres, KEPT[-1])
    return fresh


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let this version know one schema more; give the script that leads to it."""
    for script in postgres_schema.MIGRATIONS.glob("*.sql"):
        (tmp_path / script.name).write_text(script.read_text())
    script = tmp_path / f"{NEXT:04}_next.sql"
    script.write_text(NEWER)
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", tmp_path)
    monkeypatch.setattr(postgres_schema, "SCHEMA_VERSION", NEXT)
    monkeypatch.setattr(postgres_schema, "LOCK_MILLISECONDS", 20)
    return script


def load(postgres: Server, kept: Path) -> None:
    """Make a store of its dump; the user of the tests owns it."""
    sql = gzip.decompress(kept.read_bytes()).decode("utf-8")
    postgres.run(sql.replace("OWNER TO postgres", "OWNER TO app"), database="migrating")


def schemas(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'zero%' ORDER BY nspname"
        )
        return [name for (name,) in found]


def version(url: str) -> int:
    with psycopg.connect(url) as connection:
        sql = "SELECT value FROM zero_mem.store WHERE name = 'version'"
        found = connection.execute(sql).fetchone()
    assert found is not None
    return int(found[0])


def test_there_is_a_store_of_every_schema() -> None:
    numbers = [int(path.name.removeprefix("postgres").removesuffix(".sql.gz")) for path in KEPT]
    assert numbers == list(range(1, postgres_schema.SCHEMA_VERSION + 1))
    assert all(path.stat().st_size < 100_000 for path in KEPT)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: str(path.name))
def test_a_store_of_every_schema_opens_with_all_it_held(
    kept: Path, fresh: str, postgres: Server
) -> None:
    load(postgres, kept)
    before = version(fresh)
    with Memory.open(fresh) as memory:
        check_content(memory)
        memory.namespace("acme", "alice").save("written by this version")
    assert version(fresh) == postgres_schema.SCHEMA_VERSION
    assert len(schemas(fresh)) == 1 + (before != version(fresh))


def test_an_older_store_is_copied_and_brought_up_to_date(store: str, newer: Path) -> None:
    with Memory.open(store) as memory:
        check_content(memory)
        memory.namespace("acme", "alice").save("written by this version")
    assert version(store) == NEXT
    assert schemas(store) == ["zero_mem", COPY]
    Memory.open(store).close()
    assert schemas(store) == ["zero_mem", COPY]


def test_the_copy_opens_in_the_version_that_wrote_it(
    store: str, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Memory.open(store).close()
    monkeypatch.undo()
    with pytest.raises(MigrationNeeded, match=f"schema {NEXT}; this one knows {NEXT - 1}"):
        Memory.open(store)
    with Memory.open(f"{store}?schema={COPY}") as memory:
        check_content(memory)
        assert memory.namespace("new").save("one more namespace").memory_id == "1"
        assert memory.stats().namespaces == 3


@pytest.mark.parametrize("migrate", ["bare", "refuse"])
def test_who_has_a_backup_of_their_own_can_say_so(store: str, newer: Path, migrate: str) -> None:
    url = f"{store}?migrate={migrate}"
    if migrate == "refuse":
        with pytest.raises(MigrationNeeded, match="migrate=refuse"):
            Memory.open(url)
        assert version(store) == NEXT - 1
        return
    with Memory.open(url) as memory:
        check_content(memory)
    assert schemas(store) == ["zero_mem"]
    with pytest.raises(InvalidInput, match="copy, bare, refuse"):
        Memory.open(f"{store}?migrate=maybe")


def test_nothing_is_changed_where_the_copy_fails(store: str, newer: Path, postgres: Server) -> None:
    postgres.run("ALTER DATABASE migrating OWNER TO postgres")  # only an owner makes schemas
    with pytest.raises(StoreUnavailable, match=r"copied before.*as it was.*migrate=bare"):
        Memory.open(store)
    assert (version(store), schemas(store)) == (NEXT - 1, ["zero_mem"])
    postgres.run("ALTER DATABASE migrating OWNER TO app")
    with Memory.open(store) as memory:
        check_content(memory)


def test_a_script_that_fails_leaves_the_store_as_it_was(store: str, newer: Path) -> None:
    newer.write_text(f"{NEWER}; SELECT 1 / 0")
    with pytest.raises(StoreUnavailable, match=r"schema \d to \d failed .*as it was"):
        Memory.open(store)
    assert (version(store), schemas(store)) == (NEXT - 1, ["zero_mem"])
    newer.write_text(NEWER)
    with Memory.open(store) as memory:
        check_content(memory)


def test_of_many_openers_one_migrates(store: str, newer: Path) -> None:
    start = threading.Barrier(6)

    def opened(_: int) -> None:
        start.wait()
        Memory.open(store).close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(opened, range(6)))
    assert (version(store), schemas(store)) == (NEXT, ["zero_mem", COPY])


def test_readers_and_writers_go_on_while_a_migration_waits(
    store: str, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks for a table for a moment at a time, as long as somebody reads it."""
    monkeypatch.setattr(postgres_schema, "TRIES", 100_000)
    with (
        _by_the_older_version(store, monkeypatch) as older,
        psycopg.connect(store) as reader,
        ThreadPoolExecutor(1) as threads,
    ):
        reader.execute("SELECT count(*) FROM zero_mem.record")
        migrating = threads.submit(Memory.open, store)
        for number in range(20):
            older.namespace("acme").save(f"meanwhile {number}")
            assert older.namespace("acme").search("meanwhile", limit=30)
        assert not migrating.done()
        reader.rollback()
        with migrating.result() as memory:
            assert len(memory.namespace("acme").search("meanwhile", limit=30)) == 20
            check_content(memory)
    assert version(store) == NEXT


def _by_the_older_version(url: str, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Open a store as a process does that does not know the newer schema yet."""
    with monkeypatch.context() as patch:
        patch.setattr(postgres_schema, "SCHEMA_VERSION", NEXT - 1)
        return Memory.open(url, durability="normal")
