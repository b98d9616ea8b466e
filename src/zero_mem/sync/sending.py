"""The sender's half: a run of its journal, as a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from zero_mem.storage.base import JournalEntry
from zero_mem.storage.codec import encode_body
from zero_mem.sync.messages import Entry, Message, message_json
from zero_mem.sync.state import SyncState

if TYPE_CHECKING:
    from zero_mem.space import Namespace

BATCH: Final = 500
"""Most entries of one message."""

BATCH_BYTES: Final = 8_000_000
"""Bytes of bodies after which a message ends."""


def changes(
    space: Namespace, since: int = 0, *, to: str = "", limit: int = BATCH
) -> dict[str, Any]:
    """Give the journal's next entries as one message, JSON-ready.

    Entries of records that were purged since are left out but for the purge itself, and what
    came from the receiver is not sent back to it. Ask again from `until` until it stays.

    Args:
        space: The namespace.
        since: The sequence that the receiver has; see `cursor`.
        to: The receiver's origin.
        limit: Most entries to look at.
    """
    memory = space.memory
    memory.flush()
    lineage = memory.storage.lineage(space.path)
    with memory.transaction() as transaction:
        row = transaction.namespace(space.path)
        if row is None:
            return message_json(_message(space, since, since, 0, []))
        state = SyncState(transaction, row, memory.storage.origin, lineage)
        entries: list[Entry] = []
        until = since
        for found in _run(transaction.journal(row, after=since), limit):
            until = found.sequence
            entry = _entry(state, found, to)
            if entry is not None:
                entries.append(entry)
        return message_json(_message(space, since, until, row.sequence, entries))


def _message(space: Namespace, since: int, until: int, last: int, entries: list[Entry]) -> Message:
    return Message(
        origin=space.memory.storage.origin,
        namespace=space.path,
        since=since,
        until=until,
        last=last,
        entries=entries,
    )


def _run(entries: Iterable[JournalEntry], limit: int) -> Iterator[JournalEntry]:
    size = 0
    for count, entry in enumerate(entries, start=1):
        yield entry
        if entry.record is not None:
            size += len(encode_body(entry.record.record.content)[1])
        if count >= limit or size >= BATCH_BYTES:
            return


def _entry(state: SyncState, found: JournalEntry, to: str) -> Entry | None:
    """Make an entry to send, None where the receiver can't need it."""
    if found.record is None and found.operation != "purge":
        return None
    cause = None
    if found.record is not None:
        cause = state.at(found.record, found.sequence)
        mark = state.mark(found.uid, found.sequence)
        # It has what it sent, and settles a conflict with that as this store did.
        if mark is not None and mark.sequence == found.sequence and mark.sender == to:
            return None
    return Entry(
        sequence=found.sequence,
        group=found.group,
        at=found.at,
        actor=found.actor,
        operation=found.operation,
        reason=found.reason,
        uid=found.uid,
        home=state.home(found.uid, found.memory_id),
        version=found.version,
        record=found.record,
        cause=cause,
    )
