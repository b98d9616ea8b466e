"""Many threads on one PostgreSQL store: nobody waits for another namespace, nothing is lost."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from zero_mem import Memory
from zero_mem.errors import Conflict, NotFound, StoreUnavailable
from zero_mem.space import Namespace
from zero_mem.testing.audit import faults

pytestmark = pytest.mark.req("prod:storage", "op:order")

THREADS = 64


@pytest.fixture
def memory(postgres_url: str) -> Iterator[Memory]:
    with Memory.open(f"{postgres_url}?connections=24", durability="normal") as memory:
        yield memory


def at_once(count: int, work: Callable[[int], object]) -> list[object]:
    """Run `work` in many threads that begin together."""
    start = threading.Barrier(count)

    def begin(number: int) -> object:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


@pytest.mark.req("op:dedupe-key")
def test_twenty_saves_of_one_key_leave_one_record(memory: Memory) -> None:
    space = memory.namespace("acme")
    receipts = at_once(20, lambda n: space.save(f"text {n}", kind="k", key="one").memory_id)
    assert set(receipts) == {"1"}
    assert space.get("1").version == 20
    assert faults(memory.storage) == []


@pytest.mark.req("op:save")
def test_a_namespace_is_made_once(memory: Memory) -> None:
    at_once(16, lambda n: memory.namespace("new").save(f"text {n}"))
    assert memory.subtree().namespaces() == [("new",)]
    assert {r.memory_id for r in memory.namespace("new").each()} == set(map(str, range(1, 17)))


@pytest.mark.req("op:idempotency")
def test_a_write_that_is_repeated_at_once_is_applied_once(memory: Memory) -> None:
    space = memory.namespace("acme")
    ids = at_once(12, lambda n: space.save("paid", idempotency_key="payment").memory_id)
    assert set(ids) == {"1"}
    assert space.count() == 1


def test_64_threads_end_without_a_deadlock(memory: Memory) -> None:
    """Single writes, batches, sweeps, purges and reads of subtrees over eight namespaces."""
    done: Counter[str] = Counter()

    def work(number: int) -> None:
        chosen = random.Random(number)
        for _ in range(12):
            space = memory.namespace("tree", str(chosen.randrange(8)))
            name = chosen.choice(sorted(STEPS))
            try:
                STEPS[name](memory, space, chosen)
            except (Conflict, NotFound):
                done["refused"] += 1
            done[name] += 1

    at_once(THREADS, work)
    assert sum(done[name] for name in STEPS) == THREADS * 12
    assert set(STEPS) <= done.keys()
    assert faults(memory.storage) == []


def _batch(memory: Memory, space: Namespace, chosen: random.Random) -> None:
    keys = chosen.sample(range(20), 6)
    space.save_many([{"content": f"v {chosen.random()}", "key": f"k{key}"} for key in keys])


def _purge(memory: Memory, space: Namespace, chosen: random.Random) -> None:
    space.purge(str(chosen.randrange(1, 30)))


STEPS: dict[str, Callable[[Memory, Namespace, random.Random], object]] = {
    "save": lambda memory, space, chosen: space.save(f"text {chosen.random()}"),
    "key": lambda memory, space, chosen: space.save("v", key=f"k{chosen.randrange(20)}"),
    "batch": _batch,
    "update": lambda memory, space, chosen: space.update(str(chosen.randrange(1, 30)), "new"),
    "delete": lambda memory, space, chosen: space.delete(str(chosen.randrange(1, 30))),
    "purge": _purge,
    "sweep": lambda memory, space, chosen: space.expire(),
    "search": lambda memory, space, chosen: space.search("text new"),
    "subtree": lambda memory, space, chosen: memory.subtree("tree").count(),
}


def test_a_writer_waits_for_its_own_namespace_only(memory: Memory) -> None:
    held, other = memory.namespace("held"), memory.namespace("other")
    held.save("first")
    with ThreadPoolExecutor(1) as pool:
        with memory.transaction(write=True) as transaction:
            transaction.create_namespace(held.path)
            other.save("meanwhile")
            assert held.count() == 1
            waiting = pool.submit(held.save, "second")
            other.save("meanwhile, too")
            assert not waiting.done()
        waiting.result()
    assert [record.text for record in held.each()] == ["first", "second"]


def test_writers_to_several_namespaces_lock_them_in_one_order(memory: Memory) -> None:
    """Whoever lists namespaces to write to them has them all locked, in order."""
    for name in ("a", "b", "c"):
        memory.namespace("tree", name).save("text")

    def swept(number: int) -> int:
        with memory.transaction(write=True) as transaction:
            rows = transaction.namespaces(("tree",))
            for row in sorted(rows, key=lambda _: random.Random(number).random()):
                row.next_id += 1
                transaction.store_namespace(row)
            return len(rows)

    assert at_once(12, swept) == [3] * 12
    with memory.transaction() as transaction:
        assert [row.next_id for row in transaction.namespaces(("tree",))] == [14] * 3


@pytest.mark.req("pkg:errors")
def test_who_gets_no_connection_is_told_so(postgres_url: str) -> None:
    url = f"{postgres_url}?connections=1&patience=1"
    with (
        Memory.open(url, durability="normal") as memory,
        memory.transaction(write=True) as transaction,
    ):
        transaction.create_namespace(("acme",))
        with pytest.raises(StoreUnavailable, match="1 connections are busy"):
            memory.namespace("other").save("text")


@pytest.mark.req("pkg:errors")
def test_who_waits_too_long_for_a_namespace_is_told_so(memory: Memory, postgres_url: str) -> None:
    memory.namespace("acme").save("text")
    with psycopg.connect(postgres_url) as connection:
        # What an administrator may set is what counts then.
        signature = "text, uuid, text, boolean, boolean, text"
        connection.execute(
            f"ALTER FUNCTION zero_mem.enter({signature}) SET lock_timeout = '50ms'".encode()
        )
    try:
        with memory.transaction(write=True) as transaction:
            transaction.create_namespace(("acme",))
            with (
                Memory.open(postgres_url, durability="normal") as second,
                pytest.raises(StoreUnavailable, match="holds the namespace too long"),
            ):
                second.namespace("acme").save("text")
    finally:
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                f"ALTER FUNCTION zero_mem.enter({signature}) SET lock_timeout = '60s'".encode()
            )
    assert memory.namespace("acme").count() == 1
