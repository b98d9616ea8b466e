"""What a write does: from the records as they are to the list of changes, without I/O of its own.

A `Plan` works on one namespace inside one write transaction. It reads records through the
transaction, keeps what it has decided in an overlay (so that the second item of a batch sees
the first), and hands the changes to the store at the end: all of them or none.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from zero_mem.errors import Conflict, LimitReached, NotAllowed, NotFound
from zero_mem.operations.requests import (
    Expiry,
    SaveRequest,
    UpdateRequest,
    canonical,
)
from zero_mem.operations.tasks import open_tasks
from zero_mem.policy.limits import Limits, limits_for
from zero_mem.storage.base import Change, Decision, EndedBy, NamespaceRow, Stored, Transaction
from zero_mem.storage.codec import encode_body, encode_fields
from zero_mem.storage.times import from_micros, to_micros
from zero_mem.types import (
    Body,
    Json,
    MemoryReceipt,
    MemoryRecord,
    Operation,
    State,
    Unset,
    preview,
)

IDEMPOTENCY = "zero-mem:idempotency"
"""The decision scope that maps an idempotency key to the first receipt."""

_ENDINGS: Mapping[str, str] = {
    "expire": "expired",
    "task": "expired with its task",
    "event": "expired by an event",
    "purge": "purged",
}


class Plan:
    """The changes of one operation on one namespace, decided one after the other."""

    def __init__(
        self, transaction: Transaction, row: NamespaceRow, *, now: datetime, actor: str = ""
    ) -> None:
        self.transaction = transaction
        self.row = row
        self.now = now
        self.actor = actor
        self.changes: list[Change] = []
        self._at = max(to_micros(now), row.last_at)
        self._group = row.sequence + 1
        self._records: dict[str, Stored | None] = {}
        self._holders: dict[tuple[str, str], Stored | None] = {}
        self._counts: dict[tuple[str | None, str | None], int] = {}
        self._scanned: dict[tuple[str | None, str | None], dict[str, Stored]] = {}

    def flush(self) -> None:
        """Hand the changes so far to the store, inside the same transaction."""
        if self.changes:
            self.transaction.apply(self.row, self.changes)
            self.changes = []
            self._records.clear()
            self._holders.clear()

    # Reading

    def prefetch(self, ids: Iterable[str], keys: Iterable[tuple[str, str]] = ()) -> None:
        """Read many records at once, so that a batch asks the store twice and not n times."""
        missing = [key for key in dict.fromkeys(ids) if key not in self._records]
        if missing:
            self._records.update(dict.fromkeys(missing))
            self._records.update(self.transaction.by_ids(self.row, missing))
        wanted = [key for key in dict.fromkeys(keys) if key not in self._holders]
        if wanted:
            self._holders.update(dict.fromkeys(wanted))
            for key, stored in self.transaction.by_keys(self.row, wanted).items():
                known = self._records.setdefault(stored.record.memory_id, stored)
                # An earlier step of this plan may have let go of the key.
                if known is not None and known.dedupe == key[1]:
                    self._holders[key] = known

    def stored(self, memory_id: str) -> Stored | None:
        """Read a record in whatever state, as this plan leaves it."""
        self.prefetch([memory_id])
        return self._records[memory_id]

    def holder(self, kind: str, dedupe: str) -> Stored | None:
        """Read the active record that holds a key, expired or not."""
        self.prefetch((), [(kind, dedupe)])
        return self._holders[kind, dedupe]

    def live(self, memory_id: str) -> Stored:
        """Read an active, unexpired record.

        Raises:
            NotFound: There is none; the message says if it expired or was purged.
            NotAllowed: It is archived.
        """
        stored = self.stored(memory_id)
        if stored is None or stored.record.state == "deleted":
            raise NotFound(missing(memory_id, stored))
        if stored.record.state == "archived":
            raise NotAllowed(f"memory {memory_id} is archived; restore it first")
        if stored.record.expired(self.now):
            raise NotFound(f"memory {memory_id} has expired")
        return stored

    def limits(self, record: MemoryRecord) -> Limits:
        """Give the limits of a record's form and kind."""
        return limits_for(self.row.settings, record.form, record.kind)

    # Operations

    def save(self, request: SaveRequest) -> MemoryReceipt:
        """Create a record, or change the active one with this id or key (`op:dedupe-key`)."""
        if request.idempotency_key is not None:
            replayed = self._replayed(request, request.idempotency_key)
            if replayed is not None:
                return replayed
        dedupe = self._dedupe(request)
        current = self._current(request, dedupe)
        if request.if_version != 0 or _is_there(current):
            _check_version(current, request.if_version)
        if current is None or current.record.state != "active":
            receipt = self._create(request, dedupe, current)
        else:
            receipt = self._merge(current, _merging(current, request), request.expiry)
        if request.idempotency_key is not None or request.hold is not None:
            self._remember(request, receipt)
        return receipt

    def update(self, request: UpdateRequest) -> MemoryReceipt:
        """Change what the request names of an active record (`op:merge`)."""
        current = self.live(request.memory_id)
        _check_version(current, request.if_version)
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
        _check_version(current, if_version)
        if not expiry.given:
            self.transaction.accessed(self.row, [memory_id], to_micros(self.now))
            return self.receipt("touch", current.record)
        record = replace(current.record, expires_at=expiry.moment(self.now), accessed_at=self.now)
        self._commit("touch", current, current._replace(record=record, lifetime=expiry.micros))
        return self.receipt("touch", record)

    def archive(self, memory_id: str, *, if_version: int | None, reason: str = "") -> MemoryReceipt:
        """Take a record out of search and recall; its id and handle stay readable."""
        current = self.live(memory_id)
        _check_version(current, if_version)
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
        _check_version(current, if_version)
        if current.record.state == "active":
            self.live(memory_id)
            return self.receipt("restore", current.record, {"unchanged"})
        if current.record.expired(self.now):
            raise NotAllowed(f"memory {memory_id} has expired; save it again, or roll it back")
        return self._activate(current, current, "restore")

    def delete(self, memory_id: str, *, if_version: int | None, reason: str = "") -> MemoryReceipt:
        """Delete a record, active, archived or expired; its history stays."""
        current = self.stored(memory_id)
        if current is None or current.record.state == "deleted":
            raise NotFound(missing(memory_id, current))
        _check_version(current, if_version)
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
            recorded_at=from_micros(self._at),
            expires_at=None if kept else current.record.expires_at,
        )
        lifetime = None if kept else current.lifetime
        after = current._replace(record=record, ended_by=ended_by, lifetime=lifetime)
        self._commit(operation, current, after, reason)
        return self.receipt(operation, record)

    def purge(self, current: Stored, *, if_version: int | None = None) -> MemoryReceipt:
        """Erase a record and every version of it; the journal keeps that it was purged."""
        _check_version(current, if_version)
        self.end(current, "purge", ended_by="purge")
        receipt = self.receipt("purge", self._stub(current))
        self.flush()
        ended = self.transaction.by_ids(self.row, [current.record.memory_id])
        self.transaction.erase(self.row, list(ended.values()))
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
            self._commit("rollback", current, after, reason, content=content.record.content)
            return self.receipt("rollback", record)
        return self._activate(current, target, "rollback", reason)

    # Steps

    def _replayed(self, request: SaveRequest, key: str) -> MemoryReceipt | None:
        found = self.transaction.decision(self.row, IDEMPOTENCY, key)
        if found is None:
            return None
        if found.value is None:
            raise Conflict(f"the memory written under idempotency key {key!r} was purged")
        first = json.loads(found.value)
        if first["request"] != _fingerprint(request):
            raise Conflict(f"idempotency key {key!r} was used for a different request")
        return _receipt_from(first, {"replayed"})

    def _remember(self, request: SaveRequest, receipt: MemoryReceipt) -> None:
        stored = self._records[receipt.memory_id]
        assert stored is not None
        uid = stored.record.uid
        if request.hold is not None:
            self.transaction.hold(self.row, request.hold, uid)
        key = request.idempotency_key
        if key is not None:
            value = json.dumps({"request": _fingerprint(request), **_receipt_fields(receipt)})
            decision = Decision(scope=IDEMPOTENCY, key=key, value=value, uid=uid)
            self.transaction.decide(self.row, decision)

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
            _check_same(by_id, request)
            return by_id
        _check_same(by_key, request)
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
            uid=gone.record.uid if gone else secrets.token_hex(16),
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
            recorded_at=from_micros(self._at),
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
            dedupe=dedupe,
            lifetime=request.expiry.micros,
        )
        self._commit("save", gone, after, content=request.content)
        return self.receipt("save", record)

    def _take_id(self, request: SaveRequest) -> None:
        """Note an id that this plan did not make, so that the generator never gives it."""
        if request.reserved is not None and self.stored(request.reserved) is not None:
            raise Conflict(f"memory id {request.reserved} was taken since it was promised")
        given = request.memory_id
        # The generator never gets as far as longer ones.
        if given is not None and given.isdecimal() and len(given) <= 15:
            self.row.highest_id = max(self.row.highest_id, int(given))

    def new_id(self) -> str:
        """Take the next number that no record of the namespace has or had as its id."""
        while True:
            number, self.row.next_id = self.row.next_id, self.row.next_id + 1
            # Only up to the highest number that a caller took can one be taken already.
            if number > self.row.highest_id or self.stored(str(number)) is None:
                return str(number)

    def _merge(self, current: Stored, target: MemoryRecord, expiry: Expiry) -> MemoryReceipt:
        """Write an update, unless everything is as it should be already."""
        if _same(current, target, expiry):
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
        lifetime = expiry.micros if expiry.given else current.lifetime
        dedupe = self._dedupe_after(current, record)
        after = current._replace(record=record, lifetime=lifetime, dedupe=dedupe)
        self._commit("update", current, after, content=content)
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
            holder = self._unexpired_holder(target.record.kind, target.dedupe)
            if holder is not None and holder.record.memory_id != memory_id:
                raise Conflict(
                    f"memory {memory_id} can't become active: its key belongs to memory "
                    f"{holder.record.memory_id}"
                )
        record = self._next(current, target.record, state="active")
        if current.record.state != "active":
            self._make_room(record)
        after = target._replace(record=record, ended_by="", position=current.position)
        self._commit(operation, current, after, reason, content=target.record.content)
        return self.receipt(operation, record)

    def _next(self, current: Stored, target: MemoryRecord, **fields: Any) -> MemoryRecord:
        """Give `target` as the version after the current one."""
        return replace(
            target,
            version=current.record.version + 1,
            recorded_at=from_micros(self._at),
            accessed_at=current.record.accessed_at,
            access_count=current.record.access_count,
            **fields,
        )

    def _make_room(self, record: MemoryRecord) -> None:
        """Keep to the cap: archive the least used record, or refuse (`limits:overflow`)."""
        limits = self.limits(record)
        if limits.max_memory_items is None or self._count(limits) < limits.max_memory_items:
            return
        scope = limits.cap_kind or limits.cap_form or "the namespace"
        if limits.overflow == "refuse":
            raise LimitReached(
                f"{scope} holds {limits.max_memory_items} memories, its cap; "
                "archive or delete some, or raise max_memory_items"
            )
        victim = self._least_used(limits)
        if victim is None:
            raise LimitReached(
                f"{scope} holds {limits.max_memory_items} memories, its cap, and every one is "
                "held by an open task or conversation; end one, or raise max_memory_items"
            )
        self.end(victim, "archive", reason="overflow")

    def _count(self, limits: Limits) -> int:
        scope = (limits.cap_form, limits.cap_kind)
        if scope not in self._counts:
            stored = self.transaction.count_active(
                self.row, now=to_micros(self.now), form=scope[0], kind=scope[1]
            )
            self._counts[scope] = stored + sum(self._step(scope, c) for c in self.changes)
        return self._counts[scope]

    def _step(self, scope: tuple[str | None, str | None], change: Change) -> int:
        """Tell how a change moves the number of live records of a scope."""
        before = change.before
        lost = before is not None and self._counts_in(scope, before.record)
        return self._counts_in(scope, change.after.record) - lost

    def _counts_in(self, scope: tuple[str | None, str | None], record: MemoryRecord) -> bool:
        form, kind = scope
        in_scope = form in (None, record.form) and kind in (None, record.kind)
        return in_scope and self._is_live(record)

    def _is_live(self, record: MemoryRecord) -> bool:
        return record.state == "active" and not record.expired(self.now)

    def _least_used(self, limits: Limits) -> Stored | None:
        held = self.transaction.held(self.row)
        busy = open_tasks(self.transaction, self.row, self.now)
        scope = (limits.cap_form, limits.cap_kind)
        changed = {key: stored for key, stored in self._records.items() if stored}
        candidates = [
            stored
            for stored in ({**self._active_of(scope), **changed}).values()
            if self._counts_in(scope, stored.record)
            and stored.record.uid not in held
            and stored.record.task not in busy
        ]
        return min(candidates, key=_use, default=None)

    def _active_of(self, scope: tuple[str | None, str | None]) -> dict[str, Stored]:
        """Read the active records of a scope as the store has them, once for a whole batch."""
        if scope not in self._scanned:
            named = zip(("form", "kind"), scope, strict=True)
            equalities = {name: (value,) for name, value in named if value is not None}
            scanned = self.transaction.scan(self.row, {"state": ("active",), **equalities})
            self._scanned[scope] = {stored.record.memory_id: stored for stored in scanned}
        return self._scanned[scope]

    def _commit(
        self,
        operation: Operation,
        before: Stored | None,
        after: Stored,
        reason: str = "",
        *,
        content: Body | None = None,
    ) -> None:
        """Add a change to the plan and to what later steps see."""
        self.row.sequence += 1
        self.row.last_at = self._at
        old = before.record.content if before else None
        parent = before.digest if before else ""
        after = after._replace(sequence=self.row.sequence, parent=parent)
        change = Change(
            operation=operation,
            group=self._group,
            at=self._at,
            actor=self.actor,
            reason=reason,
            before=before,
            after=after,
            body_changed=content is not None and content is not old,
            fields=encode_fields(after),
        )
        self.changes.append(change)
        for scope in self._counts:
            self._counts[scope] += self._step(scope, change)
        self._overlay(before, after)

    def _overlay(self, before: Stored | None, after: Stored) -> None:
        memory_id = after.record.memory_id
        self._records[memory_id] = after
        if before is None and after.dedupe is None:
            return
        for stored in (before, after):
            if stored is not None and stored.dedupe is not None:
                key = (stored.record.kind, stored.dedupe)
                holder = self._holders.get(key)
                if holder is not None and holder.record.memory_id == memory_id:
                    self._holders[key] = None
        if after.dedupe is not None and after.record.state == "active":
            self._holders[after.record.kind, after.dedupe] = after

    def receipt(
        self, operation: Operation, record: MemoryRecord, flags: Iterable[str] = ()
    ) -> MemoryReceipt:
        """Make the receipt of an operation on a record."""
        return MemoryReceipt(
            memory_id=record.memory_id,
            operation=operation,
            version=record.version,
            created_at=self.now,
            preview=preview(record.kind, record.key),
            flags=frozenset(flags),
        )


def expected_id(
    transaction: Transaction, row: NamespaceRow, request: SaveRequest, now: datetime
) -> str | None:
    """Name the record that a save would replay or change by its key, None for a new one."""
    if request.idempotency_key is not None:
        first = transaction.decision(row, IDEMPOTENCY, request.idempotency_key)
        if first is not None and first.value is not None:
            return str(json.loads(first.value)["memory_id"])
    if request.key is None:
        return None
    found = transaction.by_keys(row, [(request.kind, f"key:{request.key}")]).values()
    return next((s.record.memory_id for s in found if not s.record.expired(now)), None)


def derived_key(rule: str | None, content: Body, metadata: Mapping[str, Any]) -> str | None:
    """Derive the unique key of a record that was given none (`dedupe_key` of its limits)."""
    if rule is None:
        return None
    if rule == "content":
        kind, data = encode_body(content)
        return f"content:{hashlib.blake2b(kind.encode() + data, digest_size=16).hexdigest()}"
    value = metadata.get(rule.removeprefix("metadata."))
    return None if value is None else f"{rule}:{canonical(value)}"


def missing(memory_id: str, stored: Stored | None) -> str:
    """Say that a record can't be read; one that never was reads like one deleted."""
    if stored is None or stored.ended_by not in _ENDINGS:
        return f"no memory {memory_id} in this namespace"
    return f"memory {memory_id} is {_ENDINGS[stored.ended_by]}"


def merged(old: Mapping[str, Any], new: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge metadata key by key: None removes a key, and all of them when it is the whole."""
    if new is None:
        return {}
    return {key: value for key, value in {**old, **new}.items() if value is not None}


def same_body(one: Body, other: Body) -> bool:
    """Compare two bodies; JSON numbers of different type differ."""
    if isinstance(one, Json) and isinstance(other, Json):
        return canonical(one.value) == canonical(other.value)
    return one == other


def _merging(current: Stored, request: SaveRequest) -> MemoryRecord:
    record = current.record
    return replace(
        record,
        content=request.content,
        metadata=merged(record.metadata, request.metadata or {}),
        tags=record.tags if request.tags is None else request.tags,
        task=request.task or record.task,
        session=request.session or record.session,
        speaker=request.speaker or record.speaker,
        source=request.source,
        invalidated_by=request.invalidated_by or record.invalidated_by,
    )


def _same(current: Stored, target: MemoryRecord, expiry: Expiry) -> bool:
    record = current.record
    return (
        same_body(record.content, target.content)
        and canonical(record.metadata) == canonical(target.metadata)
        and _scalars(record) == _scalars(target)
        and _same_expiry(current, expiry)
    )


def _scalars(record: MemoryRecord) -> tuple[object, ...]:
    return (
        record.tags,
        record.task,
        record.session,
        record.speaker,
        record.invalidated_by,
    )


def _same_expiry(current: Stored, expiry: Expiry) -> bool:
    if not expiry.given:
        return True
    if expiry.lifetime is not None:
        return current.lifetime == expiry.micros
    return current.lifetime is None and current.record.expires_at == expiry.at


def _check_version(current: Stored | None, expected: int | None) -> None:
    if expected is None:
        return
    version = current.record.version if current else 0
    if version != expected:
        memory_id = current.record.memory_id if current else "(none)"
        raise Conflict(
            f"memory {memory_id} is at version {version}, not {expected}; "
            "read it again and decide anew"
        )


def _is_there(current: Stored | None) -> bool:
    return current is not None and current.record.state != "deleted"


def _check_same(stored: Stored | None, request: SaveRequest) -> None:
    """Refuse a save that would change what a record is, rather than what it says."""
    if stored is None or stored.record.state != "active":
        return
    record = stored.record
    if request.kind_given and request.kind != record.kind:
        raise Conflict(
            f"memory {record.memory_id} is of kind {record.kind}, not {request.kind}; "
            "update it, or save under another id"
        )
    if request.form_given and request.form != record.form:
        raise Conflict(f"memory {record.memory_id} has the form {record.form}, not {request.form}")
    if request.key is not None and request.key != record.key:
        raise Conflict(f"memory {record.memory_id} does not have the key {request.key!r}")


def _use(stored: Stored) -> tuple[datetime, int, int]:
    """Order records by last use, then by how often they were recalled, then by age."""
    record = stored.record
    last = max(record.updated_at, record.accessed_at)
    return last, record.access_count, stored.position


def _fingerprint(request: SaveRequest) -> str:
    kind, data = encode_body(request.content)
    rest = request._replace(
        content="", idempotency_key=None, if_version=None, hold=None, reserved=None
    )
    digest = hashlib.blake2b(repr(rest).encode("utf-8", "surrogatepass"), digest_size=16)
    digest.update(kind.encode() + data)
    return digest.hexdigest()


def _receipt_fields(receipt: MemoryReceipt) -> dict[str, Any]:
    return {
        "memory_id": receipt.memory_id,
        "operation": receipt.operation,
        "version": receipt.version,
        "created_at": to_micros(receipt.created_at),
        "preview": receipt.preview,
        "flags": sorted(receipt.flags),
    }


def _receipt_from(fields: Mapping[str, Any], flags: set[str]) -> MemoryReceipt:
    return MemoryReceipt(
        memory_id=fields["memory_id"],
        operation=fields["operation"],
        version=fields["version"],
        created_at=from_micros(fields["created_at"]),
        preview=fields["preview"],
        flags=frozenset(fields["flags"]) | flags,
    )


def retention_end(record: MemoryRecord, limits: Limits) -> datetime | None:
    """Give the moment from which a record is to be archived, None for never."""
    if limits.retention_days is None:
        return None
    return max(record.updated_at, record.accessed_at) + timedelta(days=limits.retention_days)
