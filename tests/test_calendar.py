"""What will end and when, and what has ended and why."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem import Memory
from zero_mem.operations.calendar import Ended, Upcoming, ended, upcoming
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock

DAY = 86_400.0


def ahead(space: Namespace, days: float) -> Upcoming:
    until = space.memory.now() + timedelta(days=days)
    with space.memory.transaction() as transaction:
        (row,) = (row for row in transaction.namespaces(()) if row.path == space.path)
        return upcoming(transaction, row, until=until)


def log(space: Namespace) -> list[Ended]:
    with space.memory.transaction() as transaction:
        return ended(transaction, transaction.namespaces(())[0])


def causes(found: Upcoming) -> list[tuple[str, str]]:
    return [(ending.memory_id, ending.cause) for ending in found.endings]


@pytest.mark.req("expire:time", "expire:task-end", "limits:defaults")
def test_each_record_ends_at_the_first_of_its_times(space: Namespace) -> None:
    space.start_task("t", lease=2 * DAY)
    space.save("by time", memory_id="time", expires_in=DAY)
    space.save("with its task", memory_id="task", kind="task_state", task="t")
    space.save("unused", memory_id="unused", form="working")
    space.save("for ever", memory_id="kept")
    found = ahead(space, 40)
    assert causes(found) == [("time", "time"), ("task", "task"), ("unused", "retention")]
    assert [round((e.at - space.memory.now()) / timedelta(days=1)) for e in found.endings] == [
        1,
        2,
        30,
    ]
    assert (found.endings[1].task, found.kept, found.later) == ("t", 1, 0)
    assert (causes(ahead(space, 10)), ahead(space, 10).later) == (causes(found)[:2], 1)


@pytest.mark.req("expire:event")
def test_events_are_counted_since_no_time_ends_what_waits_for_them(space: Namespace) -> None:
    for number in range(2):
        space.save(f"order {number}", invalidated_by=["order.cancelled"])
    space.save("return", invalidated_by=["order.returned"])
    found = ahead(space, 40)
    assert found.events == {"order.cancelled": 2, "order.returned": 1}
    assert (found.endings, found.kept) == ((), 3)


@pytest.mark.req("limits:defaults")
def test_what_a_conversation_holds_is_not_retired(space: Namespace) -> None:
    space.save("held", memory_id="h", form="working", hold="conversation:c")
    assert ahead(space, 40).endings == ()
    space.release("conversation:c")
    assert causes(ahead(space, 40)) == [("h", "retention")]


@pytest.mark.req("expire:sweeper")
@given(
    days=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    lease=st.integers(1, 40),
    now=st.integers(0, 70),
)
def test_what_is_due_is_what_a_dry_run_would_end(days: list[int], lease: int, now: int) -> None:
    clock = FakeClock()
    with Memory.open("memory://", clock=clock) as memory:
        space = memory.namespace("acme", "alice")
        space.start_task("t", lease=lease * DAY)
        for number, until in enumerate(days):
            space.save(f"by time {number}", expires_in=until * DAY)
            space.save(f"state {number}", kind="task_state", task="t" if number % 2 else None)
            space.save(f"of the task {number}", task="t")
        clock.advance(now * DAY)
        due = ahead(space, 0).endings
        would = memory.expire(dry_run=True).swept
        assert {one.memory_id for one in due} == {one.memory_id for one in would}
        operations = {one.memory_id: one.operation for one in would}
        assert all(operations[e.memory_id] == _OPERATIONS[e.cause] for e in due)


_OPERATIONS = {"time": "expire", "task": "expire", "retention": "archive"}


@pytest.mark.req("expire:sweeper")
def test_the_log_says_what_went_why_and_when_and_nothing_that_a_hand_ended(
    memory: Memory, space: Namespace, clock: FakeClock
) -> None:
    space.save("by time", memory_id="time", expires_in=DAY)
    space.save("unused", memory_id="unused", form="working")
    space.save("by hand", memory_id="hand")
    space.delete("hand")
    clock.advance(DAY)
    memory.expire()
    clock.advance(31 * DAY)
    memory.expire()
    newest, oldest = log(space)
    assert (oldest.memory_id, oldest.operation, oldest.reason) == ("time", "expire", "expired")
    assert (newest.memory_id, newest.operation, newest.reason) == ("unused", "archive", "retention")
    assert newest.at - oldest.at == timedelta(days=31)


@pytest.mark.req("expire:sweeper")
def test_the_log_looks_at_the_newest_changes_only(
    memory: Memory, space: Namespace, clock: FakeClock
) -> None:
    space.save("by time", memory_id="time", expires_in=1)
    clock.advance(2)
    memory.expire()
    for number in range(5):
        space.save(f"later {number}")
    with memory.transaction() as transaction:
        row = transaction.namespaces(())[0]
        assert ended(transaction, row, last=5) == []
        assert len(ended(transaction, row, last=6)) == 1
