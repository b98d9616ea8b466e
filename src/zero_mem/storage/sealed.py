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

import base64
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from zero_mem.errors import NotAllowed
from zero_mem.index.document import index_terms
from zero_mem.storage.base import (
    SEALED,
    Change,
    Decision,
    JournalEntry,
    NamespaceRow,
    Posting,
    Storage,
    Transaction,
    Vector,
    VectorModel,
)
from zero_mem.storage.codec import Stored, decode_body, encode_body, encode_fields, purged_key
from zero_mem.storage.keys import KEY_BYTES, KeyFile, Master
from zero_mem.storage.seal import Seal
from zero_mem.types import Blob, Body, MemoryRecord, Path

Vectors: TypeAlias = Literal["seal", "refuse"]

MEDIA_TYPE: Final = "application/x-zero-mem-sealed"
"""The media type of a sealed body; whoever opens the store without its keys sees this."""

_KEYS: Final = "zero-mem:keys"
_METADATA: Final = "sealed"
_NAMED: Final = frozenset({"key", "task", "session", "speaker"})
_NO_SCOPE: Final = "zero-mem:none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Encryption:
    """How a store is encrypted.

    Attributes:
        master: Wraps the data keys.
        keys: A file for the wrapped keys; None keeps them in the store, where backups have
            them too.
        vectors: "seal" encrypts embeddings at rest, "refuse" stores none.
    """

    master: Master
    keys: KeyFile | None = None
    vectors: Vectors = "seal"


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
        """
        with self._inner.transaction(write=True) as transaction:
            row = transaction.create_namespace(path)
            number = Keys(transaction, self._encryption, {}).renew(row)
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


class Keys:
    """The data keys of namespaces, read through one transaction of the store beneath."""

    def __init__(
        self, transaction: Transaction, encryption: Encryption, seals: dict[Path, Seal]
    ) -> None:
        self._transaction = transaction
        self._encryption = encryption
        self._seals = seals
        self._fresh: dict[Path, Seal] = {}

    def seal(self, row: NamespaceRow) -> Seal:
        """Give the seal of a namespace, making its first key where it has none."""
        found = self.known(row)
        if found is None:
            self.renew(row)
            # Not among the store's own: its transaction may yet roll back.
            found = self._fresh[row.path] = Seal(row.path, self.unwrapped(row))
        return found

    def known(self, row: NamespaceRow) -> Seal | None:
        """Give the seal of a namespace, None where nothing was written to it yet.

        Raises:
            NotAllowed: Its keys were erased, or are not where they should be.
        """
        found = self._fresh.get(row.path) or self._seals.get(row.path)
        if found is None:
            keys = self.unwrapped(row)
            if not keys:
                self._check_unwritten(row)
                return None
            found = self._seals[row.path] = Seal(row.path, keys)
        return found

    def _check_unwritten(self, row: NamespaceRow) -> None:
        """Refuse a namespace that has values and no key to them."""
        # The row at hand may count changes that are still to be written.
        there = self._transaction.namespace(row.path)
        if self._wrapped(row) or (there is not None and there.sequence):
            raise NotAllowed(f"the keys of namespace {row.path} were erased, or are missing")

    def unwrapped(self, row: NamespaceRow) -> dict[int, bytes]:
        """Read and unwrap the data keys of a namespace."""
        unwrap, context = self._encryption.master.unwrap, _context(row)
        return {
            int(number): unwrap(base64.b64decode(wrapped), context)
            for number, wrapped in self._wrapped(row).items()
            if wrapped
        }

    def keep(self, row: NamespaceRow, keys: Mapping[int, bytes]) -> None:
        """Wrap and keep data keys, over those of the same number."""
        wrap, context = self._encryption.master.wrap, _context(row)
        written = {
            str(number): base64.b64encode(wrap(key, context)).decode("ascii")
            for number, key in keys.items()
        }
        if self._encryption.keys is not None:
            self._encryption.keys.write(row.path, {**self._wrapped(row), **written})
            return
        for number, text in written.items():
            self._transaction.decide(row, Decision(scope=_KEYS, key=number, value=text))

    def renew(self, row: NamespaceRow) -> int:
        """Make a new data key."""
        number = max(map(int, self._wrapped(row)), default=0) + 1
        self.keep(row, {number: os.urandom(KEY_BYTES)})
        return number

    def erase(self, row: NamespaceRow) -> bool:
        """Erase every data key of a namespace, but for its number; tell whether there were any."""
        erased = dict.fromkeys(number for number, key in self._wrapped(row).items() if key)
        if self._encryption.keys is not None:
            self._encryption.keys.write(row.path, dict.fromkeys(self._wrapped(row), ""))
        for number in erased if self._encryption.keys is None else ():
            self._transaction.decide(row, Decision(scope=_KEYS, key=number, value=None))
        return bool(erased)

    def _wrapped(self, row: NamespaceRow) -> dict[str, str]:
        if self._encryption.keys is not None:
            return self._encryption.keys.read(row.path)
        found = self._transaction.decisions(row, _KEYS)
        return {decision.key: decision.value or "" for decision in found}


def _context(row: NamespaceRow) -> bytes:
    return json.dumps(row.path).encode()


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
        """See `Transaction`."""
        return self._inner.namespaces(prefix)

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
        asked = equalities if seal is None else _sealed_equalities(seal, equalities)
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
        self._inner.apply(row, [_sealed_change(seal, change, contents) for change in changes])

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
            yield entry if seal is None else _opened_entry(seal, entry)

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
        return None if found is None else _opened_decision(seal, found)

    def decisions(self, row: NamespaceRow, scope: str) -> list[Decision]:
        """See `Transaction`."""
        seal = self._keys.known(row)
        found = self._inner.decisions(row, scope)
        return found if seal is None else [_opened_decision(seal, each) for each in found]

    def scopes(self, row: NamespaceRow) -> list[str]:
        """See `Transaction`; the wrapped keys are no decisions of anybody's."""
        return [scope for scope in self._inner.scopes(row) if scope != _KEYS]

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


def _sealed_equalities(
    seal: Seal, equalities: Mapping[str, Collection[object]]
) -> dict[str, Collection[object]]:
    return {
        field: [seal.name(str(value), field) for value in values] if field in _NAMED else values
        for field, values in equalities.items()
    }


def _vector(position: int) -> str:
    return f"vector {position}"


def _sealed_change(seal: Seal, change: Change, contents: dict[str, Body]) -> Change:
    """Seal a change; `contents` has the sealed body that each record has so far."""
    record = change.after.record
    before = change.before
    if before is not None and record.memory_id not in contents:
        # A stand-in: an old body is named by its number, and only its identity is looked at.
        contents[record.memory_id] = Blob(data=b"sealed", media_type=MEDIA_TYPE)
    old = contents.get(record.memory_id)
    if change.body_changed:
        contents[record.memory_id] = sealed_body(seal, record)
    after = sealed(seal, change.after, contents[record.memory_id])
    return change._replace(
        before=None if before is None or old is None else sealed(seal, before, old),
        after=after,
        reason=seal.seal_text(change.reason, f"reason {record.uid}") if change.reason else "",
        fields=encode_fields(after),
        terms=seal.term_list(index_terms(record)) if record.state == "active" else (),
    )


def sealed_body(seal: Seal, record: MemoryRecord) -> Blob:
    """Seal a record's body with its type."""
    kind, data = encode_body(record.content)
    head = kind.encode()
    whole = len(head).to_bytes(2, "big") + head + data
    return Blob(data=seal.seal(whole, f"body {record.uid}"), media_type=MEDIA_TYPE)


def opened_body(seal: Seal, body: Body, uid: str) -> Body:
    """Give a body back; one that was never sealed as it is."""
    if not isinstance(body, Blob) or body.media_type != MEDIA_TYPE:
        return body
    whole = seal.open(body.data, f"body {uid}")
    end = 2 + int.from_bytes(whole[:2], "big")
    return decode_body(whole[2:end].decode(), whole[end:])


def sealed(seal: Seal, stored: Stored, content: Body) -> Stored:
    """Seal all of a record that could tell what it says."""
    record = stored.record
    names: dict[str, Any] = {
        field: seal.name(value, field)
        for field in _NAMED
        if (value := getattr(record, field)) is not None
    }
    private = json.dumps([record.metadata, stored.parent])
    metadata = {_METADATA: seal.seal_text(private, f"metadata {record.uid}")}
    return stored._replace(
        record=replace(
            record,
            content=content,
            metadata=metadata,
            tags=tuple(seal.name(tag, "tags") for tag in record.tags),
            invalidated_by=tuple(seal.name(each, "event") for each in record.invalidated_by),
            **names,
        ),
        dedupe=None if stored.dedupe is None else seal.name(stored.dedupe, "dedupe"),
        parent="",
    )


def opened(seal: Seal, stored: Stored) -> Stored:
    """Give a record back; what was never sealed as it is."""
    record = stored.record
    text = record.metadata.get(_METADATA)
    if not isinstance(text, str) or len(record.metadata) != 1:
        return stored
    metadata, parent = json.loads(seal.open_text(text, f"metadata {record.uid}"))
    names: dict[str, Any] = {
        field: seal.open_name(value, field)
        for field in _NAMED
        if (value := getattr(record, field)) is not None
    }
    return stored._replace(
        record=replace(
            record,
            content=opened_body(seal, record.content, record.uid),
            metadata=metadata,
            tags=tuple(seal.open_name(tag, "tags") for tag in record.tags),
            invalidated_by=tuple(seal.open_name(each, "event") for each in record.invalidated_by),
            **names,
        ),
        dedupe=None if stored.dedupe is None else seal.open_name(stored.dedupe, "dedupe"),
        parent=parent,
    )


def _opened_entry(seal: Seal, entry: JournalEntry) -> JournalEntry:
    record = None if entry.record is None else opened(seal, entry.record)
    reason = seal.open_text(entry.reason, f"reason {entry.uid}") if entry.reason else ""
    return replace(
        entry,
        record=record,
        reason=reason,
        parent=entry.parent if record is None else record.parent,
        before=None if entry.before is None else opened_body(seal, entry.before, entry.uid),
    )


def _opened_decision(seal: Seal, decision: Decision) -> Decision:
    key, value = decision.key, decision.value
    if value is not None:
        value = seal.open_text(value, f"{decision.scope} {key}")
    return replace(decision, key=seal.open_name(key, decision.scope), value=value)
