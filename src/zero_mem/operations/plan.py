"""What a write does: from the records as they are to the list of changes, without I/O of its own.

A `Plan` works on one namespace inside one write transaction. It reads records through the
transaction, keeps what it has decided in an overlay (so that the second item of a batch sees
the first), and hands the changes to the store at the end: all of them or none.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from zero_mem.errors import Conflict, LimitReached, NotAllowed, NotFound
from zero_mem.operations import idempotency
from zero_mem.operations.draft import Draft
from zero_mem.operations.redacted import masked, redacted_save, redacted_update
from zero_mem.operations.requests import Expiry, SaveRequest, UpdateRequest
from zero_mem.operations.rules import (
    check_same,
    check_version,
    derived_key,
    is_there,
    merged,
    merging,
    missing,
    same,
    same_body,
)
from zero_mem.operations.sizes import size
from zero_mem.policy.limits import Limits, limits_for
from zero_mem.storage.base import EndedBy, Stored
from zero_mem.storage.codec import encode_body
from zero_mem.storage.times import to_micros
from zero_mem.types import MemoryReceipt, MemoryRecord, Operation, State, Unset


class Plan(Draft):
    """The changes of one operation on one namespace, decided one after the other."""

    # Operations

    def save(self, request: SaveRequest) -> MemoryReceipt:
        """Create a record, or change the active one with this id or key (`op:dedupe-key`).

        Secrets are taken out before anything else is looked at; the receipt says so.
        """
        clean = redacted_save(request, self.redactor)
        receipt = self._save(clean)
        return receipt if clean is request else masked(receipt)

    def _save(self, request: SaveRequest) -> MemoryReceipt:
        if request.idempotency_key is not None:
            key = request.idempotency_key
            first = idempotency.first_receipt(self.transaction, self.row, request, key)
            if first is not None:
                return first
        dedupe = self._dedupe(request)
        current = self._current(request, dedupe)
        if request.if_version != 0 or is_there(current):
            check_version(current, request.if_version)
        if current is None or current.record.state == "deleted" or self._is_gone(current):
            receipt = self._create(request, dedupe, current)
        elif current.record.state == "archived":
            receipt = self._revive(current, request)
        else:
            receipt = self._merge(current, merging(current, request), request.expiry)
        if request.idempotency_key is not None or request.hold is not None:
            self._note(request, receipt)
        return receipt

    def update(self, request: UpdateRequest) -> MemoryReceipt:
        """Change what the request names of an active record (`op:merge`)."""
        clean = redacted_update(request, self.redactor)
        receipt = self._update(clean)
        return receipt if clean is request else masked(receipt)

    def _update(self, request: UpdateRequest) -> MemoryReceipt:
        current = self.live(request.memory_id)
        check_version(current, request.if_version)
        record = current.record
        metadata = record.metadata
        if not isinstance(request.metadata, Unset):
            metadata = merged(record.metadata, request.metadata)
        target = replace(
            record,
            content=record.content if isinstance(request.content, Unset) else request.content,
            metadata=metadata,
            tags=record.tags if isinstance(request.tags, Unset) else request.tags,
            source=request.source or record.source,
        )
        return self._merge(current, target, request.expiry)

    def touch(self, memory_id: str, expiry: Expiry, if_version: int | None = None) -> MemoryReceipt:
        """Mark a record as used and, when a duration is given, move its expiry (`op:touch`)."""
        current = self.live(memory_id)
        check_version(current, if_version)
        if not expiry.given:
            self.transaction.accessed(self.row, [memory_id], to_micros(self.now))
            return self.receipt("touch", current.record)
        record = replace(current.record, expires_at=expiry.moment(self.now), accessed_at=self.now)
        self.commit("touch", current, current._replace(record=record, lifetime=expiry.micros))
        return self.receipt("touch", record)

    def archive(self, memory_id: str, *, if_version: int | None, reason: str = "") -> MemoryReceipt:
        """Take a record out of search and recall; its id and handle stay readable."""
        current = self.live(memory_id)
        check_version(current, if_version)
        return self.end(current, "archive", reason=reason)

    def restore(self, memory_id: str, *, if_version: int | None) -> MemoryReceipt:
        """Make an archived or deleted record active again.

        Raises:
            Conflict: Another active record holds its key.
            NotAllowed: It is past its expiry.
        """
        current = self.stored(memory_id)
        if current is None or current.ended_by == "purge":
            raise NotFound(missing(memory_id, current))
        check_version(current, if_version)
        if current.record.state == "active":
            self.live(memory_id)
            return self.receipt("restore", current.record, {"unchanged"})
        if current.record.expired(self.now):
            raise NotAllowed(f"memory {memory_id} has expired; save it again")
        return self._activate(current, current, "restore")

    def delete(self, memory_id: str, *, if_version: int | None, reason: str = "") -> MemoryReceipt:
        """Delete a record, active, archived or expired; its history stays."""
        current = self.stored(memory_id)
        if current is None or current.record.state == "deleted":
            raise NotFound(missing(memory_id, current))
        check_version(current, if_version)
        return self.end(current, "delete", ended_by="delete", reason=reason)

    def end(
        self,
        current: Stored,
        operation: Operation,
        *,
        ended_by: EndedBy = "",
        reason: str = "",
    ) -> MemoryReceipt:
        """Archive a record, or delete it for the reason given by `ended_by`."""
        state: State = "archived" if operation == "archive" else "deleted"
        # An expiry that ends in the archive has done its work: the record stays readable there.
        kept = state == "archived" and current.record.expired(self.now)
        record = replace(
            current.record,
            state=state,
            version=current.record.version + 1,
            recorded_at=self.moment,
            expires_at=None if kept else current.record.expires_at,
        )
        lifetime = None if kept else current.lifetime
        after = current._replace(record=record, ended_by=ended_by, lifetime=lifetime)
        self.commit(operation, current, after, reason)
        return self.receipt(operation, record)

    def purge(self, current: Stored, *, if_version: int | None = None) -> MemoryReceipt:
        """Erase a record and every version of it; the journal keeps that it was purged."""
        check_version(current, if_version)
        self.end(current, "purge", ended_by="purge")
        receipt = self.receipt("purge", self._stub(current))
        self.flush()
        ended = self.transaction.by_ids(self.row, [current.record.memory_id])
        self.transaction.erase(self.row, list(ended.values()), nameless=idempotency.IDEMPOTENCY)
        return receipt

    def _stub(self, current: Stored) -> MemoryRecord:
        """Give what a receipt may say of a purged record: neither its kind nor its key."""
        version = current.record.version + 1
        return replace(current.record, kind="purged", key=None, version=version)

    def roll_back(self, current: Stored, target: Stored | None, reason: str) -> MemoryReceipt:
        """Bring a record to what it was at an earlier version; None: it did not exist."""
        if target is None or target.record.state != "active":
            state: State = "deleted" if target is None else target.record.state
            ended: EndedBy = "rollback" if target is None else target.ended_by
            content = current if target is None else target
            record = self._next(current, content.record, state=state)
            after = content._replace(record=record, ended_by=ended, position=current.position)
            self.commit("rollback", current, after, reason, content=content.record.content)
            return self.receipt("rollback", record)
        return self._activate(current, target, "rollback", reason)

    # Steps

    def _note(self, request: SaveRequest, receipt: MemoryReceipt) -> None:
        """Keep what a caller wants to be kept with the record: a hold, an idempotency key."""
        stored = self.stored(receipt.memory_id)
        assert stored is not None
        uid = stored.record.uid
        if request.hold is not None:
            self.transaction.hold(self.row, request.hold, uid)
        idempotency.remember(self.transaction, self.row, request, receipt, uid)

    def _dedupe(self, request: SaveRequest) -> str | None:
        if request.key is not None:
            return f"key:{request.key}"
        rule = limits_for(self.row.settings, request.form, request.kind).dedupe_key
        return derived_key(rule, request.content, request.metadata or {})

    def _current(self, request: SaveRequest, dedupe: str | None) -> Stored | None:
        """Find the record that a save is about; one that has expired ends here."""
        by_key = None if dedupe is None else self.holder(request.kind, dedupe)
        by_id = None if request.memory_id is None else self.stored(request.memory_id)
        if by_id is not None and by_id.ended_by == "purge":
            raise Conflict(f"memory id {request.memory_id} was purged and is never used again")
        by_key = self._unexpired(by_key)
        by_id = self._unexpired(by_id)
        if by_key is None or by_key.record.state != "active":
            check_same(by_id, request)
            return by_id
        check_same(by_key, request)
        if request.memory_id not in (None, by_key.record.memory_id):
            raise Conflict(
                f"the key {request.key!r} of kind {request.kind} belongs to memory "
                f"{by_key.record.memory_id}, not {request.memory_id}"
            )
        return by_key

    def _unexpired(self, stored: Stored | None) -> Stored | None:
        if stored is None or stored.record.state != "active":
            return stored
        if not stored.record.expired(self.now):
            return stored
        self.end(stored, "expire", ended_by="expire", reason="expired")
        return self._records[stored.record.memory_id]

    def _is_gone(self, stored: Stored) -> bool:
        return stored.record.state == "archived" and stored.record.expired(self.now)

    def _revive(self, current: Stored, request: SaveRequest) -> MemoryReceipt:
        """Save onto an archived record: it is active again, with what the save changes."""
        record = replace(merging(current, request), updated_at=self.now)
        lifetime = current.lifetime
        if request.expiry.given:
            record = replace(record, expires_at=request.expiry.moment(self.now))
            lifetime = request.expiry.micros
        return self._activate(current, current._replace(record=record, lifetime=lifetime), "save")

    def _create(
        self, request: SaveRequest, dedupe: str | None, gone: Stored | None
    ) -> MemoryReceipt:
        """Make a new record, or a new life of one that had ended under the same id."""
        if gone is not None and request.memory_id is None:
            gone = None
        memory_id = request.memory_id or request.reserved or self.new_id()
        if gone is None:
            self._take_id(request)
        now = self.now
        record = MemoryRecord(
            uid=gone.record.uid if gone else os.urandom(16).hex(),
            memory_id=memory_id,
            namespace=self.row.path,
            form=request.form,
            kind=request.kind,
            key=request.key,
            content=request.content,
            metadata=merged({}, request.metadata) if request.metadata else {},
            tags=request.tags or (),
            task=request.task,
            session=request.session,
            speaker=request.speaker,
            source=request.source,
            created_at=request.created_at or now,
            recorded_at=self.moment,
            updated_at=now,
            accessed_at=now,
            expires_at=request.expiry.moment(now),
            invalidated_by=request.invalidated_by or (),
            version=gone.record.version + 1 if gone else 1,
        )
        self._make_room(record)
        after = Stored(
            record=record,
            position=gone.position if gone else self.row.new_position(),
            sequence=self.row.sequence + 1,
            dedupe=dedupe,
            lifetime=request.expiry.micros,
        )
        self.commit("save", gone, after, content=request.content)
        return self.receipt("save", record)

    def _take_id(self, request: SaveRequest) -> None:
        """Note an id that this plan did not make, so that the generator never gives it."""
        if request.reserved is not None and self.stored(request.reserved) is not None:
            raise Conflict(f"memory id {request.reserved} was taken since it was promised")
        given = request.memory_id
        # The generator never gets as far as longer ones.
        if given is not None and given.isdecimal() and len(given) <= 15:
            self.row.highest_id = max(self.row.highest_id, int(given))

    def _merge(self, current: Stored, target: MemoryRecord, expiry: Expiry) -> MemoryReceipt:
        """Write an update, unless everything is as it should be already."""
        if same(current, target, expiry):
            if expiry.lifetime is not None:
                self.touch(current.record.memory_id, expiry)
            return self.receipt("update", current.record, {"unchanged"})
        content = target.content
        if same_body(content, current.record.content):
            content = current.record.content
        record = replace(
            self._next(current, target),
            content=content,
            expires_at=expiry.moment(self.now) if expiry.given else target.expires_at,
            updated_at=self.now,
        )
        limits = self.limits(record)
        if limits.max_bytes is not None:
            grown = len(encode_body(content)[1]) - size(current)
            self._make_space(record, limits, grown)
        lifetime = expiry.micros if expiry.given else current.lifetime
        dedupe = self._dedupe_after(current, record)
        after = current._replace(record=record, lifetime=lifetime, dedupe=dedupe)
        self.commit("update", current, after, content=content)
        return self.receipt("update", record)

    def _dedupe_after(self, current: Stored, record: MemoryRecord) -> str | None:
        """Let a derived key follow what it was derived from, unless that key is taken."""
        if record.key is not None:
            return current.dedupe
        rule = self.limits(record).dedupe_key
        dedupe = derived_key(rule, record.content, record.metadata)
        if dedupe is None or dedupe == current.dedupe:
            return dedupe
        return dedupe if self._unexpired_holder(record.kind, dedupe) is None else None

    def _unexpired_holder(self, kind: str, dedupe: str) -> Stored | None:
        holder = self._unexpired(self.holder(kind, dedupe))
        return holder if holder is not None and holder.record.state == "active" else None

    def _activate(
        self, current: Stored, target: Stored, operation: Operation, reason: str = ""
    ) -> MemoryReceipt:
        memory_id = current.record.memory_id
        if target.dedupe is not None:
            key = (target.record.kind, target.dedupe)
            holder = self.holder(*key)
            # Its own expired life is no rival, and must not end under this change.
            if holder is not None and holder.record.memory_id != memory_id:
                holder = self._unexpired_holder(*key)
                if holder is not None:
                    raise Conflict(
                        f"memory {memory_id} can't become active: its key belongs to memory "
                        f"{holder.record.memory_id}"
                    )
        record = self._next(current, target.record, state="active")
        if current.record.state != "active":
            self._make_room(record)
        after = target._replace(record=record, ended_by="", position=current.position)
        self.commit(operation, current, after, reason, content=target.record.content)
        return self.receipt(operation, record)

    def _next(self, current: Stored, target: MemoryRecord, **fields: Any) -> MemoryRecord:
        """Give `target` as the version after the current one."""
        return replace(
            target,
            version=current.record.version + 1,
            recorded_at=self.moment,
            accessed_at=current.record.accessed_at,
            access_count=current.record.access_count,
            **fields,
        )

    def _make_room(self, record: MemoryRecord) -> None:
        """Keep to the caps: archive the least used record, or refuse (`limits:overflow`)."""
        limits = self.limits(record)
        if limits.max_bytes is not None:
            self._make_space(record, limits, len(encode_body(record.content)[1]))
        if limits.max_memory_items is None or self.count(limits) < limits.max_memory_items:
            return
        scope = limits.cap_kind or limits.cap_form or "the namespace"
        if limits.overflow == "refuse":
            raise LimitReached(
                f"{scope} holds {limits.max_memory_items} memories, its cap; "
                "archive or delete some, or raise max_memory_items"
            )
        victim = self.least_used((limits.cap_form, limits.cap_kind))
        if victim is None:
            raise LimitReached(
                f"{scope} holds {limits.max_memory_items} memories, its cap, and every one is "
                "held by an open task or conversation; end one, or raise max_memory_items"
            )
        self.end(victim, "archive", reason="overflow")

    def _make_space(self, record: MemoryRecord, limits: Limits, more: int) -> None:
        """Keep to the cap on bytes when a record is to need so many more."""
        most = limits.max_bytes
        while most is not None and more > 0 and self.bytes_used() + more > most:
            victim = None
            if limits.overflow == "archive" and more <= most:
                victim = self.least_used((None, None), but=record.uid)
            if victim is None:
                raise LimitReached(
                    f"the namespace holds {self.bytes_used()} bytes and {more} more are beyond its "
                    f"cap of {most}; archive or delete some, or raise max_bytes"
                )
            self.end(victim, "archive", reason="overflow")
