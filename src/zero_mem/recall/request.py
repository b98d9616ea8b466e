"""What a search is asked for and what it finds: light, for what ranks is loaded on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from zero_mem.errors import InvalidInput
from zero_mem.filters import Filter
from zero_mem.recall.configuration import DEFAULT, Configuration
from zero_mem.types import Hit, MemoryRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is looked for.

    Attributes:
        query: Any text.
        where: The filter; what it does not match is never found.
        now: Expiry is judged at this moment.
        asked_at: Relative times count from there.
        config: The weights of the parts.
        session: The running conversation whose next turn the query is; its own records are
            not found, they are in the prompt.
        speaker: Who says that turn.
        own_words: Only records that hold a word of the query, or are near it in meaning.
        similarities: Of the records that have a vector (by position), the cosine with the query.
        shown: Tells which records an explanation may name.
    """

    query: str
    where: Filter
    now: datetime
    asked_at: datetime
    config: Configuration = DEFAULT
    session: str = ""
    speaker: str = ""
    own_words: bool = False
    similarities: Mapping[int, float] | None = None
    shown: Callable[[MemoryRecord], bool] = lambda record: True


class Finding(NamedTuple):
    """A record found: what each part gave it, and the id of a newer version of its fact.

    `note` says what else decided, in words.
    """

    hit: Hit
    parts: Mapping[str, float]
    superseded_by: str = ""
    note: str = ""


def check_query(query: object) -> str:
    """Accept a query that says something."""
    if not isinstance(query, str):
        raise InvalidInput(f"query is a string, not {type(query).__name__}")
    if not query.strip():
        raise InvalidInput("query is empty; use list() to read without one")
    return query


def visible(record: MemoryRecord, where: Filter, now: datetime) -> bool:
    """Tell whether a read shows a record: live unless the filter names a state."""
    if not where.names_state and (record.state != "active" or record.expired(now)):
        return False
    return where.matches(record, now)
