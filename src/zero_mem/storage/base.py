"""What every store offers: transactions of a few row-level primitives.

The operations (what a save means, what expires, what a rollback restores) are written once,
above, on these primitives. A store only has to read rows, apply a list of changes in one
transaction and keep a positional inverted list; the conformance suite in `zero_mem.testing`
says what that means.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from zero_mem.index.document import index_terms
from zero_mem.storage.codec import EndedBy as EndedBy
from zero_mem.storage.codec import Stored as Stored
from zero_mem.storage.codec import encode_path
from zero_mem.types import Body, MemoryRecord, Operation, Path


@dataclass(slots=True, kw_only=True)
class NamespaceRow:
    """The counters of a namespace, read and changed under its store's write lock.

    `highest_id` is the greatest number that a caller took as an id, `positions` how many
    records were ever made. `last_at` (microseconds) keeps recorded_at from going back;
    `documents` and `length` (terms) are the statistics that BM25 needs; `settings` is JSON.
    """

    number: int
    path: Path
    next_id: int = 1
    highest_id: int = 0
    positions: int = 0
    sequence: int = 0
    last_at: int = 0
    documents: int = 0
    length: int = 0
    settings: str = ""

    def position(self, count: int) -> int:
        """Give the position of the namespace's record number `count`, unique in the store."""
        return (self.number << 32) + count

    def new_position(self) -> int:
        """Give the position of a new record, after all others of the namespace."""
        self.positions += 1
        return self.position(self.positions)


LARGEST = 20_000
"""A namespace of more records is ranked among the best candidates by their words. A smaller one is
read as a whole: a store need not find the postings of its terms quickly."""

MOST_TERMS = 4_000_000
"""And one of more terms in all."""


class Change(NamedTuple):
    """One step of one record: what the journal keeps and what the tables become.

    `group` is the sequence of the first change of the same operation. `body_changed` is
    False where `after` carries the body of `before`. `fields` is `after` as it is written
    down (`codec.encode_fields`). `terms` are the record's terms where its text is sealed; None
    has them cut from the text. `origin` is the store where the change was made, "" for this one.
    """

    operation: Operation
    group: int
    at: int
    actor: str
    reason: str
    before: Stored | None
    after: Stored
    body_changed: bool
    fields: str
    terms: Sequence[str] | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One entry of the append-only journal; `record` is the record after the change.

    `before` is the body before the change, None where there was none or it was purged;
    a purged version has no record.
    """

    namespace: Path
    sequence: int
    group: int
    at: int
    actor: str
    operation: Operation
    reason: str
    origin: str
    memory_id: str
    uid: str
    version: int
    parent: str
    record: Stored | None
    before_version: int
    before: Body | None


class Posting(NamedTuple):
    """Where a term occurs: the record's position, how often, and how many terms it has."""

    position: int
    frequency: int
    length: int


class VectorModel(NamedTuple):
    """What made a vector; vectors compare only within one model.

    `name` names the embedder and how a record's text was put together for it.
    """

    name: str
    dimension: int


class Vector(NamedTuple):
    """The vector of an active record, as `index.vectors.encode` writes it.

    `number` grows with every vector that is put into the store. `context` is the position
    of the record whose text went into the vector too, 0 where none did.
    """

    position: int
    context: int
    data: bytes
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An opaque value that a host stored under (scope, key); `value` is None once purged."""

    scope: str
    key: str
    value: str | None
    uid: str | None = None


class Final(NamedTuple):
    """What a list of changes leaves of one record; `terms` is None where the index stays."""

    before: Stored | None
    after: Stored
    fields: str
    terms: Sequence[str] | None


def settle(changes: Sequence[Change]) -> list[Final]:
    """Fold the changes of each record into its last state, in order of first change."""
    first: dict[str, Stored | None] = {}
    last: dict[str, Change] = {}
    for change in changes:
        memory_id = change.after.record.memory_id
        first.setdefault(memory_id, change.before)
        last[memory_id] = change
    return [
        Final(
            before=first[key],
            after=change.after,
            fields=change.fields,
            terms=_terms(first[key], change),
        )
        for key, change in last.items()
    ]


def _terms(before: Stored | None, change: Change) -> Sequence[str] | None:
    old = before.record if before else None
    new = change.after.record
    if new.state != "active":
        return () if old is not None and old.state == "active" else None
    if old is not None and old.state == "active" and _same_text(old, new):
        return None
    return index_terms(new) if change.terms is None else change.terms


def _same_text(old: MemoryRecord, new: MemoryRecord) -> bool:
    return old.content is new.content and old.tags == new.tags and old.key == new.key


class Transaction(ABC):
    """A consistent view of the store and, when opened for writing, its only writer."""

    @abstractmethod
    def namespace(self, path: Path) -> NamespaceRow | None:
        """Read a namespace's counters, None where it has never been written to."""

    @abstractmethod
    def create_namespace(self, path: Path) -> NamespaceRow:
        """Read a namespace's counters, making the row where there is none."""

    @abstractmethod
    def namespaces(self, prefix: Path) -> list[NamespaceRow]:
        """List the namespaces at and below a path, in the order they were made."""

    @abstractmethod
    def store_namespace(self, row: NamespaceRow) -> None:
        """Write a namespace's counters and settings back."""

    @abstractmethod
    def by_ids(self, row: NamespaceRow, ids: Collection[str]) -> dict[str, Stored]:
        """Read the records with these ids, in whatever state."""

    @abstractmethod
    def by_keys(
        self, row: NamespaceRow, keys: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Stored]:
        """Read the active records (expired or not) that hold these (kind, dedupe) keys."""

    @abstractmethod
    def by_positions(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Stored]:
        """Read the records at these positions, in whatever state."""

    @abstractmethod
    def scan(
        self,
        row: NamespaceRow,
        equalities: Mapping[str, Collection[object]],
        *,
        after: int = 0,
        expires_by: int | None = None,
    ) -> Iterator[Stored]:
        """Read records in order of position, beyond `after`.

        `equalities` (field → accepted values) may be used to read less; a store that
        ignores it is right too, since the caller filters again. `expires_by` keeps only
        the active records that expire at or before that time.
        """

    @abstractmethod
    def count_active(
        self, row: NamespaceRow, *, now: int, form: str | None, kind: str | None
    ) -> int:
        """Count the active, unexpired records (of a form, of a kind)."""

    @abstractmethod
    def by_use(self, row: NamespaceRow, *, form: str | None, kind: str | None) -> Iterator[Stored]:
        """Read the active records (of a form, of a kind), the least used first.

        Ordered by the later of updated_at and accessed_at, then access_count, then position.
        """

    @abstractmethod
    def tally(self, row: NamespaceRow) -> dict[tuple[str, str], int]:
        """Count the records of a namespace by (state, form); expired ones are active here."""

    @abstractmethod
    def apply(self, row: NamespaceRow, changes: Sequence[Change]) -> None:
        """Write records, bodies, journal, index and the namespace's row, all or nothing."""

    @abstractmethod
    def accessed(self, row: NamespaceRow, ids: Collection[str], at: int) -> None:
        """Set accessed_at and raise access_count; this is not journalled."""

    @abstractmethod
    def journal(
        self,
        row: NamespaceRow,
        *,
        memory_id: str | None = None,
        group: int | None = None,
        after: int = 0,
        until_at: int | None = None,
    ) -> Iterator[JournalEntry]:
        """Read journal entries in order of sequence."""

    @abstractmethod
    def frequencies(self, row: NamespaceRow, terms: Collection[str]) -> dict[str, int]:
        """Count the indexed records of the namespace that hold each term (0 left out)."""

    @abstractmethod
    def postings(self, row: NamespaceRow, term: str) -> list[Posting]:
        """List where a term occurs in the namespace, in order of position."""

    @abstractmethod
    def documents(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Sequence[str]]:
        """Read the indexed terms of these records."""

    @abstractmethod
    def vectors(
        self,
        row: NamespaceRow,
        model: VectorModel,
        *,
        after: int = 0,
        positions: Collection[int] | None = None,
    ) -> list[Vector]:
        """Read the vectors that a model made (numbered above `after`, at some positions).

        `apply` and `erase` drop the vectors of every record whose indexed text or activity
        changes, and those with its text as their context: a vector that is here is current.
        """

    @abstractmethod
    def without_vector(self, row: NamespaceRow, model: VectorModel, limit: int) -> list[int]:
        """List the positions of active records that lack a vector of a model, newest first."""

    @abstractmethod
    def put_vectors(self, row: NamespaceRow, model: VectorModel, vectors: Sequence[Vector]) -> None:
        """Write vectors over those of the same model and position; numbers are given anew."""

    @abstractmethod
    def drop_vectors(self, row: NamespaceRow, *, keep: VectorModel) -> int:
        """Remove the vectors of every other model and tell how many there were."""

    @abstractmethod
    def vector_counts(self, row: NamespaceRow) -> dict[VectorModel, int]:
        """Count a namespace's vectors by model."""

    @abstractmethod
    def decision(self, row: NamespaceRow, scope: str, key: str) -> Decision | None:
        """Read the value under (scope, key)."""

    @abstractmethod
    def decisions(self, row: NamespaceRow, scope: str) -> list[Decision]:
        """List a scope in the order its keys were first decided."""

    @abstractmethod
    def scopes(self, row: NamespaceRow) -> list[str]:
        """List the scopes that have decisions, in order of name."""

    @abstractmethod
    def decided_for(self, row: NamespaceRow, uids: Collection[str]) -> dict[tuple[str, str], int]:
        """Count the values that belong to these records, by (uid, scope)."""

    @abstractmethod
    def decide(self, row: NamespaceRow, decision: Decision) -> None:
        """Set the value under (scope, key)."""

    @abstractmethod
    def undecide(self, row: NamespaceRow, scope: str, key: str) -> None:
        """Forget the value under (scope, key)."""

    @abstractmethod
    def hold(self, row: NamespaceRow, owner: str, uid: str) -> None:
        """Keep a record from being evicted until its owner releases it."""

    @abstractmethod
    def release(self, row: NamespaceRow, owner: str) -> None:
        """End every hold of an owner."""

    @abstractmethod
    def held(self, row: NamespaceRow) -> set[str]:
        """Name the uids that somebody holds."""

    @abstractmethod
    def holds(self, row: NamespaceRow) -> list[tuple[str, str]]:
        """List who holds what, as (owner, uid) in order."""

    @abstractmethod
    def erase(self, row: NamespaceRow, stored: Sequence[Stored], *, nameless: str) -> None:
        """Remove the bodies and all that was derived from them, in every version.

        What stays is a tombstone: id, uid, positions, versions and times. A decision that
        belongs to it loses its value.

        Args:
            row: The namespace.
            stored: The records.
            nameless: A scope whose decisions lose their key too: it becomes
                `codec.purged_key`.
        """


SEALED = "sealed"
"""The note of a store whose values are encrypted."""

LINEAGE = "lineage."
"""Begins the note of a namespace's `Lineage`, before its path."""

Lineage: TypeAlias = Sequence[tuple[str, int]]
"""The origins that a store had before it was restored, the oldest first, each with the last
sequence of a namespace's journal that was written under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """The connections of this process to one server: now, and since the store was opened.

    Attributes:
        most: How many there may be at once.
        size: How many are open now.
        in_use: How many of these are inside a transaction.
        waiting: How many threads wait for one now.
        requests: How often one was asked for.
        waits: How many of these requests found none free, the first of all among them.
        wait_seconds: How long they waited, all together.
        timeouts: How many gave up.
        lost: How many connections were found broken.
    """

    most: int
    size: int = 0
    in_use: int = 0
    waiting: int = 0
    requests: int = 0
    waits: int = 0
    wait_seconds: float = 0.0
    timeouts: int = 0
    lost: int = 0


class Storage(ABC):
    """A place that holds namespaces of memories."""

    origin: str
    """A random name of this store that its journal entries carry."""

    @abstractmethod
    def transaction(
        self, *, write: bool = False, durable: bool = True
    ) -> AbstractContextManager[Transaction]:
        """Open a transaction; it commits at the end and rolls back on an exception.

        Args:
            write: Take the store's write lock at once.
            durable: False where losing the change on power loss does no harm.

        Raises:
            StoreUnavailable: The store is locked, full, read-only, or gone.
        """

    @abstractmethod
    def note(self, name: str) -> str | None:
        """Read a note on the store as a whole, None where there is none."""

    @abstractmethod
    def notes(self, prefix: str) -> dict[str, str]:
        """Read the notes whose names begin so."""

    @abstractmethod
    def keep_note(self, name: str, value: str) -> None:
        """Keep a note on the store as a whole, durably."""

    def lineage(self, path: Path) -> Lineage:
        """Tell under which origins a namespace's journal was written before."""
        text = self.note(f"{LINEAGE}{encode_path(path)}")
        return [(str(origin), int(last)) for origin, last in json.loads(text or "[]")]

    @property
    def beneath(self) -> Storage:
        """The store that holds the rows as they are written: this one, unless it seals them."""
        return self

    def check(self) -> list[str]:
        """Name what is damaged in the store's files, by the store's own means."""
        return []

    def pools(self) -> Mapping[str, PoolState]:
        """Tell how the store's pools of connections stand, by node; nothing is asked of a server.

        A store on one server has one pool, named "". One without a server has none.
        """
        return {}

    @abstractmethod
    def scrub(self, *, wait: bool = True) -> None:
        """Overwrite what erased bodies left in the store's files.

        Args:
            wait: False gives up at once where somebody still reads the old bytes.

        Raises:
            StoreUnavailable: Somebody does; the scrub stays pending.
        """

    @abstractmethod
    def scrub_pending(self) -> bool:
        """Tell whether something was erased whose bytes may still be in the files."""

    @abstractmethod
    def size(self) -> int:
        """Tell the store's size in bytes (0 in memory)."""

    @abstractmethod
    def close(self) -> None:
        """Give all resources back; closing twice is allowed."""
