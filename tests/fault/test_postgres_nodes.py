"""Three nodes under load: a primary is killed, its replica promoted, and a tenant moved.

Writers and readers go on throughout. What was acknowledged is there afterwards, once, and no
reader ever sees less than what was acknowledged before it began to read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from postgres_server import NoServer, Server, new_database, refuse_or_skip

from zero_mem import Memory
from zero_mem.errors import StoreUnavailable
from zero_mem.storage.routing import Routes, read_routes, write_routes
from zero_mem.storage.routing_move import move_tenant
from zero_mem.testing.audit import faults

pytestmark = [pytest.mark.fault, pytest.mark.req("prod:storage", "op:order", "op:idempotency")]

# The servers are killed, not the machine: what they wrote is with the operating system.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "on",
    "shared_buffers": "32MB",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "max_connections": "60",
}
REPLICA = "replica"
ENOUGH = 25
"""So many acknowledgements of every writer are awaited between the events."""


@dataclass(slots=True)
class Node:
    """A primary and its synchronous replica."""

    name: str
    primary: Server
    replica: Server

    @classmethod
    def made(cls, name: str) -> Node:
        """Start both and wait until commits wait for the replica."""
        primary = Server.made(SETTINGS)
        new_database(primary, "store")
        replica = Server.copied(primary, {**SETTINGS, "cluster_name": REPLICA})
        # By name: a subscriber of a move must not be taken for the replica.
        primary.run(f"ALTER SYSTEM SET synchronous_standby_names = '{REPLICA}'")
        primary.run("SELECT pg_reload_conf()")
        for _ in range(1000):
            if ("sync",) in primary.run("SELECT sync_state FROM pg_stat_replication"):
                return cls(name, primary, replica)
            time.sleep(0.01)
        raise NoServer(f"the replica of {name} does not follow")

    @property
    def url(self) -> str:
        """The node's URL: whichever of its two servers may be written to."""
        hosts = ",".join(f"127.0.0.1:{s.port}" for s in (self.primary, self.replica))
        return f"postgresql://app@{hosts}/store?target_session_attrs=read-write"

    def fail_over(self) -> None:
        """Kill the primary and promote the replica."""
        self.primary.kill()
        self.replica.run("ALTER SYSTEM SET synchronous_standby_names = ''")
        self.replica.promote()
        self.replica.run("SELECT pg_reload_conf()")

    def remove(self) -> None:
        """End both."""
        self.replica.remove()
        self.primary.remove()


@dataclass(slots=True)
class Load:
    """One writer and one reader of a tenant's namespace."""

    memory: Memory
    path: tuple[str, ...]
    stop: threading.Event
    acknowledged: int = 0
    retries: int = 0
    faults: list[str] = field(default_factory=list)

    def write(self) -> None:
        """Save until told to stop; a write without an answer is repeated under its key."""
        space = self.memory.namespace(*self.path)
        while not self.stop.is_set():
            number = self.acknowledged + 1
            try:
                space.save(f"text {number}", idempotency_key=f"key {number}")
            except StoreUnavailable:
                self.retries += 1
                continue
            self.acknowledged = number

    def read(self) -> None:
        """Count until told to stop: never less than what was acknowledged before."""
        space = self.memory.namespace(*self.path)
        while not self.stop.is_set():
            least = self.acknowledged
            try:
                found = space.count()
            except StoreUnavailable:
                continue
            if found < least:
                self.faults.append(f"{self.path}: {found} of {least} were seen")


@pytest.fixture
def nodes() -> Iterator[dict[str, Node]]:
    made: dict[str, Node] = {}
    try:
        for name in ("a", "b", "c"):
            made[name] = Node.made(name)
        yield made
    except NoServer as error:
        refuse_or_skip(error)
    finally:
        for node in made.values():
            node.remove()


def await_progress(loads: list[Load]) -> None:
    """Wait until every writer has gone on."""
    before = [load.acknowledged for load in loads]
    for _ in range(12_000):
        if all(one.acknowledged >= n + ENOUGH for one, n in zip(loads, before, strict=True)):
            return
        time.sleep(0.01)
    pytest.fail(f"the writers stand still: {[(one.path, one.acknowledged) for one in loads]}")


def test_nothing_is_lost_in_a_failover_and_a_move(nodes: dict[str, Node], tmp_path: Path) -> None:
    table = tmp_path / "routes.json"
    routes: dict[tuple[str, ...], str] = {("tenant", name): name for name in nodes}
    write_routes(
        table,
        Routes(nodes={n.name: n.url for n in nodes.values()}, default="a", routes=routes),
    )
    stop = threading.Event()
    with Memory.open(f"routes:///{table}") as memory:
        loads = [
            Load(memory, ("tenant", name, part), stop) for name in nodes for part in ("x", "y")
        ]
        threads = [threading.Thread(target=work) for one in loads for work in (one.write, one.read)]
        for thread in threads:
            thread.start()
        try:
            await_progress(loads)
            nodes["b"].fail_over()
            await_progress(loads)
            move = (table, ("tenant", "a"), "c")
            admins = {name: nodes[name].primary.url("store") for name in ("a", "c")}
            assert move_tenant(*move, admins=admins, patience=120) == 2
            await_progress(loads)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert [fault for load in loads for fault in load.faults] == []
        check(memory, loads)
    check_places(nodes, table)


def check(memory: Memory, loads: list[Load]) -> None:
    """Every acknowledged text is there, once; at most the write under way is there besides."""
    for load in loads:
        texts = [record.text for record in memory.namespace(*load.path).each()]
        wanted = [f"text {number}" for number in range(1, load.acknowledged + 1)]
        assert texts[: len(wanted)] == wanted
        assert len(texts) <= len(wanted) + 1
    assert faults(memory.storage) == []


def check_places(nodes: dict[str, Node], table: Path) -> None:
    """Each tenant is where the table says, and nowhere else."""
    assert read_routes(table).node_of(("tenant", "a", "x")) == "c"
    held = {
        "a": set[str](),
        "b": {'["tenant","b","x"]', '["tenant","b","y"]'},
        "c": {f'["tenant","{name}","{part}"]' for name in "ac" for part in "xy"},
    }
    for name, paths in held.items():
        server = nodes[name].replica if name == "b" else nodes[name].primary
        found = server.run("SELECT path FROM zero_mem.namespace", database="store")
        assert {path for (path,) in found} == paths
        assert server.run("SELECT count(*) > 0 FROM zero_mem.body", database="store") == [
            (bool(paths),)
        ]
        assert server.run("SELECT count(*) FROM pg_subscription") == [(0,)]


def test_a_move_that_was_cut_short_goes_on(nodes: dict[str, Node], tmp_path: Path) -> None:
    """The tenant is readable all the time, and complete when the move is started again."""
    table = tmp_path / "routes.json"
    routes = Routes(nodes={n.name: n.url for n in nodes.values()}, default="a")
    write_routes(table, routes)
    admins = {name: nodes[name].primary.url("store") for name in ("a", "c")}
    with Memory.open(f"routes:///{table}") as memory:
        space = memory.namespace("tenant", "x")
        space.save_many([{"content": f"text {n}"} for n in range(500)])
        for cut_at in ("copying", "handing over", "cleaning up", "no step"):
            with suppress(_Cut):
                move_tenant(table, ("tenant",), "c", admins=admins, progress=_Cutter(cut_at))
            assert space.count() == 500
        with Memory.open(f"routes:///{table}") as other:
            assert other.namespace("tenant", "x").count() == 500
            assert faults(other.storage) == []
            other.namespace("tenant", "new").save("text")
    for name, paths in {"a": 0, "c": 2}.items():
        counted = nodes[name].primary.run(
            "SELECT count(*) FROM zero_mem.namespace", database="store"
        )
        assert counted == [(paths,)]
    assert nodes["c"].primary.run("SELECT count(*) FROM pg_subscription") == [(0,)]


class _Cut(Exception):
    pass


@dataclass(slots=True)
class _Cutter:
    """Ends a move at one of its steps."""

    step: str

    def __call__(self, step: str) -> None:
        if step == self.step:
            raise _Cut
