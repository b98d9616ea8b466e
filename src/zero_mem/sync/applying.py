"""What one entry of another store does to the record it is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from zero_mem.errors import NotAllowed
from zero_mem.operations import idempotency
from zero_mem.operations.plan import Plan
from zero_mem.operations.requests import canonical
from zero_mem.operations.rules import same_body
from zero_mem.redaction import NAMES
from zero_mem.storage.base import Stored
from zero_mem.storage.times import from_micros
from zero_mem.sync.causality import Cause
from zero_mem.sync.messages import Entry
from zero_mem.sync.reports import Displaced, Received, SyncConflict
from zero_mem.sync.state import Mark, Naming, SyncState
from zero_mem.types import MemoryRecord, Operation

_SETTLED: dict[str, Operation] = {"active": "update", "archived": "archive", "deleted": "delete"}


class Applying:
    """Applies the entries of one message to a plan.

    Args:
        plan: The changes of the namespace; its actor is who makes those of the exchange's own.
        state: The exchange's notes on the namespace.
        sender: The origin of the store that the entries came from.
        report: Where it is counted what became of them.
    """

    def __init__(self, plan: Plan, state: SyncState, sender: str, report: Received) -> None:
        self._plan = plan
        self._state = state
        self._sender = sender
        self._report = report
        self._actor = plan.actor
        self._group = 0
        self._owed = state.owed()

    def prefetch(self, entries: Iterable[Entry]) -> None:
        """Read at once what most entries will ask for one by one."""
        homes, keys = [], []
        for entry in entries:
            naming = self._state.naming(entry.uid)
            homes.append(naming.memory_id if naming else entry.home)
            if entry.record is not None and (key := _held(entry.record)):
                keys.append(key)
        self._plan.prefetch(homes, keys)

    def take(self, entry: Entry) -> None:
        """Apply an entry, or find that it is known."""
        self._report.entries += 1
        if entry.group != self._group:
            self._plan.begin()
            self._group = entry.group
        stored = self._find(entry.uid, entry.home)
        if self._is_gone(entry, stored):
            self._report.known += 1
        elif entry.record is None or entry.cause is None:
            self._purge(entry, stored)
        elif stored is None:
            self._create(entry, entry.record, entry.cause)
        else:
            self._change(entry, entry.record, entry.cause, stored)

    def pay_owed(self) -> None:
        """Do the purges that an earlier caller had no right to, where this one has it."""
        for uid, home in list(self._owed.items()):
            stored = self._find(uid, home)
            if stored is not None and self._may_erase():
                self._plan.purge(stored)
                self._report.purged += 1
                self._state.paid(uid)
                del self._owed[uid]

    def _is_gone(self, entry: Entry, stored: Stored | None) -> bool:
        """Tell whether the record was purged here: nothing brings it back."""
        if stored is not None and stored.ended_by == "purge":
            return True
        return entry.uid in self._owed

    # Finding

    def _find(self, uid: str, home: str) -> Stored | None:
        """Find a record: by the id it was given here, or else by the one it has at home."""
        naming = self._state.naming(uid)
        stored = self._plan.stored(naming.memory_id if naming else home)
        return stored if stored is not None and stored.record.uid == uid else None

    def _name(self, uid: str, home: str) -> str:
        """Give a new record its id from home, or a new one where that is taken."""
        plan = self._plan
        if plan.stored(home) is None and not plan.redactor.kinds(home):
            if home.isdecimal() and len(home) <= 15:
                plan.row.highest_id = max(plan.row.highest_id, int(home))
            return home
        memory_id = plan.new_id()
        self._state.rename(uid, Naming(memory_id, home))
        self._report.renumbered[plan.row.path, uid] = memory_id
        return memory_id

    # Changing

    def _create(self, entry: Entry, sent: Stored, cause: Cause) -> None:
        memory_id = self._name(entry.uid, entry.home)
        record = replace(sent.record, memory_id=memory_id)
        after = sent._replace(record=record, position=self._plan.row.new_position(), parent="")
        self._report.created += 1
        self._write(entry, None, after, cause)

    def _change(self, entry: Entry, sent: Stored, theirs: Cause, stored: Stored) -> None:
        mine = self._state.of(stored)
        if mine.covers(theirs):
            self._report.known += 1
        elif theirs.covers(mine):
            self._write(entry, stored, _onto(stored, sent.record, sent), theirs)
        else:
            self._settle(entry, sent, theirs, stored, mine)

    def _settle(
        self, entry: Entry, sent: Stored, theirs: Cause, stored: Stored, mine: Cause
    ) -> None:
        """Settle what both sides changed: the later one stays, the other is in the history."""
        cause = mine.joined(theirs)
        sent = self._clean(sent)
        lost = stored if theirs.stamp > mine.stamp else sent
        if lost is stored:
            record = replace(sent.record, version=cause.version)
            self._write(entry, stored, _onto(stored, record, sent), cause)
        else:
            self._keep(entry, stored, sent, theirs, cause)
        if _alike(stored, sent):
            self._report.agreed += 1
            return
        conflict = SyncConflict(
            namespace=self._plan.row.path,
            memory_id=stored.record.memory_id,
            uid=entry.uid,
            version=cause.version,
            lost_version=lost.record.version,
            kept_from=cause.stamp.store,
        )
        self._report.conflicts.append(conflict)

    def _keep(
        self, entry: Entry, stored: Stored, sent: Stored, theirs: Cause, cause: Cause
    ) -> None:
        """Journal the version that lost, and then again the one that stays."""
        self._commit(entry, stored, _onto(stored, sent.record, sent), theirs)
        lost = self._plan.stored(stored.record.memory_id)
        record = replace(stored.record, version=cause.version)
        self._commit(
            entry, lost, stored._replace(record=record), cause, _SETTLED[stored.record.state]
        )
        # What the plan knows of keys is of the version that lost.
        self._plan.flush()

    def _write(self, entry: Entry, before: Stored | None, after: Stored, cause: Cause) -> None:
        """Write a version, and see to it that one active record at most holds its key."""
        after = self._clean(after)
        holder = self._holder(before, after)
        expired = after.record.expired(self._plan.now)
        wins = holder is not None and not expired and self._later(cause, holder)
        if holder is not None and wins:
            self._displace(holder, after.record.memory_id)
        if before is not None:
            before = self._plan.stored(before.record.memory_id)
        self._commit(entry, before, after, cause)
        if holder is not None and not wins:
            written = self._plan.stored(after.record.memory_id)
            assert written is not None
            self._displace(written, holder.record.memory_id)

    def _holder(self, before: Stored | None, after: Stored) -> Stored | None:
        """Find the other active record that has the key which a version needs."""
        if after.dedupe is None or after.record.state != "active":
            return None
        if before is not None and _held(before) != _held(after):
            # A store writes updates in its own order: who let go of the key goes first.
            self._plan.flush()
        holder = self._plan.holder(after.record.kind, after.dedupe)
        if holder is None or holder.record.memory_id == after.record.memory_id:
            return None
        return holder if holder.record.state == "active" else None

    def _later(self, cause: Cause, holder: Stored) -> bool:
        expired = holder.record.expired(self._plan.now)
        return expired or cause.stamp > self._state.of(holder).stamp

    def _displace(self, loser: Stored, holder: str) -> None:
        """End the record that a key does not belong to any more: a change of this store's own."""
        plan, record = self._plan, loser.record
        plan.actor, plan.origin = self._actor, ""
        if record.expired(plan.now):
            plan.end(loser, "expire", ended_by="expire", reason="expired")
        else:
            plan.end(loser, "archive", reason=f"sync: its key belongs to memory {holder}")
            displaced = Displaced(
                namespace=plan.row.path, memory_id=record.memory_id, holder=holder
            )
            self._report.displaced.append(displaced)
        plan.flush()

    def _commit(
        self,
        entry: Entry,
        before: Stored | None,
        after: Stored,
        cause: Cause,
        settled: Operation | None = None,
    ) -> None:
        plan = self._plan
        ours = settled is not None
        plan.actor = self._actor if ours else entry.actor
        plan.origin = "" if ours else cause.stamp.store
        reason = f"sync: kept over what store {self._sender} had" if ours else entry.reason
        content = after.record.content
        if before is None:
            after = after._replace(sequence=plan.row.sequence + 1)
        if before is not None and same_body(content, before.record.content):
            content = before.record.content
            after = after._replace(record=replace(after.record, content=content))
        plan.commit(settled or entry.operation, before, after, reason, content=content)
        plan.actor, plan.origin = self._actor, ""
        self._state.put(entry.uid, Mark(plan.row.sequence, cause, self._sender))
        self._report.applied += 1

    # Taking out

    def _clean(self, stored: Stored) -> Stored:
        """Take out what this store's own rules forbid to keep."""
        redactor, record = self._plan.redactor, stored.record
        changes: dict[str, Any] = {}
        for name in NAMES:
            old = getattr(record, name)
            if old is not None and (new := redactor.name(old)) is not old:
                changes[name] = new
        body, metadata = redactor.body(record.content), redactor.value(record.metadata)
        tags = tuple(filter(None, map(redactor.text, record.tags)))
        if body is not record.content:
            changes["content"] = body
        if metadata is not record.metadata:
            changes["metadata"] = metadata
        if tags != record.tags:
            changes["tags"] = tags
        if not changes:
            return stored
        self._report.redacted += 1
        dedupe = f"key:{changes['key']}" if "key" in changes else stored.dedupe
        return stored._replace(record=replace(record, **changes), dedupe=dedupe)

    # Erasing

    def _purge(self, entry: Entry, stored: Stored | None) -> None:
        if not self._may_erase():
            self._report.refused.append(entry.uid)
            self._state.owe(entry.uid, entry.home)
            self._owed[entry.uid] = entry.home
            return
        self._plan.actor, self._plan.origin = entry.actor, self._sender
        if stored is None:
            self._bury(entry)
        else:
            self._plan.purge(stored)
        self._plan.actor, self._plan.origin = self._actor, ""
        self._report.purged += 1
        self._report.applied += 1

    def _may_erase(self) -> bool:
        try:
            self._plan.transaction.erase(self._plan.row, (), nameless=idempotency.IDEMPOTENCY)
        except NotAllowed:
            return False
        return True

    def _bury(self, entry: Entry) -> None:
        """Make the tombstone of a record that was never here, so that it can't come later."""
        plan, at = self._plan, from_micros(entry.at)
        memory_id = self._name(entry.uid, entry.home)
        record = MemoryRecord(
            uid=entry.uid,
            memory_id=memory_id,
            namespace=plan.row.path,
            form="semantic",
            kind="purged",
            key=None,
            content="",
            created_at=at,
            recorded_at=at,
            updated_at=at,
            accessed_at=at,
            version=entry.version,
            state="deleted",
        )
        position, sequence = plan.row.new_position(), plan.row.sequence + 1
        after = Stored(record=record, position=position, sequence=sequence, ended_by="purge")
        plan.commit("purge", None, after, content="")
        plan.flush()
        buried = plan.transaction.by_ids(plan.row, [memory_id])
        plan.transaction.erase(plan.row, list(buried.values()), nameless=idempotency.IDEMPOTENCY)


def _onto(stored: Stored, record: MemoryRecord, sent: Stored) -> Stored:
    """Give a record that was sent as the next version of the one that is here."""
    here = stored.record
    return stored._replace(
        record=replace(
            record,
            memory_id=here.memory_id,
            accessed_at=here.accessed_at,
            access_count=here.access_count,
        ),
        dedupe=sent.dedupe,
        lifetime=sent.lifetime,
        ended_by=sent.ended_by,
    )


def _held(stored: Stored) -> tuple[str, str] | None:
    """Give the key that a version holds, None where it holds none."""
    active = stored.record.state == "active"
    return (stored.record.kind, stored.dedupe) if stored.dedupe and active else None


def _alike(one: Stored, other: Stored) -> bool:
    """Tell whether two versions differ only in when they were made and how often."""
    ours, theirs = one.record, other.record
    target = replace(
        theirs,
        memory_id=ours.memory_id,
        content=ours.content,
        metadata=ours.metadata,
        recorded_at=ours.recorded_at,
        updated_at=ours.updated_at,
        accessed_at=ours.accessed_at,
        access_count=ours.access_count,
        version=ours.version,
    )
    return (
        target == ours
        and same_body(theirs.content, ours.content)
        and canonical(theirs.metadata) == canonical(ours.metadata)
    )
