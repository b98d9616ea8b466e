"""One picture of a store or a server at work, for people and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, Final, get_args

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from zero_mem.cli.text import clean
from zero_mem.cli.watching.rates import History, quantile
from zero_mem.cli.watching.sources import MINUTE, Sample
from zero_mem.metrics.registry import BOUNDS, Snapshot, Timed

_SIDE_BY_SIDE: Final = 72
"""Columns from which two tables stand beside each other."""

_NONE: Final = "–"
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_KIB: Final = 1024

Row = tuple[str, ...]


def picture(source: str, history: History, *, width: int, fault: str = "") -> RenderableType:
    """Lay the figures out.

    Args:
        source: The name of what is watched.
        history: Its samples, at least one.
        width: Columns of the terminal.
        fault: Why there is no newer sample.
    """
    tables = [
        _table(("records", ""), _records(history.last)),
        _table(("changes", "/s", "/min", "so far"), _changes(history)),
        _table(("calls", "/s", "p50", "p99"), _calls(history)),
        _table(("recalls", "/min", "so far"), _recalls(history)),
        _table(("service", ""), _service(history)),
        _table(("prompts", ""), _prompts(history.last)),
    ]
    head = _head(source, history.last, fault)
    return Group(head, "", *_laid_out([each for each in tables if each.row_count], width))


def _laid_out(tables: Sequence[Table], width: int) -> Iterator[RenderableType]:
    if width < _SIDE_BY_SIDE:
        for table in tables:
            yield table
            yield ""
        return
    grid = Table.grid(expand=True, padding=(0, 2))
    grid.add_column(ratio=1)
    grid.add_column(ratio=1)
    columns: tuple[list[RenderableType], list[RenderableType]] = ([], [])
    heights = [0, 0]
    for table in tables:
        side = heights.index(min(heights))
        columns[side].extend((table, ""))
        heights[side] += table.row_count + 2
    grid.add_row(*(Group(*each) for each in columns))
    yield grid


def _head(source: str, last: Sample, fault: str) -> Text:
    head = Text(overflow="fold")
    head.append("zero-mem top", "bold")
    head.append(f"  {clean(source)}  {last.moment:%H:%M:%S} UTC  ")
    if fault:
        head.append(clean(fault), "bold red")
    elif last.health.ready:
        head.append(f"ready in {_seconds(last.health.seconds)}", "green")
    else:
        head.append(clean(last.health.problem), "bold red")
    return head


def _table(heads: Row, rows: Iterator[Row]) -> Table:
    table = Table(box=None, expand=True, pad_edge=False, header_style="bold")
    for place, head in enumerate(heads):
        numbers = place > 0
        table.add_column(head, justify="right" if numbers else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _records(last: Sample) -> Iterator[Row]:
    stats = last.stats
    for state, count in stats.by_state.items():
        yield state, f"{count:,}"
    yield "namespaces", f"{stats.namespaces:,}"
    yield "journal entries", f"{stats.journal:,}"
    if stats.bytes:
        yield "size", _size(stats.bytes)


def _changes(history: History) -> Iterator[Row]:
    counts = history.last.operations
    for name in sorted(counts, key=lambda each: (-counts[each], each)):
        yield _rates(history, name, _of_operation(name), counts[name])
    yield _rates(history, "all", _all_operations, sum(counts.values()))


def _rates(history: History, name: str, figure: Callable[[Sample], float], so_far: int) -> Row:
    a_minute = _per_minute(history, figure)
    return name, _figure(history.rate(figure)), _figure(a_minute), f"{so_far:,}"


def _of_operation(name: str) -> Callable[[Sample], float]:
    return lambda sample: sample.operations.get(name, 0)


def _all_operations(sample: Sample) -> float:
    return sum(sample.operations.values())


def _calls(history: History) -> Iterator[Row]:
    """Give calls of a server's process; nobody counts those of a store that is read directly."""
    if history.last.snapshot is None:
        return
    for call in get_args(Timed):
        durations = history.durations(call)
        rate = history.rate(_of_call(call))
        ends = [None if durations is None else quantile(durations, q) for q in (0.5, 0.99)]
        yield call, _figure(rate), *map(_at_most, ends)


def _recalls(history: History) -> Iterator[Row]:
    if history.last.snapshot is None:
        return
    for name, figure in (("items", "recalled"), ("tokens", "recall_tokens")):
        counted = _counted(figure)
        yield name, _figure(_per_minute(history, counted)), f"{counted(history.last):,.0f}"


def _of_call(call: str) -> Callable[[Sample], float]:
    def figure(sample: Sample) -> float:
        snapshot = sample.snapshot
        return 0 if snapshot is None else snapshot.durations[call].count

    return figure


def _counted(name: str) -> Callable[[Sample], float]:
    def figure(sample: Sample) -> float:
        return 0 if sample.snapshot is None else float(getattr(sample.snapshot, name))

    return figure


def _service(history: History) -> Iterator[Row]:
    last = history.last
    if last.swept_at is not None:
        yield "last sweep", f"{last.swept_at:%Y-%m-%d %H:%M:%S}"
    yield "queued writes", f"{last.health.queued:,}"
    if last.health.queue_failures:
        yield "that failed", f"{last.health.queue_failures:,}"
    if last.snapshot is None:
        return
    yield from _process(last.snapshot)
    for name, count in sorted(last.snapshot.errors.items()):
        yield f"refused: {name}", f"{count:,}"


def _process(snapshot: Snapshot) -> Iterator[Row]:
    yield "sweeps", f"{snapshot.sweeps:,}"
    if snapshot.serving is not None:
        yield "requests under way", f"{snapshot.serving.requests:,}"
        yield "open feeds", f"{snapshot.serving.feeds:,}"
    if snapshot.backups.made or snapshot.backups.last_at:
        yield "backups", f"{snapshot.backups.made:,}"
        yield "the last one", _size(snapshot.backups.last_bytes)
    if snapshot.backups.failed:
        yield "backups that failed", f"{snapshot.backups.failed:,}"


def _prompts(last: Sample) -> Iterator[Row]:
    account = last.account
    if not account.calls:
        return
    yield "tokens kept out", f"{account.kept_out:,}"
    yield "prompt tokens paid", f"{account.paid.tokens.prompt:,}"
    yield "calls of models", f"{account.calls:,}"


def _figure(value: float | None) -> str:
    if value is None:
        return _NONE
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _at_most(seconds: float | None) -> str:
    if seconds is None:
        return _NONE
    return f">{_seconds(BOUNDS[-1])}" if seconds == inf else f"≤{_seconds(seconds)}"


def _seconds(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _size(count: float) -> str:
    for unit in _SIZES[:-1]:
        if count < _KIB:
            return f"{count:.3g} {unit}"
        count /= _KIB
    return f"{count:.3g} {_SIZES[-1]}"


def as_json(source: str, history: History) -> dict[str, Any]:
    """Give the figures by name.

    What is not known is None: a rate after one sample, a quantile of no calls or beyond the last
    class, the calls of a store that is read directly.
    """
    last = history.last
    snapshot = last.snapshot
    return {
        "source": source,
        "at": last.moment.isoformat(),
        "ready": last.health.ready,
        "records": dict(last.stats.by_state),
        "namespaces": last.stats.namespaces,
        "journal": last.stats.journal,
        "bytes": last.stats.bytes,
        "changes": dict(last.operations),
        "changes_per_second": history.rate(_all_operations),
        "changes_per_minute": {
            name: _per_minute(history, _of_operation(name)) for name in last.operations
        },
        "queued": last.health.queued,
        "kept_out": last.account.kept_out,
        "prompt_tokens": last.account.paid.tokens.prompt,
        "model_calls": last.account.calls,
        "swept_at": None if last.swept_at is None else last.swept_at.isoformat(),
        "calls": None if snapshot is None else {c: _call(history, c) for c in get_args(Timed)},
        "recalled": None if snapshot is None else snapshot.recalled,
        "recall_tokens": None if snapshot is None else snapshot.recall_tokens,
        "errors": None if snapshot is None else dict(snapshot.errors),
        "sweeps": None if snapshot is None else snapshot.sweeps,
    }


def _per_minute(history: History, figure: Callable[[Sample], float]) -> float | None:
    rate = history.rate(figure, seconds=MINUTE)
    return None if rate is None else MINUTE * rate


def _call(history: History, call: Timed) -> dict[str, Any]:
    durations = history.durations(call)
    found: dict[str, Any] = {"per_second": history.rate(_of_call(call))}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        bound = None if durations is None else quantile(durations, share)
        found[name] = None if bound == inf else bound
    return found
