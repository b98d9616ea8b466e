"""A namespace as one write transaction would leave it: read, decided, counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from zero_mem.errors import NotAllowed, NotFound
from zero_mem.operations.rules import missing
from zero_mem.operations.sizes import Sizes, size
from zero_mem.operations.tasks import open_tasks
from zero_mem.policy.limits import Limits, limits_for
from zero_mem.redaction import Redactors, of_namespace
from zero_mem.storage.base import Change, NamespaceRow, Stored, Transaction
from zero_mem.storage.codec import encode_fields, last_use
from zero_mem.storage.times import from_micros, to_micros
from zero_mem.types import Body, MemoryReceipt, MemoryRecord, Operation, preview

if TYPE_CHECKING:
    from zero_mem.redaction.redactor import Redactor


class Draft:
    """The records of a namespace as the changes so far would leave them.

    Reads go through the transaction and are kept, so that a later step sees an earlier one.
    """

    def __init__(
        self,
        transaction: Transaction,
        row: NamespaceRow,
        *,
        now: datetime,
        actor: str = "",
        redactors: Redactors,
        sizes: Sizes,
    ) -> None:
        self.transaction = transaction
        self.row = row
        self.now = now
        self.actor = actor
        self._redactors = redactors
        self._sizes = sizes
        self._bytes: int | None = None
        self.changes: list[Change] = []
        self.written: list[Operation] = []
        self._at = max(to_micros(now), row.last_at)
        self._group = row.sequence + 1
        self._records: dict[str, Stored | None] = {}
        self._holders: dict[tuple[str, str], Stored | None] = {}
        self._counts: dict[tuple[str | None, str | None], int] = {}

    @cached_property
    def redactor(self) -> Redactor:
        """What takes secrets out before anything is stored, by the settings at the beginning."""
        return self._redactors.of(of_namespace(self.row.settings))

    @cached_property
    def moment(self) -> datetime:
        """The time at which the plan's changes are recorded: the clock's, but never going back."""
        return from_micros(self._at)

    def flush(self) -> None:
        """Hand the changes so far to the store, inside the same transaction."""
        if self.changes:
            self.transaction.apply(self.row, self.changes)
            self.written += [change.operation for change in self.changes]
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

    def new_id(self) -> str:
        """Take the next number that no record of the namespace has or had as its id."""
        while True:
            number, self.row.next_id = self.row.next_id, self.row.next_id + 1
            # Only up to the highest number that a caller took can one be taken already.
            if number > self.row.highest_id or self.stored(str(number)) is None:
                return str(number)

    def count(self, limits: Limits) -> int:
        """Count the live records that a cap counts."""
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

    def bytes_used(self) -> int:
        """Count the bytes of the namespace's active bodies, as the changes so far leave them."""
        if self._bytes is None:
            stored = self._sizes.count(self.transaction, self.row, self._group - 1)
            self._bytes = stored + sum(size(c.after) - size(c.before) for c in self.changes)
        return self._bytes

    def keep_size(self) -> None:
        """Note the bytes that the plan has left, once it is written."""
        if self._bytes is not None:
            self._sizes.keep(self.row.path, self.row.sequence, self._bytes)

    def least_used(self, scope: tuple[str | None, str | None], *, but: str = "") -> Stored | None:
        """Find what a cap evicts first: nothing that an open task or an owner holds.

        Args:
            scope: The form and kind that the cap counts.
            but: The uid of a record that stays.
        """
        held = self.transaction.held(self.row)
        busy = open_tasks(self.transaction, self.row, self.now)

        def evictable(stored: Stored) -> bool:
            record = stored.record
            return (
                self._counts_in(scope, record)
                and record.uid != but
                and record.uid not in held
                and record.task not in busy
            )

        changed = [stored for stored in self._records.values() if stored and evictable(stored)]
        unchanged = next((s for s in self._unchanged(scope) if evictable(s)), None)
        candidates = [*changed, unchanged] if unchanged else changed
        return min(candidates, key=last_use, default=None)

    def _unchanged(self, scope: tuple[str | None, str | None]) -> Iterator[Stored]:
        """Read the records that no step has changed, the least used first."""
        found = self.transaction.by_use(self.row, form=scope[0], kind=scope[1])
        return (stored for stored in found if stored.record.memory_id not in self._records)

    def commit(
        self,
        operation: Operation,
        before: Stored | None,
        after: Stored,
        reason: str = "",
        *,
        content: Body | None = None,
    ) -> None:
        """Add a change to the plan and to what later steps see."""
        reason = self.redactor.text(reason) if reason else ""
        self.row.sequence += 1
        self.row.last_at = self._at
        old = before.record.content if before else None
        if before is not None:
            after = after._replace(sequence=self.row.sequence, parent=before.digest)
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
        if self._bytes is not None:
            self._bytes += size(after) - size(before)
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
