"""PostgreSQL is stopped and started while a store on it is open."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import pytest
from postgres_server import Server
from serving import loopback

from zero_mem import Memory
from zero_mem.aio import AsyncMemory
from zero_mem.client import connect
from zero_mem.errors import StoreUnavailable
from zero_mem.space import Namespace
from zero_mem.testing.audit import faults

pytestmark = pytest.mark.req("prod:storage", "pkg:errors", "op:order")

CONNECTIONS = 4


@pytest.fixture
def url(postgres_url: str) -> str:
    return f"{postgres_url}?connections={CONNECTIONS}&patience=2"


@pytest.fixture
def memory(url: str) -> Iterator[Memory]:
    with Memory.open(url, durability="normal") as memory:
        yield memory


@contextmanager
def stopped(postgres: Server) -> Iterator[None]:
    """Stop the server until the end of the block."""
    postgres.stop()
    try:
        yield
    finally:
        postgres.start()


def open_all_connections(memory: Memory) -> None:
    """Have every connection of the pool open and idle."""
    all_in = threading.Barrier(CONNECTIONS)

    def read(_: int) -> None:
        with memory.transaction() as transaction:
            transaction.namespaces(("x",))
            all_in.wait()

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(read, range(CONNECTIONS)))
    assert memory.snapshot().pools[""].size == CONNECTIONS


def test_after_a_restart_the_store_goes_on_at_once(memory: Memory, postgres: Server) -> None:
    """Though every connection that it had was lost: with a read or a write, no matter which."""
    space = memory.namespace("acme")
    space.save("before")
    for action in (space.count, lambda: space.save("after")):
        open_all_connections(memory)
        with stopped(postgres):
            pass
        assert action()
    assert [record.text for record in space.each()] == ["before", "after"]
    assert faults(memory.storage) == []


def test_while_the_server_is_away_nothing_is_done_and_it_is_said(
    memory: Memory, postgres: Server, url: str
) -> None:
    space = memory.namespace("acme")
    space.save("before", memory_id="x")
    with stopped(postgres):
        for action in (space.count, lambda: space.save("lost"), lambda: space.purge("x")):
            with pytest.raises(StoreUnavailable, match=r"postgresql://127\.0\.0\.1"):
                action()
        assert not memory.health().ready
        with pytest.raises(StoreUnavailable, match="can't connect"):
            Memory.open(url)
    assert memory.health().ready
    assert [record.text for record in space.each()] == ["before"]


def test_a_transaction_in_the_way_of_a_restart_writes_nothing(
    memory: Memory, postgres: Server
) -> None:
    space = memory.namespace("acme")
    space.save("text", memory_id="x")
    with pytest.raises(StoreUnavailable, match="nothing of this operation was written"):
        _note_access(memory, postgres)
    assert space.get("x").access_count == 0


def _note_access(memory: Memory, postgres: Server) -> None:
    with memory.transaction(write=True) as transaction:
        row = transaction.create_namespace(("acme",))
        transaction.accessed(row, ["x"], 1)
        with stopped(postgres):
            pass
        transaction.by_ids(row, ["x"])


@pytest.mark.req("op:idempotency")
def test_writers_that_repeat_what_failed_write_everything_once(
    memory: Memory, postgres: Server
) -> None:
    """Each repeats a save with its key until it has a receipt, through three restarts."""
    writers, saves = 4, 60
    begun = threading.Barrier(writers + 1)

    def write(number: int) -> None:
        space = memory.namespace("acme", str(number))
        begun.wait()
        for count in range(saves):
            _save_surely(space, f"text {count}", f"once {count}")

    with ThreadPoolExecutor(writers) as threads:
        running = [threads.submit(write, number) for number in range(writers)]
        begun.wait()
        for _ in range(3):
            with stopped(postgres):
                pass
        for each in running:
            each.result()
    for number in range(writers):
        records = memory.namespace("acme", str(number)).each()
        assert [record.text for record in records] == [f"text {n}" for n in range(saves)]
    assert faults(memory.storage) == []


def _save_surely(space: Namespace, text: str, key: str) -> None:
    for _ in range(1000):
        try:
            space.save(text, idempotency_key=key)
        except StoreUnavailable:
            continue
        return
    raise AssertionError("the store never comes back")


@pytest.mark.req("pkg:async")
def test_an_asynchronous_store_goes_on_too(url: str, postgres: Server) -> None:
    async def scene() -> list[str]:
        async with AsyncMemory.open(url, durability="normal") as memory:
            space = memory.namespace("acme")
            await asyncio.gather(*(space.save(f"before {n}") for n in range(8)))
            with stopped(postgres), pytest.raises(StoreUnavailable):
                await space.save("lost")
            await asyncio.gather(*(space.save(f"after {n}") for n in range(8)))
            return sorted([record.text async for record in space.each()])

    found = asyncio.run(scene())
    assert found == sorted([f"{when} {n}" for when in ("after", "before") for n in range(8)])


@pytest.mark.req("server:client", "server:serve")
def test_over_http_the_server_answers_again_by_itself(url: str, postgres: Server) -> None:
    local = Memory.open(url, durability="normal")
    with loopback() as server, server.serving(local) as served, connect(served) as remote:
        space = remote.namespace("acme")
        space.save("before")
        with stopped(postgres):
            with pytest.raises(StoreUnavailable):
                space.save("lost")
            assert httpx2.get(f"{served}/health").status_code == 200
            assert httpx2.get(f"{served}/ready").json() == {
                "ready": False,
                "problem": "StoreUnavailable",
            }
        assert httpx2.get(f"{served}/ready").json() == {"ready": True}
        space.save("after")
        assert [record.text for record in space.each()] == ["before", "after"]
