"""Reading memories: by id, by filter, by words, and as few compact prompt lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

from zero_mem import filters
from zero_mem.errors import InvalidInput, NotFound, StoreUnavailable
from zero_mem.handles import check_memory_id
from zero_mem.operations.requests import check_moment, check_text
from zero_mem.operations.rules import missing
from zero_mem.policy.limits import Limits, limits_for
from zero_mem.policy.visibility import visibility_of
from zero_mem.recall.configuration import Configuration, configuration
from zero_mem.recall.render import DEFAULT_BUDGET, Lines, check_count, named, recalled
from zero_mem.recall.request import Finding, Request, check_query, visible
from zero_mem.space.view import View
from zero_mem.storage.base import NamespaceRow
from zero_mem.storage.times import to_micros
from zero_mem.types import Hit, MemoryRecord, Page, Read, Recall

if TYPE_CHECKING:
    from zero_mem.dense.index import DenseIndex
    from zero_mem.dense.results import Found

Where: TypeAlias = Mapping[str, Any]
Records: TypeAlias = list[MemoryRecord | None]
Hits: TypeAlias = list[Hit]

_CURSOR = re.compile("p[0-9]{1,18}")


class Reads(View):
    """The reads; none of them writes but a prompt's note of what it showed."""

    def get(self, memory_id: str | int) -> MemoryRecord:
        """Read a record by its id, active or archived.

        Raises:
            NotFound: No such record here; the message says if it expired or was purged.
        """
        identity = check_memory_id(memory_id)
        record = self._find([identity]).get(identity)
        if isinstance(record, MemoryRecord):
            return record
        raise NotFound(record or missing(identity, None))

    def get_many(self, memory_ids: Iterable[str | int]) -> Records:
        """Read records in one snapshot; None where there is none to read."""
        identities = [check_memory_id(memory_id) for memory_id in memory_ids]
        found = self._find(identities)
        records = (found.get(identity) for identity in identities)
        return [record if isinstance(record, MemoryRecord) else None for record in records]

    def _find(self, identities: Sequence[str]) -> dict[str, MemoryRecord | str]:
        """Read records; a string says why one can't be read."""
        self._memory.flush()
        with self._reading() as (transaction, row, now):
            stored = transaction.by_ids(row, identities) if row else {}
        found: dict[str, MemoryRecord | str] = {}
        for identity, one in stored.items():
            if one.record.state == "deleted":
                found[identity] = missing(identity, one)
            elif one.record.expired(now):
                found[identity] = f"memory {identity} has expired"
            else:
                found[identity] = one.record
        return found

    def list(
        self, where: Where | None = None, *, limit: int = 100, cursor: str | None = None
    ) -> Page[MemoryRecord]:
        """List records in the order they were first saved.

        Args:
            where: A filter, such as {"kind": "user_pref", "metadata.order": {"gte": 5}};
                live records unless it names a state.
            limit: Most records of the page.
            cursor: `next_cursor` of the page before; it stays valid while records change.
        """
        limit = check_count(limit, "limit")
        parsed, after = filters.parse(where), _position(cursor)
        self._memory.flush()
        with self._reading() as (transaction, row, now):
            if row is None:
                return Page(items=())
            parsed = self._asked(row, where, parsed)
            stored = transaction.scan(row, parsed.equalities(), after=after)
            shown = (s for s in stored if visible(s.record, parsed, now))
            found = list(islice(shown, limit + 1))
        following = f"p{found[limit - 1].position}" if len(found) > limit else None
        return Page(items=tuple(s.record for s in found[:limit]), next_cursor=following)

    def each(self, where: Where | None = None) -> Iterator[MemoryRecord]:
        """Read all records that a filter matches, page by page."""
        page = self.list(where)
        yield from page
        while page.next_cursor is not None:
            page = self.list(where, cursor=page.next_cursor)
            yield from page

    def count(self, where: Where | None = None) -> int:
        """Count records; live ones unless the filter names a state."""
        parsed = filters.parse(where)
        self._memory.flush()
        with self._reading() as (transaction, row, now):
            if row is None:
                return 0
            parsed = self._asked(row, where, parsed)
            stored = transaction.scan(row, parsed.equalities())
            return sum(visible(s.record, parsed, now) for s in stored)

    def search(self, query: str, *, where: Where | None = None, limit: int = 10) -> Hits:
        """Find live records by their words, best first, and by their meaning with an embedder.

        Without an embedder, or while it gives nothing, only what holds a word of the query is
        found; `Recall.degraded` says when that is so.

        Args:
            query: Any text; no character in it has a special meaning.
            where: A filter; one that names a state reads that state instead.
            limit: Most hits.

        Returns:
            Hits with a score above 0 and below 1, comparable within the namespace.
        """
        # What ranks is loaded on first use: most of an import's time would go there.
        from zero_mem.recall.search import search as search_namespace

        limit = check_count(limit, "limit")
        query, parsed = check_query(query), filters.parse(where)
        self._memory.flush()
        near = self._near(query, self._memory.dense)
        with self._reading() as (transaction, row, now):
            if row is None:
                return []
            request = Request(
                query=self._redactor(row).asked(query),
                where=self._asked(row, where, parsed),
                now=now,
                asked_at=now,
                own_words=True,
                similarities=near.scores if near else None,
            )
            found = search_namespace(transaction, row, request, self._memory.corpora)
            return [finding.hit for finding in islice(found, limit)]

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        budget: int | None = None,
        where: Where | None = None,
        asked_at: datetime | None = None,
        session: str | None = None,
        speaker: str | None = None,
        profile: str | Configuration = "default",
        explain: bool = False,
    ) -> Recall:
        """Find the memories a query needs and give them as a prompt may carry them.

        Args:
            query: Any text.
            limit: Most items; by default the namespace's max_recall_items.
            budget: Most tokens of the text; 1000 by default.
            where: A filter as in `list`.
            asked_at: The moment the question is asked; "last Tuesday" counts from it, and what
                has expired by then, or by now, is left out.
            session: The running conversation whose next turn the query is. Its own records are
                in the prompt already and left out; recent ones of others count more.
            speaker: Who says that turn.
            profile: "default", "paper" or "bm25", or weights of your own; see docs/recall.md.
            explain: Say each item's rank and the parts of its score, and what just missed.

        Returns:
            Items best first; hidden memories are never among them.
        """
        from zero_mem.recall.search import search as search_namespace

        begun = perf_counter()
        config = configuration(profile)
        query, parsed = check_query(query), filters.parse(where)
        asked = None if asked_at is None else check_moment(asked_at, "asked_at")
        tokens = DEFAULT_BUDGET if budget is None else check_count(budget, "budget")
        most = config.items if limit is None else check_count(limit, "limit")
        given = (check_text(session or "", "session"), check_text(speaker or "", "speaker"))
        self._memory.flush()
        near = self._near(query, self._memory.dense if config.dense else None)
        with self._reading() as (transaction, row, now):
            if row is None:
                return Lines(tokens, self._memory.tokenizer).recall([], explain=explain)
            moment = now if asked is None else max(asked, now)
            redactor = self._redactor(row)
            text = redactor.asked(query)
            request = Request(
                query=text,
                where=self._asked(row, where, parsed),
                now=moment,
                asked_at=asked or now,
                config=config,
                session=redactor.name(given[0]),
                speaker=redactor.name(given[1]),
                similarities=near.scores if near else None,
                shown=lambda record: _shown(row, record),
            )
            found = search_namespace(transaction, row, request, self._memory.corpora)
            recall = recalled(
                (one for one in found if _shown(row, one.hit.record)),
                query=text,
                limit=most or limits_for(row.settings, "semantic", "").max_recall_items,
                budget=tokens,
                tokenizer=self._memory.tokenizer,
                threshold=lambda record: _limits(row, record).compaction_threshold,
                explain=explain,
            )
        self._memory.metrics.recalled(len(recall.items), recall.tokens, begun)
        return replace(recall, behind=near.behind, degraded=near.degraded) if near else recall

    def _near(self, query: str, dense: DenseIndex | None) -> Found | None:
        """Look up what is near a query by its vector; the embedder never sees what is redacted."""
        if dense is None:
            return None
        return dense.look_up(self._path, self._redactor(self._row()).asked(query))

    def recall_for_prompt(
        self, memory_ids: Sequence[str | int], *, budget: int | None = None
    ) -> str:
        """Give named memories as prompt lines, `[memo:ID] KIND: TEXT` each, under a budget.

        What does not fit or can't be read is said in a last line, which the budget counts
        too. The records shown are marked as used, where the store can be written to.
        """
        if isinstance(memory_ids, str):
            raise InvalidInput("memory_ids is a list of ids, not one string")
        tokens = DEFAULT_BUDGET if budget is None else check_count(budget, "budget")
        identities = list(dict.fromkeys(check_memory_id(key) for key in memory_ids))
        lines = Lines(tokens, self._memory.tokenizer)
        text = lines.with_note(self._fill(lines, identities))
        # A full or read-only disk keeps no mark; what was read is right all the same.
        with suppress(StoreUnavailable):
            self.mark_used([item.memory_id for item in lines.items])
        return text

    def _fill(self, lines: Lines, identities: Sequence[str]) -> Sequence[str]:
        """Add the lines of named memories; give the notes on what can't be shown."""
        found = self._find(identities)
        row = self._row()
        unread: list[str] = []
        beyond: list[str] = []
        most = limits_for(row.settings, "semantic", "").max_recall_items
        for identity in identities:
            record = found.get(identity)
            if not isinstance(record, MemoryRecord) or not _shown(row, record):
                unread.append(identity)
            elif len(lines.items) >= most:
                beyond.append(identity)
            else:
                hit = Hit(memory_id=identity, score=1.0, record=record)
                lines.add(
                    Finding(hit),
                    threshold=_limits(row, record).compaction_threshold,
                    query="",
                )
        return named("not readable", unread), named(f"beyond {most} items", beyond)

    def mark_used(self, identities: Sequence[str]) -> None:
        """Note that a prompt showed these records; not journalled, not worth an fsync."""
        if identities:
            with self._memory.transaction(write=True, durable=False) as transaction:
                row = transaction.namespace(self._path)
                if row is not None:
                    transaction.accessed(row, identities, to_micros(self._memory.now()))

    def read(
        self,
        memory_id: str | int,
        *,
        pointer: str | None = None,
        rows: Where | None = None,
        lines: tuple[int, int] | str | None = None,
        pattern: str | None = None,
        budget: int | None = None,
    ) -> Read:
        """Read a part of one body: a JSON pointer, matching rows, a range of lines, a pattern.

        Raises:
            NotFound: No such record.
            InvalidInput: The choice does not fit the body; the message says what is there.
        """
        from zero_mem.recall.read import read

        tokens = DEFAULT_BUDGET if budget is None else check_count(budget, "budget")
        return read(
            self.get(memory_id),
            pointer=pointer,
            rows=rows,
            lines=lines,
            pattern=pattern,
            budget=tokens,
            tokenizer=self._memory.tokenizer,
        )


def _position(cursor: object) -> int:
    if cursor in (None, ""):
        return 0
    if isinstance(cursor, str) and _CURSOR.fullmatch(cursor):
        return int(cursor[1:])
    raise InvalidInput("cursor is the next_cursor of an earlier page")


def _limits(row: NamespaceRow, record: MemoryRecord) -> Limits:
    return limits_for(row.settings, record.form, record.kind)


def _shown(row: NamespaceRow, record: MemoryRecord) -> bool:
    return visibility_of(record, _limits(row, record)) != "hidden"
