"""What recall knows of a record: a unit, made of the record alone, pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from sys import intern

from zero_mem.text.segment import content_terms
from zero_mem.types import MemoryRecord

LABEL_CHARACTERS = 48
"""Where in a text the name of the other side (`To Ann: …`, `发送 李秀英: …`) may stand."""

TEXT_CHARACTERS = 1000
"""Of a text this much is kept for names, dates and labels; its terms come from all of it."""

_LABEL = re.compile(
    r"(?:[^\s:：,，。.!?！？]{1,12}[ \u3000])?"
    r"(?P<name>[^\s:：,，。.!?！？、；;()（）\[\]【】\"“”]{2,20})(?:[:：]|[ \u3000]\+?\d{5})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One record as recall scores it.

    `label` is the name its text begins with; it is a counterparty's where it repeats in the
    namespace. `terms` are the record's index terms in order and with repeats.
    """

    position: int
    terms: tuple[str, ...]
    text: str
    stamp: datetime | None = None
    speaker: str = ""
    session: str = ""
    kind: str = ""
    key: str | None = None
    label: str = ""


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
        # Words repeat: of each one string is kept, whatever it was read from.
        terms=(*map(intern, terms), *content_terms(record.speaker or "")),
        text=text,
        stamp=record.created_at,
        speaker=record.speaker or "",
        session=record.session or "",
        kind=record.kind,
        key=record.key,
        label=label_of(text),
    )


def label_of(text: str) -> str:
    """Give the name that a text begins with, before a colon or a telephone number."""
    found = _LABEL.match(text[:LABEL_CHARACTERS])
    return found["name"] if found else ""
