"""Does a store agree with itself? Records, journal and index checked against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from zero_mem.backup.steps import Step, go_on, stepping
from zero_mem.index.document import index_terms
from zero_mem.storage.base import JournalEntry, NamespaceRow, Storage, Stored, Transaction
from zero_mem.types import MemoryRecord, Path


def faults(
    storage: Storage,
    prefix: Path = (),
    *,
    sealed: bool = False,
    step: Step = go_on,
) -> list[str]:
    """Name what in a store contradicts itself; an empty list is a sound store.

    Journal, records and index are read by the store's own primitives, and the index is
    compared with one made anew of the active records.

    Args:
        storage: The store.
        prefix: Only what is at and below this path.
        sealed: Its rows are sealed and the keys are not at hand: digests and terms, which
            are of what was sealed, can't be compared.
        step: Called before each namespace and entry; what it raises ends the check.
    """
    with storage.transaction() as transaction:
        return [
            f"{'/'.join(row.path)}: {fault}"
            for row in transaction.namespaces(prefix)
            for fault in _readable_faults(transaction, row, sealed, step)
        ]


def _readable_faults(
    transaction: Transaction, row: NamespaceRow, sealed: bool, step: Step
) -> Iterator[str]:
    try:
        yield from _namespace_faults(transaction, row, sealed, step)
    except (ValueError, KeyError) as error:
        yield f"a row can't be read any more ({type(error).__name__})"


def _namespace_faults(
    transaction: Transaction, row: NamespaceRow, sealed: bool, step: Step
) -> Iterator[str]:
    step()
    records = {s.record.memory_id: s for s in transaction.scan(row, {})}
    journal = stepping(transaction.journal(row), step)
    yield from _journal_faults(journal, row, records, sealed)
    yield from _key_faults(records)
    if not sealed:
        yield from _index_faults(transaction, row, records)


def _journal_faults(
    entries: Iterable[JournalEntry],
    row: NamespaceRow,
    records: Mapping[str, Stored],
    sealed: bool,
) -> Iterator[str]:
    last: dict[str, JournalEntry] = {}
    count = 0
    for count, entry in enumerate(entries, start=1):
        if entry.sequence != count:
            yield f"entry {entry.sequence} of the journal stands in place {count}"
        yield from _chain_faults(last.get(entry.memory_id), entry, sealed)
        last[entry.memory_id] = entry
    if count != row.sequence:
        yield f"the journal has {count} entries, not {row.sequence}"
    if last.keys() != records.keys():
        yield f"not both in journal and records: {sorted(last.keys() ^ records.keys())}"
    for memory_id in last.keys() & records.keys():
        entry, stored = last[memory_id], records[memory_id]
        if entry.record is not None and _unread(entry.record.record) != _unread(stored.record):
            yield f"{memory_id} is not what its journal says"
        if entry.record is None and stored.ended_by != "purge":
            yield f"{memory_id} has a body missing from its journal"


def _chain_faults(before: JournalEntry | None, entry: JournalEntry, sealed: bool) -> Iterator[str]:
    where = f"{entry.memory_id}, entry {entry.sequence}"
    if before is None:
        if entry.before_version or entry.parent:
            yield f"{where}: the first entry has a parent"
        return
    if entry.before_version != before.version or entry.at < before.at:
        yield f"{where}: it does not follow on entry {before.sequence}"
    if before.record is not None and entry.record is not None and not sealed:
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
