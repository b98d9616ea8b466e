"""An encrypted store: any other store, with every value sealed on its way in.

The store beneath sees records whose body is a sealed blob, whose metadata is one sealed text,
whose names are sealed the same each time and whose terms are keyed hashes. It finds, orders and
counts them as ever, and can't read them.

| stays as it is | why |
|---|---|
| namespace paths, memory ids, uids, versions, positions | rows are found by them |
| form, kind, state, source | limits and sweeps go by them |
| times, access counts, numbers of terms | order, expiry and ranking go by them |
| settings, scopes of decisions, actors | they are the operator's own |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from zero_mem.errors import NotAllowed
from zero_mem.index.document import index_terms
from zero_mem.storage.base import (
    SEALED,
    Change,
    Decision,
    JournalEntry,
    NamespaceRow,
    PoolState,
    Posting,
    Storage,
    Transaction,
    Vector,
    VectorModel,
)
from zero_mem.storage.codec import Stored, purged_key
from zero_mem.storage.data_keys import KEYS, Encryption, Keys, Vectors
from zero_mem.storage.keys import Master
from zero_mem.storage.seal import Seal
from zero_mem.storage.sealed_records import (
    opened,
    opened_decision,
    opened_entry,
    sealed_change,
    sealed_equalities,
)
from zero_mem.types import Body, Path

_NO_SCOPE: Final = "zero-mem:none"


class SealedStorage(Storage):
    """A store whose values are encrypted in the store beneath.

    Args:
        inner: The store beneath.
        encryption: How.
    """

    def __init__(self, inner: Storage, encryption: Encryption) -> None:
        self._inner = inner
        self._encryption = encryption
        self._seals: dict[Path, Seal] = {}
        self.origin = inner.origin
        self._claim()

    def _claim(self) -> None:
        """Note that the store is sealed, so that nobody opens it without its keys."""
        if self._inner.note(SEALED) is not None:
            return
        with self._inner.transaction() as transaction:
            holds_plain = any(row.sequence for row in transaction.namespaces(()))
        if holds_plain:
            raise NotAllowed(
                "the store holds memories that are not encrypted; export them, and import them "
                "into a new store that is opened with its encryption"
            )
        self._inner.keep_note(SEALED, "1")

    @property
    def inner(self) -> Storage:
        """The store beneath."""
        return self._inner

    @property
    def beneath(self) -> Storage:
        """The store beneath, whose rows are sealed."""
        return self._inner.beneath

    def check(self) -> list[str]:
        """See `Storage.check`."""
        return self._inner.check()

    @contextmanager
    def transaction(self, *, write: bool = False, durable: bool = True) -> Iterator[Transaction]:
        """See `Storage.transaction`."""
        with self._inner.transaction(write=write, durable=durable) as transaction:
            keys = Keys(transaction, self._encryption, self._seals)
            yield SealedTransaction(transaction, keys, self._encryption.vectors)

    def forget_keys(self) -> None:
        """Drop the data keys from this process's memory; they are read again when needed."""
        self._seals.clear()

    def rewrap(self, master: Master) -> int:
        """Wrap every data key by another master key; the values stay as they are.

        Returns:
            The number of namespaces.
        """
        changed = replace(self._encryption, master=master)
        with self._inner.transaction(write=True) as transaction:
            rows = transaction.namespaces(())
            for row in rows:
                wrapped = Keys(transaction, self._encryption, {}).unwrapped(row)
                if wrapped:
                    Keys(transaction, changed, {}).keep(row, wrapped)
        self._encryption = changed
        self.forget_keys()
        return len(rows)

    def renew_key(self, path: Path) -> int:
        """Give a namespace a new data key; what older ones sealed still opens.

        Returns:
            The number of the new key.

        Raises:
            NotAllowed: The keys that it had were erased, or are missing.
        """
        with self._inner.transaction(write=True) as transaction:
            row = transaction.create_namespace(path)
            keys = Keys(transaction, self._encryption, {})
            keys.known(row)
            number = keys.renew(row)
        self.forget_keys()
        return number

    def erase_keys(self, path: Path) -> bool:
        """Erase a namespace's data keys: none of its values can be read again, anywhere.

        Returns:
            Whether there were any.
        """
        with self._inner.transaction(write=True) as transaction:
            row = transaction.namespace(path)
            erased = row is not None and Keys(transaction, self._encryption, {}).erase(row)
        self.forget_keys()
        return erased

    def note(self, name: str) -> str | None:
        """See `Storage.note`."""
        return self._inner.note(name)

    def notes(self, prefix: str) -> dict[str, str]:
        """See `Storage.notes`."""
        return self._inner.notes(prefix)

    def keep_note(self, name: str, value: str) -> None:
        """See `Storage.keep_note`."""
        self._inner.keep_note(name, value)

    def scrub(self, *, wait: bool = True) -> None:
        """See `Storage.scrub`."""
        self._inner.scrub(wait=wait)

    def pools(self) -> Mapping[str, PoolState]:
        """See `Storage`."""
        return self._inner.pools()

    def scrub_pending(self) -> bool:
        """See `Storage.scrub_pending`."""
        return self._inner.scrub_pending()

    def size(self) -> int:
        """See `Storage.size`."""
        return self._inner.size()

    def close(self) -> None:
        """See `Storage.close`."""
        self.forget_keys()
        self._inner.close()


class SealedTransaction(Transaction):
    """The primitives over a transaction of the store beneath."""

    def __init__(self, inner: Transaction, keys: Keys, vectors: Vectors) -> None:
        self._inner = inner
        self._keys = keys
        self._vectors = vectors

    # Namespaces

    def namespace(self, path: Path) -> NamespaceRow | None:
        """See `Transaction`."""
        return self._inner.namespace(path)

    def create_namespace(self, path: Path) -> NamespaceRow:
        """See `Transaction`."""
        return self._inner.create_namespace(path)

    def namespaces(self, prefix: Path) -> list[NamespaceRow]:
        """See `Transaction`; whoever walks over a store passes by what can't be read again."""
        return self._keys.living(self._inner.namespaces(prefix))

    def store_namespace(self, row: NamespaceRow) -> None:
        """See `Transaction`."""
        self._inner.store_namespace(row)

    # Records

    def by_ids(self, row: NamespaceRow, ids: Collection[str]) -> dict[str, Stored]:
        """See `Transaction`."""
        return {name: self._open(row, s) for name, s in self._inner.by_ids(row, ids).items()}

    def by_keys(
        self, row: NamespaceRow, keys: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Stored]:
        """See `Transaction`."""
        seal = self._keys.known(row)
        if seal is None:
            return self._inner.by_keys(row, keys)
        plain = {(kind, seal.name(dedupe, "dedupe")): (kind, dedupe) for kind, dedupe in keys}
        found = self._inner.by_keys(row, plain)
        return {plain[key]: self._open(row, stored) for key, stored in found.items()}

    def by_positions(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Stored]:
        """See `Transaction`."""
        found = self._inner.by_positions(row, positions)
        return {position: self._open(row, stored) for position, stored in found.items()}

    def scan(
        self,
        row: NamespaceRow,
        equalities: Mapping[str, Collection[object]],
        *,
        after: int = 0,
        expires_by: int | None = None,
    ) -> Iterator[Stored]:
        """See `Transaction`."""
        seal = self._keys.known(row)
        asked = equalities if seal is None else sealed_equalities(seal, equalities)
        found = self._inner.scan(row, asked, after=after, expires_by=expires_by)
        return (self._open(row, stored) for stored in found)

    def count_active(
        self, row: NamespaceRow, *, now: int, form: str | None, kind: str | None
    ) -> int:
        """See `Transaction`."""
        return self._inner.count_active(row, now=now, form=form, kind=kind)

    def by_use(self, row: NamespaceRow, *, form: str | None, kind: str | None) -> Iterator[Stored]:
        """See `Transaction`."""
        found = self._inner.by_use(row, form=form, kind=kind)
        return (self._open(row, stored) for stored in found)

    def tally(self, row: NamespaceRow) -> dict[tuple[str, str], int]:
        """See `Transaction`."""
        return self._inner.tally(row)

    def accessed(self, row: NamespaceRow, ids: Collection[str], at: int) -> None:
        """See `Transaction`."""
        self._inner.accessed(row, ids, at)

    def _open(self, row: NamespaceRow, stored: Stored) -> Stored:
        seal = self._keys.known(row)
        return stored if seal is None else opened(seal, stored)

    # Changes

    def apply(self, row: NamespaceRow, changes: Sequence[Change]) -> None:
        """See `Transaction`."""
        seal = self._keys.seal(row)
        contents: dict[str, Body] = {}
        self._inner.apply(row, [sealed_change(seal, change, contents) for change in changes])

    # Journal

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
        seal = self._keys.known(row)
        for entry in self._inner.journal(
            row, memory_id=memory_id, group=group, after=after, until_at=until_at
        ):
            yield entry if seal is None else opened_entry(seal, entry)

    # Lexical index

    def frequencies(self, row: NamespaceRow, terms: Collection[str]) -> dict[str, int]:
        """See `Transaction`."""
        seal = self._keys.known(row)
        if seal is None:
            return self._inner.frequencies(row, terms)
        plain = {seal.term(term): term for term in terms}
        found = self._inner.frequencies(row, plain)
        return {plain[term]: count for term, count in found.items()}

    def postings(self, row: NamespaceRow, term: str) -> list[Posting]:
        """See `Transaction`."""
        seal = self._keys.known(row)
        return self._inner.postings(row, term if seal is None else seal.term(term))

    def documents(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Sequence[str]]:
        """See `Transaction`; a hash can't be read back, so the terms are cut anew."""
        seal = self._keys.known(row)
        if seal is None:
            return self._inner.documents(row, positions)
        found = self._inner.by_positions(row, positions)
        return {
            position: index_terms(opened(seal, stored).record)
            for position, stored in found.items()
            if stored.record.state == "active"
        }

    # Vectors

    def vectors(
        self,
        row: NamespaceRow,
        model: VectorModel,
        *,
        after: int = 0,
        positions: Collection[int] | None = None,
    ) -> list[Vector]:
        """See `Transaction`."""
        seal = self._keys.known(row)
        found = self._inner.vectors(row, model, after=after, positions=positions)
        if seal is None:
            return found
        return [v._replace(data=seal.open(v.data, _vector(v.position))) for v in found]

    def without_vector(self, row: NamespaceRow, model: VectorModel, limit: int) -> list[int]:
        """See `Transaction`."""
        return self._inner.without_vector(row, model, limit)

    def put_vectors(self, row: NamespaceRow, model: VectorModel, vectors: Sequence[Vector]) -> None:
        """See `Transaction`.

        Raises:
            NotAllowed: The store was opened to keep no vectors.
        """
        if self._vectors == "refuse":
            raise NotAllowed('this store keeps no vectors (Encryption(vectors="refuse"))')
        seal = self._keys.seal(row)
        sealed = [v._replace(data=seal.seal(v.data, _vector(v.position))) for v in vectors]
        self._inner.put_vectors(row, model, sealed)

    def drop_vectors(self, row: NamespaceRow, *, keep: VectorModel) -> int:
        """See `Transaction`."""
        return self._inner.drop_vectors(row, keep=keep)

    def vector_counts(self, row: NamespaceRow) -> dict[VectorModel, int]:
        """See `Transaction`."""
        return self._inner.vector_counts(row)

    # What hosts keep beside the records

    def decision(self, row: NamespaceRow, scope: str, key: str) -> Decision | None:
        """See `Transaction`."""
        seal = self._keys.known(row)
        if seal is None:
            return self._inner.decision(row, scope, key)
        found = self._inner.decision(row, scope, seal.name(key, scope))
        return None if found is None else opened_decision(seal, found)

    def decisions(self, row: NamespaceRow, scope: str) -> list[Decision]:
        """See `Transaction`."""
        seal = self._keys.known(row)
        found = self._inner.decisions(row, scope)
        return found if seal is None else [opened_decision(seal, each) for each in found]

    def scopes(self, row: NamespaceRow) -> list[str]:
        """See `Transaction`; the wrapped keys are no decisions of anybody's."""
        return [scope for scope in self._inner.scopes(row) if scope != KEYS]

    def decided_for(self, row: NamespaceRow, uids: Collection[str]) -> dict[tuple[str, str], int]:
        """See `Transaction`."""
        return self._inner.decided_for(row, uids)

    def decide(self, row: NamespaceRow, decision: Decision) -> None:
        """See `Transaction`."""
        seal, value = self._keys.seal(row), decision.value
        key = seal.name(decision.key, decision.scope)
        sealed = None if value is None else seal.seal_text(value, f"{decision.scope} {key}")
        self._inner.decide(row, replace(decision, key=key, value=sealed))

    def undecide(self, row: NamespaceRow, scope: str, key: str) -> None:
        """See `Transaction`."""
        seal = self._keys.known(row)
        self._inner.undecide(row, scope, key if seal is None else seal.name(key, scope))

    def hold(self, row: NamespaceRow, owner: str, uid: str) -> None:
        """See `Transaction`."""
        self._inner.hold(row, self._keys.seal(row).name(owner, "hold"), uid)

    def release(self, row: NamespaceRow, owner: str) -> None:
        """See `Transaction`."""
        seal = self._keys.known(row)
        self._inner.release(row, owner if seal is None else seal.name(owner, "hold"))

    def held(self, row: NamespaceRow) -> set[str]:
        """See `Transaction`."""
        return self._inner.held(row)

    def holds(self, row: NamespaceRow) -> list[tuple[str, str]]:
        """See `Transaction`."""
        seal, held = self._keys.known(row), self._inner.holds(row)
        if seal is None:
            return held
        return sorted((seal.open_name(owner, "hold"), uid) for owner, uid in held)

    # Erasing

    def erase(self, row: NamespaceRow, stored: Sequence[Stored], *, nameless: str) -> None:
        """See `Transaction`."""
        uids = {one.record.uid for one in stored}
        for decision in self.decisions(row, nameless):
            if decision.uid in uids:
                self.undecide(row, nameless, decision.key)
                gone = replace(decision, key=purged_key(decision.key), value=None)
                self.decide(row, gone)
        self._inner.erase(row, stored, nameless=_NO_SCOPE)


def _vector(position: int) -> str:
    return f"vector {position}"
