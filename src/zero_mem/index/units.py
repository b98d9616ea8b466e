"""What recall knows of a record: a unit, made of the record alone, pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from zero_mem.text.segment import content_terms
from zero_mem.types import MemoryRecord

LABEL_CHARACTERS = 48
"""Where in a text the name of the other side (`To Ann: …`, `发送 李秀英: …`) may stand."""

TEXT_CHARACTERS = 2000
"""Of a text this much is kept for names, dates and labels; its terms come from all of it."""

_LABEL_PARTS = re.compile(r"[^\s:：,，。.!?！？、；;()（）\[\]【】\"“”]{2,20}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One record as recall scores it.

    `heads` are the first short pieces of its text, of which those that repeat in a namespace
    name a counterparty. `terms` are the record's index terms in order and with repeats.
    """

    position: int
    terms: tuple[str, ...]
    text: str
    stamp: datetime | None = None
    speaker: str = ""
    session: str = ""
    kind: str = ""
    key: str | None = None
    heads: tuple[str, ...] = ()


def unit_of(record: MemoryRecord, position: int, terms: Sequence[str]) -> Unit:
    """Make the unit of a record.

    Args:
        record: The record.
        position: Its place in the namespace; greater is later.
        terms: Its index terms (`index.document.index_terms`).
    """
    text = record.text[:TEXT_CHARACTERS]
    return Unit(
        position=position,
        terms=(*terms, *content_terms(record.speaker or "")),
        text=text,
        stamp=record.created_at,
        speaker=record.speaker or "",
        session=record.session or "",
        kind=record.kind,
        key=record.key,
        heads=heads(text),
    )


def heads(text: str) -> tuple[str, ...]:
    """Give the first pieces of a text's first line, at most three."""
    line = text[:LABEL_CHARACTERS].split("\n", 1)[0]
    return tuple(_LABEL_PARTS.findall(line)[:3])
