"""One store on several nodes: each namespace on one of them, whatever a client believes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import Server, empty, new_database

from zero_mem import Memory
from zero_mem.errors import InvalidInput, NotAllowed, StoreCorrupt, StoreUnavailable
from zero_mem.storage.base import Storage
from zero_mem.storage.postgres import PostgresStorage
from zero_mem.storage.routing import Routes, read_routes, write_routes
from zero_mem.storage.routing_move import move_tenant
from zero_mem.storage.routing_store import RoutedStorage
from zero_mem.testing.keys import KeyConformance
from zero_mem.testing.primitives import NamespacePrimitives
from zero_mem.testing.reads import ListConformance
from zero_mem.testing.vectors import VectorPrimitives

pytestmark = pytest.mark.req("prod:storage", "prod:namespaces")

NODES = ("node_a", "node_b", "node_c")
ORIGIN = "0123456789abcdef"


@pytest.fixture(scope="module")
def databases(postgres: Server) -> Iterator[dict[str, str]]:
    """Make a database for each node; give their URLs."""
    yield {name: new_database(postgres, name) for name in NODES}
    for name in NODES:
        postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def table(databases: dict[str, str], postgres: Server, tmp_path: Path) -> Path:
    """Write a routing table over three empty nodes."""
    for name in NODES:
        empty(postgres, name)
    routes = Routes(
        nodes=databases,
        default="node_a",
        routes={("acme", "alice"): "node_b", ("tenant",): "node_c"},
        origin=ORIGIN,
    )
    write_routes(tmp_path / "routes.json", routes)
    return tmp_path / "routes.json"


@pytest.fixture
def memory(table: Path) -> Iterator[Memory]:
    with Memory.open(f"routes:///{table}", durability="normal") as memory:
        yield memory


def on_node(postgres: Server, node: str) -> set[str]:
    """Name the paths that a node has."""
    rows = postgres.run("SELECT path FROM zero_mem.namespace", database=node)
    return {path for (path,) in rows}


class TestRouted(NamespacePrimitives, ListConformance, KeyConformance, VectorPrimitives):
    @pytest.fixture
    def storage(self, table: Path, databases: dict[str, str]) -> Iterator[Storage]:
        # The suite writes to several namespaces at once: they are on one node.
        write_routes(table, Routes(nodes=databases, default="node_b", origin=ORIGIN))
        storage = RoutedStorage(str(table), durability="normal")
        yield storage
        storage.close()


# The table


def test_the_longest_prefix_decides() -> None:
    routes = Routes(
        nodes={"a": "…", "b": "…", "c": "…"},
        default="a",
        routes={("acme",): "b", ("acme", "west"): "c"},
    )
    asked = [("acme",), ("acme", "east"), ("acme", "west", "1"), ("acme-corp",), ("other", "acme")]
    assert [routes.node_of(path) for path in asked] == ["b", "b", "c", "a", "a"]
    moved = routes.rerouted(("acme",), "a")
    assert [moved.node_of(path) for path in asked] == ["a"] * 5


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    routes = Routes(nodes={"a": "u", "b": "v"}, default="a", routes={("退款", "x/y"): "b"})
    write_routes(tmp_path / "r.json", routes)
    assert read_routes(tmp_path / "r.json") == routes
    assert (tmp_path / "r.json").stat().st_mode & 0o077 == 0


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"nodes": {"a": "u"}, "default": "z", "routes": [], "origin": "o"}']
)
def test_what_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(InvalidInput, match="rout"):
        Memory.open(f"routes:///{tmp_path / 'r.json'}")
    with pytest.raises(StoreUnavailable, match="routes"):
        Memory.open(f"routes:///{tmp_path / 'none.json'}")


# Reads and writes


def test_a_namespace_is_on_the_node_of_its_route_alone(memory: Memory, postgres: Server) -> None:
    for path in (("acme", "alice"), ("acme", "bob"), ("tenant", "1"), ("tenant", "2")):
        memory.namespace(*path).save(f"text of {path[-1]}")
    assert on_node(postgres, "node_a") == {'["acme","bob"]'}
    assert on_node(postgres, "node_b") == {'["acme","alice"]'}
    assert on_node(postgres, "node_c") == {'["tenant","1"]', '["tenant","2"]'}
    assert memory.namespace("tenant", "2").search("text")[0].record.text == "text of 2"
    assert memory.namespace("acme", "alice").history("1") != []


@pytest.mark.req("op:list")
def test_a_subtree_is_read_on_every_node(memory: Memory) -> None:
    paths = [("acme", "alice"), ("acme", "bob"), ("tenant", "1")]
    for path in paths:
        memory.namespace(*path).save_many([{"content": f"{path[-1]} {n}"} for n in range(3)])
    assert sorted(memory.subtree().namespaces()) == paths
    assert sorted(memory.subtree("acme").namespaces()) == paths[:2]
    tree = memory.subtree()
    seen, cursor = [], None
    while True:
        page = tree.list(limit=2, cursor=cursor)
        seen += [record.text for record in page.items]
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    assert sorted(seen) == sorted(f"{path[-1]} {n}" for path in paths for n in range(3))
    assert tree.count() == 9
    assert {hit.record.namespace for hit in tree.search("1", limit=20)} == set(paths)
    assert memory.stats().records == 9


def test_a_write_stays_on_one_node(memory: Memory) -> None:
    with pytest.raises(NotAllowed, match="stays on one node"):
        _write_to_two(memory)
    assert memory.subtree().namespaces() == []


def _write_to_two(memory: Memory) -> None:
    with memory.transaction(write=True) as transaction:
        transaction.create_namespace(("acme", "alice"))
        transaction.create_namespace(("acme", "bob"))


def test_a_table_that_is_out_of_date_misleads_nobody(
    memory: Memory, table: Path, postgres: Server
) -> None:
    """Who asks the wrong node is sent to the right one, for old namespaces and for new ones."""
    space = memory.namespace("tenant", "1")
    space.save("first")
    _departed(postgres, "node_c", to="node_b")
    write_routes(table, read_routes(table).rerouted(("tenant",), "node_c"))
    memory.namespace("tenant", "new").save("made after it left")
    assert on_node(postgres, "node_b") == {'["tenant","new"]'}
    with Memory.open(f"routes:///{table}", durability="normal") as other:
        assert [r.text for r in other.namespace("tenant", "new").each()] == ["made after it left"]
        assert other.namespace("tenant", "never").list().items == ()


def _departed(postgres: Server, node: str, *, to: str) -> None:
    postgres.run(
        "INSERT INTO zero_mem.departed VALUES ('[\"tenant\"]', %s, gen_random_uuid())",
        [to],
        database=node,
    )


def test_a_reader_waits_while_a_namespace_is_on_its_way(
    memory: Memory, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither node answers for it then, and nobody takes that for an empty namespace."""
    space = memory.namespace("tenant", "1")
    space.save("first")
    for table in ("namespace", "counter"):
        ((row,),) = postgres.run(f"SELECT t::text FROM zero_mem.{table} t", database="node_c")
        copy = f"INSERT INTO zero_mem.{table} SELECT (%s::zero_mem.{table}).*"
        postgres.run(copy, [row], database="node_a")
    postgres.run("UPDATE zero_mem.counter SET home = 'node_a'", database="node_c")
    asked = threading.Event()
    monkeypatch.setattr("zero_mem.storage.routing_store.time.sleep", lambda _: asked.set())
    found: list[list[str]] = []
    reader = threading.Thread(target=lambda: found.append([r.text for r in space.each()]))
    lister = threading.Thread(target=lambda: found.append([str(memory.subtree().count())]))
    for thread in (reader, lister):
        thread.start()
    assert asked.wait(30)
    assert found == []
    postgres.run("UPDATE zero_mem.counter SET home = 'node_c'", database="node_c")
    for thread in (reader, lister):
        thread.join()
    assert sorted(found) == [["1"], ["first"]]


@pytest.mark.req("pkg:errors")
def test_a_node_is_no_store_of_its_own(
    memory: Memory, databases: dict[str, str], table: Path, postgres: Server
) -> None:
    memory.namespace("tenant", "1").save("text")
    with (
        Memory.open(databases["node_c"], durability="normal") as alone,
        pytest.raises(StoreUnavailable, match="routing table"),
    ):
        alone.namespace("tenant", "1").list()
    with pytest.raises(StoreCorrupt, match="not 'node_a'"):
        _swapped(table, databases)


def _swapped(table: Path, databases: dict[str, str]) -> None:
    nodes = {"node_a": databases["node_b"], "node_b": databases["node_a"]}
    swapped = table.with_name("swapped.json")
    write_routes(swapped, Routes(nodes=nodes, default="node_a", origin=ORIGIN))
    with Memory.open(f"routes:///{swapped}", durability="normal") as memory:
        memory.namespace("x").list()


@pytest.mark.req("pkg:errors")
def test_a_store_with_memories_does_not_become_a_node(
    postgres_url: str, table: Path, databases: dict[str, str]
) -> None:
    storage = PostgresStorage(postgres_url, durability="normal")
    with Memory(storage) as memory:
        memory.namespace("acme").save("text")
        origin = storage.origin
    joined = table.with_name("joined.json")
    write_routes(joined, Routes(nodes={"x": postgres_url}, default="x", origin=origin))
    with pytest.raises(StoreCorrupt, match="can't become a node"):
        Memory.open(f"routes:///{joined}", durability="normal")


def test_numbers_of_namespaces_are_apart_on_all_nodes(memory: Memory) -> None:
    for number in range(3):
        for path in (
            ("acme", "alice", str(number)),
            ("acme", str(number)),
            ("tenant", str(number)),
        ):
            memory.namespace(*path).save("text")
    with memory.transaction() as transaction:
        rows = transaction.namespaces(())
    assert len({row.number for row in rows}) == 9
    assert len({row.number % 64 for row in rows}) == 3


def test_one_node_that_is_down_stops_only_what_is_on_it(
    memory: Memory, table: Path, postgres: Server, databases: dict[str, str]
) -> None:
    memory.namespace("tenant", "1").save("text")
    memory.namespace("acme", "bob").save("text")
    routes = read_routes(table)
    gone = routes.nodes["node_c"].replace("node_c", "no_such_database")
    broken = table.with_name("broken.json")
    nodes = {**routes.nodes, "node_c": gone}
    write_routes(broken, Routes(nodes=nodes, default="node_a", routes=routes.routes, origin=ORIGIN))
    with Memory.open(f"routes:///{broken}", durability="normal") as partly:
        assert partly.namespace("acme", "bob").count() == 1
        with pytest.raises(StoreUnavailable, match="can't connect"):
            partly.namespace("tenant", "1").count()
        with pytest.raises(StoreUnavailable, match="can't connect"):
            partly.subtree().count()


def test_the_administrator_is_needed_to_move(table: Path) -> None:
    with pytest.raises(InvalidInput, match="needs URLs"):
        move_tenant(table, ("tenant",), "node_a", admins={})
    admins = read_routes(table).nodes
    assert move_tenant(table, ("tenant",), "node_c", admins=admins) == 0
