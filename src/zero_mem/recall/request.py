"""What a search is asked for and what it finds: light, for what ranks is loaded on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
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


class Explanation(NamedTuple):
    """What each part gave a record; `note` says what else decided, in words."""

    parts: Mapping[str, float] = MappingProxyType({})
    note: str = ""


class Finding(NamedTuple):
    """A record found, why (told by who found it, while it reads), and the id of a newer fact."""

    hit: Hit
    why: Callable[[], Explanation] = Explanation
    superseded_by: str = ""


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
