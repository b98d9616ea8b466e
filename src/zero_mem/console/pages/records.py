"""Browsing and searching: filters, pages, an earlier moment, and why a search found it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import Any, Final

from zero_mem.console.filtering import FORMS, SOURCES, STATES, moment_of, where_of
from zero_mem.console.numbers import whole_number
from zero_mem.console.visit import Page, Reply, Visit
from zero_mem.errors import InvalidInput
from zero_mem.past import Past
from zero_mem.space import Namespace
from zero_mem.types import MemoryRecord, RecallItem

AT_ONCE: Final = 50
"""Records of one page."""
SORTED: Final = 5000
"""Most records that are put into another order than that of saving."""
_BUDGET: Final = 1000
_MOST_BUDGET: Final = 100_000

ORDERS: Final[Mapping[str, Callable[[MemoryRecord], Any]]] = {
    "changed": lambda record: record.updated_at,
    "used": lambda record: record.accessed_at,
    "often": lambda record: record.access_count,
    "expiry": lambda record: -record.expires_at.timestamp() if record.expires_at else float("-inf"),
}
"""What each order puts first is the greatest; without one it is that of saving."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A record of the list; a search adds its score, an explained one the reason and parts."""

    record: MemoryRecord
    score: float | None = None
    item: RecallItem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is shown.

    Attributes:
        rows: In order.
        near: What just missed, where a recall explains itself.
        following: Parameters of the next page, None on the last.
        text: What a prompt would get, of `tokens`; "" where no recall was asked for.
        left_out: What did not fit.
        is_cut: Whether there are more records than were put in order.
    """

    rows: tuple[Row, ...] = ()
    near: tuple[Row, ...] = ()
    following: Mapping[str, Any] | None = None
    text: str = ""
    tokens: int = 0
    left_out: str = ""
    is_cut: bool = False


def _show(visit: Visit) -> Reply:
    problem = ""
    try:
        found = _find(visit)
    except InvalidInput as error:
        found, problem = Found(), str(error)
    return visit.render(
        "records.html",
        status=400 if problem else 200,
        found=found,
        problem=problem,
        forms=FORMS,
        sources=SOURCES,
        states=(*STATES, "any"),
        orders=tuple(ORDERS),
        most=SORTED,
    )


def _find(visit: Visit) -> Found:
    query = visit.query
    where = where_of(query)
    place: Namespace | Past = visit.space
    if query.get("as_of", "").strip():
        place = visit.space.as_of(moment_of(query["as_of"], "as_of"))
    if not query.get("q", "").strip():
        return _listed(place, where, query)
    if query.get("explain"):
        return _recalled(place, where, query)
    hits = place.search(query["q"], where=where, limit=AT_ONCE)
    return Found(rows=tuple(Row(record=hit.record, score=hit.score) for hit in hits))


def _listed(place: Namespace | Past, where: Mapping[str, Any], query: Mapping[str, str]) -> Found:
    start = whole_number(query.get("start", "0"), "start", most=SORTED)
    if query.get("order") in ORDERS:
        return _in_order(_each(place, where), ORDERS[query["order"]], start)
    if isinstance(place, Namespace):
        page = place.list(where, limit=AT_ONCE, cursor=query.get("cursor") or None)
        following = {"cursor": page.next_cursor} if page.next_cursor else None
        return Found(rows=tuple(Row(record=each) for each in page), following=following)
    found = place.list(where).items
    more = {"start": start + AT_ONCE} if len(found) > start + AT_ONCE else None
    shown = found[start : start + AT_ONCE]
    return Found(rows=tuple(Row(record=each) for each in shown), following=more)


def _each(place: Namespace | Past, where: Mapping[str, Any]) -> Iterable[MemoryRecord]:
    return place.each(where) if isinstance(place, Namespace) else place.list(where)


def _in_order(
    records: Iterable[MemoryRecord], order: Callable[[MemoryRecord], Any], start: int
) -> Found:
    """Give a page in an order; only the records up to its end are kept meanwhile."""
    counted = 0

    def bounded() -> Iterable[MemoryRecord]:
        nonlocal counted
        for record in islice(records, SORTED + 1):
            counted += 1
            if counted <= SORTED:
                yield record

    best = nlargest(start + AT_ONCE + 1, bounded(), key=order)
    more = {"start": start + AT_ONCE} if len(best) > start + AT_ONCE else None
    rows = tuple(Row(record=each) for each in best[start : start + AT_ONCE])
    return Found(rows=rows, following=more, is_cut=counted > SORTED)


def _recalled(place: Namespace | Past, where: Mapping[str, Any], query: Mapping[str, str]) -> Found:
    budget = whole_number(query.get("budget") or str(_BUDGET), "budget", most=_MOST_BUDGET)
    recall = place.recall(query["q"], where=where, budget=max(1, budget), explain=True)
    return Found(
        rows=tuple(_explained(item) for item in recall.items),
        near=tuple(_explained(item) for item in recall.near_misses),
        text=recall.text,
        tokens=recall.tokens,
        left_out=recall.left_out,
    )


def _explained(item: RecallItem) -> Row:
    return Row(record=item.record, score=item.score, item=item)


PAGE = Page(name="records", path="/records", gets={"/records": _show})
