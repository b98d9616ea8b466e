"""Saving, changing, ending and erasing memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from zero_mem import filters
from zero_mem.errors import InvalidInput, NotFound, ZeroMemError
from zero_mem.handles import check_memory_id
from zero_mem.operations.batch import BatchResult, OnError, attempt, check_on_error, chunks
from zero_mem.operations.erasing import Erasure, PurgeReport, survey
from zero_mem.operations.idempotency import expected_id
from zero_mem.operations.plan import Plan
from zero_mem.operations.redacted import redacted_save
from zero_mem.operations.requests import (
    SaveRequest,
    UpdateRequest,
    check_expiry,
    check_version,
    save_request,
    update_request,
)
from zero_mem.operations.rules import missing
from zero_mem.operations.tasks import renew_task
from zero_mem.recall.request import visible
from zero_mem.space.view import View
from zero_mem.storage.base import Stored
from zero_mem.types import UNSET, Body, MemoryReceipt, Source, Unset, preview

Lifetime: TypeAlias = float | timedelta | None
Step: TypeAlias = Callable[[Plan, str], MemoryReceipt]


class Writes(View):
    """The operations that change records; each is one transaction."""

    def save(
        self,
        content: Body,
        *,
        kind: str | None = None,
        key: str | None = None,
        form: str | None = None,
        memory_id: str | int | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        task: str | None = None,
        session: str | None = None,
        speaker: str | None = None,
        source: Source = "user",
        expires_in: Lifetime | Unset = UNSET,
        expires_at: datetime | Unset | None = UNSET,
        invalidated_by: Sequence[str] = (),
        created_at: datetime | None = None,
        if_version: int | None = None,
        idempotency_key: str | None = None,
        hold: str | None = None,
        mode: Literal["sync", "queued"] = "sync",
    ) -> MemoryReceipt:
        """Store a memory, or update the active one with the same id or the same kind and key.

        Args:
            content: Text, kept byte for byte; `Json(value)`; or a `Blob`.
            kind: Free text, such as "user_pref"; "note" where none is given.
            key: Names the one fact of its kind that this is; a later save updates it.
            form: working, episodic, semantic or procedural; by default the kind's.
            memory_id: Your own id; by default a small number is given, never used twice.
            metadata: A JSON object; merged key by key into an existing record's.
            tags: Labels to filter by.
            task: The task it belongs to; a working memory ends with its task.
            session: The conversation it comes from.
            speaker: Who said it.
            source: Who wrote the body: user, tool, model or import.
            expires_in: Seconds or a timedelta from now.
            expires_at: An aware datetime; at that instant the memory is hidden.
            invalidated_by: Names of business events that end it.
            created_at: When it happened, by your clock; now by default.
            if_version: Write only if the record is at this version; 0: only if it is new.
            idempotency_key: A retry with the same key is applied once.
            hold: An owner for whom the record is kept from eviction until `release`.
            mode: "queued" answers "accepted" before the write is durable.

        Raises:
            InvalidInput: A value is wrong; nothing was stored.
            Conflict: The version, the key or the idempotency key says otherwise.
            LimitReached: The cap is reached and nothing may be evicted.
        """
        request = save_request(
            content,
            kind=kind,
            key=key,
            form=form,
            memory_id=memory_id,
            metadata=metadata,
            tags=tags,
            task=task,
            session=session,
            speaker=speaker,
            source=source,
            expires_in=expires_in,
            expires_at=expires_at,
            invalidated_by=invalidated_by,
            created_at=created_at,
            if_version=if_version,
            idempotency_key=idempotency_key,
            hold=hold,
        )
        if mode == "queued":
            return self._queue(request)
        if mode != "sync":
            raise InvalidInput(f'mode is "sync" or "queued", not {mode!r}')
        self._memory.flush()
        return self.apply_save(request)

    def apply_save(self, request: SaveRequest) -> MemoryReceipt:
        """Write a checked save now, without waiting for queued ones."""
        with self._writing() as plan:
            return _save_one(plan, request)

    def reserve_ids(self, count: int) -> list[str]:
        """Take numbers that no record will be given, for writes that are applied later."""
        with self._writing(durable=False) as plan:
            taken = [plan.new_id() for _ in range(count)]
            plan.transaction.store_namespace(plan.row)
        return taken

    def expected_id(self, request: SaveRequest) -> str | None:
        """Name the record that a save would change, without waiting for queued writes."""
        with self._reading() as (transaction, row, now):
            return expected_id(transaction, row, request, now) if row else None

    def is_taken(self, memory_id: str) -> bool:
        """Tell whether an id names a record, in whatever state."""
        with self._reading() as (transaction, row, _):
            return row is not None and bool(transaction.by_ids(row, [memory_id]))

    def _queue(self, request: SaveRequest) -> MemoryReceipt:
        if (request.key, request.memory_id) != (None, None):
            # The receipt names them before the write is applied.
            request = redacted_save(request, self._redactor(self._row()))
        accepted = self._memory.queued.accept(self, request)
        return MemoryReceipt(
            memory_id=accepted,
            operation="save",
            version=0,
            created_at=self._memory.now(),
            preview=preview(request.kind, request.key),
            flags=frozenset({"accepted"}),
        )

    def save_many(
        self, items: Iterable[Mapping[str, Any]], *, on_error: OnError = "abort"
    ) -> BatchResult:
        """Store many memories in one transaction; each item has the arguments of `save`.

        Args:
            items: Mappings with "content" and any keyword of `save` but `mode`.
            on_error: "abort" stores all or none; "skip" stores what it can.

        Returns:
            A receipt (or, when skipping, the error) at each item's index.

        Raises:
            ZeroMemError: With "abort", the first error, naming the item's index.
        """
        check_on_error(on_error)
        self._memory.flush()
        results: list[MemoryReceipt | ZeroMemError] = []
        with self._writing() as plan:
            for start, chunk in chunks(items):
                results += _save_chunk(plan, chunk, on_error, start)
                plan.flush()
        return BatchResult(results=tuple(results))

    def update(
        self,
        memory_id: str | int,
        content: Body | Unset = UNSET,
        *,
        metadata: Mapping[str, Any] | Unset | None = UNSET,
        tags: Sequence[str] | Unset | None = UNSET,
        expires_in: Lifetime | Unset = UNSET,
        expires_at: datetime | Unset | None = UNSET,
        source: Source | None = None,
        if_version: int | None = None,
    ) -> MemoryReceipt:
        """Change what is named and leave the rest as it is (`op:merge`).

        Args:
            memory_id: The record.
            content: The new body.
            metadata: Merged key by key; a key set to None goes, None clears all.
            tags: The new tags; None clears them.
            expires_in: The new time to live; None clears the expiry.
            expires_at: The new expiry; None clears it.
            source: Who wrote the new body; by default it stays.
            if_version: Write only if the record is at this version.

        Raises:
            NotFound: No such active record.
            Conflict: The record is at another version.
        """
        request = update_request(
            memory_id,
            content=content,
            metadata=metadata,
            tags=tags,
            expires_in=expires_in,
            expires_at=expires_at,
            source=source,
            if_version=if_version,
        )
        with self._write_after_queue() as plan:
            receipt = plan.update(request)
            _renew(plan, receipt.memory_id)
            return receipt

    def update_many(
        self, items: Iterable[Mapping[str, Any]], *, on_error: OnError = "abort"
    ) -> BatchResult:
        """Change many memories in one transaction; each item has the arguments of `update`."""
        check_on_error(on_error)
        requests = attempt(items, _update_request, on_error)
        with self._write_after_queue() as plan:
            results = attempt(requests, lambda request: plan.update(_or_raise(request)), on_error)
        return BatchResult(results=tuple(results))

    def touch(
        self,
        memory_id: str | int,
        *,
        expires_in: Lifetime | Unset = UNSET,
        if_version: int | None = None,
    ) -> MemoryReceipt:
        """Mark a record as used; with `expires_in`, let it live that long from now."""
        identity, version = check_memory_id(memory_id), check_version(if_version)
        expiry = check_expiry(expires_in, UNSET)
        with self._write_after_queue() as plan:
            return plan.touch(identity, expiry, version)

    def touch_many(
        self,
        memory_ids: Iterable[str | int],
        *,
        expires_in: Lifetime | Unset = UNSET,
        on_error: OnError = "abort",
    ) -> BatchResult:
        """Touch many records in one transaction."""
        expiry = check_expiry(expires_in, UNSET)
        return self._each(memory_ids, lambda plan, key: plan.touch(key, expiry), on_error)

    def archive(self, memory_id: str | int, *, if_version: int | None = None) -> MemoryReceipt:
        """Take a record out of search and recall; get and handles still read it."""
        identity, version = check_memory_id(memory_id), check_version(if_version)
        with self._write_after_queue() as plan:
            return plan.archive(identity, if_version=version)

    def archive_many(
        self, memory_ids: Iterable[str | int], *, on_error: OnError = "abort"
    ) -> BatchResult:
        """Archive many records in one transaction."""
        return self._each(
            memory_ids, lambda plan, key: plan.archive(key, if_version=None), on_error
        )

    def restore(self, memory_id: str | int, *, if_version: int | None = None) -> MemoryReceipt:
        """Make an archived or deleted record active again."""
        identity, version = check_memory_id(memory_id), check_version(if_version)
        with self._write_after_queue() as plan:
            return plan.restore(identity, if_version=version)

    def restore_many(
        self, memory_ids: Iterable[str | int], *, on_error: OnError = "abort"
    ) -> BatchResult:
        """Restore many records in one transaction."""
        return self._each(
            memory_ids, lambda plan, key: plan.restore(key, if_version=None), on_error
        )

    def delete(self, memory_id: str | int, *, if_version: int | None = None) -> MemoryReceipt:
        """Delete a record; its history stays until it is purged."""
        identity, version = check_memory_id(memory_id), check_version(if_version)
        with self._write_after_queue() as plan:
            return plan.delete(identity, if_version=version)

    def delete_many(
        self, where: Mapping[str, Any] | None = None, *, everything: bool = False
    ) -> BatchResult:
        """Delete every record that a filter matches, in one transaction.

        Args:
            where: A filter as in `list`; without a state, live records are meant.
            everything: Must be True to delete without a filter.

        Raises:
            InvalidInput: Neither a filter nor `everything=True` was given.
        """
        if not where and not everything:
            raise InvalidInput("delete_many needs a filter, or everything=True to delete all")
        parsed = filters.parse(where)
        with self._write_after_queue() as plan:
            parsed = self._asked(plan.row, where, parsed)
            found = [
                stored.record.memory_id
                for stored in plan.transaction.scan(plan.row, parsed.equalities())
                if visible(stored.record, parsed, plan.now) and stored.record.state != "deleted"
            ]
            plan.prefetch(found)
            receipts = [plan.delete(key, if_version=None) for key in found]
        return BatchResult(results=tuple(receipts))

    def purge(self, memory_id: str | int, *, if_version: int | None = None) -> MemoryReceipt:
        """Erase a record and every version of it for good, in tables and file (`history:purge`).

        The journal keeps that it was there and that it was purged, without a body.
        """
        identity, version = check_memory_id(memory_id), check_version(if_version)
        with self._write_after_queue() as plan:
            receipt = self._purge(plan, identity, version)
        self._memory.corpora.forget(self._path)
        self._memory.scrub()
        return receipt

    def purge_many(self, memory_ids: Iterable[str | int], *, dry_run: bool = False) -> PurgeReport:
        """Erase many records for good; the file is rewritten once.

        Args:
            memory_ids: The records, in whatever state.
            dry_run: Only say what would be erased; nothing is written.

        Returns:
            Of each record what went (versions, bodies, bytes, what was kept for it), and a
            receipt for each that was erased.

        Raises:
            NotFound: One of them is not there, or was purged; none was erased.
        """
        identities = list(dict.fromkeys(check_memory_id(each) for each in memory_ids))
        self._memory.flush()
        if dry_run:
            return PurgeReport(results=(), erased=self._would_purge(identities), dry_run=True)
        with self._writing() as plan:
            found = [plan.stored(identity) for identity in identities]
            erased = survey(plan.transaction, plan.row, [each for each in found if each])
            receipts = [self._purge(plan, identity) for identity in identities]
        self._memory.corpora.forget(self._path)
        self._memory.scrub()
        return PurgeReport(results=tuple(receipts), erased=erased)

    def _would_purge(self, identities: Sequence[str]) -> tuple[Erasure, ...]:
        with self._reading() as (transaction, row, _):
            found = transaction.by_ids(row, identities) if row else {}
            for identity in identities:
                self._check_purgeable(identity, found.get(identity))
            if row is None:
                return ()
            return survey(transaction, row, [found[identity] for identity in identities])

    def _purge(self, plan: Plan, memory_id: str, if_version: int | None = None) -> MemoryReceipt:
        stored = self._check_purgeable(memory_id, plan.stored(memory_id))
        if stored.ended_by != "purge":
            return plan.purge(stored, if_version=if_version)
        # Erased before, but its bytes may still be there: the scrub that follows is the purge.
        return plan.receipt("purge", stored.record, {"unchanged"})

    def _check_purgeable(self, memory_id: str, stored: Stored | None) -> Stored:
        if stored is None:
            raise NotFound(missing(memory_id, stored))
        if stored.ended_by == "purge" and not self._memory.storage.scrub_pending():
            raise NotFound(missing(memory_id, stored))
        return stored

    def _each(self, memory_ids: Iterable[str | int], step: Step, on_error: OnError) -> BatchResult:
        check_on_error(on_error)
        given = list(memory_ids)
        with self._write_after_queue() as plan:
            results = attempt(
                given, lambda memory_id: step(plan, check_memory_id(memory_id)), on_error
            )
        return BatchResult(results=tuple(results))


def _request(item: object) -> SaveRequest:
    if not isinstance(item, Mapping) or "content" not in item:
        raise InvalidInput('an item is a mapping with "content" and keywords of save')
    return save_request(**item)


def _update_request(item: object) -> UpdateRequest:
    if not isinstance(item, Mapping) or "memory_id" not in item:
        raise InvalidInput('an item is a mapping with "memory_id" and keywords of update')
    rest = {name: value for name, value in item.items() if name != "memory_id"}
    try:
        return update_request(item["memory_id"], **rest)
    except TypeError as error:
        raise InvalidInput(f"{error}; an item takes the keywords of update") from None


def _or_raise(result: Any) -> Any:
    if isinstance(result, ZeroMemError):
        raise result
    return result


def _save_chunk(
    plan: Plan, items: Sequence[object], on_error: OnError, start: int
) -> list[MemoryReceipt | ZeroMemError]:
    requests = attempt(items, _request, on_error, start=start)
    good = [request for request in requests if isinstance(request, SaveRequest)]
    plan.prefetch(
        [request.memory_id for request in good if request.memory_id],
        [(request.kind, f"key:{request.key}") for request in good if request.key],
    )
    return attempt(requests, lambda r: _save_one(plan, _or_raise(r)), on_error, start=start)


def _save_one(plan: Plan, request: SaveRequest) -> MemoryReceipt:
    receipt = plan.save(request)
    if request.task is not None:
        task = plan.redactor.name(request.task)
        renew_task(plan.transaction, plan.row, task, plan.now)
    return receipt


def _renew(plan: Plan, memory_id: str) -> None:
    stored = plan.stored(memory_id)
    if stored is not None and stored.record.task is not None:
        renew_task(plan.transaction, plan.row, stored.record.task, plan.now)
