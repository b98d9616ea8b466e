"""A store seen through the rights of one key: the one place where they are enforced.

Every operation reaches its namespace through `namespace`, `create_namespace` or `namespaces`
of a transaction, whatever interface it came by. So a right is checked there, and again where a
row is written: nobody above has to remember to ask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from zero_mem.access.grants import Grant, Right, allows
from zero_mem.errors import NotAllowed
from zero_mem.storage.base import (
    Change,
    Decision,
    JournalEntry,
    Lineage,
    NamespaceRow,
    PoolState,
    Posting,
    Storage,
    Stored,
    Transaction,
    Vector,
    VectorModel,
)
from zero_mem.types import Path


class GuardedStorage(Storage):
    """A store of which only what some grants give can be reached.

    Args:
        inner: The store.
        grants: The rights.
        closes: Close the store with this view of it; else others use it on.
    """

    def __init__(self, inner: Storage, grants: Sequence[Grant], *, closes: bool = False) -> None:
        self._inner = inner
        self._closes = closes
        self._grants = tuple(grants)
        self.origin = inner.origin

    @contextmanager
    def transaction(self, *, write: bool = False, durable: bool = True) -> Iterator[Transaction]:
        """See `Storage.transaction`."""
        with self._inner.transaction(write=write, durable=durable) as transaction:
            yield GuardedTransaction(transaction, self._grants)

    def note(self, name: str) -> str | None:
        """Refuse: notes are the store's as a whole, keys among them."""
        raise NotAllowed(
            "who came with a credential can't see or change the store's keys and notes"
        )

    def notes(self, prefix: str) -> dict[str, str]:
        """Refuse, as `note` does."""
        raise NotAllowed(
            "who came with a credential can't see or change the store's keys and notes"
        )

    def keep_note(self, name: str, value: str) -> None:
        """Refuse, as `note` does."""
        raise NotAllowed(
            "who came with a credential can't see or change the store's keys and notes"
        )

    def lineage(self, path: Path) -> Lineage:
        """See `Storage.lineage`."""
        if not allows(self._grants, "read", path):
            raise NotAllowed(f"the credential gives no right to read namespace {'/'.join(path)}")
        return self._inner.lineage(path)

    @property
    def beneath(self) -> Storage:
        """Refuse: whoever has the rows has the whole store."""
        raise NotAllowed("a backup holds the whole store; make it without a credential")

    def check(self) -> list[str]:
        """Refuse: damage is the store's as a whole."""
        raise NotAllowed("the store as a whole is verified without a credential")

    def scrub(self, *, wait: bool = True) -> None:
        """See `Storage.scrub`: it changes nothing that anyone could read."""
        self._inner.scrub(wait=wait)

    def pools(self) -> Mapping[str, PoolState]:
        """See `Storage`."""
        return self._inner.pools()

    def scrub_pending(self) -> bool:
        """See `Storage.scrub_pending`."""
        return self._inner.scrub_pending()

    def size(self) -> int:
        """Tell 0: the size of the store is not the caller's to know."""
        return 0

    def close(self) -> None:
        """Close the store, if it is this view's own."""
        if self._closes:
            self._inner.close()


class GuardedTransaction(Transaction):
    """The primitives, each after its right was checked."""

    def __init__(self, inner: Transaction, grants: Sequence[Grant]) -> None:
        self._inner = inner
        self._grants = grants

    def _check(self, right: Right, path: Path) -> None:
        if not allows(self._grants, right, path):
            raise NotAllowed(f"the credential gives no right to {right} namespace {'/'.join(path)}")

    def namespace(self, path: Path) -> NamespaceRow | None:
        """See `Transaction`; without the right it is not even said whether there is one."""
        self._check("read", path)
        return self._inner.namespace(path)

    def create_namespace(self, path: Path) -> NamespaceRow:
        """See `Transaction`."""
        self._check("write", path)
        return self._inner.create_namespace(path)

    def namespaces(self, prefix: Path) -> list[NamespaceRow]:
        """List those that may be read."""
        found = self._inner.namespaces(prefix)
        return [row for row in found if allows(self._grants, "read", row.path)]

    def store_namespace(self, row: NamespaceRow) -> None:
        """See `Transaction`; settings are for an admin to change."""
        self._check("write", row.path)
        before = self._inner.namespace(row.path)
        if before is None or before.settings != row.settings:
            self._check("admin", row.path)
        self._inner.store_namespace(row)

    def by_ids(self, row: NamespaceRow, ids: Collection[str]) -> dict[str, Stored]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.by_ids(row, ids)

    def by_keys(
        self, row: NamespaceRow, keys: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Stored]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.by_keys(row, keys)

    def by_positions(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Stored]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.by_positions(row, positions)

    def scan(
        self,
        row: NamespaceRow,
        equalities: Mapping[str, Collection[object]],
        *,
        after: int = 0,
        expires_by: int | None = None,
    ) -> Iterator[Stored]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.scan(row, equalities, after=after, expires_by=expires_by)

    def count_active(
        self, row: NamespaceRow, *, now: int, form: str | None, kind: str | None
    ) -> int:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.count_active(row, now=now, form=form, kind=kind)

    def by_use(self, row: NamespaceRow, *, form: str | None, kind: str | None) -> Iterator[Stored]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.by_use(row, form=form, kind=kind)

    def tally(self, row: NamespaceRow) -> dict[tuple[str, str], int]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.tally(row)

    def accessed(self, row: NamespaceRow, ids: Collection[str], at: int) -> None:
        """See `Transaction`: a mark of use comes with reading."""
        self._check("read", row.path)
        self._inner.accessed(row, ids, at)

    def journal(
        self,
        row: NamespaceRow,
        *,
        memory_id: str | None = None,
        group: int | None = None,
        after: int = 0,
        until_at: int | None = None,
    ) -> Iterator[JournalEntry]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.journal(
            row, memory_id=memory_id, group=group, after=after, until_at=until_at
        )

    def frequencies(self, row: NamespaceRow, terms: Collection[str]) -> dict[str, int]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.frequencies(row, terms)

    def postings(self, row: NamespaceRow, term: str) -> list[Posting]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.postings(row, term)

    def documents(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Sequence[str]]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.documents(row, positions)

    def vectors(
        self,
        row: NamespaceRow,
        model: VectorModel,
        *,
        after: int = 0,
        positions: Collection[int] | None = None,
    ) -> list[Vector]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.vectors(row, model, after=after, positions=positions)

    def without_vector(self, row: NamespaceRow, model: VectorModel, limit: int) -> list[int]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.without_vector(row, model, limit)

    def put_vectors(self, row: NamespaceRow, model: VectorModel, vectors: Sequence[Vector]) -> None:
        """See `Transaction`: vectors are made beside reads, from what may be read."""
        self._check("read", row.path)
        self._inner.put_vectors(row, model, vectors)

    def vector_counts(self, row: NamespaceRow) -> dict[VectorModel, int]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.vector_counts(row)

    def decision(self, row: NamespaceRow, scope: str, key: str) -> Decision | None:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.decision(row, scope, key)

    def decisions(self, row: NamespaceRow, scope: str) -> list[Decision]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.decisions(row, scope)

    def scopes(self, row: NamespaceRow) -> list[str]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.scopes(row)

    def decided_for(self, row: NamespaceRow, uids: Collection[str]) -> dict[tuple[str, str], int]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.decided_for(row, uids)

    def holds(self, row: NamespaceRow) -> list[tuple[str, str]]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.holds(row)

    def held(self, row: NamespaceRow) -> set[str]:
        """See `Transaction`."""
        self._check("read", row.path)
        return self._inner.held(row)

    def apply(self, row: NamespaceRow, changes: Sequence[Change]) -> None:
        """See `Transaction`."""
        self._check("write", row.path)
        self._inner.apply(row, changes)

    def drop_vectors(self, row: NamespaceRow, *, keep: VectorModel) -> int:
        """See `Transaction`."""
        self._check("write", row.path)
        return self._inner.drop_vectors(row, keep=keep)

    def decide(self, row: NamespaceRow, decision: Decision) -> None:
        """See `Transaction`."""
        self._check("write", row.path)
        self._inner.decide(row, decision)

    def undecide(self, row: NamespaceRow, scope: str, key: str) -> None:
        """See `Transaction`."""
        self._check("write", row.path)
        self._inner.undecide(row, scope, key)

    def hold(self, row: NamespaceRow, owner: str, uid: str) -> None:
        """See `Transaction`."""
        self._check("write", row.path)
        self._inner.hold(row, owner, uid)

    def release(self, row: NamespaceRow, owner: str) -> None:
        """See `Transaction`."""
        self._check("write", row.path)
        self._inner.release(row, owner)

    def erase(self, row: NamespaceRow, stored: Sequence[Stored], *, nameless: str) -> None:
        """See `Transaction`."""
        self._check("admin", row.path)
        self._inner.erase(row, stored, nameless=nameless)
