"""Batches: many writes in one transaction, whatever the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from zero_mem.errors import Conflict, InvalidInput, NotFound
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock
from zero_mem.testing.fixtures import StoreFixtures, found, texts


class BatchConformance(StoreFixtures):
    """Batches: one transaction each, all or what can be."""

    @pytest.mark.req("op:save")
    def test_a_batch_that_aborts_stores_nothing(self, space: Namespace) -> None:
        """The error says which item; numbers, decisions and index stay as they were."""
        space.save("taken", memory_id="x")
        items: list[dict[str, Any]] = [
            {"content": "new", "idempotency_key": "once"},
            {"content": "changed", "memory_id": "x"},
            {"content": "late", "memory_id": "x", "if_version": 1},
        ]
        with pytest.raises(Conflict, match="item 2"):
            space.save_many(items)
        assert texts(space) == ["taken"]
        assert found(space, "new changed late") == []
        assert not space.save("new", idempotency_key="once").replayed

    @pytest.mark.req("op:save")
    def test_a_batch_that_skips_answers_at_each_index(self, space: Namespace) -> None:
        """One bad item does not fail the others."""
        result = space.save_many(
            [
                {"content": "a", "key": "k"},
                {"content": ""},
                {"content": "b", "key": "k"},
                {"content": "c", "colour": "red"},
                {"no": "content"},
                {"content": "d", "if_version": 4},
                {"content": "e" * 200_000},
            ],
            on_error="skip",
        )
        assert [receipt.memory_id for receipt in result.receipts] == ["1", "1", "2"]
        kinds = {place: type(error) for place, error in result.errors.items()}
        assert kinds == {1: InvalidInput, 3: InvalidInput, 4: InvalidInput, 5: Conflict}
        assert (result.count, len(result.results)) == (3, 7)
        assert texts(space) == ["b", "e" * 200_000]

    @pytest.mark.req("op:save", "op:dedupe-key", "op:idempotency")
    def test_items_of_a_batch_see_the_ones_before(self, space: Namespace) -> None:
        """Keys, ids, versions and idempotency hold inside it as across calls."""
        result = space.save_many(
            [
                {"content": "a", "memory_id": "x", "key": "k"},
                {"content": "b", "memory_id": "x", "if_version": 1},
                {"content": "c", "key": "k"},
                {"content": "c", "key": "k"},
                {"content": "d", "idempotency_key": "once"},
                {"content": "d", "idempotency_key": "once"},
                {"content": "e", "memory_id": "1"},
            ],
            on_error="skip",
        )
        receipts = result.receipts
        assert [receipt.version for receipt in receipts] == [1, 2, 3, 3, 1, 1, 2]
        assert [receipt.unchanged for receipt in receipts] == [False] * 3 + [True] + [False] * 3
        assert [receipt.replayed for receipt in receipts] == [False] * 5 + [True, False]
        assert texts(space) == ["c", "e"]
        assert [entry.before for entry in space.history("x")] == [None, "a", "b"]
        assert {entry.operation_id for entry in space.history("x")} == {1}
        assert (found(space, "a b d"), found(space, "c"), found(space, "e")) == ([], ["x"], ["1"])

    @pytest.mark.req("op:update", "op:touch", "op:archive", "op:restore")
    def test_every_write_has_a_batch_form(self, space: Namespace, clock: FakeClock) -> None:
        """Each aborts whole, or skips what is not there."""
        space.save_many([{"content": "a"}, {"content": "b"}])
        calls: list[Callable[..., Any]] = [
            lambda ids, on_error: space.update_many(
                [{"memory_id": key, "tags": ["t"]} for key in ids], on_error=on_error
            ),
            lambda ids, on_error: space.touch_many(ids, expires_in=60, on_error=on_error),
            lambda ids, on_error: space.archive_many(ids, on_error=on_error),
            lambda ids, on_error: space.restore_many(ids, on_error=on_error),
        ]
        for call in calls:
            before = [space.get("1"), space.get("2")]
            with pytest.raises(NotFound, match="item 1"):
                call(["1", "no", "2"], "abort")
            assert [space.get("1"), space.get("2")] == before
            result = call(["1", "no", "2"], "skip")
            assert [receipt.memory_id for receipt in result.receipts] == ["1", "2"]
            assert list(result.errors) == [1]
            clock.advance()

    @pytest.mark.req("op:update")
    def test_two_updates_of_one_record_in_a_batch(self, space: Namespace) -> None:
        """The second is built on the first."""
        space.save("a b", memory_id="x")
        space.update_many(
            [
                {"memory_id": "x", "content": "c", "metadata": {"n": 1}},
                {"memory_id": "x", "tags": ["t"], "metadata": {"m": 2}},
                {"memory_id": "x", "content": "d"},
            ]
        )
        record = space.get("x")
        assert (record.text, record.tags, record.metadata) == ("d", ("t",), {"n": 1, "m": 2})
        assert [entry.before for entry in space.history("x")] == [None, "a b", "c", "c"]
        assert (found(space, "a b c"), found(space, "d")) == ([], ["x"])

    @pytest.mark.req("op:delete")
    def test_deleting_all_is_said_and_deletes_all(self, space: Namespace, other: Namespace) -> None:
        """1,500 records go at once; nobody else's does, and no filter is not a filter."""
        space.save_many([{"content": f"text {number}"} for number in range(1500)])
        other.save("text")
        with pytest.raises(InvalidInput):
            space.delete_many()
        with pytest.raises(InvalidInput):
            space.delete_many({})
        assert space.delete_many({"kind": "no such kind"}).count == 0
        assert space.delete_many(everything=True).count == 1500
        assert (space.count(), other.count()) == (0, 1)
        assert found(space, "text") == []
