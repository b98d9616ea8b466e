"""The receiver's half: another store's entries, each applied once, in one transaction a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from zero_mem.errors import Conflict, InvalidInput
from zero_mem.operations.plan import Plan
from zero_mem.sync.applying import Applying
from zero_mem.sync.messages import Message, read_message
from zero_mem.sync.reports import Received
from zero_mem.sync.state import SyncState

if TYPE_CHECKING:
    from zero_mem.space import Namespace


def cursor(space: Namespace, origin: str) -> int:
    """Tell up to which sequence of another store its changes were taken here.

    Args:
        space: The namespace.
        origin: The other store's origin.
    """
    with space.memory.transaction() as transaction:
        row = transaction.namespace(space.path)
        return SyncState(transaction, row, "").cursor(origin) if row else 0


def receive(space: Namespace, message: object) -> Received:
    """Apply a message that `changes` made; entries that were applied before do nothing.

    Where it was cut short nothing of it is written, and it can be sent again.

    Raises:
        InvalidInput: It is no message, or is meant for another namespace or store.
        Conflict: Entries before it are missing, or its store went back to an earlier state.
        MigrationNeeded: A newer version wrote it.
        NotAllowed: The credential gives no right to write here.
    """
    return receive_all(space, [message])


def receive_all(space: Namespace, messages: Iterable[object], *, dry_run: bool = False) -> Received:
    """Apply messages that follow each other, in one transaction.

    Args:
        space: The namespace.
        messages: As `changes` gives them.
        dry_run: Only say what would happen.
    """
    report, storage = Received(), space.memory.storage
    try:
        lineage = storage.lineage(space.path)
        with _planning(space) as plan:
            state = SyncState(plan.transaction, plan.row, storage.origin, lineage)
            for message in messages:
                _take(plan, state, _checked(space, read_message(message)), report)
            if dry_run:
                raise _DryRun
    except _DryRun:
        return report
    if report.purged:
        space.memory.scrub()
    return report


class _DryRun(Exception):
    """Rolls the transaction back."""


@contextmanager
def _planning(space: Namespace) -> Iterator[Plan]:
    memory = space.memory
    memory.flush()
    with memory.transaction(write=True) as transaction:
        row = transaction.create_namespace(space.path)
        plan = Plan(
            transaction,
            row,
            now=memory.now(),
            actor="sync",
            redactors=memory.redactors,
            sizes=memory.sizes,
        )
        yield plan
        plan.flush()
    plan.keep_size()


def _checked(space: Namespace, message: Message) -> Message:
    if message.origin == space.memory.storage.origin:
        raise InvalidInput("the message is this store's own; a store can't be synced with itself")
    if message.namespace != space.path:
        raise InvalidInput(
            f"the message is of namespace {'/'.join(message.namespace)}, not {'/'.join(space.path)}"
        )
    return message


def _take(plan: Plan, state: SyncState, message: Message, report: Received) -> None:
    at = state.cursor(message.origin)
    if message.since > at:
        raise Conflict(
            f"store {message.origin} sent what follows {message.since}; "
            f"{at} is the last that was taken from it. Ask it for changes since {at}"
        )
    if message.last < at:
        raise Conflict(
            f"store {message.origin} has {message.last} changes and {at} were taken from it: it "
            "went back to an earlier state. Bring it back by `zero-mem recover`, which gives it "
            "an origin of its own, and not by copying its file"
        )
    applying = Applying(plan, state, message.origin, report)
    applying.pay_owed()
    new = [entry for entry in message.entries if entry.sequence > at]
    applying.prefetch(new)
    for entry in new:
        applying.take(entry)
    plan.flush()
    if message.until > at:
        state.advance(message.origin, message.until)
