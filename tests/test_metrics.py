"""Metrics, health and the change feed: numbers and positions, never what was said."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from zero_mem import InvalidInput, Memory, NotFound
from zero_mem.ledger.columns import CallTokens
from zero_mem.metrics.registry import Serving

pytestmark = pytest.mark.req("prod:metrics")

SECRET = "zanzibar"


@pytest.fixture
def memory() -> Memory:
    return Memory.open("memory://")


def busy(memory: Memory) -> None:
    space = memory.namespace("a")
    space.save(f"we met in {SECRET}", kind="note", key=f"{SECRET}-key")
    space.save_many([{"content": "tea"}, {"content": "milk"}])
    space.update("2", "green tea")
    space.recall(f"where did we meet, {SECRET}?")
    space.delete("3")
    space.expire()
    memory.metrics.called(CallTokens(tool_results=7, output=2).by_column())
    with contextlib.suppress(NotFound):
        space.update("99", "x")


def test_counters_tell_what_was_done(memory: Memory) -> None:
    busy(memory)
    snapshot = memory.snapshot()
    assert snapshot.operations == {"save": 3, "update": 1, "delete": 1}
    assert snapshot.errors == {"NotFound": 1}
    assert snapshot.recalled == 1
    assert snapshot.recall_tokens > 0
    assert snapshot.sweeps == 1
    assert snapshot.durations["recall"].count == 1
    assert snapshot.durations["write"].seconds > 0


def test_what_was_rolled_back_is_not_counted(memory: Memory) -> None:
    with pytest.raises(NotFound):
        memory.namespace("a").update_many([{"memory_id": "1", "content": "x"}])
    assert memory.snapshot().operations == {}


def test_the_queue_shows_its_depth_and_failures(memory: Memory) -> None:
    space = memory.namespace("a")
    space.save("tea", memory_id="x", mode="queued")
    assert memory.snapshot().queued <= 1
    space.save("milk", memory_id="x", if_version=9, mode="queued")
    memory.flush()
    assert memory.snapshot().queued == 0
    assert memory.snapshot().queue_failures == 1


def test_prometheus_reads_the_counters_and_no_content(memory: Memory) -> None:
    prometheus = pytest.importorskip("zero_mem.metrics.prometheus")
    busy(memory)
    text = prometheus.exposition(memory).decode()
    assert 'zero_mem_operations_total{operation="save"} 3.0' in text
    assert 'zero_mem_errors_total{error="NotFound"} 1.0' in text
    assert "zero_mem_backups_total 0.0" in text
    for later in ("zero_mem_backup_timestamp", "zero_mem_backup_bytes", "zero_mem_feeds"):
        assert later not in text
    assert 'zero_mem_seconds_bucket{call="recall",le="+Inf"} 1.0' in text
    assert 'zero_mem_records{state="active"} 2.0' in text
    assert "zero_mem_sweeps_total 1.0" in text
    assert "zero_mem_queued_writes 0.0" in text
    assert "zero_mem_recalled_items_total 1.0" in text
    assert "zero_mem_ledger_calls_total 1.0" in text
    assert 'zero_mem_ledger_tokens_total{column="tool_results"} 7.0' in text
    assert "zero_mem_pool" not in text
    assert SECRET not in text
    assert "zero_mem_records" not in prometheus.exposition(memory, stats=False).decode()


def test_opentelemetry_observes_the_counters(memory: Memory) -> None:
    otel = pytest.importorskip("zero_mem.metrics.otel")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    otel.instrument(memory, provider.get_meter("test"))
    busy(memory)
    memory.metrics.backed_up(1_767_225_600.0, 4096)
    memory.metrics.backup_failed()
    memory.metrics.serving = lambda: Serving(requests=2, feeds=3)
    exported = reader.get_metrics_data()
    assert exported is not None
    written = json.loads(exported.to_json())
    scopes = [scope for r in written["resource_metrics"] for scope in r["scope_metrics"]]
    metrics = {m["name"]: m["data"]["data_points"] for s in scopes for m in s["metrics"]}
    operations = {p["attributes"]["operation"]: p["value"] for p in metrics["zero_mem.operations"]}
    assert operations == {"save": 3, "update": 1, "delete": 1}
    tokens = {p["attributes"]["column"]: p["value"] for p in metrics["zero_mem.ledger_tokens"]}
    assert tokens["tool_results"] == 7
    for name, value in {
        "ledger_calls": 1,
        "sweeps": 1,
        "recalled_items": 1,
        "queued_writes": 0,
    }.items():
        assert metrics[f"zero_mem.{name}"][0]["value"] == value
    told = {
        "backups": 1,
        "backup_failures": 1,
        "backup_timestamp": 1_767_225_600.0,
        "backup_size": 4096,
        "requests": 2,
        "feeds": 3,
    }
    assert {name: metrics[f"zero_mem.{name}"][0]["value"] for name in told} == told
    assert SECRET not in exported.to_json()
    provider.shutdown()


def test_health_tells_whether_the_store_answers(tmp_path: Path) -> None:
    memory = Memory.open(f"sqlite:///{tmp_path}/m.db")
    assert memory.health().ready
    memory.close()
    health = memory.health()
    assert not health.ready
    assert "StoreUnavailable" in health.problem


# The change feed


@pytest.mark.req("history:journal")
def test_a_follower_gets_each_change_once_and_in_order(memory: Memory) -> None:
    space = memory.namespace("a")
    assert space.changes() == []
    space.save("tea")
    space.update("1", "green tea")
    memory.namespace("b").save("elsewhere")
    first = space.changes(limit=1)
    assert [(e.operation, e.memory_id) for e in first] == [("save", "1")]
    rest = space.changes(after=first[-1].sequence)
    assert [(e.operation, e.version) for e in rest] == [("update", 2)]
    assert space.changes(after=rest[-1].sequence) == []
    assert rest[0].at <= datetime.now(UTC)


@pytest.mark.parametrize(("after", "limit"), [(-1, 1), (0, 0)])
def test_a_feed_refuses_what_is_no_position(memory: Memory, after: int, limit: int) -> None:
    with pytest.raises(InvalidInput):
        memory.namespace("a").changes(after=after, limit=limit)
