"""The inverted list in PostgreSQL: who is in it, and that it says what the terms say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import Server, new_database

from zero_mem import Memory
from zero_mem.errors import InvalidInput
from zero_mem.space import Namespace
from zero_mem.storage import postgres_schema
from zero_mem.storage.base import NamespaceRow
from zero_mem.storage.postgres import PostgresStorage
from zero_mem.storage.postgres_place import PostgresPlace
from zero_mem.storage.postgres_server import Connection, Cursor, Session, Statement
from zero_mem.testing.audit import faults

pytestmark = pytest.mark.req("prod:storage")

LARGEST = "zero_mem.storage.postgres_lexicon.LARGEST"
LONG = "x" * 3000


@pytest.fixture
def memory(postgres_url: str) -> Iterator[Memory]:
    with Memory.open(postgres_url, durability="normal") as memory:
        yield memory


def index_of(memory: Memory, space: Namespace) -> tuple[object, ...]:
    """Read what the index says of a namespace."""
    with memory.storage.transaction() as transaction:
        row = transaction.namespace(space.path)
        assert row is not None
        terms = ["text", "blue", "n7", LONG, "green", "missing"]
        postings = [transaction.postings(row, term) for term in terms]
        return transaction.frequencies(row, terms), postings, row.documents, row.length


def test_a_namespace_enters_the_list_when_it_is_large(
    memory: Memory, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = memory.namespace("small"), memory.namespace("large")
    for limit in (20_000, 20_000, 30, 30):
        monkeypatch.setattr(LARGEST, limit)
        items = [{"content": f"blue text n{n}"} for n in range(10)]
        large.save_many(items)
        small.save_many(items[:2])
    large.update("3", content=f"green text {LONG}")
    large.delete("4")
    large.purge("5")
    by_the_list = index_of(memory, large)
    assert by_the_list[0] == {"text": 38, "blue": 37, "n7": 4, LONG: 1, "green": 1}
    assert faults(memory.storage) == []
    with monkeypatch.context() as without:
        without.setattr(PostgresPlace, "_is_listed", is_not_listed)
        assert index_of(memory, large) == by_the_list
    assert listed(postgres) == [("large", 38, 38), ("small", 8, 0)]


def is_not_listed(place: PostgresPlace, row: NamespaceRow) -> bool:
    return False


def listed(postgres: Server, database: str = "store") -> list[tuple[object, ...]]:
    """Count of each namespace the rows with terms, and those in the list."""
    return postgres.run(
        "SELECT n.path::json->>0, count(*), count(*) FILTER (WHERE l.listed)"
        " FROM zero_mem.lexicon l JOIN zero_mem.namespace n ON n.number = l.namespace"
        " GROUP BY 1 ORDER BY 1",
        database=database,
    )


def test_the_list_answers_for_a_large_namespace(
    memory: Memory, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LARGEST, 5)
    space = memory.namespace("acme")
    space.save_many([{"content": f"text n{n}"} for n in range(10)])
    asked = statements(monkeypatch, lambda: index_of(memory, space))
    with psycopg.connect(postgres.url("store")) as connection:
        connection.execute(b"SET enable_seqscan = off")
        # Of ten rows the planner would rather read all by the primary key.
        connection.execute(b"ALTER TABLE zero_mem.lexicon DROP CONSTRAINT lexicon_pkey")
        plans = [
            "\n".join(line for (line,) in connection.execute(f"EXPLAIN {sql}".encode(), values))
            for sql, values in asked
            if "lexicon" in sql
        ]
        connection.rollback()
    assert len(plans) == 7
    assert [plan for plan in plans if "string_to_array_idx" not in plan] == []


def statements(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> list[Statement]:
    """Do something, and give the statements that it sent."""
    seen: list[Statement] = []
    send = Session._send

    def noted(session: Session, sent: Sequence[Statement]) -> Cursor:
        seen.extend(sent)
        return send(session, sent)

    with monkeypatch.context() as noting:
        noting.setattr(Session, "_send", noted)
        work()
    return seen


def test_a_write_that_fails_leaves_the_namespace_out_of_the_list(
    memory: Memory, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LARGEST, 5)
    space = memory.namespace("acme")
    space.save_many([{"content": f"text n{n}"} for n in range(5)])

    with pytest.raises(InvalidInput):
        space.save_many([*({"content": f"more n{n}"} for n in range(300)), {"content": ""}])
    assert listed(postgres) == [("acme", 5, 0)]
    space.save("the sixth")
    assert listed(postgres) == [("acme", 6, 6)]
    assert faults(memory.storage) == []


@pytest.mark.req("prod:migrate")
def test_a_large_namespace_of_the_first_schema_enters_the_list_with_its_next_write(
    postgres: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old, new = new_database(postgres, "older"), new_database(postgres, "newer")
    first = postgres_schema.MIGRATIONS / "0001_first.sql"
    (tmp_path / first.name).write_text(first.read_text())
    with monkeypatch.context() as before:
        before.setattr(postgres_schema, "MIGRATIONS", tmp_path)
        before.setattr(postgres_schema, "SCHEMA_VERSION", 1)
        PostgresStorage(old).close()
    with Memory.open(new) as memory:
        items = [{"content": "text n7"}] * 10
        write = memory.namespace("acme").save_many
        written = statements(monkeypatch, lambda: write(items))
    with psycopg.connect(old) as connection:
        for sql, values in written:
            _write_in_first_schema(connection, sql, values)
    monkeypatch.setattr(LARGEST, 5)
    with Memory.open(old) as migrated:
        space = migrated.namespace("acme")
        assert index_of(migrated, space)[0] == {"text": 10, "n7": 10}
        assert listed(postgres, "older") == [("acme", 10, 0)]
        space.save("text n8")
        assert listed(postgres, "older") == [("acme", 11, 11)]
        assert faults(migrated.storage) == []
    for name in ("older", "newer"):
        postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


def _write_in_first_schema(connection: Connection, sql: str, values: Sequence[Any]) -> None:
    """Execute what a write sends now, as the first schema had it."""
    if ".append(" in sql:
        sql, values = sql.replace(", %s::boolean", ""), values[:-1]
    sql = sql.replace(", vectors, listed", "")
    if not sql.startswith(("BEGIN", "COMMIT")):
        connection.execute(sql.encode(), values)
