"""The counters for Prometheus; needs the extra `metrics`.

REGISTRY.register(MemoryCollector(memory))      # beside your own metrics
text = exposition(memory)                       # or alone, for a handler of yours
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from zero_mem.errors import MissingExtra
from zero_mem.metrics.pools import POOL_FIGURES
from zero_mem.metrics.registry import BOUNDS, Durations, Snapshot
from zero_mem.storage.base import PoolState

if TYPE_CHECKING:
    from zero_mem.memory import Memory

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
    )
    from prometheus_client.registry import Collector
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("prometheus_client"):
        raise
    raise MissingExtra("metrics for Prometheus", "metrics") from error


class MemoryCollector(Collector):
    """Gives the counters of a store's process whenever Prometheus asks.

    Args:
        memory: The store.
        stats: Count records too; it reads the store, so leave it out of a very large one.
    """

    def __init__(self, memory: Memory, *, stats: bool = True) -> None:
        self._memory = memory
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        """Give one family for each kind of counter."""
        snapshot = self._memory.snapshot()
        yield from _counters(snapshot)
        yield _durations(snapshot)
        yield _gauge("zero_mem_queued_writes", "Accepted, not applied yet.", snapshot.queued)
        yield from _pools(snapshot.pools)
        if self._stats:
            yield from self._records()

    def _records(self) -> Iterator[Metric]:
        stats = self._memory.stats()
        records = GaugeMetricFamily("zero_mem_records", "Records by state.", labels=["state"])
        for state, count in stats.by_state.items():
            records.add_metric([state], count)
        yield records
        yield _gauge("zero_mem_namespaces", "Namespaces.", stats.namespaces)
        yield _gauge("zero_mem_store_bytes", "Size of the store.", stats.bytes)


def exposition(memory: Memory, *, stats: bool = True) -> bytes:
    """Write the counters in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(MemoryCollector(memory, stats=stats))
    return generate_latest(registry)


def _counters(snapshot: Snapshot) -> Iterator[Metric]:
    for name, text, label, counts in (
        ("operations", "Changes written.", "operation", snapshot.operations),
        ("errors", "Refused or failed calls.", "error", snapshot.errors),
        ("ledger_tokens", "Tokens of models' calls.", "column", snapshot.tokens),
    ):
        family = CounterMetricFamily(f"zero_mem_{name}", text, labels=[label])
        for key, count in sorted(counts.items()):
            family.add_metric([key], count)
        yield family
    for name, text, count in (
        ("recalled_items", "Items that recalls gave.", snapshot.recalled),
        ("recall_tokens", "Tokens of recalled text.", snapshot.recall_tokens),
        ("sweeps", "Sweeps run.", snapshot.sweeps),
        ("queue_failures", "Queued writes that failed.", snapshot.queue_failures),
        ("ledger_calls", "Calls of models that a ledger took in.", snapshot.calls),
    ):
        yield CounterMetricFamily(f"zero_mem_{name}", text, value=count)


def _pools(pools: Mapping[str, PoolState]) -> Iterator[Metric]:
    """Give a family for each figure of the pools, where the store has a server at all."""
    for figure in POOL_FIGURES if pools else ():
        kind = CounterMetricFamily if figure.counts else GaugeMetricFamily
        family = kind(f"zero_mem_pool_{figure.name}", figure.text, labels=["node"])
        for node, state in sorted(pools.items()):
            family.add_metric([node], figure.of(state))
        yield family


def _durations(snapshot: Snapshot) -> Metric:
    family = HistogramMetricFamily("zero_mem_seconds", "How long calls took.", labels=["call"])
    for what, durations in sorted(snapshot.durations.items()):
        family.add_metric([what], buckets=_buckets(durations), sum_value=durations.seconds)
    return family


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    bounds = [*map(str, BOUNDS), "+Inf"]
    return list(zip(bounds, accumulate(durations.classes), strict=True))


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
