"""The pool of a PostgreSQL store, as Prometheus and OpenTelemetry see it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from postgres_server import Server

from zero_mem import Memory
from zero_mem.access import Grant
from zero_mem.errors import StoreUnavailable
from zero_mem.storage.base import PoolState
from zero_mem.storage.data_keys import Encryption
from zero_mem.storage.keys import MasterKey

pytestmark = pytest.mark.req("prod:metrics", "prod:storage")


@pytest.fixture
def memory(postgres_url: str) -> Iterator[Memory]:
    with Memory.open(f"{postgres_url}?connections=2&patience=1", durability="normal") as memory:
        yield memory


def pool(memory: Memory) -> PoolState:
    return memory.snapshot().pools[""]


def until(memory: Memory, **wanted: int) -> PoolState:
    """Wait until figures of the pool are as wanted; connections are opened beside the callers."""
    for _ in range(6000):
        found = pool(memory)
        if all(getattr(found, name) == value for name, value in wanted.items()):
            return found
        time.sleep(0.01)
    raise AssertionError(f"{found} never becomes {wanted}")


@contextmanager
def busy(memory: Memory, count: int) -> Iterator[None]:
    """Keep connections inside transactions."""
    ready, end = threading.Barrier(count + 1), threading.Event()

    def work(number: int) -> None:
        with memory.transaction() as transaction:
            transaction.namespaces(("x",))
            ready.wait()
            end.wait()

    with ThreadPoolExecutor(count) as threads:
        for number in range(count):
            threads.submit(work, number)
        ready.wait()
        try:
            yield
        finally:
            end.set()


def test_a_store_without_a_server_has_no_pool() -> None:
    with Memory.open("memory://") as memory:
        assert memory.snapshot().pools == {}


def test_what_is_in_use_and_who_waits_is_counted(memory: Memory) -> None:
    space = memory.namespace("acme")
    with ThreadPoolExecutor(1) as threads:
        with busy(memory, 2):
            before = until(memory, in_use=2, size=2)
            waiting = threads.submit(space.count)
            until(memory, waiting=1)
        assert waiting.result() == 0
    after = until(memory, in_use=0, waiting=0)
    assert (after.size, after.waits - before.waits, after.timeouts) == (2, 1, 0)
    assert after.requests == before.requests + 1
    assert after.wait_seconds > 0


def test_who_gives_up_and_what_is_lost_is_counted(memory: Memory, postgres: Server) -> None:
    with busy(memory, 2), pytest.raises(StoreUnavailable, match="no connection within"):
        memory.namespace("acme").count()
    assert pool(memory).timeouts == 1
    assert memory.snapshot().errors == {"StoreUnavailable": 1}
    lost = pool(memory).lost
    postgres.run(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'app'"
    )
    assert memory.namespace("acme").count() == 0
    assert pool(memory).lost > lost


def test_prometheus_reads_the_pool(memory: Memory) -> None:
    prometheus = pytest.importorskip("zero_mem.metrics.prometheus")
    memory.namespace("acme").save("tea")
    text = prometheus.exposition(memory).decode()
    assert 'zero_mem_pool_limit{node=""} 2.0' in text
    assert 'zero_mem_pool_connections{node=""} 1.0' in text
    assert 'zero_mem_pool_in_use{node=""} 0.0' in text
    assert 'zero_mem_pool_waiting{node=""} 0.0' in text
    for counted in ("requests", "waits", "wait_seconds", "timeouts", "lost"):
        assert f'zero_mem_pool_{counted}_total{{node=""}} ' in text
    assert "# TYPE zero_mem_pool_waits_total counter" in text


def test_opentelemetry_observes_the_pool(memory: Memory) -> None:
    otel = pytest.importorskip("zero_mem.metrics.otel")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    otel.instrument(memory, provider.get_meter("test"))
    with busy(memory, 1):
        exported = reader.get_metrics_data()
    assert exported is not None
    written = json.loads(exported.to_json())
    scopes = [scope for r in written["resource_metrics"] for scope in r["scope_metrics"]]
    found = {metric["name"]: metric["data"] for s in scopes for metric in s["metrics"]}
    (in_use,) = found["zero_mem.pool.in_use"]["data_points"]
    assert (in_use["value"], in_use["attributes"]) == (1, {"node": ""})
    assert found["zero_mem.pool.limit"]["data_points"][0]["value"] == 2
    assert found["zero_mem.pool.waits"]["is_monotonic"]
    provider.shutdown()


def test_an_encrypted_store_and_one_seen_by_a_key_show_the_same_pool(postgres_url: str) -> None:
    sealing = Encryption(master=MasterKey(bytes(32)))
    with Memory.open(postgres_url, durability="normal", encryption=sealing) as memory:
        credential = memory.keyring.create("app", [Grant.parse("read:acme/**")]).credential
        guarded = memory.guarded(credential)
        assert pool(memory).most == 16
        assert pool(guarded) == pool(memory)
