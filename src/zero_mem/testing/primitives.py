"""The primitives of `storage.base`, one by one: what a store must do beneath the operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from zero_mem.index.document import index_terms
from zero_mem.memory import Memory
from zero_mem.space import Namespace
from zero_mem.storage.base import Decision, NamespaceRow, Posting, Storage, Stored, Transaction
from zero_mem.storage.times import to_micros
from zero_mem.testing.fakes import FakeClock
from zero_mem.testing.fixtures import StoreFixtures, texts
from zero_mem.types import Blob, Body, Json

ACME = ("acme", "alice")


class Undone(Exception):
    """Ends a transaction on purpose."""


@contextmanager
def reading(storage: Storage) -> Iterator[tuple[Transaction, NamespaceRow]]:
    """Open a read transaction on the namespace of the tests."""
    with storage.transaction() as transaction:
        row = transaction.namespace(ACME)
        assert row is not None
        yield transaction, row


@contextmanager
def writing(storage: Storage) -> Iterator[tuple[Transaction, NamespaceRow]]:
    """Open a write transaction on the namespace of the tests."""
    with storage.transaction(write=True) as transaction:
        yield transaction, transaction.create_namespace(ACME)


def ids(stored: Iterator[Stored]) -> list[str]:
    """Name the records of a scan."""
    return [one.record.memory_id for one in stored]


def _change_all(transaction: Transaction, row: NamespaceRow, uid: str, now: int) -> None:
    transaction.create_namespace(("acme", "new"))
    transaction.accessed(row, ["kept"], now)
    transaction.decide(row, Decision(scope="s", key="k", value="v"))
    transaction.hold(row, "owner", uid)
    transaction.store_namespace(replace(row, next_id=99))
    raise Undone


def _decide_anew(transaction: Transaction, row: NamespaceRow) -> None:
    transaction.undecide(row, "s", "b")
    transaction.decide(row, Decision(scope="s", key="b", value="anew"))
    raise Undone


class NamespacePrimitives(StoreFixtures):
    """Transactions and the rows of namespaces."""

    @pytest.mark.req("op:order")
    def test_a_namespace_is_there_once_it_was_made(self, storage: Storage) -> None:
        """Reading makes nothing; making twice gives the same row."""
        with storage.transaction() as transaction:
            assert transaction.namespace(ACME) is None
            assert transaction.namespaces(()) == []
        with storage.transaction(write=True) as transaction:
            made = transaction.create_namespace(ACME)
            assert transaction.create_namespace(ACME).number == made.number
        with reading(storage) as (_, row):
            assert (row.path, row.next_id, row.sequence) == (ACME, 1, 0)

    @pytest.mark.req("op:list", "handle:scope")
    def test_namespaces_below_a_path_are_whole_segments(self, storage: Storage) -> None:
        """A look-alike prefix is no parent, and no joining of segments makes two paths one."""
        paths = [
            ("acme",),
            ("acme", "alice"),
            ("acme-corp",),
            ("acme", "b:c"),
            ("acme", "b", "c"),
            ("acme", 'b","c'),
            ("ACME",),
            ("公司", "用户"),
        ]
        with storage.transaction(write=True) as transaction:
            for path in paths:
                transaction.create_namespace(path)
        with storage.transaction() as transaction:
            everything = transaction.namespaces(())
            assert [row.path for row in everything] == paths
            assert len({row.number for row in everything}) == len(paths)
            below = [row.path for row in transaction.namespaces(("acme",))]
            assert below == [path for path in paths if path[0] == "acme"]
            assert [row.path for row in transaction.namespaces(("acme", "b"))] == [paths[4]]

    @pytest.mark.req("op:save")
    def test_counters_and_settings_are_kept(self, storage: Storage) -> None:
        """What store_namespace wrote is what namespace reads."""
        with writing(storage) as (transaction, row):
            changed = replace(row, next_id=7, sequence=3, last_at=12, settings="[1]")
            transaction.store_namespace(changed)
        with reading(storage) as (_, row):
            assert row == changed

    @pytest.mark.req("op:save")
    def test_an_exception_undoes_all_of_a_transaction(
        self, storage: Storage, memory: Memory, space: Namespace
    ) -> None:
        """Namespaces, records, decisions and holds go back together."""
        uid = space.get(space.save("kept", memory_id="kept").memory_id).uid
        with pytest.raises(Undone), writing(storage) as (transaction, row):
            _change_all(transaction, row, uid, to_micros(memory.now()))
        with reading(storage) as (transaction, row):
            assert transaction.namespace(("acme", "new")) is None
            assert transaction.decision(row, "s", "k") is None
            assert transaction.held(row) == set()
            assert row.next_id == 1
        assert space.get("kept").access_count == 0

    @pytest.mark.req("op:order")
    def test_a_write_is_seen_by_the_next_transaction(
        self, storage: Storage, space: Namespace
    ) -> None:
        """A scan that was left in the middle keeps nobody from the newest state."""
        space.save_many([{"content": f"text {number}"} for number in range(5)])
        with reading(storage) as (transaction, row):
            abandoned = transaction.scan(row, {})
            next(abandoned)
        space.save("text 5")
        assert len(texts(space)) == 6
        del abandoned

    @pytest.mark.req("history:journal")
    def test_a_store_has_a_name_of_its_own(self, storage: Storage, space: Namespace) -> None:
        """Journal entries carry it."""
        space.save("text")
        with reading(storage) as (transaction, row):
            assert [entry.origin for entry in transaction.journal(row)] == [storage.origin]
        assert len(storage.origin) >= 8

    @pytest.mark.req("op:stats")
    def test_a_store_tells_its_size_and_closes_twice(self, storage: Storage) -> None:
        """Neither needs anything to be there."""
        assert storage.size() >= 0
        storage.scrub()
        storage.close()
        storage.close()


class RecordPrimitives(StoreFixtures):
    """Reading and counting records, and the journal's rows."""

    @pytest.fixture
    def mixed(self, space: Namespace, clock: FakeClock) -> Namespace:
        """Save records of several kinds and states."""
        space.save("one", memory_id="one", kind="task_state", task="t", session="s")
        space.save("two", memory_id="two", kind="user_pref", key="tz", expires_in=60)
        space.save("three", memory_id="three", kind="user_pref", key="lang")
        space.save("four", memory_id="four")
        space.archive("three")
        space.delete("four")
        clock.advance()
        return space

    @pytest.mark.req("op:get", "record:body")
    def test_records_are_read_by_id_in_whatever_state(
        self, storage: Storage, mixed: Namespace
    ) -> None:
        """Unknown ids are left out, and asking for none gives none."""
        with reading(storage) as (transaction, row):
            found = transaction.by_ids(row, ["four", "one", "no", "three", "one"])
            states = {key: stored.record.state for key, stored in found.items()}
            assert states == {"one": "active", "three": "archived", "four": "deleted"}
            assert transaction.by_ids(row, []) == {}

    @pytest.mark.req("op:dedupe-key")
    def test_only_active_records_hold_a_key(self, storage: Storage, mixed: Namespace) -> None:
        """An expired one still holds it; an archived one does not."""
        asked = [("user_pref", "key:tz"), ("user_pref", "key:lang"), ("note", "key:tz")]
        with reading(storage) as (transaction, row):
            held = transaction.by_keys(row, asked)
            assert {key: stored.record.memory_id for key, stored in held.items()} == {
                ("user_pref", "key:tz"): "two"
            }
            assert transaction.by_keys(row, []) == {}

    @pytest.mark.req("op:list")
    def test_a_scan_is_in_order_of_first_saving(
        self, storage: Storage, mixed: Namespace, other: Namespace
    ) -> None:
        """Changes keep a record's place; `after` reads on from one."""
        other.save("elsewhere")
        mixed.update("one", content="changed")
        mixed.restore("four")
        with reading(storage) as (transaction, row):
            scanned = list(transaction.scan(row, {}))
            assert ids(iter(scanned)) == ["one", "two", "three", "four"]
            positions = [stored.position for stored in scanned]
            assert positions == sorted(positions)
            assert ids(transaction.scan(row, {}, after=positions[1])) == ["three", "four"]
            at = transaction.by_positions(row, [positions[2], positions[0], 1 << 60])
            assert {place: one.record.memory_id for place, one in at.items()} == {
                positions[0]: "one",
                positions[2]: "three",
            }

    @pytest.mark.req("index:filters")
    @pytest.mark.parametrize(
        "equalities",
        [
            {"kind": ("task_state",)},
            {"form": ("working", "semantic"), "state": ("active",)},
            {"task": ("t", "u")},
            {"session": ("s",)},
            {"memory_id": ("one", "no")},
            {"key": ("tz",), "state": ("active", "archived")},
            {"kind": ()},
        ],
    )
    def test_equalities_may_narrow_a_scan_and_lose_nothing(
        self, storage: Storage, mixed: Namespace, equalities: dict[str, tuple[str, ...]]
    ) -> None:
        """Every record that has the values is read, in order."""
        with reading(storage) as (transaction, row):
            wanted = [
                stored.record.memory_id
                for stored in transaction.scan(row, {})
                if all(getattr(stored.record, name) in of for name, of in equalities.items())
            ]
            scanned = ids(transaction.scan(row, equalities))
        assert [memory_id for memory_id in scanned if memory_id in wanted] == wanted

    @pytest.mark.req("expire:time")
    def test_a_scan_for_what_has_expired_knows_the_instant(
        self, storage: Storage, mixed: Namespace
    ) -> None:
        """At the instant of expiry a record counts, a microsecond before it does not."""
        expiry = mixed.get("two").expires_at
        assert expiry is not None
        due = to_micros(expiry)
        with reading(storage) as (transaction, row):
            assert ids(transaction.scan(row, {}, expires_by=due)) == ["two"]
            assert ids(transaction.scan(row, {}, expires_by=due - 1)) == []

    @pytest.mark.req("limits:overflow")
    def test_active_records_come_by_use(
        self, storage: Storage, space: Namespace, clock: FakeClock
    ) -> None:
        """The least used first: by last use, then by recalls, then by age."""
        for name in ("a", "b", "c", "d"):
            space.save(name, memory_id=name)
        space.recall_for_prompt(["b"])
        clock.advance()
        space.update("a", content="changed")
        space.archive("d")
        space.save("state", kind="task_state", memory_id="w")
        with reading(storage) as (transaction, row):
            assert ids(transaction.by_use(row, form=None, kind=None)) == ["c", "b", "a", "w"]
            assert ids(transaction.by_use(row, form="semantic", kind="note")) == ["c", "b", "a"]
            assert ids(transaction.by_use(row, form="working", kind=None)) == ["w"]

    @pytest.mark.req("op:stats", "limits:defaults")
    def test_counting_by_form_kind_and_state(self, storage: Storage, mixed: Namespace) -> None:
        """Active ones that have expired are in the tally and not in the count."""
        expiry = mixed.get("two").expires_at
        assert expiry is not None
        due = to_micros(expiry)
        with reading(storage) as (transaction, row):
            assert transaction.tally(row) == {
                ("active", "working"): 1,
                ("active", "semantic"): 1,
                ("archived", "semantic"): 1,
                ("deleted", "semantic"): 1,
            }
            counts = [
                transaction.count_active(row, now=now, form=form, kind=kind)
                for now, form, kind in [
                    (due - 1, None, None),
                    (due, None, None),
                    (due - 1, "semantic", None),
                    (due - 1, "working", "task_state"),
                    (due - 1, "semantic", "task_state"),
                ]
            ]
        assert counts == [2, 1, 1, 1, 0]

    @pytest.mark.req("op:touch")
    def test_an_access_is_noted_once_and_never_goes_back(
        self, storage: Storage, mixed: Namespace, memory: Memory
    ) -> None:
        """Unknown ids are passed over."""
        now = to_micros(memory.now())
        with writing(storage) as (transaction, row):
            transaction.accessed(row, ["one", "no", "one"], now + 5)
            transaction.accessed(row, ["one"], now)
        record = mixed.get("one")
        assert (to_micros(record.accessed_at), record.access_count) == (now + 5, 2)
        assert mixed.get("two").access_count == 0

    @pytest.mark.req("history:journal")
    def test_the_journal_is_read_by_record_group_place_and_time(
        self, storage: Storage, mixed: Namespace, clock: FakeClock, other: Namespace
    ) -> None:
        """Sequences count up by one in each namespace."""
        before = to_micros(clock())
        clock.advance()
        mixed.save_many([{"content": "five"}, {"content": "six"}])
        other.save("elsewhere")
        with reading(storage) as (transaction, row):
            everything = list(transaction.journal(row))
            assert [entry.sequence for entry in everything] == list(range(1, 9))
            assert row.sequence == 8
            of_four = transaction.journal(row, memory_id="four")
            assert [entry.operation for entry in of_four] == ["save", "delete"]
            assert [e.sequence for e in transaction.journal(row, group=7)] == [7, 8]
            assert [e.sequence for e in transaction.journal(row, after=6)] == [7, 8]
            until = transaction.journal(row, until_at=before, after=4)
            assert [entry.sequence for entry in until] == [5, 6]
            assert list(transaction.journal(row, memory_id="no")) == []

    @pytest.mark.req("history:journal", "record:body")
    def test_the_journal_has_each_version_and_the_body_before(
        self, storage: Storage, space: Namespace
    ) -> None:
        """Bodies of every kind come back from it as they went in."""
        bodies: list[Body] = [
            "text",
            Json({"a": [1, 2.5, None]}),
            Blob(data=b"\0\xff", media_type="image/png"),
        ]
        space.save(bodies[0], memory_id="x")
        for body in bodies[1:]:
            space.update("x", content=body)
        space.archive("x")
        with reading(storage) as (transaction, row):
            entries = list(transaction.journal(row, memory_id="x"))
            current = transaction.by_ids(row, ["x"])["x"]
        records = [entry.record.record for entry in entries if entry.record]
        assert [record.content for record in records] == [*bodies, bodies[-1]]
        assert [entry.before for entry in entries] == [None, *bodies]
        assert [entry.version for entry in entries] == [1, 2, 3, 4]
        assert [entry.before_version for entry in entries] == [0, 1, 2, 3]
        digests = [entry.record.digest for entry in entries if entry.record]
        assert [entry.parent for entry in entries] == ["", *digests[:-1]]
        assert current.digest == digests[-1]
        assert len(set(digests)) == 4


class IndexPrimitives(StoreFixtures):
    """The positional inverted list."""

    @pytest.fixture
    def indexed(self, space: Namespace, other: Namespace) -> Namespace:
        """Save records that share terms, and change some of them."""
        space.save("red bicycle, red bell", memory_id="bike", tags=["outdoor"])
        space.save("blue car", memory_id="car", key="vehicle")
        space.save("用户正在申请退款", memory_id="refund")
        space.save("red herring", memory_id="gone")
        space.save("red brick", memory_id="filed")
        other.save("red red red", memory_id="bike")
        space.update("car", content="blue bus")
        space.delete("gone")
        space.archive("filed")
        return space

    @pytest.mark.req("index:languages", "op:order")
    def test_the_index_is_what_the_active_records_say(
        self, storage: Storage, indexed: Namespace
    ) -> None:
        """Frequencies, postings, documents and statistics agree with a rebuild."""
        with reading(storage) as (transaction, row):
            active = {s.position: s for s in transaction.scan(row, {"state": ("active",)})}
            terms = {
                place: index_terms(stored.record)
                for place, stored in active.items()
                if stored.record.state == "active"
            }
            assert (row.documents, row.length) == (len(terms), sum(map(len, terms.values())))
            assert {p: list(t) for p, t in transaction.documents(row, list(terms)).items()} == terms
            vocabulary = {term for listed in terms.values() for term in listed}
            holders = {term: sum(term in of for of in terms.values()) for term in vocabulary}
            assert transaction.frequencies(row, [*vocabulary, "herr", "car"]) == holders
            for term in vocabulary:
                assert transaction.postings(row, term) == [
                    Posting(place, Counter(listed)[term], len(listed))
                    for place, listed in sorted(terms.items())
                    if term in listed
                ]

    @pytest.mark.req("op:update", "op:delete")
    def test_what_is_gone_is_in_no_list(self, storage: Storage, indexed: Namespace) -> None:
        """Old words of an update, a deleted and an archived record leave no posting."""
        with reading(storage) as (transaction, row):
            everywhere = {s.record.memory_id: s.position for s in transaction.scan(row, {})}
            ended = [everywhere["gone"], everywhere["filed"]]
            assert transaction.documents(row, ended) == {}
            assert [transaction.postings(row, term) for term in ("car", "brick", "no")] == [[]] * 3
            assert transaction.frequencies(row, ["car", "brick", "no"]) == {}

    @pytest.mark.req("index:languages")
    def test_one_namespace_weighs_nothing_in_another(
        self, storage: Storage, indexed: Namespace, other: Namespace
    ) -> None:
        """Postings and statistics are the namespace's own."""
        with reading(storage) as (transaction, row):
            before = transaction.postings(row, "red"), row.documents, row.length
        other.save_many([{"content": "red red"} for _ in range(20)])
        with reading(storage) as (transaction, row):
            assert (transaction.postings(row, "red"), row.documents, row.length) == before


class HostPrimitives(StoreFixtures):
    """Decisions, holds and the erasing of both."""

    @pytest.mark.req("controller:offload")
    def test_decisions_keep_the_order_they_were_first_made(self, storage: Storage) -> None:
        """A new value keeps its place; forgetting and deciding anew takes a new one."""
        with writing(storage) as (transaction, row):
            for key in ("b", "a", "c"):
                transaction.decide(row, Decision(scope="s", key=key, value=key))
            transaction.decide(row, Decision(scope="t", key="a", value="other scope"))
            transaction.decide(row, Decision(scope="s", key="b", value="changed", uid="u"))
            transaction.undecide(row, "s", "a")
            transaction.undecide(row, "s", "never there")
            transaction.decide(row, Decision(scope="s", key="a", value="anew"))
        with reading(storage) as (transaction, row):
            listed = transaction.decisions(row, "s")
            assert [(d.key, d.value, d.uid) for d in listed] == [
                ("b", "changed", "u"),
                ("c", "c", None),
                ("a", "anew", None),
            ]
            assert transaction.decision(row, "s", "c") == Decision(scope="s", key="c", value="c")
            assert transaction.decision(row, "s", "no") is None
            assert transaction.decisions(row, "no") == []

    @pytest.mark.req("controller:offload")
    def test_the_scopes_of_a_namespace_are_its_own(self, storage: Storage) -> None:
        """A host can list what it keeps."""
        with storage.transaction(write=True) as transaction:
            row, other = transaction.create_namespace(("a",)), transaction.create_namespace(("b",))
            assert transaction.scopes(row) == []
            for scope in ("y", "x", "y"):
                transaction.decide(row, Decision(scope=scope, key=scope, value="1"))
            assert transaction.scopes(row) == ["x", "y"]
            assert transaction.scopes(other) == []

    @pytest.mark.req("history:purge")
    def test_what_belongs_to_a_record_is_counted_by_scope(self, storage: Storage) -> None:
        """Values alone: not what was erased, nor what belongs to others or elsewhere."""
        with storage.transaction(write=True) as transaction:
            row, other = transaction.create_namespace(("a",)), transaction.create_namespace(("b",))
            for scope, key, uid in [
                ("s", "1", "u"),
                ("s", "2", "u"),
                ("t", "1", "u"),
                ("s", "3", "v"),
            ]:
                transaction.decide(row, Decision(scope=scope, key=key, value="x", uid=uid))
            transaction.decide(row, Decision(scope="s", key="4", value=None, uid="u"))
            transaction.decide(row, Decision(scope="s", key="5", value="x"))
            transaction.decide(other, Decision(scope="s", key="1", value="x", uid="u"))
            assert transaction.decided_for(row, ["u"]) == {("u", "s"): 2, ("u", "t"): 1}
            assert transaction.decided_for(row, ["v", "w"]) == {("v", "s"): 1}
            assert transaction.decided_for(row, []) == {}

    @pytest.mark.req("prod:storage")
    def test_notes_are_the_stores_as_a_whole(self, storage: Storage) -> None:
        """A note is read back, replaced, and listed by the beginning of its name."""
        assert storage.note("x.1") is None
        storage.keep_note("x.1", "one")
        storage.keep_note("x.2", "two")
        storage.keep_note("x.1", "new")
        assert storage.note("x.1") == "new"
        assert storage.notes("x.") == {"x.1": "new", "x.2": "two"}
        assert storage.notes("y") == {}

    @pytest.mark.req("controller:offload")
    def test_an_undone_transaction_leaves_the_order_of_decisions(self, storage: Storage) -> None:
        """Also where it had forgotten one, and decided it anew."""
        with writing(storage) as (transaction, row):
            for key in ("b", "a", "c"):
                transaction.decide(row, Decision(scope="s", key=key, value=key))
        with pytest.raises(Undone), writing(storage) as (transaction, row):
            _decide_anew(transaction, row)
        with reading(storage) as (transaction, row):
            listed = transaction.decisions(row, "s")
        assert [decision.value for decision in listed] == ["b", "a", "c"]

    @pytest.mark.req("limits:overflow")
    def test_a_record_is_held_until_its_last_owner_lets_go(self, storage: Storage) -> None:
        """Holding twice is holding once."""
        with writing(storage) as (transaction, row):
            for owner, uid in [("a", "1"), ("a", "1"), ("a", "2"), ("b", "2")]:
                transaction.hold(row, owner, uid)
        with writing(storage) as (transaction, row):
            assert transaction.held(row) == {"1", "2"}
            transaction.release(row, "a")
            transaction.release(row, "nobody")
            assert transaction.held(row) == {"2"}
            transaction.release(row, "b")
        with reading(storage) as (transaction, row):
            assert transaction.held(row) == set()

    @pytest.mark.req("history:purge")
    def test_erasing_leaves_a_tombstone_and_the_neighbours(
        self, storage: Storage, space: Namespace, other: Namespace
    ) -> None:
        """Id, uid, place and versions stay; bodies, names, decisions and holds are gone."""
        options: dict[str, Any] = {
            "kind": "secret_kind",
            "key": "k",
            "task": "t",
            "metadata": {"m": 1},
        }
        space.save("secret", memory_id="x", hold="owner", idempotency_key="once", **options)
        space.save("open", memory_id="y")
        other.save("secret elsewhere", memory_id="x", **options)
        uid = space.get("x").uid
        with writing(storage) as (transaction, row):
            transaction.decide(row, Decision(scope="s", key="k", value="of x", uid=uid))
            transaction.decide(row, Decision(scope="s", key="l", value="of nobody"))
            transaction.erase(row, list(transaction.by_ids(row, ["x"]).values()), nameless="gone")
        with reading(storage) as (transaction, row):
            tomb = transaction.by_ids(row, ["x"])["x"]
            record = tomb.record
            assert (record.uid, record.version, record.state) == (uid, 1, "deleted")
            assert (record.content, record.kind, record.key) == ("", "purged", None)
            assert (record.task, record.metadata, tomb.dedupe) == (None, {}, None)
            assert tomb.ended_by == "purge"
            assert [d.value for d in transaction.decisions(row, "s")] == [None, "of nobody"]
            assert transaction.held(row) == set()
            assert transaction.postings(row, "secret") == []
            assert row.documents == 1
            entries = list(transaction.journal(row, memory_id="x"))
            assert [(e.version, e.record, e.before) for e in entries] == [(1, None, None)]
        assert texts(space) == ["open"]
        assert texts(other) == ["secret elsewhere"]
