"""Keys, idempotency keys and near-equal records: what is saved only once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from zero_mem.errors import Conflict
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock
from zero_mem.testing.fixtures import StoreFixtures, texts


class KeyConformance(StoreFixtures):
    """Keys, idempotency and near-equal records."""

    @pytest.mark.req("op:dedupe-key")
    def test_twenty_saves_under_a_key_are_one_record(self, space: Namespace) -> None:
        """All receipts bear its id, and equal ones say unchanged."""
        receipts = [space.save("fact", kind="user_pref", key="k") for _ in range(20)]
        assert {receipt.memory_id for receipt in receipts} == {"1"}
        assert [receipt.unchanged for receipt in receipts] == [False] + [True] * 19
        assert (space.count(), space.get("1").version) == (1, 1)

    @pytest.mark.req("op:dedupe-key")
    def test_there_and_back_again_is_two_changes(self, space: Namespace) -> None:
        """Equality is with what stands now, not with what stood once."""
        receipts = [space.save(body, key="k") for body in ("A", "B", "A", "A")]
        assert [receipt.operation for receipt in receipts] == ["save"] + ["update"] * 3
        assert [receipt.version for receipt in receipts] == [1, 2, 3, 3]
        assert [receipt.unchanged for receipt in receipts] == [False] * 3 + [True]
        assert texts(space) == ["A"]

    @pytest.mark.req("op:dedupe-key", "op:merge")
    def test_a_save_on_a_record_merges(self, space: Namespace) -> None:
        """What the second save does not name stays as the first said."""
        space.save("one", key="k", metadata={"a": 1, "b": 2}, tags=["t"], session="s")
        space.save("two", key="k", metadata={"b": None, "c": 3})
        record = space.get("1")
        assert (record.text, record.metadata) == ("two", {"a": 1, "c": 3})
        assert (record.tags, record.session) == (("t",), "s")

    @pytest.mark.req("op:dedupe-key")
    def test_an_equal_save_refreshes_the_expiry(self, space: Namespace, clock: FakeClock) -> None:
        """`expires_in` compares as a duration."""
        space.save("fact", key="k", expires_in=60)
        clock.advance(30)
        receipt = space.save("fact", key="k", expires_in=60)
        assert (receipt.unchanged, receipt.version) == (True, 1)
        assert space.get("1").expires_at == clock() + timedelta(seconds=60)
        assert not space.save("fact", key="k", expires_in=61).unchanged
        assert space.get("1").version == 2

    @pytest.mark.req("op:dedupe-key")
    def test_a_key_belongs_to_its_kind_and_namespace(
        self, space: Namespace, other: Namespace
    ) -> None:
        """The same key elsewhere is another fact."""
        space.save("a", kind="user_pref", key="k")
        space.save("b", kind="note", key="k")
        other.save("c", kind="user_pref", key="k")
        assert (texts(space), texts(other)) == (["a", "b"], ["c"])

    @pytest.mark.req("op:dedupe-key")
    def test_a_key_and_an_id_must_not_contradict(self, space: Namespace) -> None:
        """Nor may a save change what a record is."""
        space.save("a", kind="user_pref", key="k", memory_id="a")
        space.save("b", kind="user_pref", memory_id="b")
        contradictions: list[dict[str, Any]] = [
            {"kind": "user_pref", "key": "k", "memory_id": "b"},
            {"kind": "note", "memory_id": "a"},
            {"form": "episodic", "memory_id": "a"},
            {"kind": "user_pref", "key": "other", "memory_id": "a"},
        ]
        for options in contradictions:
            with pytest.raises(Conflict):
                space.save("text", **options)
        assert texts(space) == ["a", "b"]

    @pytest.mark.req("op:dedupe-key", "op:restore")
    def test_a_taken_key_keeps_an_old_holder_out(self, space: Namespace, clock: FakeClock) -> None:
        """Restoring onto it is a conflict, until the new holder has ended."""
        space.save("old", key="k", memory_id="old")
        space.archive("old")
        space.save("new", key="k", memory_id="new", expires_in=60)
        with pytest.raises(Conflict):
            space.restore("old")
        clock.advance(60)
        space.restore("old")
        assert texts(space) == ["old"]
        assert space.history("new")[-1].operation == "expire"

    @pytest.mark.req("op:dedupe-key")
    def test_an_expired_holder_makes_way(self, space: Namespace, clock: FakeClock) -> None:
        """The new fact is a new record, and both histories are kept."""
        space.save("old", key="k", expires_in=60)
        clock.advance(60)
        receipt = space.save("new", key="k")
        assert (receipt.operation, receipt.memory_id) == ("save", "2")
        assert texts(space) == ["new"]
        assert [entry.operation for entry in space.history("1")] == ["save", "expire"]

    @pytest.mark.req("op:dedupe-key", "limits:defaults")
    def test_a_key_can_come_from_the_content_or_the_metadata(self, space: Namespace) -> None:
        """Where the limits of a kind say so."""
        space.configure(kind="fact", dedupe_key="content")
        space.configure(kind="order", dedupe_key="metadata.id")
        facts = {space.save("same", kind="fact").memory_id for _ in range(20)}
        assert len(facts) == 1
        orders = [
            space.save(f"state {number}", kind="order", metadata={"id": number % 2}).memory_id
            for number in range(4)
        ]
        assert orders[:2] == orders[2:]
        assert texts(space) == ["same", "state 2", "state 3"]

    @pytest.mark.req("op:idempotency")
    def test_a_retried_save_is_applied_once(self, space: Namespace, clock: FakeClock) -> None:
        """It answers with the first receipt, marked replayed, whatever happened since."""
        first = space.save("text", idempotency_key="once", metadata={"a": 1})
        clock.advance()
        space.update(first.memory_id, content="later")
        again = space.save("text", idempotency_key="once", metadata={"a": 1})
        assert again.replayed
        assert (again.memory_id, again.version, again.created_at) == ("1", 1, first.created_at)
        assert texts(space) == ["later"]

    @pytest.mark.req("op:idempotency")
    def test_an_idempotency_key_is_for_one_request(
        self, space: Namespace, other: Namespace
    ) -> None:
        """Another request under it is a conflict; another namespace has its own."""
        space.save("text", idempotency_key="once")
        with pytest.raises(Conflict, match="different request"):
            space.save("other text", idempotency_key="once")
        assert not other.save("text", idempotency_key="once").replayed
        assert (space.count(), other.count()) == (1, 1)

    @pytest.mark.req("op:idempotency")
    def test_a_failed_save_leaves_its_idempotency_key_free(self, space: Namespace) -> None:
        """So that it can be retried."""
        with pytest.raises(Conflict):
            space.save("text", memory_id="x", if_version=3, idempotency_key="once")
        assert not space.save("text", memory_id="x", idempotency_key="once").replayed

    @pytest.mark.req("op:dedupe-key")
    def test_near_equal_records_are_grouped_and_merged(
        self, space: Namespace, clock: FakeClock
    ) -> None:
        """The newest stays, the others are archived; keys and other kinds are left alone."""
        text = "the customer asked for a refund of order 57 and wants it on the old card today"
        for body in (text, "something else entirely", text, text + "!"):
            space.save(body)
            clock.advance()
        space.save(text, kind="other")
        space.save(text, key="k")
        (group,) = space.duplicates("note")
        assert (group.memory_id, sorted(group.others), group.count) == ("4", ["1", "3"], 3)
        space.duplicates("note", merge=True)
        live = [record.memory_id for record in space.each({"kind": "note"})]
        assert live == ["2", "4", "6"]
        assert space.get("1").state == "archived"
        assert space.duplicates("note") == []
