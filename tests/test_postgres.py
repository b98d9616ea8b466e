"""What is PostgreSQL's own: opening, durability, hostile names, connections that end."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from lossy_proxy import LossyProxy
from postgres_server import Server, free_port, new_database

from zero_mem import Memory
from zero_mem.aio import AsyncMemory
from zero_mem.errors import (
    InvalidInput,
    MigrationNeeded,
    NotFound,
    StoreCorrupt,
    StoreUnavailable,
)
from zero_mem.models.fake import FakeEmbedder
from zero_mem.space import Namespace
from zero_mem.storage import postgres_schema
from zero_mem.storage.base import Storage
from zero_mem.storage.postgres import PostgresStorage
from zero_mem.storage.postgres_place import PostgresPlace
from zero_mem.storage.postgres_server import Cursor, Session, Statement, raise_translated
from zero_mem.storage.sqlite import SQLiteStorage
from zero_mem.testing import CountingTokenizer, FakeClock
from zero_mem.testing.audit import faults
from zero_mem.types import Json

pytestmark = pytest.mark.req("prod:storage")


@pytest.fixture
def memory(postgres_url: str) -> Iterator[Memory]:
    with Memory.open(postgres_url, durability="normal", tokens=CountingTokenizer()) as memory:
        yield memory


@pytest.fixture
def fresh(postgres: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the URL of a database that holds nothing."""
    url = new_database(postgres, "fresh")
    yield url
    postgres.run("DROP DATABASE fresh WITH (FORCE)")


def setting(storage: PostgresStorage, name: str, *, durable: bool = True) -> object:
    """Read a setting of the server inside a write transaction."""
    with storage.transaction(write=True, durable=durable) as transaction:
        assert isinstance(transaction, PostgresPlace)
        transaction.create_namespace(("acme", "alice"))
        found = transaction.session.run(f"SHOW {name}").fetchone()
    assert found is not None
    return found[0]


# Opening


@pytest.mark.parametrize(
    "options", ["connections=0", "connections=many", "patience=-1", "schema=a-b", "schema="]
)
def test_options_that_mean_nothing_are_refused(options: str) -> None:
    with pytest.raises(InvalidInput, match=options.partition("=")[0]):
        Memory.open(f"postgresql://localhost/db?{options}")


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize("password", ["secret-word", "p@secret-word", "p%40secret-word:/", "p:w"])
def test_a_server_that_is_not_there_is_named_without_the_password(password: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"can't connect.*refused") as raised:
        Memory.open(f"postgresql://me:{password.replace('/', '%2f')}@127.0.0.1:{free_port()}/db")
    assert "secret-word" not in str(raised.value)


@pytest.mark.req("pkg:errors")
def test_an_option_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInput, match="conections"):
        Memory.open("postgresql://localhost/db?conections=4")


@pytest.mark.req("pkg:errors")
def test_a_store_that_is_not_there_is_not_made_when_told_so(fresh: str) -> None:
    with pytest.raises(StoreUnavailable, match="there is no store"):
        Memory.open(fresh, create=False)
    Memory.open(fresh).close()
    Memory.open(fresh, create=False).close()


@pytest.mark.req("prod:migrate")
def test_many_at_once_may_open_a_database_that_holds_nothing(fresh: str) -> None:
    start = threading.Barrier(8)

    def opened(_: int) -> str:
        start.wait()
        storage = PostgresStorage(fresh)
        storage.close()
        return storage.origin

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(opened, range(8)))) == 1


@pytest.mark.req("prod:migrate")
def test_a_store_of_a_newer_version_is_refused(fresh: str) -> None:
    Memory.open(fresh).close()
    with psycopg.connect(fresh) as connection:
        connection.execute("UPDATE zero_mem.store SET value = '99' WHERE name = 'version'")
    with pytest.raises(MigrationNeeded, match="upgrade zero-mem"):
        Memory.open(fresh)


@pytest.mark.req("pkg:errors")
def test_tables_of_something_else_are_left_alone(fresh: str) -> None:
    with psycopg.connect(fresh) as connection:
        connection.execute("CREATE SCHEMA zero_mem CREATE TABLE journal (line text)")
    with pytest.raises(StoreCorrupt, match="something else"):
        Memory.open(fresh)
    with psycopg.connect(fresh) as connection:
        assert connection.execute("SELECT to_regclass('zero_mem.store')").fetchone() == (None,)


@pytest.mark.req("prod:migrate")
def test_a_migration_does_not_queue_behind_a_long_reader(
    fresh: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It gives up its place after a moment, so that nobody waits behind it, and tries again."""
    Memory.open(fresh).close()
    for script in postgres_schema.MIGRATIONS.glob("*.sql"):
        (tmp_path / script.name).write_text(script.read_text())
    step = "ALTER TABLE {schema}.record ADD COLUMN later text"
    (tmp_path / "9999_later.sql").write_text(step)
    for name, value in {
        "MIGRATIONS": tmp_path,
        "SCHEMA_VERSION": postgres_schema.SCHEMA_VERSION + 1,
        "LOCK_MILLISECONDS": 20,
        "TRIES": 2,
    }.items():
        monkeypatch.setattr(postgres_schema, name, value)
    with psycopg.connect(fresh) as reader:
        reader.execute("SELECT count(*) FROM zero_mem.record")
        with pytest.raises(StoreUnavailable, match="stays locked"):
            Memory.open(fresh)
    with Memory.open(fresh) as memory, psycopg.connect(fresh) as reader:
        memory.namespace("acme").save("text")
        reader.execute("SELECT later FROM zero_mem.record")


def test_schemas_are_stores_of_their_own(fresh: str) -> None:
    with Memory.open(fresh) as one, Memory.open(f"{fresh}?schema=other") as other:
        one.namespace("acme").save("here", memory_id="x")
        assert one.storage.origin != other.storage.origin
        with pytest.raises(NotFound):
            other.namespace("acme").get("x")


@pytest.mark.req("pkg:errors")
def test_a_closed_store_says_so(memory: Memory) -> None:
    memory.namespace("acme").save("text")
    memory.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        memory.namespace("acme").list()


# Durability


@pytest.mark.req("op:order")
def test_durability_is_the_commit_of_each_transaction(postgres_url: str) -> None:
    """The server of these tests commits asynchronously by default; `full` does not."""
    full = PostgresStorage(postgres_url)
    normal = PostgresStorage(postgres_url, durability="normal")
    try:
        assert setting(full, "synchronous_commit") == "on"
        assert setting(full, "synchronous_commit", durable=False) == "off"
        assert setting(normal, "synchronous_commit") == "off"
    finally:
        full.close()
        normal.close()
    with pytest.raises(InvalidInput, match="durability"):
        PostgresStorage(postgres_url, durability="some")


# Names and bodies


ODD = ["nul \0 in it", "back\\slash \\u0000", "quote \" ' and {,}", "\x1f\x1e", "\ue002", "退款 🚲"]


@pytest.mark.req("index:any-text", "record:body")
@pytest.mark.parametrize("text", ODD)
def test_any_text_comes_back_as_it_went_in(memory: Memory, text: str) -> None:
    space = memory.namespace("acme", actor=text)
    body = f"{text} lone \ud800"
    space.save(body, memory_id="x", metadata={text: [text]})
    space.save(Json({text: text}), memory_id="y")
    space.decide("scope", text, text, memory_id="x")
    record = space.get("x")
    assert (record.text, record.metadata) == (body, {text: [text]})
    assert space.get("y").content == Json({text: text})
    assert space.decisions("scope") == {text: text}
    assert space.history("x")[0].actor == text
    space.purge("x")
    assert space.decisions("scope") == {text: None}


@pytest.mark.req("index:any-text", "handle:grammar")
def test_the_longest_names_are_kept_apart(memory: Memory) -> None:
    """Longer than an entry of a B-tree may be, and different only at their ends."""
    names = [("🚲" * 511) + end for end in "ab"]
    for name in names:
        space = memory.namespace(*(["🚲" * 512] * 15), name)
        saved = space.save(name, kind=name, key=name, task=name, session=name, hold=name)
        space.decide(name, name, name)
        assert space.save("changed", kind=name, key=name).memory_id == saved.memory_id
        assert [r.memory_id for r in space.each({"task": name})] == [saved.memory_id]
        assert space.decisions(name) == {name: name}
    assert len(memory.subtree().namespaces()) == 2


@pytest.mark.req("index:any-text")
def test_a_word_of_any_length_is_indexed(memory: Memory) -> None:
    space = memory.namespace("acme")
    word = "x" * 3000
    space.save(f"before {word} after")
    space.save(f"before {word}y after {chr(0xE002)}")
    assert [hit.memory_id for hit in space.search(word)] == ["1"]
    assert faults(memory.storage) == []


# Reading


PARTITION = re.compile(r"\bon (?:body|journal|record|lexicon|vector|decision|hold)_(\d+)\b")


@pytest.mark.req("handle:scope", "prod:namespaces")
def test_every_statement_stays_in_its_namespace_partition(
    memory: Memory, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan of whatever an operation runs names no other partition."""
    seen: list[Statement] = []
    send = Session._send

    def noted(session: Session, statements: Sequence[Statement]) -> Cursor:
        seen.extend(statements)
        return send(session, statements)

    monkeypatch.setattr(Session, "_send", noted)
    everything(memory.namespace("acme"))
    with psycopg.connect(postgres.url("store")) as connection:
        plans = [
            "\n".join(line for (line,) in connection.execute(f"EXPLAIN {sql}".encode(), values))
            for sql, values in seen
            if sql.startswith(("SELECT", "UPDATE", "DELETE", "INSERT", "WITH"))
        ]
    partitions = [set(PARTITION.findall(plan)) for plan in plans]
    assert len([each for each in partitions if each]) > 15
    assert len(set[str]().union(*partitions)) == 1


def everything(space: Namespace) -> None:
    """Do one of each kind of operation."""
    space.save_many([{"content": f"text {n}", "memory_id": f"m{n}"} for n in range(3)])
    space.save("state", kind="task_state", task="t", expires_in=60, hold="h")
    space.save("fact", key="k", idempotency_key="once")
    space.update("m1", content="changed")
    space.touch("m1")
    space.list({"task": "t"})
    space.search("changed", where={"state": "active"})
    space.recall("text")
    space.history("m1")
    space.expire()
    space.end_task("t")
    space.release("h")
    space.rollback("m1", to_version=1)
    space.purge("m1")


@pytest.mark.req("op:list")
def test_a_long_scan_comes_in_pages(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zero_mem.storage.postgres_place.FIRST_ROWS", 3)
    monkeypatch.setattr("zero_mem.storage.postgres_place.MOST_ROWS", 7)
    space = memory.namespace("acme")
    space.save_many([{"content": f"text {n}", "memory_id": f"m{n}"} for n in range(40)])
    for n in range(0, 40, 3):
        space.update(f"m{n}", content="changed")
    assert [r.memory_id for r in space.each()] == [f"m{n}" for n in range(40)]
    with memory.storage.transaction() as transaction:
        row = transaction.namespace(("acme",))
        assert row is not None
        assert [e.sequence for e in transaction.journal(row)] == list(range(1, 55))
        used = [s.record.memory_id for s in transaction.by_use(row, form=None, kind=None)]
    assert sorted(used) == sorted(f"m{n}" for n in range(40))
    assert used[-1] == "m39"


@pytest.mark.req("history:purge")
def test_a_purge_leaves_no_row_with_the_text(memory: Memory, postgres: Server) -> None:
    ((before,),) = postgres.run("SELECT now()")
    space = memory.namespace("acme")
    space.save("the canary sings", kind="birds", key="canary", tags=["canary"], memory_id="x")
    space.save("the canary sleeps", kind="birds", key="canary")
    space.decide("scope", "key", "canary", memory_id="x")
    space.save("a sparrow")
    space.purge("x")
    assert not memory.storage.scrub_pending()
    tables = [
        name
        for (name,) in postgres.run(
            "SELECT oid::regclass::text FROM pg_class"
            " WHERE relnamespace = 'zero_mem'::regnamespace AND relkind IN ('r', 'p')",
            database="store",
        )
    ]
    for table in tables:
        rows = postgres.run(f"SELECT t::text FROM {table} t", database="store")
        assert not any("canary" in row or b"canary".hex() in row for (row,) in rows), table
    vacuumed = "SELECT count(*) FROM pg_stat_user_tables WHERE last_vacuum >= %s"
    assert postgres.run(vacuumed, [before], database="store") == [(7,)]


# Connections that end


@pytest.mark.req("pkg:errors", "op:order")
def test_a_connection_that_was_lost_while_idle_is_replaced(
    memory: Memory, postgres: Server
) -> None:
    space = memory.namespace("acme")
    for number in range(3):
        space.save(f"text {number}")
        space.list()
        _end_connections(postgres)
    assert space.count() == 3


@pytest.mark.req("pkg:errors", "op:save")
def test_a_connection_lost_before_the_commit_writes_nothing(
    memory: Memory, postgres: Server
) -> None:
    space = memory.namespace("acme")
    space.save("text", memory_id="x")
    with pytest.raises(StoreUnavailable, match="nothing of this operation was written"):
        _note_access(memory, lambda: _end_connections(postgres))
    assert space.get("x").access_count == 0


def _note_access(memory: Memory, meanwhile: Callable[[], None]) -> None:
    with memory.transaction(write=True) as transaction:
        row = transaction.create_namespace(("acme",))
        transaction.accessed(row, ["x"], 1)
        meanwhile()
        transaction.by_ids(row, ["x"])


def _end_connections(postgres: Server) -> None:
    postgres.run(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'app'"
    )


@pytest.mark.req("op:idempotency", "pkg:errors", "op:order")
@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_answer_to_a_commit_is_said_and_the_key_decides(
    postgres: Server, postgres_url: str, arrives: bool
) -> None:
    """Whether the commit arrived or not, the retry leaves one record."""
    with LossyProxy(postgres.port) as proxy:
        url = postgres_url.replace(str(postgres.port), str(proxy.port))
        with Memory.open(f"{url}?sslmode=disable", durability="normal") as memory:
            space = memory.namespace("acme")
            space.save("before")
            proxy.lose_next_commit(arrives=arrives)
            with pytest.raises(StoreUnavailable, match=r"unknown.*idempotency key"):
                space.save("paid", idempotency_key="payment-7")
            receipt = space.save("paid", idempotency_key="payment-7")
            assert (receipt.flags == {"replayed"}) is arrives
            assert [record.text for record in space.each()] == ["before", "paid"]


# The event loop


@pytest.mark.req("op:order")
def test_the_loop_goes_on_while_a_write_waits(postgres_url: str) -> None:
    async def scene() -> list[str]:
        done: list[str] = []
        async with AsyncMemory.open(postgres_url, durability="normal") as memory:
            await memory.namespace("acme").save("first")
            with _held(postgres_url):
                waiting = asyncio.create_task(memory.namespace("acme").save("second"))
                # Another namespace is written to meanwhile, and another read of this one done.
                await memory.namespace("other").save("elsewhere")
                done.append(f"read {await memory.namespace('acme').count()}")
                assert not waiting.done()
            await waiting
            done.append(f"read {await memory.namespace('acme').count()}")
        return done

    assert asyncio.run(scene()) == ["read 1", "read 2"]


@contextmanager
def _held(url: str) -> Iterator[None]:
    """Keep the lock of the namespace `acme`."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT set_config('zero_mem.path', '[', true)")
        connection.execute(
            "SELECT FROM zero_mem.counter WHERE namespace ="
            " (SELECT number FROM zero_mem.namespace WHERE path = '[\"acme\"]') FOR UPDATE"
        )
        yield
        connection.rollback()


# The same as SQLite


@pytest.mark.req("index:hybrid", "index:languages")
def test_scores_are_those_of_sqlite(memory: Memory, tmp_path: Path, clock: FakeClock) -> None:
    texts = [f"order {n} of the red bicycle, 退款 {n % 7}" + " bell" * (n % 5) for n in range(60)]

    def ranked(space: Namespace) -> list[tuple[str, float]]:
        space.save_many([{"content": text} for text in texts])
        return [(h.memory_id, round(h.score, 9)) for h in space.search("bell 退款 3", limit=60)]

    with Memory.open(f"sqlite:///{tmp_path}/a.db", durability="normal") as sqlite:
        expected = ranked(sqlite.namespace("acme"))
    memory.namespace("other").save_many([{"content": "bell " * 9} for _ in range(50)])
    assert ranked(memory.namespace("acme")) == expected


@pytest.mark.req("index:hybrid")
def test_recall_by_meaning_is_that_of_sqlite(memory: Memory, tmp_path: Path) -> None:
    embedder = FakeEmbedder(synonyms={"car": "vehicl"})
    texts = ["Ann sold her old vehicle.", "Bob repairs bicycles.", "Eve paints."]

    def recalled(storage: Storage) -> list[tuple[str, float]]:
        with Memory(storage, embedder=embedder, tokens=CountingTokenizer()) as dense:
            space = dense.namespace("acme")
            space.save_many([{"content": text} for text in texts])
            return [(i.memory_id, round(i.score, 9)) for i in space.recall("car").items]

    in_file = recalled(SQLiteStorage(f"{tmp_path}/a.db", durability="normal"))
    assert recalled(memory.storage) == in_file
    assert in_file[0][0] == "1"


# What else can go wrong


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        ("53100", StoreUnavailable, "disk is full"),
        ("53300", StoreUnavailable, "connections"),
        ("40P01", StoreUnavailable, "try again"),
        ("40001", StoreUnavailable, "try again"),
        ("57P01", StoreUnavailable, "stopping"),
        ("57014", StoreUnavailable, "cancelled"),
        ("58030", StoreUnavailable, "files"),
        ("XX001", StoreCorrupt, "damaged data"),
        ("XX002", StoreCorrupt, "REINDEX"),
        ("42P01", StoreCorrupt, "missing"),
    ],
)
def test_what_the_server_reports_is_said_in_the_stores_words(
    code: str, kind: type[StoreUnavailable], says: str
) -> None:
    with pytest.raises(kind, match=says) as raised:
        raise_translated("postgresql://here/db", psycopg.errors.lookup(code)("row (secret)"))
    assert "secret" not in str(raised.value)


@pytest.mark.req("pkg:errors")
def test_a_server_that_only_reads_is_read_and_not_written(memory: Memory, postgres: Server) -> None:
    memory.namespace("acme").save("text")
    postgres.run("ALTER ROLE app SET default_transaction_read_only = on")
    try:
        _end_connections(postgres)
        assert memory.namespace("acme").count() == 1
        with pytest.raises(StoreUnavailable, match="read-only replica"):
            memory.namespace("acme").save("more")
    finally:
        postgres.run("ALTER ROLE app RESET default_transaction_read_only")
    _end_connections(postgres)


FORKING = """
import os, sys
from zero_mem import Memory

with Memory.open(sys.argv[1], durability="normal") as memory:
    space = memory.namespace("acme")
    space.save("before")
    child = os.fork()
    if not child:
        space.save("child")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    space.save("parent")
    print(sorted(record.text for record in space.each()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_connections_of_its_own(postgres_url: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKING, postgres_url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "['before', 'child', 'parent']\n", done.stderr


@pytest.mark.req("pkg:import", "pkg:errors")
@pytest.mark.parametrize("package", ["psycopg", "psycopg_pool"])
def test_without_the_extra_it_is_named(package: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from zero_mem import Memory\n"
        "from zero_mem.errors import MissingExtra\n"
        "try:\n    Memory.open('postgresql://localhost/db')\n"
        "except MissingExtra as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "zero-mem[postgres]" in done.stdout, done.stderr
