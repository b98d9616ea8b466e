"""Two stores at hand: both halves, driven until neither has anything new for the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from zero_mem.access.grants import Grant
from zero_mem.errors import InvalidInput, NotAllowed
from zero_mem.sync.receiving import cursor, receive, receive_all
from zero_mem.sync.reports import Received, SyncReport
from zero_mem.sync.sending import BATCH, changes
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.memory import Memory
    from zero_mem.space import Namespace

_ROUNDS = 4
"""There, back, and what settling conflicts added; the next sync takes what came meanwhile."""


def sync(
    one: Memory,
    other: Memory,
    *,
    namespaces: Sequence[str | Path] = (),
    dry_run: bool = False,
    batch: int = BATCH,
    on_progress: Callable[[int], None] | None = None,
) -> SyncReport:
    """Exchange the changes of two stores.

    Each message is one transaction at its receiver, so a sync that was cut short goes on from
    there the next time.

    Args:
        one: A store.
        other: Another one; each sees only what its credential allows.
        namespaces: Patterns such as "acme/**"; by default everything that one of them has.
        dry_run: Only say what would happen.
        batch: Most journal entries of one message.
        on_progress: Called with the number of entries exchanged so far.

    Raises:
        InvalidInput: Both are the same store, or a pattern is none.
        Conflict: A store went back to an earlier state; see `receive`.
    """
    if one.storage.origin == other.storage.origin:
        raise InvalidInput("both are the same store, or one is a copy of the other's file")
    if batch < 1:
        raise InvalidInput("batch is a whole number from 1")
    report = SyncReport(dry_run=dry_run)
    pairs = ((other, one, report.received), (one, other, report.sent))
    report.namespaces = _paths(one, other, namespaces)
    for path in report.namespaces:
        try:
            for _ in range(1 if dry_run else _ROUNDS):
                moved = 0
                for sender, receiver, received in pairs:
                    moved += _pull(sender, receiver, path, received, dry_run, batch)
                    if on_progress is not None:
                        on_progress(report.received.entries + report.sent.entries)
                if not moved:
                    break
        except NotAllowed as error:
            report.stopped[path] = str(error)
    return report


def _paths(one: Memory, other: Memory, patterns: Sequence[str | Path]) -> list[Path]:
    grants = [_grant(pattern) for pattern in patterns]
    known = {path: None for memory in (one, other) for path in memory.subtree().namespaces()}
    return [path for path in known if not grants or any(grant.covers(path) for grant in grants)]


def _grant(pattern: str | Path) -> Grant:
    if isinstance(pattern, str):
        return Grant.parse(f"read:{pattern}")
    return Grant.of("read", pattern)


def _pull(
    sender: Memory, receiver: Memory, path: Path, report: Received, dry_run: bool, batch: int
) -> int:
    """Bring what is new at one store to the other; tell how far its journal was read."""
    source, target = sender.namespace(*path), receiver.namespace(*path)
    start = cursor(target, sender.storage.origin)
    messages = _messages(source, start, receiver.storage.origin, batch)
    if dry_run:
        report.add(receive_all(target, messages, dry_run=True))
        return 0
    until = start
    for message in messages:
        report.add(receive(target, message))
        until = message["until"]
    return until - start


def _messages(source: Namespace, since: int, to: str, batch: int) -> Iterator[dict[str, Any]]:
    while (message := changes(source, since, to=to, limit=batch))["until"] > since:
        yield message
        since = message["until"]
