"""The in-memory store: the same contract in plain dictionaries, for one process."""

from __future__ import annotations

import copy
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from zero_mem.errors import StoreUnavailable
from zero_mem.index.vectors import REACH
from zero_mem.storage.base import (
    Change,
    Decision,
    Final,
    JournalEntry,
    NamespaceRow,
    Posting,
    Storage,
    Stored,
    Transaction,
    Vector,
    VectorModel,
    settle,
)
from zero_mem.storage.codec import (
    below,
    decode_fields,
    encode_fields,
    erase_fields,
    last_use,
    purged_key,
)
from zero_mem.storage.times import from_micros, to_micros
from zero_mem.types import Body, Json, Path

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class _Space:
    """The tables of one namespace."""

    row: NamespaceRow
    records: dict[str, Stored] = field(default_factory=dict)
    positions: dict[int, str] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    journal: list[JournalEntry] = field(default_factory=list)
    units: dict[int, Sequence[str]] = field(default_factory=dict)
    lexicon: dict[str, dict[int, int]] = field(default_factory=dict)
    vectors: dict[VectorModel, dict[int, Vector]] = field(default_factory=dict)
    last_vector: int = 0
    decisions: dict[tuple[str, str], Decision] = field(default_factory=dict)
    holds: set[tuple[str, str]] = field(default_factory=set)


class MemoryStorage(Storage):
    """Memories of one process; they end with it."""

    def __init__(self) -> None:
        self.origin = secrets.token_hex(8)
        self._spaces: dict[Path, _Space] = {}
        self._notes: dict[str, str] = {}
        self._closed = False
        self._lock = threading.RLock()

    @contextmanager
    def transaction(self, *, write: bool = False, durable: bool = True) -> Iterator[Transaction]:
        """See `Storage.transaction`; readers and writers take turns."""
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the store is closed; open it again")
            transaction = MemoryTransaction(self)
            try:
                yield transaction
            except BaseException:
                transaction.roll_back()
                raise

    def note(self, name: str) -> str | None:
        """See `Storage.note`."""
        return self._notes.get(name)

    def notes(self, prefix: str) -> dict[str, str]:
        """See `Storage.notes`."""
        return {name: value for name, value in self._notes.items() if name.startswith(prefix)}

    def keep_note(self, name: str, value: str) -> None:
        """See `Storage.keep_note`."""
        self._notes[name] = value

    def scrub(self, *, wait: bool = True) -> None:
        """Do nothing: an erased body is gone at once."""

    def scrub_pending(self) -> bool:
        """Tell that nothing is."""
        return False

    def size(self) -> int:
        """Tell 0: nothing is in a file."""
        return 0

    def close(self) -> None:
        """Refuse what comes after; the memories go with the object."""
        self._closed = True

    def space(self, path: Path) -> _Space | None:
        """Find a namespace's tables."""
        return self._spaces.get(path)

    def spaces(self) -> list[_Space]:
        """List every namespace's tables in the order they were made."""
        return list(self._spaces.values())

    def add_space(self, path: Path) -> _Space:
        """Make a namespace's tables."""
        row = NamespaceRow(number=len(self._spaces) + 1, path=path)
        self._spaces[path] = _Space(row=row)
        return self._spaces[path]

    def drop_space(self, path: Path) -> None:
        """Take a namespace's tables away again."""
        del self._spaces[path]


def _own(body: Body) -> Body:
    return Json(copy.deepcopy(body.value)) if isinstance(body, Json) else body


def _copied(stored: Stored) -> Stored:
    """Give a record whose JSON values are nobody else's."""
    record = stored.record
    if not record.metadata and not isinstance(record.content, Json):
        return stored
    metadata = copy.deepcopy(dict(record.metadata))
    record = replace(record, content=_own(record.content), metadata=metadata)
    return stored._replace(record=record)


class MemoryTransaction(Transaction):
    """The primitives over dictionaries, with a list of steps that undoes them."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage
        self._undo: list[Callable[[], object]] = []

    def roll_back(self) -> None:
        """Undo every step of this transaction."""
        while self._undo:
            self._undo.pop()()

    def _space(self, row: NamespaceRow) -> _Space:
        found = self._storage.space(row.path)
        assert found is not None
        return found

    def _put(self, table: dict[K, V], key: K, value: V) -> None:
        if key in table:
            old = table[key]
            self._undo.append(lambda: table.__setitem__(key, old))
        else:
            self._undo.append(lambda: table.pop(key))
        table[key] = value

    def _take(self, table: dict[K, V], key: K) -> V | None:
        if key not in table:
            return None
        old = table.pop(key)
        self._undo.append(lambda: table.__setitem__(key, old))
        return old

    # Namespaces

    def namespace(self, path: Path) -> NamespaceRow | None:
        found = self._storage.space(path)
        return None if found is None else replace(found.row)

    def create_namespace(self, path: Path) -> NamespaceRow:
        found = self._storage.space(path)
        if found is None:
            found = self._storage.add_space(path)
            self._undo.append(lambda: self._storage.drop_space(path))
        return replace(found.row)

    def namespaces(self, prefix: Path) -> list[NamespaceRow]:
        found = [space.row for space in self._storage.spaces()]
        return [replace(row) for row in found if below(prefix, row.path)]

    def store_namespace(self, row: NamespaceRow) -> None:
        space = self._space(row)
        old = space.row
        self._undo.append(lambda: setattr(space, "row", old))
        space.row = replace(row)

    # Records

    def by_ids(self, row: NamespaceRow, ids: Collection[str]) -> dict[str, Stored]:
        records = self._space(row).records
        return {key: _copied(records[key]) for key in dict.fromkeys(ids) if key in records}

    def by_keys(
        self, row: NamespaceRow, keys: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Stored]:
        space = self._space(row)
        held = {key: space.keys[key] for key in keys if key in space.keys}
        return {key: _copied(space.records[memory_id]) for key, memory_id in held.items()}

    def by_positions(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Stored]:
        space = self._space(row)
        known = (space.positions[position] for position in positions if position in space.positions)
        return {s.position: _copied(s) for s in map(space.records.__getitem__, known)}

    def scan(
        self,
        row: NamespaceRow,
        equalities: Mapping[str, Collection[object]],
        *,
        after: int = 0,
        expires_by: int | None = None,
    ) -> Iterator[Stored]:
        for stored in list(self._space(row).records.values()):
            if stored.position <= after:
                continue
            if expires_by is not None and not _expires_by(stored, expires_by):
                continue
            yield _copied(stored)

    def count_active(
        self, row: NamespaceRow, *, now: int, form: str | None, kind: str | None
    ) -> int:
        moment = from_micros(now)
        return sum(
            record.state == "active"
            and form in (None, record.form)
            and kind in (None, record.kind)
            and not record.expired(moment)
            for record in (stored.record for stored in self._space(row).records.values())
        )

    def by_use(self, row: NamespaceRow, *, form: str | None, kind: str | None) -> Iterator[Stored]:
        found = [
            stored
            for stored in self._space(row).records.values()
            if stored.record.state == "active"
            and form in (None, stored.record.form)
            and kind in (None, stored.record.kind)
        ]
        return map(_copied, sorted(found, key=last_use))

    def tally(self, row: NamespaceRow) -> dict[tuple[str, str], int]:
        records = (stored.record for stored in self._space(row).records.values())
        return dict(Counter((record.state, record.form) for record in records))

    def accessed(self, row: NamespaceRow, ids: Collection[str], at: int) -> None:
        records = self._space(row).records
        for key in dict.fromkeys(ids):
            if key in records:
                record = records[key].record
                shown = replace(
                    record,
                    accessed_at=max(record.accessed_at, from_micros(at)),
                    access_count=record.access_count + 1,
                )
                self._put(records, key, records[key]._replace(record=shown))

    # Changes

    def apply(self, row: NamespaceRow, changes: Sequence[Change]) -> None:
        space = self._space(row)
        for change in changes:
            self._append(space, _entry(row, change, self._storage.origin))
        for final in settle(changes):
            self._write(space, row, final)
        self.store_namespace(row)

    def _append(self, space: _Space, entry: JournalEntry) -> None:
        space.journal.append(entry)
        self._undo.append(space.journal.pop)

    def _write(self, space: _Space, row: NamespaceRow, final: Final) -> None:
        stored = _copied(final.after)
        position = stored.position
        self._place(space, stored)
        if final.terms is None:
            return
        self._drop_vectors(space, position)
        self._drop_unit(space, row, position)
        if stored.record.state == "active":
            self._add_unit(space, row, position, final.terms)

    def _place(self, space: _Space, stored: Stored) -> None:
        """Put a record in its tables, and what it held before out of them."""
        memory_id = stored.record.memory_id
        before = space.records.get(memory_id)
        for key in _keys(before):
            if space.keys.get(key) == memory_id:
                self._take(space.keys, key)
        for key in _keys(stored):
            self._put(space.keys, key, memory_id)
        self._put(space.positions, stored.position, memory_id)
        self._put(space.records, memory_id, stored)

    def _add_unit(
        self, space: _Space, row: NamespaceRow, position: int, terms: Sequence[str]
    ) -> None:
        self._put(space.units, position, tuple(terms))
        for term, frequency in Counter(terms).items():
            self._put(space.lexicon.setdefault(term, {}), position, frequency)
        row.documents += 1
        row.length += len(terms)

    def _drop_unit(self, space: _Space, row: NamespaceRow, position: int) -> None:
        terms = self._take(space.units, position)
        if terms is None:
            return
        for term in set(terms):
            self._take(space.lexicon[term], position)
        row.documents -= 1
        row.length -= len(terms)

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
        for entry in list(self._space(row).journal):
            wanted = (
                entry.sequence > after
                and memory_id in (None, entry.memory_id)
                and group in (None, entry.group)
                and (until_at is None or entry.at <= until_at)
            )
            if wanted:
                yield entry

    # Lexical index

    def frequencies(self, row: NamespaceRow, terms: Collection[str]) -> dict[str, int]:
        lexicon = self._space(row).lexicon
        return {term: len(lexicon[term]) for term in terms if lexicon.get(term)}

    def postings(self, row: NamespaceRow, term: str) -> list[Posting]:
        space = self._space(row)
        return [
            Posting(position, frequency, len(space.units[position]))
            for position, frequency in sorted(space.lexicon.get(term, {}).items())
        ]

    def documents(self, row: NamespaceRow, positions: Collection[int]) -> dict[int, Sequence[str]]:
        units = self._space(row).units
        return {position: units[position] for position in positions if position in units}

    # Vectors

    def vectors(
        self,
        row: NamespaceRow,
        model: VectorModel,
        *,
        after: int = 0,
        positions: Collection[int] | None = None,
    ) -> list[Vector]:
        space = self._space(row)
        found = space.vectors.get(model, {}) if space.last_vector > after else {}
        wanted = found.keys() if positions is None else found.keys() & set(positions)
        return [found[place] for place in sorted(wanted) if found[place].number > after]

    def without_vector(self, row: NamespaceRow, model: VectorModel, limit: int) -> list[int]:
        space = self._space(row)
        return sorted(space.units.keys() - space.vectors.get(model, {}).keys())[: -limit - 1 : -1]

    def put_vectors(self, row: NamespaceRow, model: VectorModel, vectors: Sequence[Vector]) -> None:
        space = self._space(row)
        table = space.vectors.setdefault(model, {})
        for vector in vectors:
            space.last_vector += 1
            self._put(table, vector.position, vector._replace(number=space.last_vector))

    def drop_vectors(self, row: NamespaceRow, *, keep: VectorModel) -> int:
        others = [t for model, t in self._space(row).vectors.items() if model != keep]
        gone = [(table, position) for table in others for position in table]
        for table, position in gone:
            self._take(table, position)
        return len(gone)

    def vector_counts(self, row: NamespaceRow) -> dict[VectorModel, int]:
        return {model: len(table) for model, table in self._space(row).vectors.items() if table}

    def _drop_vectors(self, space: _Space, position: int) -> None:
        """Drop the vectors of a record, and of those after it that have it as their context."""
        for table in space.vectors.values():
            self._take(table, position)
            for later in range(position + 1, position + 1 + REACH):
                if later in table and table[later].context == position:
                    self._take(table, later)

    # What hosts keep beside the records

    def decision(self, row: NamespaceRow, scope: str, key: str) -> Decision | None:
        return self._space(row).decisions.get((scope, key))

    def decisions(self, row: NamespaceRow, scope: str) -> list[Decision]:
        return [d for d in self._space(row).decisions.values() if d.scope == scope]

    def scopes(self, row: NamespaceRow) -> list[str]:
        return sorted({scope for scope, _ in self._space(row).decisions})

    def decided_for(self, row: NamespaceRow, uids: Collection[str]) -> dict[tuple[str, str], int]:
        wanted = set(uids)
        return dict(
            Counter(
                (d.uid, d.scope)
                for d in self._space(row).decisions.values()
                if d.uid is not None and d.uid in wanted and d.value is not None
            )
        )

    def decide(self, row: NamespaceRow, decision: Decision) -> None:
        self._put(self._space(row).decisions, (decision.scope, decision.key), decision)

    def undecide(self, row: NamespaceRow, scope: str, key: str) -> None:
        decisions = self._space(row).decisions
        before = dict(decisions)  # as a whole: the order is to come back too
        if decisions.pop((scope, key), None) is not None:
            self._undo.append(lambda: decisions.update(before))
            self._undo.append(decisions.clear)

    def hold(self, row: NamespaceRow, owner: str, uid: str) -> None:
        holds = self._space(row).holds
        if (owner, uid) not in holds:
            holds.add((owner, uid))
            self._undo.append(lambda: holds.discard((owner, uid)))

    def release(self, row: NamespaceRow, owner: str) -> None:
        self._drop_holds(self._space(row), owner=owner)

    def _drop_holds(self, space: _Space, *, owner: str = "", uid: str = "") -> None:
        gone = {hold for hold in space.holds if owner == hold[0] or uid == hold[1]}
        space.holds -= gone
        self._undo.append(lambda: space.holds.update(gone))

    def held(self, row: NamespaceRow) -> set[str]:
        return {uid for _, uid in self._space(row).holds}

    def holds(self, row: NamespaceRow) -> list[tuple[str, str]]:
        return sorted(self._space(row).holds)

    # Erasing

    def erase(self, row: NamespaceRow, stored: Sequence[Stored], *, nameless: str) -> None:
        space = self._space(row)
        for one in stored:
            uid = one.record.uid
            self._place(space, _tombstone(one))
            self._drop_vectors(space, one.position)
            self._drop_unit(space, row, one.position)
            self._erase_decisions(space, uid, nameless)
            self._drop_holds(space, uid=uid)
            self._erase_journal(space, one)
        self.store_namespace(row)

    def _erase_decisions(self, space: _Space, uid: str, nameless: str) -> None:
        old = space.decisions
        self._undo.append(lambda: setattr(space, "decisions", old))
        kept = (_purged(d, nameless) if d.uid == uid else d for d in old.values())
        space.decisions = {(decision.scope, decision.key): decision for decision in kept}

    def _erase_journal(self, space: _Space, stored: Stored) -> None:
        old = list(space.journal)
        self._undo.append(lambda: space.journal.__setitem__(slice(None), old))
        for place, entry in enumerate(old):
            if entry.memory_id == stored.record.memory_id:
                erased = replace(entry, record=None, before=None, parent="", reason="")
                space.journal[place] = erased


def _expires_by(stored: Stored, moment: int) -> bool:
    record = stored.record
    return record.state == "active" and record.expired(from_micros(moment))


def _keys(stored: Stored | None) -> list[tuple[str, str]]:
    """Give the unique key that a record holds, if it is active and has one."""
    if stored is None or stored.dedupe is None or stored.record.state != "active":
        return []
    return [(stored.record.kind, stored.dedupe)]


def _purged(decision: Decision, nameless: str) -> Decision:
    key = purged_key(decision.key) if decision.scope == nameless else decision.key
    return replace(decision, key=key, value=None)


def _tombstone(stored: Stored) -> Stored:
    record = stored.record
    return decode_fields(
        erase_fields(encode_fields(stored)),
        namespace=record.namespace,
        content="",
        position=stored.position,
        sequence=stored.sequence,
        accessed_at=to_micros(record.accessed_at),
        access_count=record.access_count,
    )


def _entry(row: NamespaceRow, change: Change, origin: str) -> JournalEntry:
    before, record = change.before, change.after.record
    # Accesses are not journalled: no past moment knows them.
    unread = replace(record, accessed_at=from_micros(change.at), access_count=0)
    return JournalEntry(
        namespace=row.path,
        sequence=change.after.sequence,
        group=change.group,
        at=change.at,
        actor=change.actor,
        operation=change.operation,
        reason=change.reason,
        origin=change.origin or origin,
        memory_id=record.memory_id,
        uid=record.uid,
        version=record.version,
        parent=change.after.parent,
        record=_copied(change.after._replace(record=unread)),
        before_version=before.record.version if before else 0,
        before=_own(before.record.content) if before else None,
    )
