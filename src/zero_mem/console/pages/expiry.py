"""What will end and when, what has ended and why, and a sweep on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import groupby, islice
from typing import Final

from zero_mem.access.grants import allows
from zero_mem.console.visit import Page, Reply, Visit
from zero_mem.errors import NotAllowed
from zero_mem.memory import SWEPT, Memory
from zero_mem.operations.calendar import Cause, Ended, Ending, Upcoming, ended, upcoming
from zero_mem.types import Path

WEEKS: Final = 4
_A_DAY: Final = 50
"""Records of one day that are listed; all are counted."""
_LOG: Final = 100
_DAYS: Final = (7, 28, 90, 365)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The records that end on one day in UTC.

    Attributes:
        at: The first moment of the day that anything ends at.
        endings: The first of them.
        more: How many others there are.
        causes: How many end by each cause.
    """

    at: datetime
    endings: tuple[Ending, ...]
    more: int
    causes: dict[Cause, int]

    @property
    def count(self) -> int:
        """All of them."""
        return len(self.endings) + self.more


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """What will end at and below a namespace.

    Attributes:
        due: What is due, and waits for the next sweep; None where nothing is.
        days: The days on which anything ends.
        later: Records that end by themselves after the last day that was asked for.
        kept: Records that no time ends.
        events: How many records each business event would end.
    """

    due: Day | None
    days: tuple[Day, ...]
    later: int
    kept: int
    events: dict[str, int]


def calendar(memory: Memory, prefix: Path, *, days: int = 7 * WEEKS) -> Calendar:
    """Read what will end at and below a namespace within some days; nothing is written."""
    now = memory.now()
    with memory.transaction() as transaction:
        rows = transaction.namespaces(prefix)
        found = [upcoming(transaction, row, until=now + timedelta(days=days)) for row in rows]
    endings = list(merge(*(one.endings for one in found), key=lambda ending: ending.at))
    due = [ending for ending in endings if ending.at <= now]
    return Calendar(
        due=_day(due) if due else None,
        days=tuple(_days(endings[len(due) :])),
        later=sum(one.later for one in found),
        kept=sum(one.kept for one in found),
        events=_events(found),
    )


def _events(found: Iterable[Upcoming]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for one in found:
        sums.update(one.events)
    return dict(sums.most_common())


def _days(endings: Iterable[Ending]) -> Iterator[Day]:
    for _, group in groupby(endings, key=lambda ending: ending.at.date()):
        yield _day(list(group))


def _day(endings: list[Ending]) -> Day:
    return Day(
        at=endings[0].at,
        endings=tuple(endings[:_A_DAY]),
        more=max(0, len(endings) - _A_DAY),
        causes=dict(Counter(ending.cause for ending in endings).most_common()),
    )


def log(memory: Memory, prefix: Path, *, limit: int = _LOG) -> list[Ended]:
    """Read what sweeps, tasks, events and limits have ended, the newest first."""
    with memory.transaction() as transaction:
        found = [ended(transaction, row) for row in transaction.namespaces(prefix)]
    return list(islice(merge(*found, key=lambda one: one.at, reverse=True), limit))


def sweepable(visit: Visit, prefix: Path) -> list[Path]:
    """List the namespaces at and below a path that the visitor may sweep."""
    grants = visit.who.grants
    there = visit.memory.subtree(*prefix).namespaces()
    return [path for path in there if grants is None or allows(grants, "write", path)]


# The page


def _show(visit: Visit) -> Reply:
    prefix = visit.space.path
    asked = visit.query.get("days", "")
    days = int(asked) if asked in map(str, _DAYS) else 7 * WEEKS
    return visit.render(
        "expiry.html",
        calendar=calendar(visit.memory, prefix, days=days),
        days=days,
        choices=_DAYS,
        log=log(visit.memory, prefix),
        may_sweep=bool(sweepable(visit, prefix)),
        every=visit.host.settings.sweep_every,
        swept=_last_sweep(visit),
    )


def _last_sweep(visit: Visit) -> datetime | None:
    """Tell when the whole store was last swept, which holds for every part of it."""
    noted = visit.host.memory.storage.note(SWEPT)
    return None if noted is None else datetime.fromisoformat(noted)


def _sweep(visit: Visit) -> Reply:
    paths = sweepable(visit, visit.space.path)
    if not paths:
        raise NotAllowed("the key gives no right to write in a namespace here")
    count = sum(visit.at(path).space.expire().count for path in paths)
    return visit.go("/expiry", notice="swept" if count else "swept-nothing")


PAGE = Page(name="expiry", path="/expiry", gets={"/expiry": _show}, posts={"/expiry/sweep": _sweep})
