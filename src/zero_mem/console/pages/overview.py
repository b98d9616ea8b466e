"""The overview: what the store holds, what happens there, whether it is well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from zero_mem.console.charts import Bars, Stack, bars, stack
from zero_mem.console.rates import edges_until, per_minute
from zero_mem.console.visit import Page, Reply, Visit
from zero_mem.ledger.columns import PROMPT_COLUMNS
from zero_mem.ledger.reading import Overview, entries, summed_up
from zero_mem.memory import SWEPT
from zero_mem.metrics import Snapshot
from zero_mem.storage.base import NamespaceRow, Transaction
from zero_mem.storage.times import from_micros, to_micros
from zero_mem.types import Path

MINUTES: Final = 60
KINDS: Final = 5000
"""Most records that are looked at to count kinds."""
_SHOWN_KINDS: Final = 20
CALLS: Final = 50_000
"""Most entries of ledgers that are added up."""


@dataclass(slots=True)
class Counted:
    """What the namespaces that are looked at hold.

    Attributes:
        minutes: Changes in each minute of the last hour.
        kinds: Active records by kind, of the first that were looked at.
        looked_at: How many these were.
    """

    namespaces: int = 0
    journal: int = 0
    states: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    looked_at: int = 0
    minutes: list[int] = field(default_factory=lambda: [0] * MINUTES)

    @property
    def records(self) -> int:
        """All records, the ended ones too."""
        return self.states.total()


def _show(visit: Visit) -> Reply:
    memory = visit.memory
    memory.flush()
    now = memory.now()
    with memory.transaction() as transaction:
        rows = _rows(transaction, visit.namespace)
        counted = _count(transaction, rows, now)
    ledger = _ledger(visit, [row.path for row in rows])
    return visit.render(
        "overview.html",
        counted=counted,
        bytes=memory.storage.size() if visit.namespace is None else 0,
        kinds=counted.kinds.most_common(_SHOWN_KINDS),
        kinds_cut=counted.looked_at >= KINDS,
        chart=_chart(visit, counted.minutes, now),
        health=memory.health(),
        swept=_swept(visit),
        sweeper=list(visit.host.sweeper.reports) if visit.owns_store else None,
        process=_process(visit.host.memory.snapshot()) if visit.owns_store else None,
        ledger=ledger,
        most_calls=CALLS,
        stack=_columns(visit, ledger),
        columns=PROMPT_COLUMNS,
    )


def _rows(transaction: Transaction, namespace: Path | None) -> list[NamespaceRow]:
    if namespace is None:
        return transaction.namespaces(())
    row = transaction.namespace(namespace)
    return [] if row is None else [row]


def _count(transaction: Transaction, rows: Sequence[NamespaceRow], now: datetime) -> Counted:
    found = Counted(namespaces=len(rows))
    moment, live = to_micros(now), 0
    edges = edges_until(moment, MINUTES)
    for row in rows:
        found.journal += row.sequence
        for (state, form), count in transaction.tally(row).items():
            found.states[state] += count
            found.forms[form] += count
        live += transaction.count_active(row, now=moment, form=None, kind=None)
        _count_kinds(transaction, row, found)
        if row.last_at >= edges[0]:
            changes = _changes(transaction, row, edges)
            found.minutes = [one + two for one, two in zip(found.minutes, changes, strict=True)]
    if found.states["active"] > live:
        found.states["expired"] = found.states["active"] - live
        found.states["active"] = live
    return found


def _count_kinds(transaction: Transaction, row: NamespaceRow, found: Counted) -> None:
    scanned = transaction.scan(row, {"state": ("active",)})
    for stored in islice(scanned, KINDS - found.looked_at):
        found.looked_at += 1
        found.kinds[stored.record.kind] += 1


def _changes(transaction: Transaction, row: NamespaceRow, edges: Sequence[int]) -> list[int]:
    def at(position: int) -> int:
        entry = next(iter(transaction.journal(row, after=position - 1)), None)
        return edges[-1] if entry is None else entry.at

    return per_minute(at, row.sequence, edges)


def _chart(visit: Visit, minutes: Sequence[int], now: datetime) -> Bars:
    words = visit.words
    first = from_micros(edges_until(to_micros(now), MINUTES)[0])
    labels = [f"{first + timedelta(minutes=each):%H:%M}" for each in range(len(minutes))]
    hints = [
        words.say("overview.in_minute", n=count, at=label)
        for count, label in zip(minutes, labels, strict=True)
    ]
    return bars(minutes, labels, hints)


def _swept(visit: Visit) -> datetime | None:
    """Read when the whole store was last swept, by whatever process."""
    text = visit.host.memory.storage.note(SWEPT)
    return None if text is None else datetime.fromisoformat(text)


# What prompts took


def _ledger(visit: Visit, paths: Iterable[Path]) -> Overview | None:
    """Sum the ledgers up; None where there is none."""
    spaces = (visit.memory.namespace(*path) for path in paths)
    entered = (entry for space in spaces for entry in entries(space))
    found = summed_up(islice(entered, CALLS))
    return found if found.total.calls else None


def _columns(visit: Visit, ledger: Overview | None) -> Stack | None:
    if ledger is None:
        return None
    tokens = ledger.total.paid.tokens
    return stack([(name, getattr(tokens, name)) for name in PROMPT_COLUMNS])


# What this process did


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What this process did since it began: calls by what was timed, and errors by name."""

    timed: tuple[tuple[str, int, float], ...]
    errors: tuple[tuple[str, int], ...]
    sweeps: int


def _process(snapshot: Snapshot) -> Process:
    timed = (
        (what, each.count, 1000 * each.seconds / each.count if each.count else 0.0)
        for what, each in snapshot.durations.items()
    )
    return Process(
        timed=tuple(timed),
        errors=tuple(sorted(snapshot.errors.items())),
        sweeps=snapshot.sweeps,
    )


PAGE = Page(name="overview", path="/", gets={"/": _show}, needs_namespace=False)
