"""The counters for OpenTelemetry; needs the extra `metrics` and a meter of yours.

instrument(memory, get_meter("my-agent"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from zero_mem.errors import MissingExtra
from zero_mem.metrics.pools import POOL_FIGURES, PoolFigure
from zero_mem.metrics.registry import Snapshot

if TYPE_CHECKING:
    from zero_mem.memory import Memory

try:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("opentelemetry"):
        raise
    raise MissingExtra("metrics for OpenTelemetry", "metrics") from error


def instrument(memory: Memory, meter: Meter) -> None:
    """Let a meter observe the counters of a store's process whenever it exports."""

    def observed(
        read: Callable[[Snapshot], Iterable[Observation]],
    ) -> list[Callable[[CallbackOptions], Iterable[Observation]]]:
        return [lambda _: read(memory.snapshot())]

    for name, read in (
        ("operations", lambda s: _by("operation", s.operations)),
        ("errors", lambda s: _by("error", s.errors)),
        ("calls", lambda s: _by("call", {k: d.count for k, d in s.durations.items()})),
        ("recalled_items", lambda s: [Observation(s.recalled)]),
        ("recall_tokens", lambda s: [Observation(s.recall_tokens)]),
        ("sweeps", lambda s: [Observation(s.sweeps)]),
        ("queue_failures", lambda s: [Observation(s.queue_failures)]),
        ("ledger_calls", lambda s: [Observation(s.calls)]),
        ("ledger_tokens", lambda s: _by("column", s.tokens)),
    ):
        meter.create_observable_counter(f"zero_mem.{name}", observed(read))
    meter.create_observable_counter("zero_mem.seconds", observed(_seconds), unit="s")
    meter.create_observable_gauge("zero_mem.queued_writes", observed(_queued))
    for figure in POOL_FIGURES:
        make = meter.create_observable_counter if figure.counts else meter.create_observable_gauge
        make(f"zero_mem.pool.{figure.name}", observed(partial(_pools, figure)))


def _by(label: str, counts: dict[str, int]) -> Iterator[Observation]:
    return (Observation(count, {label: key}) for key, count in sorted(counts.items()))


def _seconds(snapshot: Snapshot) -> Iterator[Observation]:
    for what, durations in sorted(snapshot.durations.items()):
        yield Observation(durations.seconds, {"call": what})


def _pools(figure: PoolFigure, snapshot: Snapshot) -> Iterator[Observation]:
    for node, state in sorted(snapshot.pools.items()):
        yield Observation(figure.of(state), {"node": node})


def _queued(snapshot: Snapshot) -> list[Observation]:
    return [Observation(snapshot.queued)]
