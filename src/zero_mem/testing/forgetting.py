"""Archive, delete, expiry, tasks, events, caps and retention, whatever the store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from zero_mem.errors import (
    Conflict,
    InvalidInput,
    LimitReached,
    NotAllowed,
    NotFound,
    ZeroMemError,
)
from zero_mem.memory import Memory
from zero_mem.space import Namespace
from zero_mem.storage.base import Storage
from zero_mem.testing.fakes import FakeClock
from zero_mem.testing.fixtures import StoreFixtures, found, in_no_read, texts


class ExpiryConformance(StoreFixtures):
    """How records end: by hand, by time, with a task, by an event."""

    @pytest.mark.req("op:archive", "op:restore", "op:get")
    def test_an_archived_record_is_read_by_id_alone(self, space: Namespace) -> None:
        """Until it is restored."""
        space.save("red bicycle", memory_id="x")
        assert space.archive("x").version == 2
        assert (space.get("x").state, texts(space)) == ("archived", [])
        assert (found(space, "bicycle"), space.recall("bicycle").items) == ([], ())
        assert texts(space, {"state": "archived"}) == ["red bicycle"]
        assert found(space, "bicycle", where={"state": "archived"}) == ["x"]
        with pytest.raises(NotAllowed):
            space.update("x", content="late")
        assert space.restore("x").version == 3
        assert found(space, "bicycle") == ["x"]
        assert space.restore("x").unchanged

    @pytest.mark.req("op:delete", "op:restore")
    def test_a_deleted_record_is_in_no_read(self, space: Namespace) -> None:
        """Its history stays, so it can come back."""
        space.save("red bicycle", memory_id="x")
        space.delete("x")
        assert in_no_read(space, "x", "bicycle")
        with pytest.raises(NotFound):
            space.delete("x")
        space.restore("x")
        assert found(space, "bicycle") == ["x"]

    @pytest.mark.req("op:save", "history:journal")
    def test_a_save_on_a_deleted_id_is_a_new_life(self, space: Namespace) -> None:
        """The same record goes on: uid, place and versions, but not what it said."""
        space.save("old", memory_id="x", key="k", metadata={"a": 1}, tags=["t"])
        uid = space.get("x").uid
        space.save("after", memory_id="y")
        space.delete("x")
        receipt = space.save("new", memory_id="x")
        record = space.get("x")
        assert (receipt.operation, receipt.version, record.uid) == ("save", 3, uid)
        assert (record.key, record.metadata, record.tags) == (None, {}, ())
        assert texts(space) == ["new", "after"]

    @pytest.mark.req("op:update")
    def test_old_words_are_found_no_more(self, space: Namespace) -> None:
        """Neither of the body nor of the tags."""
        space.save("red bicycle", memory_id="x", tags=["outdoor"])
        space.update("x", content="blue car")
        assert (found(space, "bicycle"), found(space, "car")) == ([], ["x"])
        assert found(space, "outdoor") == ["x"]
        space.update("x", tags=["indoor"])
        assert (found(space, "outdoor"), found(space, "indoor")) == ([], ["x"])

    @pytest.mark.req("expire:hidden", "expire:time")
    def test_from_its_very_instant_an_expired_record_is_hidden(
        self, space: Namespace, clock: FakeClock
    ) -> None:
        """Sweeper or not; a microsecond before it is there."""
        space.save("red bicycle", memory_id="x", expires_in=60)
        start = clock()
        clock.set(start + timedelta(seconds=60, microseconds=-1))
        assert not in_no_read(space, "x", "bicycle")
        clock.set(start + timedelta(seconds=60))
        assert in_no_read(space, "x", "bicycle")
        with pytest.raises(NotFound, match="expired"):
            space.get("x")
        with pytest.raises(NotFound, match="expired"):
            space.update("x", content="late")
        assert texts(space, {"state": "expired"}) == ["red bicycle"]

    @pytest.mark.req("expire:sweeper", "op:expire")
    def test_a_sweep_says_what_went_and_why(
        self, memory: Memory, space: Namespace, clock: FakeClock
    ) -> None:
        """A dry run says the same and changes nothing."""
        space.save("a", memory_id="a", expires_in=60)
        space.save("b", memory_id="b", expires_in=61)
        clock.advance(60)
        dry = memory.expire(dry_run=True)
        assert [(s.memory_id, s.operation, s.reason) for s in dry.swept] == [
            ("a", "expire", "expired")
        ]
        assert (dry.dry_run, len(space.history("a"))) == (True, 1)
        assert memory.expire().swept == dry.swept
        assert memory.expire().count == 0
        last = space.history("a")[-1]
        assert (last.operation, last.reason, last.at) == ("expire", "expired", clock())
        with pytest.raises(NotFound, match="expired"):
            space.get("a")
        with pytest.raises(NotAllowed, match="expired"):
            space.restore("a")
        assert texts(space) == ["b"]

    @pytest.mark.req("expire:time")
    @pytest.mark.parametrize(
        ("action", "state"), [("expire", "deleted"), ("delete", "deleted"), ("archive", "archived")]
    )
    def test_each_ending_archives_or_deletes(
        self, space: Namespace, clock: FakeClock, action: str, state: str
    ) -> None:
        """As the caller chose."""
        space.save("a", expires_in=60, invalidated_by=["e"])
        space.save("b", task="t", kind="task_state", invalidated_by=["e"])
        space.save("c", invalidated_by=["e"])
        clock.advance(60)
        space.expire(action=action)  # type: ignore[arg-type]
        space.end_task("t", action=action)  # type: ignore[arg-type]
        space.raise_event("e", action=action)  # type: ignore[arg-type]
        assert texts(space) == []
        assert [entry.operation for key in "123" for entry in space.history(key)[1:]] == [
            action
        ] * 3
        assert len(texts(space, {"state": state})) == 3

    @pytest.mark.req("expire:task-end")
    def test_a_task_ends_its_working_memories(self, space: Namespace) -> None:
        """Others of the task stay, and so do other tasks'."""
        space.save("state", kind="task_state", task="t")
        space.save("fact", kind="user_pref", task="t")
        space.save("other", kind="task_state", task="u")
        assert space.end_task("t", dry_run=True).count == 1
        assert [swept.reason for swept in space.end_task("t").swept] == ["end of task t"]
        assert texts(space) == ["fact", "other"]
        with pytest.raises(NotFound, match="task"):
            space.get("1")

    @pytest.mark.req("expire:task-end")
    def test_a_task_that_crashed_ends_with_its_lease(
        self, memory: Memory, space: Namespace, clock: FakeClock
    ) -> None:
        """Every write that names it renews the lease."""
        space.start_task("t", lease=60)
        space.save("state", kind="task_state", task="t", memory_id="x")
        clock.advance(50)
        space.update("x", content="going on")
        clock.advance(50)
        assert memory.expire().tasks == ()
        clock.advance(10)
        report = memory.expire()
        assert (report.tasks, [swept.memory_id for swept in report.swept]) == (("t",), ["x"])
        assert memory.expire().tasks == ()

    @pytest.mark.req("expire:event")
    def test_an_event_ends_what_it_invalidates_and_matches(self, space: Namespace) -> None:
        """Only records that name it and have the metadata, by type and value."""
        for number in (57, 58, "57", 57.0):
            space.save(
                f"order {number!r}",
                metadata={"order": number, "nested": {"a": [1]}},
                invalidated_by=["order.cancelled"],
            )
        space.save("not named", metadata={"order": 57})
        match = {"order": 57}
        dry = space.raise_event("order.cancelled", match=match, dry_run=True)
        assert [swept.memory_id for swept in dry.swept] == ["1"]
        report = space.raise_event("order.cancelled", match=match)
        assert [swept.reason for swept in report.swept] == ["event order.cancelled"]
        assert texts(space) == ["order 58", "order '57'", "order 57.0", "not named"]
        assert space.raise_event("order.cancelled", match={"nested": {"a": [2]}}).count == 0
        assert space.raise_event("order.cancelled", match={"nested": {"a": [1]}}).count == 3
        assert space.raise_event("never named").count == 0

    @pytest.mark.req("expire:time", "pkg:errors")
    def test_an_unknown_ending_is_refused(self, space: Namespace) -> None:
        """Before anything happens."""
        ends: list[Callable[[Any], object]] = [
            lambda action: space.expire(action=action),
            lambda action: space.end_task("t", action=action),
            lambda action: space.raise_event("e", action=action),
        ]
        for end in ends:
            with pytest.raises(InvalidInput, match="archive"):
                end("burn")


class LimitConformance(StoreFixtures):
    """Caps, eviction, holds and retention."""

    @pytest.mark.req("limits:defaults")
    def test_only_working_memory_is_bounded_by_default(self, space: Namespace) -> None:
        """A thousand items and thirty days; the other forms have no cap."""
        working, semantic = space.limits("working"), space.limits("semantic")
        assert (working.max_memory_items, working.retention_days) == (1000, 30)
        assert (semantic.max_memory_items, semantic.retention_days) == (None, None)
        assert (semantic.compaction_threshold, semantic.max_recall_items) == (200, 10)
        assert semantic.dedupe_key is None

    @pytest.mark.req("limits:defaults")
    def test_a_limit_of_a_kind_goes_before_that_of_its_form(
        self, space: Namespace, other: Namespace
    ) -> None:
        """And it is kept, and is nobody else's."""
        space.configure(max_recall_items=7)
        space.configure(form="episodic", max_recall_items=5)
        space.configure(kind="message", max_recall_items=3)
        found = [
            space.limits(form, kind).max_recall_items
            for form, kind in [("episodic", "message"), ("episodic", "x"), ("semantic", "x")]
        ]
        assert found == [3, 5, 7]
        assert other.limits().max_recall_items == 10
        with pytest.raises(InvalidInput, match="max_recall_items"):
            space.configure(max_recall_items=0)
        with pytest.raises(InvalidInput, match="colour"):
            space.configure(colour="red")

    @pytest.mark.req("limits:overflow")
    def test_at_the_cap_the_least_used_is_archived(
        self, space: Namespace, clock: FakeClock
    ) -> None:
        """Least recently used first; it stays readable by id, and the journal says why."""
        space.configure(kind="n", max_memory_items=3)
        for memory_id in "abc":
            space.save(memory_id, kind="n", memory_id=memory_id)
            clock.advance()
        space.touch("a")
        clock.advance()
        space.save("d", kind="n", memory_id="d")
        assert texts(space) == ["a", "c", "d"]
        assert space.get("b").state == "archived"
        assert space.history("b")[-1].reason == "overflow"
        space.save_many([{"content": f"more {n}", "kind": "n"} for n in range(5)])
        assert space.count({"kind": "n"}) == 3
        assert space.count({"state": "archived"}) == 6

    @pytest.mark.req("limits:overflow")
    def test_expired_and_ended_records_take_no_room(
        self, space: Namespace, clock: FakeClock
    ) -> None:
        """The cap counts what is live."""
        space.configure(kind="n", max_memory_items=2)
        space.save("a", kind="n", expires_in=60)
        space.save("b", kind="n")
        clock.advance(60)
        space.save("c", kind="n")
        assert texts(space) == ["b", "c"]
        assert space.count({"state": "archived"}) == 0

    @pytest.mark.req("limits:overflow")
    def test_a_cap_on_bytes_archives_the_least_used(self, memory: Memory) -> None:
        """The bodies of a namespace stay under its cap, whatever is saved or grows."""
        space = memory.namespace("a")
        space.configure(max_bytes=100)
        for name in ("one", "two", "three"):
            space.save("x" * 30, memory_id=name)
        space.recall_for_prompt(["one"])
        space.update("one", "y" * 35)
        space.save("z" * 40, memory_id="four")
        assert {r.memory_id for r in space.list()} == {"one", "four"}
        assert space.get("two").state == "archived"
        space.update("one", "é" * 30)
        assert {r.memory_id for r in space.list()} == {"one", "four"}
        with pytest.raises(LimitReached, match="max_bytes"):
            space.save("w" * 101)
        with pytest.raises(LimitReached, match="max_bytes"):
            space.update("four", "w" * 101)
        assert space.get("four").content == "z" * 40

    @pytest.mark.req("limits:overflow", "prod:namespaces")
    def test_a_cap_counts_what_others_wrote_and_nothing_of_other_namespaces(
        self, memory: Memory, storage: Storage, clock: FakeClock
    ) -> None:
        """Whoever writes by another view of the store uses up the same room."""
        space = memory.namespace("a")
        space.configure(max_bytes=101, max_memory_items=3, overflow="refuse")
        memory.namespace("a", "below").save("w" * 500)
        theirs = Memory(storage, clock=clock).namespace("a")
        space.save("x" * 40)
        theirs.save("y" * 40)
        for writer in (space, theirs):
            with pytest.raises(LimitReached, match="max_bytes"):
                writer.save("z" * 22)
        theirs.update("1", "x")
        space.save("z" * 59)
        for writer in (space, theirs):
            with pytest.raises(LimitReached, match="max_memory_items"):
                writer.save("!")
        assert space.count() == theirs.count() == 3

    @pytest.mark.req("limits:overflow")
    def test_a_cap_on_bytes_can_refuse(self, memory: Memory) -> None:
        """What is over the cap is not stored, and what is there stays."""
        space = memory.namespace("a")
        space.configure(max_bytes=50, overflow="refuse")
        space.save_many([{"content": "x" * 20}, {"content": "y" * 20}])
        with pytest.raises(LimitReached, match="max_bytes"):
            space.save_many([{"content": "z" * 5}, {"content": "z" * 20}])
        assert space.count() == 2
        space.delete("1")
        space.save("z" * 30)
        memory.namespace("b").save("w" * 500)
        with pytest.raises(InvalidInput, match="whole namespace"):
            space.configure(kind="n", max_bytes=5)

    @pytest.mark.req("limits:overflow")
    def test_a_cap_can_refuse(self, space: Namespace) -> None:
        """Then nothing changes, also when a record is to come back."""
        space.configure(kind="n", max_memory_items=1, overflow="refuse")
        space.save("a", kind="n", memory_id="a")
        space.archive("a")
        space.save("b", kind="n", memory_id="b")
        writes: list[Callable[[], object]] = [
            lambda: space.save("c", kind="n"),
            lambda: space.restore("a"),
        ]
        for write in writes:
            with pytest.raises(LimitReached, match="1"):
                write()
        space.save("b, changed", kind="n", memory_id="b")
        assert texts(space) == ["b, changed"]
        space.delete("b")
        space.restore("a")
        assert texts(space) == ["a"]

    @pytest.mark.req("limits:overflow")
    def test_what_is_held_is_not_evicted(self, space: Namespace, clock: FakeClock) -> None:
        """Neither for an owner nor for an open task; when all is held, the save is refused."""
        space.configure(kind="n", max_memory_items=2)
        space.start_task("t", lease=60)
        space.save("of task", kind="n", task="t", memory_id="t")
        clock.advance()
        space.save("held", kind="n", memory_id="h", hold="conversation")
        with pytest.raises(LimitReached, match="held"):
            space.save("new", kind="n")
        space.release("conversation")
        space.save("new", kind="n", memory_id="new")
        assert space.get("h").state == "archived"
        space.hold("conversation", "new")
        clock.advance(60)
        space.save("newer", kind="n")
        assert texts(space) == ["new", "newer"]

    @pytest.mark.req("limits:defaults")
    def test_retention_archives_what_nobody_used(
        self, memory: Memory, space: Namespace, clock: FakeClock
    ) -> None:
        """By the store's clock from the last update or access, never by the caller's time."""
        long_ago = clock() - timedelta(days=4000)
        space.save("unused", kind="task_state", created_at=long_ago)
        space.save("used", kind="task_state")
        space.save("semantic")
        clock.advance(timedelta(days=20))
        space.touch("2")
        clock.advance(timedelta(days=10, microseconds=-1))
        assert memory.expire().count == 0
        clock.advance(timedelta(microseconds=1))
        report = memory.expire()
        assert [(s.memory_id, s.operation, s.reason) for s in report.swept] == [
            ("1", "archive", "retention")
        ]
        assert texts(space) == ["used", "semantic"]

    @pytest.mark.req("controller:offload")
    def test_a_host_keeps_its_decisions_here(self, space: Namespace, other: Namespace) -> None:
        """Any text under any text, in order; the store's own scopes are closed."""
        long = "call-" * 400
        space.decide("conversation", long, '{"退款": "\\u0000"}')
        space.decide("conversation", "", "empty key")
        space.decide("conversation", long, "changed")
        assert space.decision("conversation", long) == "changed"
        assert list(space.decisions("conversation").items()) == [
            (long, "changed"),
            ("", "empty key"),
        ]
        assert space.decision("conversation", "no") is None
        assert other.decisions("conversation") == {}
        with pytest.raises(NotAllowed):
            space.decide("zero-mem:task", "t", "x")
        for key, value in (("\ud800", "v"), ("k", "\ud800"), ("k", 5), (5, "v")):
            with pytest.raises(InvalidInput):
                space.decide("conversation", key, value)  # type: ignore[arg-type]

    @pytest.mark.req("controller:offload", "history:purge")
    def test_many_decisions_are_one_transaction(self, space: Namespace) -> None:
        """All or none; a purge reaches each one, also of a memory that had ended before."""
        space.configure(kind="note", max_memory_items=2)
        space.save("kept", memory_id="a")
        space.save("ended", memory_id="b")
        space.delete("b")
        given = [
            {"scope": "one", "key": "k", "value": "of a", "memory_id": "a"},
            {"scope": "one", "key": "l", "value": "of b", "memory_id": "b"},
            {"scope": "two", "key": "k", "value": "of nobody"},
        ]
        assert space.decide_many(given, hold="host") == [True, True, True]
        again = [{**item, "value": "later"} for item in given]
        more = {"scope": "two", "key": "n", "value": "new"}
        assert space.decide_many([*again, more, more], only_new=True) == [False] * 3 + [True, False]
        missing = {**more, "key": "m", "memory_id": "no-such"}
        for wrong in (missing, {"scope": "two", "key": "k"}, {**more, "colour": "red"}):
            with pytest.raises(ZeroMemError):
                space.decide_many([{**more, "value": "half"}, wrong])
        at, _, (one, two) = space.decisions_at("one", "two")
        assert (one, two) == ({"k": "of a", "l": "of b"}, {"k": "of nobody", "n": "new"})
        space.purge("b")
        later, _, (one,) = space.decisions_at("one")
        assert (one, later > at) == ({"k": "of a", "l": None}, True)
        space.save_many([{"content": f"note {n}"} for n in range(5)])
        assert space.get("a").state == "active"

    @pytest.mark.req("op:queued")
    def test_a_queued_save_is_read_at_once_and_fails_where_it_can_be_asked(
        self, space: Namespace
    ) -> None:
        """Its id is known from the start, and holds."""
        first = space.save("queued", key="k", mode="queued")
        second = space.save("queued again", key="k", mode="queued")
        assert (first.accepted, first.version) == (True, 0)
        assert first.memory_id == second.memory_id
        assert space.get(first.memory_id).text == "queued again"
        space.save("late", memory_id=first.memory_id, if_version=9, mode="queued")
        (failure,) = space.failures()
        assert (failure.memory_id, type(failure.error)) == (first.memory_id, Conflict)
        assert texts(space) == ["queued again"]
