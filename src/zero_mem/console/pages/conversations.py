"""The conversations: what each took, and every prompt with the reason for each memory token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from zero_mem.console.charts import Stack, stack
from zero_mem.console.numbers import whole_number
from zero_mem.console.visit import Page, Reply, Visit
from zero_mem.conversation.listing import Conversation, conversations, detailed
from zero_mem.conversation.timeline import SentPrompt, Timeline, timeline
from zero_mem.errors import InvalidInput, NotFound
from zero_mem.ledger.columns import PROMPT_COLUMNS, CallTokens
from zero_mem.ledger.reading import OF_ALL, overview
from zero_mem.memory import Memory
from zero_mem.proxy.identity import digest
from zero_mem.types import Path

AT_ONCE: Final = 40
"""Conversations of one page."""
PROMPTS: Final = 20
"""Prompts of one page."""
_MOST: Final = 100_000
SHOWN: Final = 20_000
"""Most characters of one text that are shown; the record has all of it."""


def columns(tokens: CallTokens) -> Stack:
    """Give a prompt's columns side by side, those that hold nothing left out."""
    found = ((name, getattr(tokens, name)) for name in PROMPT_COLUMNS)
    return stack([(name, count) for name, count in found if count])


def with_proxys(memory: Memory, listed: Iterable[Conversation]) -> list[Conversation]:
    """Join what a proxy entered under names of its own to the conversations it is about.

    A proxy keeps one ledger for all its tenants, in which a conversation goes by the digest of
    its tenant and name; its memories are in a namespace below that.
    """
    rows = list(listed)
    entered = {(row.namespace, row.name): row for row in rows if row.entry is not None}
    joined: set[tuple[Path, str]] = set()
    found: list[Conversation] = []
    for row in rows:
        key = None if row.entry else next(_keys(row, entered), None)
        if key is None:
            found.append(row)
        else:
            joined.add(key)
            found.append(replace(row, entry=entered[key].entry, last=entered[key].last))
    return [row for row in found if (row.namespace, row.name) not in joined]


def _keys(
    row: Conversation, entered: Mapping[tuple[Path, str], Conversation]
) -> Iterator[tuple[Path, str]]:
    """Name the entries that may be a conversation's, in the namespaces above its own."""
    for length in range(1, len(row.namespace)):
        root, tenant = row.namespace[:length], row.namespace[length]
        key = (root, digest(tenant, row.name))
        if key in entered:
            yield key


# The list


def _list(visit: Visit) -> Reply:
    start = _count(visit, "start")
    rows = with_proxys(visit.memory, conversations(visit.memory, visit.space.path))
    rows.sort(key=lambda row: row.last.timestamp() if row.last else 0.0, reverse=True)
    shown = [detailed(visit.memory, row) for row in rows[start : start + AT_ONCE]]
    return visit.render(
        "conversations.html",
        rows=shown,
        total=len(rows),
        following=start + AT_ONCE if len(rows) > start + AT_ONCE else None,
        stacked=columns,
        columns=PROMPT_COLUMNS,
    )


# One of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A page of a conversation's prompts; `first` and `last` number them from 1."""

    prompts: tuple[SentPrompt, ...]
    first: int
    last: int
    earlier: int | None
    later: int | None


def window(found: Timeline, start: int) -> Shown:
    """Give some prompts of a conversation; a start beyond its end gives the last ones."""
    count = len(found.prompts)
    start = max(0, min(start, count - 1) // PROMPTS * PROMPTS)
    stop = min(start + PROMPTS, count)
    return Shown(
        prompts=found.prompts[start:stop],
        first=start + 1,
        last=stop,
        earlier=start - PROMPTS if start else None,
        later=stop if stop < count else None,
    )


def _show(visit: Visit) -> Reply:
    name = visit.query.get("name", "")
    if not name:
        raise InvalidInput("the address names no conversation, such as name=order-57")
    row = _row(visit, name)
    found: Timeline | None
    try:
        found = timeline(visit.space, name)
    except NotFound:
        if row.entry is None:
            raise
        found = None  # a proxy that only observes decides nothing
    return visit.render(
        "conversation.html",
        name=name,
        row=row,
        found=found,
        shown=window(found, _count(visit, "start")) if found else None,
        stacked=columns,
        columns=PROMPT_COLUMNS,
        most=SHOWN,
    )


def _row(visit: Visit, name: str) -> Conversation:
    """Find what the calls of a conversation took, in its own namespace or a proxy's above it."""
    path = visit.space.path
    row = Conversation(namespace=path, name=name, last=None, entry=None)
    own = {entry.conversation: entry for entry in overview(visit.space).conversations}
    if name in own:
        return replace(row, entry=own[name])
    for length in range(1, len(path)):
        above = visit.at(path[:length])
        if not above.may("read") or OF_ALL not in above.space.scopes():
            continue
        entries = {entry.conversation: entry for entry in overview(above.space).conversations}
        found = entries.get(digest(path[length], name))
        if found is not None:
            return replace(row, entry=found)
    return row


def _count(visit: Visit, name: str) -> int:
    return whole_number(visit.query.get(name) or "0", name, most=_MOST)


PAGE = Page(
    name="conversations",
    path="/conversations",
    gets={"/conversations": _list, "/conversation": _show},
)
