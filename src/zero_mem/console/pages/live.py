"""Receipts as they are written: the newest of a namespace's journal, and each new one."""

from __future__ import annotations

import json
from typing import Any, Final

from zero_mem.api.forms import form_of
from zero_mem.api.text import dump
from zero_mem.console.showing import visible
from zero_mem.console.visit import Feed, Page, Reply, Visit
from zero_mem.operations.history import HistoryEntry
from zero_mem.server.feed import position
from zero_mem.types import preview

SHOWN: Final = 50
"""Receipts that are there when the page opens."""
KEPT: Final = 200
"""Most receipts that a page keeps; the oldest go."""
_ENTRY: Final = form_of(HistoryEntry)


def _show(visit: Visit) -> Reply:
    space = visit.space
    position = space.decisions_at().position
    newest = space.changes(after=max(0, position - SHOWN), limit=SHOWN)
    after = newest[-1].sequence if newest else position
    return visit.render(
        "live.html",
        receipts=[receipt(visit, entry) for entry in reversed(newest)],
        events=visit.link("/live/events", after=after or "0"),
        kept=KEPT,
    )


def _begin(visit: Visit) -> Feed:
    after = position(visit.query.get("after", "0"))

    def write(event: bytes) -> bytes:
        return dump(receipt(visit, _ENTRY.read(json.loads(event))))

    return Feed(after=after, write=write)


def receipt(visit: Visit, entry: HistoryEntry) -> dict[str, Any]:
    """Give a change as the page shows it: names and times, never a body."""
    words, record = visit.words, entry.record
    return {
        "id": f"[memo:{entry.memory_id}]",
        "link": visit.link("/record", id=entry.memory_id, version=entry.version),
        "operation": words.say(f"operation.{entry.operation}"),
        "preview": "" if record is None else preview(record.kind, record.key),
        "version": words.say("record.version", n=entry.version),
        "actor": visible(entry.actor),
        "reason": visible(entry.reason),
        "at": entry.at.isoformat(),
        "time": words.moment(entry.at),
    }


PAGE = Page(name="live", path="/live", gets={"/live": _show}, feeds={"/live/events": _begin})
