"""A namespace as it was at a moment: read-only, expiry judged at that moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, TypeAlias

from zero_mem import filters
from zero_mem.errors import NotFound
from zero_mem.handles import check_memory_id
from zero_mem.policy.limits import Limits, limits_for
from zero_mem.policy.visibility import visibility_of
from zero_mem.recall.render import DEFAULT_BUDGET, check_count, recalled
from zero_mem.recall.request import Finding, Request, check_query, visible
from zero_mem.redaction import Redactors
from zero_mem.text.tokens import Tokenizer
from zero_mem.types import Hit, MemoryRecord, Page, Recall

Hits: TypeAlias = list[Hit]


class Past:
    """The records of a namespace as they stood at `moment`; made by `Namespace.as_of`."""

    def __init__(
        self,
        records: Mapping[str, MemoryRecord],
        moment: datetime,
        *,
        settings: str,
        tokenizer: Tokenizer,
        redactors: Redactors,
    ) -> None:
        self._records = records
        self._settings = settings
        self._tokenizer = tokenizer
        self._redactors = redactors
        self.moment = moment

    def get(self, memory_id: str | int) -> MemoryRecord:
        """Read a record as it was.

        Raises:
            NotFound: It was not there then, had ended, or has been purged since.
        """
        identity = check_memory_id(memory_id)
        record = self._records.get(identity)
        if record is None or record.state == "deleted" or record.expired(self.moment):
            raise NotFound(f"no memory {identity} in this namespace at {self.moment.isoformat()}")
        return record

    def list(self, where: Mapping[str, Any] | None = None) -> Page[MemoryRecord]:
        """List the records that a filter matches, in the order they were first saved."""
        _, parsed = self._asked("", where)
        records = self._records.values()
        return Page(items=tuple(r for r in records if visible(r, parsed, self.moment)))

    def search(
        self, query: str, *, where: Mapping[str, Any] | None = None, limit: int = 10
    ) -> Hits:
        """Find records by their words, with the statistics of that moment."""
        text, parsed = self._asked(check_query(query), where)
        most = check_count(limit, "limit")
        request = self._request(text, parsed, own_words=True)
        found = self._found(request)
        return [finding.hit for finding in islice(found, most)]

    def _asked(self, query: str, where: Mapping[str, Any] | None) -> tuple[str, filters.Filter]:
        filters.parse(where)
        text, stored = self._redactors.asked(self._settings, query, where)
        return text, filters.parse(stored)

    def _found(self, request: Request) -> Iterator[Finding]:
        # What ranks is loaded on first use.
        from zero_mem.recall.search import search_listed

        return search_listed(self._records.values(), request)

    def _request(self, query: str, where: filters.Filter, *, own_words: bool) -> Request:
        moment = self.moment
        return Request(query=query, where=where, now=moment, asked_at=moment, own_words=own_words)

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        budget: int = DEFAULT_BUDGET,
        where: Mapping[str, Any] | None = None,
        explain: bool = False,
    ) -> Recall:
        """Give what a recall would have given then, under the limits of today."""
        text, parsed = self._asked(check_query(query), where)
        most = limits_for(self._settings, "semantic", "").max_recall_items
        request = self._request(text, parsed, own_words=False)
        found = self._found(request)
        return recalled(
            (one for one in found if self._shown(one.hit.record)),
            query=text,
            limit=most if limit is None else check_count(limit, "limit"),
            budget=check_count(budget, "budget"),
            tokenizer=self._tokenizer,
            threshold=lambda record: self._limits(record).compaction_threshold,
            explain=explain,
        )

    def _shown(self, record: MemoryRecord) -> bool:
        return visibility_of(record, self._limits(record)) != "hidden"

    def _limits(self, record: MemoryRecord) -> Limits:
        return limits_for(self._settings, record.form, record.kind)
