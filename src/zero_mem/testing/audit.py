"""Does a store agree with itself? Records, journal and index checked against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from zero_mem.index.document import index_terms
from zero_mem.storage.base import JournalEntry, NamespaceRow, Storage, Stored, Transaction
from zero_mem.types import MemoryRecord, Path


def faults(storage: Storage, prefix: Path = ()) -> list[str]:
    """Name what in a store (at and below a path) contradicts itself; a sound store has nothing.

    Journal, records and index are read by the store's own primitives, and the index is
    compared with one made anew of the active records.
    """
    with storage.transaction() as transaction:
        return [
            f"{'/'.join(row.path)}: {fault}"
            for row in transaction.namespaces(prefix)
            for fault in _namespace_faults(transaction, row)
        ]


def _namespace_faults(transaction: Transaction, row: NamespaceRow) -> Iterator[str]:
    records = {s.record.memory_id: s for s in transaction.scan(row, {})}
    yield from _journal_faults(list(transaction.journal(row)), row, records)
    yield from _key_faults(records)
    yield from _index_faults(transaction, row, records)


def _journal_faults(
    entries: list[JournalEntry], row: NamespaceRow, records: Mapping[str, Stored]
) -> Iterator[str]:
    if [entry.sequence for entry in entries] != list(range(1, row.sequence + 1)):
        yield f"the journal does not count from 1 to {row.sequence}"
    last: dict[str, JournalEntry] = {}
    for entry in entries:
        yield from _chain_faults(last.get(entry.memory_id), entry)
        last[entry.memory_id] = entry
    if last.keys() != records.keys():
        yield f"not both in journal and records: {sorted(last.keys() ^ records.keys())}"
    for memory_id in last.keys() & records.keys():
        entry, stored = last[memory_id], records[memory_id]
        if entry.record is not None and _unread(entry.record.record) != _unread(stored.record):
            yield f"{memory_id} is not what its journal says"
        if entry.record is None and stored.ended_by != "purge":
            yield f"{memory_id} has a body missing from its journal"


def _chain_faults(before: JournalEntry | None, entry: JournalEntry) -> Iterator[str]:
    where = f"{entry.memory_id}, entry {entry.sequence}"
    if before is None:
        if entry.before_version or entry.parent:
            yield f"{where}: the first entry has a parent"
        return
    if entry.before_version != before.version or entry.at < before.at:
        yield f"{where}: it does not follow on entry {before.sequence}"
    if before.record is not None and entry.record is not None:
        if entry.parent != before.record.digest:
            yield f"{where}: the parent's digest is another"
        if entry.before != before.record.record.content:
            yield f"{where}: the body before is not the one of entry {before.sequence}"


def _unread(record: MemoryRecord) -> MemoryRecord:
    return replace(record, accessed_at=record.recorded_at, access_count=0)


def _key_faults(records: Mapping[str, Stored]) -> Iterator[str]:
    held = Counter(
        (stored.record.kind, stored.dedupe)
        for stored in records.values()
        if stored.dedupe is not None and stored.record.state == "active"
    )
    for (kind, _), holders in held.items():
        if holders > 1:
            yield f"{holders} active records of kind {kind} hold one key"


def _index_faults(
    transaction: Transaction, row: NamespaceRow, records: Mapping[str, Stored]
) -> Iterator[str]:
    rebuilt = {
        stored.position: index_terms(stored.record)
        for stored in records.values()
        if stored.record.state == "active"
    }
    length = sum(map(len, rebuilt.values()))
    if (row.documents, row.length) != (len(rebuilt), length):
        yield (
            f"the index counts {row.documents} records and {row.length} terms, "
            f"not {len(rebuilt)} and {length}"
        )
    positions = [stored.position for stored in records.values()]
    indexed = transaction.documents(row, positions)
    if {place: list(terms) for place, terms in indexed.items()} != rebuilt:
        yield "the index holds other terms than the records"
    postings = _postings(rebuilt)
    if transaction.frequencies(row, postings) != {t: len(of) for t, of in postings.items()}:
        yield "the frequencies of terms are not those of the records"
    for term, wanted in postings.items():
        if [tuple(found) for found in transaction.postings(row, term)] != wanted:
            yield "the postings of a term are not those of the records"


def _postings(rebuilt: Mapping[int, list[str]]) -> dict[str, list[tuple[int, int, int]]]:
    found: dict[str, list[tuple[int, int, int]]] = {}
    for place, terms in sorted(rebuilt.items()):
        for term, frequency in Counter(terms).items():
            found.setdefault(term, []).append((place, frequency, len(terms)))
    return found
