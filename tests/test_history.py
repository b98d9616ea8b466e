"""The journal: who changed what, the past as it was, the way back, and real erasing."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from zero_mem import Json, Memory, ZeroMemRuntime
from zero_mem.errors import Conflict, InvalidInput, NotAllowed, NotFound
from zero_mem.space import Namespace
from zero_mem.testing.audit import faults
from zero_mem.testing.fakes import START, FakeClock


def contents(space: Namespace) -> dict[str, Any]:
    return {record.memory_id: record.content for record in space.list()}


# The journal


@pytest.mark.req("history:journal")
def test_every_change_stands_in_the_journal_with_what_was_before(
    memory: Memory, clock: FakeClock
) -> None:
    memory.namespace("a", actor="hook").save("one", memory_id="x")
    space = memory.namespace("a", actor="worker-2")
    clock.advance(1)
    space.update("x", content="two", metadata={"m": 1})
    space.archive("x")
    space.restore("x")
    clock.advance(1)
    space.delete("x")
    entries = space.history("x")
    assert [(e.operation, e.version, e.before_version) for e in entries] == [
        ("save", 1, 0),
        ("update", 2, 1),
        ("archive", 3, 2),
        ("restore", 4, 3),
        ("delete", 5, 4),
    ]
    assert [e.before for e in entries] == [None, "one", "two", "two", "two"]
    assert [e.actor for e in entries] == ["hook"] + ["worker-2"] * 4
    assert [e.sequence for e in entries] == [1, 2, 3, 4, 5]
    assert entries[-1].at == clock()
    assert [e.record and e.record.state for e in entries] == [
        "active",
        "active",
        "archived",
        "active",
        "deleted",
    ]


@pytest.mark.req("history:journal")
def test_recorded_time_never_goes_back_with_the_clock(space: Namespace, clock: FakeClock) -> None:
    space.save("a", memory_id="x")
    clock.advance(timedelta(days=-1))
    space.update("x", content="b")
    times = [entry.at for entry in space.history("x")]
    assert times == sorted(times)
    assert space.get("x").recorded_at == times[0]


@pytest.mark.req("history:journal")
def test_positions_count_up_without_gaps_in_each_namespace(memory: Memory) -> None:
    one, other = memory.namespace("one"), memory.namespace("other")
    for space in (one, other):
        space.save_many([{"content": f"b{n}", "memory_id": f"m{n}"} for n in range(3)])
        with pytest.raises(InvalidInput):
            space.save_many([{"content": "x"}, {"content": ""}])
        space.delete_many(everything=True)
    positions = [e.sequence for n in range(3) for e in one.history(f"m{n}")]
    assert sorted(positions) == [1, 2, 3, 4, 5, 6]


@pytest.mark.req("history:journal")
def test_a_version_that_is_unchanged_or_only_read_is_not_journalled(space: Namespace) -> None:
    space.save("a", memory_id="x")
    space.save("a", memory_id="x")
    space.touch("x")
    space.recall_for_prompt(["x"])
    assert len(space.history("x")) == 1


@pytest.mark.req("history:journal", "handle:scope")
def test_a_history_is_its_namespaces_own(memory: Memory) -> None:
    memory.namespace("a").save("secret", memory_id="x")
    with pytest.raises(NotFound, match="no memory x in this namespace"):
        memory.namespace("b").history("x")


# As of


@pytest.mark.req("history:as-of")
def test_a_record_reads_as_it_stood(space: Namespace, clock: FakeClock) -> None:
    before = clock()
    first = clock.advance(10)
    space.save("A", key="employer", memory_id="x", metadata={"m": 1})
    second = clock.advance(10)
    space.save("B", key="employer", metadata={"m": 2})
    third = clock.advance(10)
    space.delete("x")
    past = [space.as_of(moment) for moment in (first, second)]
    assert [p.get("x").content for p in past] == ["A", "B"]
    assert [p.get("x").metadata for p in past] == [{"m": 1}, {"m": 2}]
    for moment in (before, third):
        with pytest.raises(NotFound, match="no memory x"):
            space.as_of(moment).get("x")


@pytest.mark.req("history:as-of")
def test_the_moment_of_a_write_already_shows_it(space: Namespace, clock: FakeClock) -> None:
    space.save("A", memory_id="x")
    clock.advance(timedelta(microseconds=1))
    space.save("B", memory_id="x")
    assert space.as_of(clock()).get("x").content == "B"
    clock.advance(timedelta(microseconds=-1))
    assert space.as_of(clock()).get("x").content == "A"


@pytest.mark.req("history:as-of")
def test_search_list_and_recall_give_what_they_would_have_given(
    space: Namespace, clock: FakeClock
) -> None:
    space.save("red bicycle", memory_id="x", kind="fact", expires_in=60)
    space.save("green bicycle", memory_id="y")
    moment = clock()
    clock.advance(60)
    space.save("blue car", memory_id="y")
    past = space.as_of(moment)
    assert {r.memory_id for r in past.list()} == {"x", "y"}
    assert [r.memory_id for r in past.list({"kind": "fact"})] == ["x"]
    assert {hit.memory_id for hit in past.search("bicycle")} == {"x", "y"}
    assert past.search("car") == []
    assert "red bicycle" in past.recall("bicycle").text
    assert [r.content for r in space.as_of(clock()).list()] == ["blue car"]


@pytest.mark.req("history:as-of", "policy:visibility")
def test_the_past_hides_what_is_hidden(space: Namespace, clock: FakeClock) -> None:
    space.save("refund secret", kind="note")
    space.configure(kind="note", visibility="hidden")
    assert space.as_of(clock()).recall("refund").items == ()


@pytest.mark.req("history:as-of")
def test_a_moment_is_an_aware_time(space: Namespace) -> None:
    with pytest.raises(InvalidInput, match=r"aware|naive"):
        space.as_of(datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(InvalidInput, match="moment"):
        space.as_of("yesterday")  # type: ignore[arg-type]


# Rollback


@pytest.mark.req("history:rollback")
def test_a_record_goes_back_to_a_version_as_a_new_change(space: Namespace) -> None:
    space.save("A", memory_id="x", metadata={"m": 1}, tags=("t",))
    space.update("x", content="B", metadata={"m": None}, tags=())
    receipt = space.rollback("x", to_version=1).receipts[0]
    assert (receipt.operation, receipt.version) == ("rollback", 3)
    record = space.get("x")
    assert (record.content, record.metadata, record.tags) == ("A", {"m": 1}, ("t",))
    space.rollback("x", to_version=2)
    assert space.get("x").content == "B"
    assert [e.version for e in space.history("x")] == [1, 2, 3, 4]


@pytest.mark.req("history:rollback")
def test_a_record_goes_back_to_a_moment(space: Namespace, clock: FakeClock) -> None:
    before = clock()
    clock.advance(1)
    space.save("red bicycle", memory_id="x")
    moment = clock.advance(1)
    clock.advance(1)
    space.save("blue car", memory_id="x")
    space.delete("x")
    space.rollback("x", to_moment=moment)
    assert space.get("x").content == "red bicycle"
    assert [hit.memory_id for hit in space.search("bicycle")] == ["x"]
    assert space.search("car") == []
    assert space.rollback("x", to_moment=before).count == 1
    assert space.count() == 0
    assert space.restore("x").operation == "restore"


@pytest.mark.req("history:rollback")
def test_a_tasks_memories_go_back_together_and_alone(space: Namespace, clock: FakeClock) -> None:
    for name, task in (("a", "job"), ("b", "job"), ("c", None)):
        space.save("old", memory_id=name, task=task)
    moment = clock()
    clock.advance(1)
    for name in ("a", "b", "c"):
        space.update(name, content="new")
    space.save("late", memory_id="d", task="job")
    assert space.rollback(task="job", to_moment=moment).count == 3
    assert contents(space) == {"a": "old", "b": "old", "c": "new"}


@pytest.mark.req("history:rollback")
def test_a_namespace_goes_back_even_where_keys_have_moved(
    space: Namespace, clock: FakeClock
) -> None:
    space.save("A", key="k", memory_id="a")
    space.save("kept", memory_id="b")
    moment = clock()
    clock.advance(1)
    space.archive("a")
    space.save("A2", key="k", memory_id="a2")
    space.update("b", content="changed")
    space.rollback(to_moment=moment)
    assert contents(space) == {"a": "A", "b": "kept"}
    assert space.rollback(to_moment=clock()).count == 0


@pytest.mark.req("history:rollback")
def test_one_operation_is_undone_as_a_whole(space: Namespace) -> None:
    space.save("old", memory_id="a")
    batch = [{"content": "new", "memory_id": "a"}, {"content": "new", "memory_id": "b"}]
    space.save_many(batch)
    operation = space.history("b")[0].operation_id
    assert space.rollback(operation=operation).count == 2
    assert contents(space) == {"a": "old"}
    again = space.history("a")[-1].operation_id
    space.rollback(operation=again)
    assert contents(space) == {"a": "new", "b": "new"}


@pytest.mark.req("history:rollback")
def test_an_undo_does_not_overwrite_a_later_change(space: Namespace) -> None:
    space.save("a", memory_id="x")
    operation = space.history("x")[0].operation_id
    space.update("x", content="b")
    with pytest.raises(Conflict, match="is at version 2; the operation left it at 1"):
        space.rollback(operation=operation)
    assert space.get("x").content == "b"


@pytest.mark.req("history:rollback", "op:dedupe-key")
def test_going_back_onto_a_taken_key_is_a_conflict(space: Namespace) -> None:
    space.save("a", key="k", memory_id="x")
    space.delete("x")
    space.save("b", key="k", memory_id="y")
    with pytest.raises(Conflict, match="belongs to memory y"):
        space.rollback("x", to_version=1)


@pytest.mark.req("history:rollback")
@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"memory_id": "x"},
        {"to_version": 1},
        {"task": "t", "to_version": 1},
        {"memory_id": "x", "task": "t", "to_version": 1},
        {"operation": 1, "to_version": 1},
        {"operation": "1"},
        {"memory_id": "x", "to_version": True},
        {"memory_id": "x", "to_version": 1, "to_moment": START},
    ],
)
def test_a_rollback_must_say_clearly_what_goes_back_to_when(
    space: Namespace, wrong: dict[str, Any]
) -> None:
    space.save("a", memory_id="x")
    with pytest.raises(InvalidInput):
        space.rollback(**wrong)


@pytest.mark.req("history:rollback")
def test_a_target_that_is_not_in_the_journal_is_not_found(space: Namespace) -> None:
    space.save("a", memory_id="x")
    with pytest.raises(NotFound, match="no version 7; there are 1 to 1"):
        space.rollback("x", to_version=7)
    for operation in (-1, 0, 99):
        with pytest.raises(NotFound, match="no operation"):
            space.rollback(operation=operation)
    with pytest.raises(NotFound, match="no memory y"):
        space.rollback("y", to_version=1)


# Purge


MARK = "zebra-quartz-19"


@pytest.fixture
def purged(space: Namespace, clock: FakeClock) -> Namespace:
    """A namespace in which every place that could keep a body has had it, and then lost it."""
    space.save(MARK, memory_id="x", kind="note", key=f"k-{MARK}", idempotency_key="once")
    space.update("x", content=Json({"a": MARK}), metadata={"m": MARK}, tags=(MARK,))
    runtime = ZeroMemRuntime(space)
    runtime.build_prompt([{"role": "user", "content": "hi"}], require=["x"])
    space.decide("host", "k", MARK, memory_id="x")
    space.rollback("x", to_version=1)
    clock.advance(1)
    space.purge("x")
    return space


@pytest.mark.req("history:purge")
def test_after_a_purge_no_read_gives_the_body(purged: Namespace, clock: FakeClock) -> None:
    with pytest.raises(NotFound, match="purged"):
        purged.get("x")
    assert purged.search(MARK) == purged.search(MARK, where={"state": "deleted"}) == []
    assert MARK not in repr(list(purged.list({"state": "deleted"})))
    assert MARK not in repr(purged.history("x"))
    assert MARK not in repr(purged.as_of(START).list())
    assert purged.decisions("host") == {"k": None}
    for call in (
        lambda: purged.restore("x"),
        lambda: purged.rollback("x", to_version=1),
        lambda: purged.rollback("x", to_moment=START),
    ):
        with pytest.raises((NotFound, NotAllowed), match="purged"):
            call()


@pytest.mark.req("history:purge")
def test_the_journal_proves_the_purge_without_a_body(purged: Namespace, clock: FakeClock) -> None:
    entries = purged.history("x")
    assert [e.operation for e in entries] == ["save", "update", "rollback", "purge"]
    assert (entries[-1].at, entries[-1].actor) == (clock(), "test")
    assert all(e.record is None and e.before is None for e in entries)


@pytest.mark.req("history:purge", "history:rollback")
def test_a_namespace_goes_back_around_what_was_purged(space: Namespace, clock: FakeClock) -> None:
    space.save("a", memory_id="a")
    space.save("b", memory_id="b")
    moment = clock()
    clock.advance(1)
    space.update("a", content="a2")
    space.purge("b")
    space.rollback(to_moment=moment)
    assert contents(space) == {"a": "a"}


@pytest.mark.req("history:purge")
def test_a_purge_leaves_a_prompt_with_a_mark_in_its_place(space: Namespace) -> None:
    messages = [{"role": "user", "content": "hi"}]
    space.save(MARK, memory_id="x")
    runtime = ZeroMemRuntime(space)
    runtime.build_prompt(messages, require=["x"])
    space.purge("x")
    (_, block) = runtime.build_prompt(messages)
    assert "[memo:x] purged" in block["content"]
    assert MARK not in repr(runtime.inspect(0, messages))


@pytest.mark.req("history:purge")
def test_a_purge_reaches_the_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with Memory.open(f"sqlite:///{path}") as memory:
        space = memory.namespace("acme")
        space.save_many([{"content": f"filler {n} " * 20} for n in range(50)])
        space.save(MARK, memory_id="x", metadata={"m": MARK}, tags=(MARK,), kind=MARK)
        space.update("x", content=f"more {MARK}")
        space.search(MARK)
        space.purge("x")
        files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert MARK.encode() not in files
    assert b"zebra" not in files
    assert b"filler" in files


@pytest.mark.req("history:rollback", "history:journal")
def test_an_expired_key_holder_goes_back_in_one_step(space: Namespace, clock: FakeClock) -> None:
    space.save("v1", kind="user_pref", key="k", expires_in=60)
    space.update(1, content="v2")
    clock.advance(60)
    space.rollback(1, to_version=1)
    versions = [(entry.operation, entry.version) for entry in space.history(1)]
    assert versions == [("save", 1), ("update", 2), ("rollback", 3)]
    assert faults(space.memory.storage) == []
