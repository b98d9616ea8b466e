"""Memories as resources, listed by name and read as they were stored; the prompt of pinned ones."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from zero_mem.conversation.candidates import by_visibility
from zero_mem.errors import InvalidInput
from zero_mem.mcp.addresses import address, reference
from zero_mem.mcp.arguments import carried
from zero_mem.mcp.calls import ENCODING
from zero_mem.mcp.watching import last_position
from zero_mem.recall.render import named as named_ids
from zero_mem.recall.select import select
from zero_mem.space import Namespace
from zero_mem.text.fence import FENCE_CLOSING, FENCE_OPENING, fence, memory_line
from zero_mem.text.tokens import tokenizer
from zero_mem.types import Blob, Body, Json, MemoryRecord, preview

RECENT: Final = 50
"""Most recent changes whose memories the list names."""
MOST_PINNED: Final = 50
"""Most pinned memories that the list names."""
PINNED: Final = "pinned"
"""The name of the prompt."""
PINNED_BUDGET: Final = 2000
"""Tokens of the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A memory as the list of resources names it: no body."""

    uri: str
    name: str
    media_type: str
    is_pinned: bool
    updated: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A body or a part of one; `data` is base64 where `is_binary`."""

    media_type: str
    data: str
    is_binary: bool = False


def listed(space: Namespace) -> list[Listed]:
    """List what is pinned, then what was changed last, the newest first; bounded.

    Any other memory is read by its address; a search finds which.
    """
    settings = space.settings()
    pinned = [one.record for one in by_visibility(space, settings)[PINNED]][:MOST_PINNED]
    named = {record.memory_id for record in pinned}
    recent = [record for record in _recent(space) if record.memory_id not in named]
    return [
        *(_listed(record, pinned=True) for record in pinned),
        *(_listed(record, pinned=False) for record in recent),
    ]


def _recent(space: Namespace) -> list[MemoryRecord]:
    after = max(0, last_position(space) - RECENT)
    entries = space.changes(after=after, limit=RECENT)
    ids = dict.fromkeys(entry.memory_id for entry in reversed(entries))
    return [record for record in space.get_many(list(ids)) if record is not None]


def _listed(record: MemoryRecord, *, pinned: bool) -> Listed:
    return Listed(
        uri=address(record.memory_id),
        name=preview(record.kind, record.key),
        media_type=_media_type(record.content),
        is_pinned=pinned,
        updated=record.updated_at.isoformat(),
    )


def content(space: Namespace, uri: str) -> Content:
    """Read the body at an address, whole, or the part that its fragment names.

    Raises:
        InvalidInput: The address is none, or the body has no such part.
        NotFound: No such memory here.
    """
    named = reference(uri)
    body = space.get(named.memory_id).content
    if named.pointer is None:
        return _content(body)
    if isinstance(body, Blob):
        raise InvalidInput("a binary body has no parts")
    chosen = select(body, pointer=named.pointer, rows=None, lines=None, pattern=None)
    return _content(Json(chosen.value))


def _content(body: Body) -> Content:
    if isinstance(body, Blob):
        data = base64.b64encode(body.data).decode()
        return Content(media_type=body.media_type, data=data, is_binary=True)
    text = json.dumps(body.value, ensure_ascii=False) if isinstance(body, Json) else body
    return Content(media_type=_media_type(body), data=carried(text))


def _media_type(body: Body) -> str:
    if isinstance(body, Blob):
        return body.media_type
    return "application/json" if isinstance(body, Json) else "text/plain"


def pinned(space: Namespace) -> str:
    """Write what is pinned as a fenced block of at most `PINNED_BUDGET` tokens.

    Whole lines only; what does not fit is named in a last line.
    """
    return carried("\n".join(_filled(space))) or "(nothing is pinned)"


def _filled(space: Namespace) -> Iterator[str]:
    counter = tokenizer(ENCODING)
    note = "(over the budget: 000, 000, 000, 000, 000, 000, 000, 000, 000, 000 and 0000 more)"
    room = PINNED_BUDGET - counter.count("\n".join([FENCE_OPENING, FENCE_CLOSING, note]))
    lines: list[str] = []
    beyond: list[str] = []
    for candidate in by_visibility(space, space.settings())[PINNED]:
        record = candidate.record
        line = memory_line(record.memory_id, record.kind, record.key, record.text)
        cost = counter.count(line + "\n")
        if cost <= room:
            room -= cost
            lines.append(line)
        else:
            beyond.append(record.memory_id)
    if lines:
        yield fence(lines)
    if beyond:
        yield f"({named_ids(f'over the budget of {PINNED_BUDGET} tokens', beyond)})"
