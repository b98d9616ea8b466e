"""What a purge erases, counted before it does (`history:purge`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zero_mem.operations.batch import BatchResult
from zero_mem.storage.base import NamespaceRow, Stored, Transaction
from zero_mem.storage.codec import encode_body


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What a purge takes of one memory, or would take.

    Attributes:
        memory_id: The memory; its id stays, and is never used again.
        versions: How many versions of its history can be read no more.
        bodies: How many different bodies those versions have.
        bytes: How many bytes these bodies have together.
        decisions: Of each scope the number of values that were kept for the memory, such as what
            prompts show of it.
        holds: How many owners keep it from being evicted.
    """

    memory_id: str
    versions: int
    bodies: int
    bytes: int
    decisions: Mapping[str, int]
    holds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeReport(BatchResult):
    """What a purge erased; in a dry run what it would erase, and no receipt.

    Terms, vectors and the fields of each memory go with it in any case.
    """

    erased: tuple[Erasure, ...] = ()
    dry_run: bool = False

    @property
    def bytes(self) -> int:
        """The bytes of all bodies."""
        return sum(each.bytes for each in self.erased)


def survey(
    transaction: Transaction, row: NamespaceRow, records: Sequence[Stored]
) -> tuple[Erasure, ...]:
    """Count what erasing these records takes, in their order."""
    uids = {stored.record.uid for stored in records}
    kept: dict[str, dict[str, int]] = {}
    for (uid, scope), count in sorted(transaction.decided_for(row, uids).items()):
        kept.setdefault(uid, {})[scope] = count
    owners = Counter(uid for _, uid in transaction.holds(row))
    return tuple(
        _erasure(
            transaction,
            row,
            stored,
            decisions=kept.get(stored.record.uid, {}),
            holds=owners[stored.record.uid],
        )
        for stored in records
    )


def _erasure(
    transaction: Transaction,
    row: NamespaceRow,
    stored: Stored,
    *,
    decisions: Mapping[str, int],
    holds: int,
) -> Erasure:
    memory_id = stored.record.memory_id
    versions = [
        entry.record
        for entry in transaction.journal(row, memory_id=memory_id)
        if entry.record is not None
    ]
    bodies = {encode_body(version.record.content) for version in versions}
    return Erasure(
        memory_id=memory_id,
        versions=len(versions),
        bodies=len(bodies),
        bytes=sum(len(data) for _, data in bodies),
        decisions=decisions,
        holds=holds,
    )
