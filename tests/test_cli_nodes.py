"""The nodes of a store on several servers, from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_server import QUICK, NoServer, Server, new_database, refuse_or_skip
from typer.testing import CliRunner, Result

from zero_mem import Memory
from zero_mem.cli.app import app
from zero_mem.storage.routing import Routes, read_routes, write_routes
from zero_mem.testing.audit import faults

pytestmark = pytest.mark.req("prod:storage", "pkg:cli")

NAMES = ("left", "right")


@pytest.fixture(scope="module")
def servers(postgres: Server) -> Iterator[dict[str, Server]]:
    """Run two servers: rows move between servers, not between databases of one."""
    try:
        other = Server.made(QUICK)
    except NoServer as error:
        refuse_or_skip(error)
    yield dict(zip(NAMES, (postgres, other), strict=True))
    other.remove()


@pytest.fixture
def table(
    servers: dict[str, Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Write the routing table of a store on new databases of both, which is the one to use."""
    urls = {name: new_database(server, "nodes") for name, server in servers.items()}
    table = tmp_path / "routes.json"
    routes: dict[tuple[str, ...], str] = {("acme",): "left", ("a/b", "c"): "right"}
    write_routes(table, Routes(nodes=urls, default="right", routes=routes))
    monkeypatch.setenv("ZERO_MEM_URL", f"routes:///{table}")
    monkeypatch.setenv("COLUMNS", "200")
    yield table
    for server in servers.values():
        server.run("DROP DATABASE nodes WITH (FORCE)")


@pytest.fixture
def memory(table: Path) -> Iterator[Memory]:
    with Memory.open(f"routes:///{table}", durability="normal") as memory:
        for name in ("alice", "bob"):
            memory.namespace("acme", name).save_many([{"content": f"{name} {n}"} for n in range(9)])
        memory.namespace("other").save("stays")
        yield memory


@pytest.fixture
def admins(servers: dict[str, Server], tmp_path: Path) -> str:
    """Write the URLs of users who may replicate."""
    file = tmp_path / "admins.json"
    urls = {name: server.url("nodes") for name, server in servers.items()}
    file.write_text(json.dumps(urls))
    return str(file)


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["node", *arguments])
    assert done.exit_code == code, done.output
    return done


def parsed(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


def test_the_nodes_are_listed_with_what_they_have(memory: Memory) -> None:
    assert parsed("list")["nodes"] == [
        {"node": "left", "routes": ["acme"], "namespaces": 2, "problem": ""},
        {"node": "right", "routes": ["a/b/c", "(all others)"], "namespaces": 1, "problem": ""},
    ]
    assert run("list").stdout.splitlines()[2].split() == ["left", "2", "acme"]


def test_a_node_that_is_away_is_listed_too(memory: Memory, table: Path) -> None:
    routes = read_routes(table)
    gone = "postgresql://app:hidden@127.0.0.1:1/nodes"
    write_routes(
        table,
        Routes(
            nodes={**routes.nodes, "gone": gone},
            default="gone",
            routes=routes.routes,
            origin=routes.origin,
        ),
    )
    left, right, gone_one = parsed("list")["nodes"]
    assert (left["namespaces"], right["namespaces"], gone_one["namespaces"]) == (2, 1, None)
    assert "can't connect" in gone_one["problem"]
    assert "hidden" not in run("list").output


def test_a_tenant_moves_with_all_it_has(
    memory: Memory, table: Path, admins: str, servers: dict[str, Server]
) -> None:
    space = memory.namespace("acme", "alice")
    space.update("1", "changed")
    before = space.history("1"), [record.text for record in space.each()]
    done = run("move", "acme", "--to", "right", "--admins", admins, "--patience", "120")
    assert done.stdout == "moved acme to right: 2 namespaces\n"
    assert done.stderr.splitlines() == ["copying", "handing over", "cleaning up", "done"]
    assert read_routes(table).node_of(("acme", "new")) == "right"
    assert (space.history("1"), [record.text for record in space.each()]) == before
    space.save("after the move")
    assert memory.namespace("acme", "bob").count() == 9
    assert [node["namespaces"] for node in parsed("list")["nodes"]] == [0, 3]
    assert faults(memory.storage) == []
    again = parsed("move", "acme", "--to", "right", "--admins", admins)
    assert again == {"namespace": ["acme"], "node": "right", "namespaces": 0}
    for server in servers.values():
        assert server.run("SELECT count(*) FROM pg_replication_slots") == [(0,)]


def test_who_may_not_replicate_is_told_so_and_nothing_moves(memory: Memory, table: Path) -> None:
    assert "lacks a right" in run("move", "acme", "--to", "right", code=5).stderr
    assert read_routes(table).node_of(("acme",)) == "left"
    assert memory.namespace("acme", "alice").count() == 9


def test_what_is_wrong_is_said_before_anything_is_done(
    memory: Memory, tmp_path: Path, admins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "one of left, right" in run("move", "acme", "--to", "up", code=2).stderr
    file = tmp_path / "wrong.json"
    for text, says in (("{", "no JSON"), ('["a"]', "JSON object"), ("{}", "needs URLs")):
        file.write_text(text)
        assert says in run("move", "acme", "--to", "right", "--admins", str(file), code=2).stderr
    missing = str(tmp_path / "absent.json")
    assert "can't be read" in run("move", "a", "--to", "left", "--admins", missing, code=2).stderr
    monkeypatch.setenv("ZERO_MEM_CREDENTIAL", "zm_x")
    assert "operator" in run("list", code=4).stderr
    assert "operator" in run("move", "acme", "--to", "right", "--admins", admins, code=4).stderr
    monkeypatch.setenv("ZERO_MEM_URL", f"sqlite:///{tmp_path}/agent.db")
    assert "has nodes" in run("list", code=2).stderr


def test_moving_asks_for_rights(table: Path, memory: Memory, tmp_path: Path) -> None:
    admins = tmp_path / "users.json"
    admins.write_text(json.dumps(dict(read_routes(table).nodes)))
    refused = run("move", "acme", "--to", "right", "--admins", str(admins), code=5)
    assert "lacks a right" in refused.output
    assert read_routes(table).node_of(("acme",)) == "left"
    assert memory.namespace("acme", "bob").count() == 9


def test_a_move_between_databases_of_one_server_is_refused(
    servers: dict[str, Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = servers["left"]
    urls = {name: new_database(server, name) for name in ("one", "two")}
    table, admins = tmp_path / "routes.json", tmp_path / "admins.json"
    write_routes(table, Routes(nodes=urls, default="one", routes={}))
    admins.write_text(json.dumps({name: server.url(name) for name in urls}))
    monkeypatch.setenv("ZERO_MEM_URL", f"routes:///{table}")
    with Memory.open(f"routes:///{table}") as memory:
        memory.namespace("acme").save("stays")
    refused = run("move", "acme", "--to", "two", "--admins", str(admins), code=2)
    assert "databases of one server" in refused.output
    assert read_routes(table).node_of(("acme",)) == "one"
    for name in urls:
        server.run(f"DROP DATABASE {name} WITH (FORCE)")
