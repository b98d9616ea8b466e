"""Reads over every namespace below a path: explicit, and read-only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from zero_mem import filters
from zero_mem.errors import InvalidInput
from zero_mem.policy.limits import limits_for
from zero_mem.policy.visibility import visibility_of
from zero_mem.recall.render import DEFAULT_BUDGET, check_count, recalled
from zero_mem.recall.request import Finding, Request, check_query, visible
from zero_mem.storage.base import NamespaceRow, Transaction
from zero_mem.types import Hit, MemoryRecord, Page, Path, Recall

Rows: TypeAlias = list[NamespaceRow]
Where: TypeAlias = Mapping[str, Any] | None
Hits: TypeAlias = list[Hit]

_CURSOR = re.compile("s([0-9]{1,18})[.]([0-9]{1,18})")

if TYPE_CHECKING:
    from zero_mem.memory import Memory


class Subtree:
    """The namespaces at and below a path; made by `Memory.subtree`.

    Ids are unique in one namespace only: tell records apart by `record.namespace` too.
    """

    def __init__(self, memory: Memory, prefix: Path) -> None:
        self._memory = memory
        self._prefix = prefix

    def namespaces(self) -> list[Path]:
        """List the namespaces that have been written to, in the order they were made."""
        self._memory.flush()
        with self._memory.transaction() as transaction:
            return [row.path for row in transaction.namespaces(self._prefix)]

    def list(
        self,
        where: Mapping[str, Any] | None = None,
        *,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[MemoryRecord]:
        """List live records namespace by namespace, each in the order of first saving."""
        filters.parse(where)
        number, position = _cursor(cursor)
        limit = check_count(limit, "limit")
        self._memory.flush()
        with self._memory.transaction() as transaction:
            found = list(islice(self._scan(transaction, where, number, position), limit + 1))
        following = None
        if len(found) > limit:
            last_number, last_position, _ = found[limit - 1]
            following = f"s{last_number}.{last_position}"
        return Page(items=tuple(record for _, _, record in found[:limit]), next_cursor=following)

    def _scan(
        self, transaction: Transaction, where: Where, number: int, position: int
    ) -> Iterator[tuple[int, int, MemoryRecord]]:
        now = self._memory.now()
        for row in transaction.namespaces(self._prefix):
            if row.number < number:
                continue
            after = position if row.number == number else 0
            _, parsed = self._asked(row, "", where)
            for stored in transaction.scan(row, parsed.equalities(), after=after):
                if visible(stored.record, parsed, now):
                    yield row.number, stored.position, stored.record

    def count(self, where: Mapping[str, Any] | None = None) -> int:
        """Count live records, or those in the state that the filter names."""
        filters.parse(where)
        self._memory.flush()
        with self._memory.transaction() as transaction:
            return sum(1 for _ in self._scan(transaction, where, 0, 0))

    def _asked(self, row: NamespaceRow, query: str, where: Where) -> tuple[str, filters.Filter]:
        """Give a query and a filter as one namespace stores what they name."""
        text, stored = self._memory.redactors.asked(row.settings, query, where)
        return text, filters.parse(stored)

    def search(
        self, query: str, *, where: Mapping[str, Any] | None = None, limit: int = 10
    ) -> Hits:
        """Find live records by their words; each namespace scores by its own statistics."""
        text = check_query(query)
        filters.parse(where)
        limit = check_count(limit, "limit")
        self._memory.flush()
        with self._memory.transaction() as transaction:
            rows = transaction.namespaces(self._prefix)
            found = self._ranked(transaction, rows, text, where, own_words=True)
            return [finding.hit for finding in islice(found, limit)]

    def _ranked(
        self,
        transaction: Transaction,
        rows: Rows,
        text: str,
        where: Where,
        *,
        own_words: bool,
    ) -> Iterator[Finding]:
        # What ranks is loaded on first use.
        from zero_mem.recall.search import search

        now, corpora = self._memory.now(), self._memory.corpora
        ranked = []
        for row in rows:
            asked, parsed = self._asked(row, text, where)
            request = Request(query=asked, where=parsed, now=now, asked_at=now, own_words=own_words)
            ranked.append(search(transaction, row, request, corpora))
        return merge(*ranked, key=lambda finding: -finding.hit.score)

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        budget: int = DEFAULT_BUDGET,
        where: Mapping[str, Any] | None = None,
        explain: bool = False,
    ) -> Recall:
        """Recall over all these namespaces; an id may stand for several records here."""
        text = check_query(query)
        filters.parse(where)
        self._memory.flush()
        with self._memory.transaction() as transaction:
            rows = transaction.namespaces(self._prefix)
            settings = {row.path: row.settings for row in rows}

            def limits(record: MemoryRecord) -> Any:
                return limits_for(settings[record.namespace], record.form, record.kind)

            def shown(record: MemoryRecord) -> bool:
                return visibility_of(record, limits(record)) != "hidden"

            found = self._ranked(transaction, rows, text, where, own_words=False)
            return recalled(
                (one for one in found if shown(one.hit.record)),
                query=text,
                limit=check_count(limit, "limit"),
                budget=check_count(budget, "budget"),
                tokenizer=self._memory.tokenizer,
                threshold=lambda record: int(limits(record).compaction_threshold),
                explain=explain,
            )


def _cursor(cursor: str | None) -> tuple[int, int]:
    if not cursor:
        return 0, 0
    found = _CURSOR.fullmatch(cursor)
    if found:
        return int(found[1]), int(found[2])
    raise InvalidInput("cursor is the next_cursor of an earlier page")
