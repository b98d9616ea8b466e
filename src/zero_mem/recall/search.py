"""Finding records by words: candidates from the lexicon, filtered, best first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

from zero_mem.errors import InvalidInput
from zero_mem.filters import Filter
from zero_mem.index.document import index_terms, searched_text
from zero_mem.recall.lexical import ListedLexicon, StoredLexicon, rank
from zero_mem.storage.base import NamespaceRow, Stored, Transaction
from zero_mem.text.segment import content_terms, fold
from zero_mem.types import Hit, MemoryRecord

_CHUNK = 50


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


def search(
    transaction: Transaction, row: NamespaceRow, query: str, where: Filter, now: datetime
) -> Iterator[Hit]:
    """Find the records of a namespace that match a query, best first, lazily.

    The index holds active records; a filter that names another state reads them all.
    """
    if where.names_state:
        records = [stored.record for stored in transaction.scan(row, where.equalities())]
        yield from search_listed(records, query, where, now)
        return
    terms = _terms(query)
    if not terms:
        stored = transaction.scan(row, {**where.equalities(), "state": ("active",)})
        yield from _literal((s.record for s in stored), query, where, now)
        return
    ranked = rank(StoredLexicon(transaction, row), terms)
    while chunk := list(islice(ranked, _CHUNK)):
        found = transaction.by_positions(row, [position for position, _ in chunk])
        yield from _hits(chunk, found, where, now)


def _terms(query: str) -> list[str]:
    return list(dict.fromkeys(content_terms(query)))


def _hits(
    ranked: Sequence[tuple[int, float]], found: Mapping[int, Stored], where: Filter, now: datetime
) -> Iterator[Hit]:
    for position, score in ranked:
        record = found[position].record
        if visible(record, where, now):
            yield Hit(memory_id=record.memory_id, score=score, record=record)


def search_listed(
    records: Iterable[MemoryRecord], query: str, where: Filter, now: datetime
) -> Iterator[Hit]:
    """Find among given records, with their own statistics (the past, the archive)."""
    shown = [record for record in records if visible(record, where, now)]
    terms = _terms(query)
    if not terms:
        yield from _literal(shown, query, where, now)
        return
    for position, score in rank(ListedLexicon(map(index_terms, shown)), terms):
        record = shown[position]
        yield Hit(memory_id=record.memory_id, score=score, record=record)


def _literal(
    records: Iterable[MemoryRecord], query: str, where: Filter, now: datetime
) -> Iterator[Hit]:
    """Find a query that no index knows (`*`, `to be or not`) as it stands, newest first."""
    wanted = fold(query).strip()
    matching = [r for r in records if visible(r, where, now) and wanted in fold(searched_text(r))]
    for record in reversed(matching):
        yield Hit(memory_id=record.memory_id, score=1.0, record=record)
