"""That a history was sent: with how many blocks, and when, as a conversation keeps it."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from zero_mem.storage.times import from_micros, to_micros


class Sent(NamedTuple):
    """A history that is sent: its digest, how many blocks there are by then, what it asks.

    `asked` names the message of the user that memories were searched for, "" where none were.
    """

    history: str
    blocks: int
    asked: str = ""


class SentAt(NamedTuple):
    """How many blocks there were when a history was first sent, and when; None in old stores."""

    blocks: int
    at: datetime | None


def written(sent: Sent, now: datetime) -> str:
    """Write a history that is sent now, as it is kept under its digest."""
    return f"{sent.blocks} {to_micros(now)}"


def read(value: str) -> SentAt:
    """Read what `written` wrote; stores of before have the number alone."""
    blocks, _, at = value.partition(" ")
    return SentAt(int(blocks), from_micros(int(at)) if at else None)
