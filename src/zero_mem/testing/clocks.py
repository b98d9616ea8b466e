"""A clock that is set back: what is judged by it, and what goes on all the same."""

from __future__ import annotations

from datetime import timedelta

import pytest

from zero_mem.errors import Conflict, NotFound
from zero_mem.memory import Memory
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock
from zero_mem.testing.fixtures import StoreFixtures, found, readable, texts

DAY = timedelta(days=1).total_seconds()


class ClockConformance(StoreFixtures):
    """The clock goes back a day; the order of what was recorded never does."""

    @pytest.mark.req("history:journal", "op:order", "history:as-of")
    def test_what_comes_later_is_recorded_later(self, space: Namespace, clock: FakeClock) -> None:
        """Journal, changes and past keep their order, in one record and between several."""
        space.save("a", memory_id="x")
        clock.advance(10)
        space.update("x", content="b")
        late = clock()
        clock.advance(-DAY)
        space.update("x", content="c")
        space.save("other", memory_id="y")
        assert [e.record.text for e in space.history("x") if e.record] == ["a", "b", "c"]
        changes = space.changes()
        assert [change.sequence for change in changes] == [1, 2, 3, 4]
        assert [change.at for change in changes] == sorted(change.at for change in changes)
        assert space.get("y").recorded_at == late
        assert [record.memory_id for record in space.list()] == ["x", "y"]
        assert space.as_of(late).get("x").text == "c"
        assert texts(space) == ["c", "other"]
        clock.advance(DAY + 5)
        space.update("x", content="d")
        assert space.history("x")[-1].at == clock()

    @pytest.mark.req("op:version", "op:idempotency", "op:dedupe-key")
    def test_versions_and_keys_know_no_time(self, space: Namespace, clock: FakeClock) -> None:
        """A retry is applied once, a key names its record, a stale writer is told."""
        first = space.save("a", key="k", idempotency_key="once")
        clock.advance(-DAY)
        again = space.save("a", key="k", idempotency_key="once")
        assert (again.memory_id, again.replayed) == (first.memory_id, True)
        assert space.save("b", key="k").version == 2
        with pytest.raises(Conflict):
            space.update(first.memory_id, content="c", if_version=1)
        assert space.save("new").memory_id == "2"

    @pytest.mark.req("expire:time", "expire:hidden", "expire:sweeper")
    def test_expiries_are_judged_by_the_clock_as_it_is(
        self, memory: Memory, space: Namespace, clock: FakeClock
    ) -> None:
        """What was not swept is back until its instant; what was swept stays ended."""
        space.save("waits", memory_id="waits", expires_in=3600)
        space.save("swept", memory_id="swept", expires_in=60)
        clock.advance(60)
        assert [each.memory_id for each in memory.expire().swept] == ["swept"]
        clock.advance(3600)
        assert not readable(space, "waits")
        clock.advance(-DAY)
        assert (readable(space, "waits"), readable(space, "swept")) == (True, False)
        assert memory.expire().count == 0
        space.save("new", memory_id="new", expires_in=60)
        clock.advance(60)
        assert (readable(space, "new"), readable(space, "waits")) == (False, True)
        clock.advance(DAY)
        assert not readable(space, "waits")
        assert {each.memory_id for each in memory.expire().swept} == {"new", "waits"}

    @pytest.mark.req("expire:task-end", "limits:overflow")
    def test_a_task_lives_for_its_lease_after_its_last_sign_of_life(
        self, memory: Memory, space: Namespace, clock: FakeClock
    ) -> None:
        """Its lease is what the clock said when it was given; a sign of life gives a new one."""
        space.start_task("old", lease=3600)
        space.start_task("t", lease=3600)
        space.save("step 0", form="working", task="old")
        space.save("step 1", form="working", task="t")
        clock.advance(-DAY)
        assert memory.expire().tasks == ()
        space.save("step 2", form="working", task="t")
        clock.advance(3600)
        assert memory.expire().tasks == ("t",)
        assert texts(space) == ["step 0"]
        clock.advance(DAY)
        assert memory.expire().tasks == ("old",)
        assert texts(space) == []

    @pytest.mark.req("recall:explicit", "recall:fresh", "limits:defaults")
    def test_what_is_dated_later_than_now_is_found_and_used(
        self, memory: Memory, space: Namespace, clock: FakeClock
    ) -> None:
        """By search, recall and prompt; a mark of use never goes back."""
        space.save("the kettle is red", memory_id="x")
        space.recall_for_prompt(["x"])
        used = space.get("x").accessed_at
        clock.advance(-DAY)
        assert found(space, "kettle") == ["x"]
        assert [item.memory_id for item in space.recall("which kettle?").items] == ["x"]
        assert "the kettle is red" in space.recall_for_prompt(["x"])
        assert (space.get("x").accessed_at, space.get("x").access_count) == (used, 2)
        assert memory.expire().count == 0

    @pytest.mark.req("history:rollback", "history:purge")
    def test_going_back_and_erasing_work_across_the_jump(
        self, space: Namespace, clock: FakeClock
    ) -> None:
        """By version, by operation and by moment."""
        space.save("a", memory_id="x")
        early = space.history("x")[0].at
        clock.advance(10)
        space.update("x", content="b")
        clock.advance(-DAY)
        space.update("x", content="c")
        operation = space.history("x")[-1].operation_id
        space.rollback(operation=operation)
        assert space.get("x").text == "b"
        space.rollback("x", to_version=3)
        assert space.get("x").text == "c"
        space.rollback(to_moment=early)
        assert space.get("x").text == "a"
        space.purge("x")
        with pytest.raises(NotFound, match="purged"):
            space.get("x")
