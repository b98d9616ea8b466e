"""The second wall: what the server itself lets a transaction see, whatever its statements say."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from postgres_server import Server

from zero_mem import Memory
from zero_mem.errors import StoreUnavailable
from zero_mem.storage.postgres_place import PostgresPlace
from zero_mem.storage.postgres_schema import PARTITIONS

pytestmark = pytest.mark.req("prod:namespaces")

WALLED = ("body", "journal", "record", "lexicon", "vector", "decision", "hold", "counter")


@pytest.fixture
def numbers(postgres_url: str) -> Iterator[dict[str, int]]:
    """Save to two namespaces; give the number of each."""
    with Memory.open(postgres_url, durability="normal") as memory:
        for name in ("alice", "bob"):
            space = memory.namespace("acme", name)
            space.save(f"text of {name}", memory_id="x", hold="owner", idempotency_key="once")
        with memory.transaction() as transaction:
            yield {row.path[-1]: row.number for row in transaction.namespaces(("acme",))}


@pytest.fixture
def connection(postgres_url: str, numbers: dict[str, int]) -> Iterator[psycopg.Connection]:
    """Connect as the store's user does, with no namespace set."""
    with psycopg.connect(postgres_url) as connection:
        yield connection
        connection.rollback()


def seen(connection: psycopg.Connection, table: str) -> set[int]:
    """Read the namespaces of all rows of a table that can be seen."""
    column = "number" if table == "namespace" else "namespace"
    rows = connection.execute(f"SELECT {column} FROM zero_mem.{table}".encode())
    return {number for (number,) in rows}


def be_in(connection: psycopg.Connection, number: int) -> None:
    """Name the namespace that the transaction is in."""
    connection.execute("SELECT set_config('zero_mem.namespace', %s, true)", (str(number),))


def test_a_policy_stands_before_every_table_with_a_namespace(
    postgres: Server, numbers: dict[str, int]
) -> None:
    without = postgres.run(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE c.relnamespace = 'zero_mem'::regnamespace AND a.attname = 'namespace'"
        " AND c.relkind IN ('r', 'p')"
        " AND NOT (c.relrowsecurity AND c.relforcerowsecurity)",
        database="store",
    )
    assert without == []


@pytest.mark.parametrize("table", [*WALLED, "namespace"])
def test_who_names_no_namespace_sees_nothing(connection: psycopg.Connection, table: str) -> None:
    assert seen(connection, table) == set()


@pytest.mark.parametrize("table", [table for table in WALLED if table != "counter"])
def test_who_names_a_partition_goes_around_no_wall(
    connection: psycopg.Connection, numbers: dict[str, int], table: str
) -> None:
    parts = [f"{table}_{part}" for part in range(PARTITIONS)]
    assert set().union(*(seen(connection, part) for part in parts)) == set()
    be_in(connection, numbers["alice"])
    assert set().union(*(seen(connection, part) for part in parts)) <= {numbers["alice"]}


@pytest.mark.parametrize("table", [table for table in WALLED if table != "vector"])
def test_who_names_one_sees_that_one(
    connection: psycopg.Connection, numbers: dict[str, int], table: str
) -> None:
    be_in(connection, numbers["alice"])
    assert seen(connection, table) == {numbers["alice"]}


def test_the_setting_ends_with_the_transaction(
    connection: psycopg.Connection, numbers: dict[str, int]
) -> None:
    be_in(connection, numbers["alice"])
    connection.commit()
    assert seen(connection, "record") == set()


def test_nobody_writes_into_a_namespace_that_they_are_not_in(
    connection: psycopg.Connection, numbers: dict[str, int]
) -> None:
    be_in(connection, numbers["alice"])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(
            "INSERT INTO zero_mem.hold VALUES (%s, 'owner', 'uid')", (numbers["bob"],)
        )
    connection.rollback()
    be_in(connection, numbers["alice"])
    done = connection.execute(
        "UPDATE zero_mem.record SET state = 'deleted' WHERE namespace = %s", (numbers["bob"],)
    )
    assert done.rowcount == 0
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("UPDATE zero_mem.record SET namespace = %s", (numbers["bob"],))


def test_a_statement_that_forgets_its_condition_reads_no_other_namespace(
    postgres_url: str, numbers: dict[str, int]
) -> None:
    """The store's own transaction stands behind the wall too, in each namespace it enters."""
    with (
        Memory.open(postgres_url, durability="normal") as memory,
        memory.transaction() as transaction,
    ):
        assert isinstance(transaction, PostgresPlace)
        for name in ("alice", "bob", "alice"):
            row = transaction.namespace(("acme", name))
            assert row is not None
            assert list(transaction.scan(row, {})) != []
            found = transaction.session.run("SELECT DISTINCT namespace FROM zero_mem.journal")
            assert found.fetchall() == [(numbers[name],)]
        rows = transaction.namespaces(("acme",))
        for row in rows:
            assert [s.record.text for s in transaction.scan(row, {})] == [f"text of {row.path[-1]}"]


@pytest.mark.req("handle:scope")
def test_paths_elsewhere_are_not_seen(
    connection: psycopg.Connection, numbers: dict[str, int]
) -> None:
    scope = "SELECT set_config('zero_mem.path', %s, true)"
    for path, visible in {
        '["acme","alice"': {numbers["alice"]},
        '["acme"': set(numbers.values()),
        '["acm"': set[int](),
        "[": set(numbers.values()),
    }.items():
        connection.execute(scope, (path,))
        assert seen(connection, "namespace") == visible


@pytest.mark.req("pkg:errors")
def test_a_user_without_rights_is_told_so(postgres: Server, numbers: dict[str, int]) -> None:
    postgres.run("CREATE ROLE stranger LOGIN")
    try:
        with pytest.raises(StoreUnavailable, match="lacks a right"):
            Memory.open(postgres.url("store", "stranger"))
    finally:
        postgres.run("DROP ROLE stranger")
