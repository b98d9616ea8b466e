"""Forgetting: limits, expiry by time, task and event, and the sweep that says what went."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from zero_mem import Memory, ZeroMemRuntime
from zero_mem.errors import InvalidInput, LimitReached, NotAllowed, NotFound
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock

# Limits


@pytest.mark.req("limits:defaults")
@pytest.mark.parametrize("form", ["working", "episodic", "semantic", "procedural"])
def test_the_documented_defaults_hold(space: Namespace, form: str) -> None:
    limits = space.limits(form)
    capped = form == "working"
    assert limits.max_memory_items == (1000 if capped else None)
    assert limits.retention_days == (30 if capped else None)
    assert limits.compaction_threshold == 200
    assert limits.dedupe_key is None
    assert limits.max_recall_items == 10


@pytest.mark.req("limits:defaults")
def test_limits_are_set_by_namespace_form_and_kind_the_narrowest_first(memory: Memory) -> None:
    space = memory.namespace("a")
    space.configure(compaction_threshold=100)
    space.configure(form="episodic", compaction_threshold=90)
    assert space.configure(kind="log", compaction_threshold=80).compaction_threshold == 80
    assert space.limits("semantic").compaction_threshold == 100
    assert space.limits("episodic").compaction_threshold == 90
    assert space.limits("episodic", "log").compaction_threshold == 80
    assert space.limits("episodic", "log").max_recall_items == 10
    assert memory.namespace("b").limits().compaction_threshold == 200


@pytest.mark.req("limits:defaults")
@pytest.mark.parametrize(
    "wrong",
    [
        {"max_items": 1},
        {"max_memory_items": 0},
        {"max_memory_items": 2.5},
        {"retention_days": -1},
        {"compaction_threshold": 0},
        {"max_recall_items": None},
        {"dedupe_key": "body"},
        {"overflow": "drop"},
        {"visibility": "loud"},
        {"form": "vague", "retention_days": 1},
    ],
)
def test_a_wrong_setting_is_named_and_changes_nothing(
    space: Namespace, wrong: dict[str, Any]
) -> None:
    before = space.settings()
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        space.configure(**wrong)
    assert space.settings() == before


@pytest.mark.req("limits:overflow")
def test_at_the_cap_the_least_used_is_archived_and_stays_readable(
    space: Namespace, clock: FakeClock
) -> None:
    space.configure(kind="note", max_memory_items=3)
    for name in ("a", "b", "c"):
        clock.advance(1)
        space.save(f"body {name}", memory_id=name)
    clock.advance(1)
    space.recall_for_prompt(["a"])
    space.save("body d", memory_id="d")
    assert [r.memory_id for r in space.list()] == ["a", "c", "d"]
    assert space.get("b").state == "archived"
    assert space.history("b")[-1].reason == "overflow"
    assert space.count() == 3


@pytest.mark.req("limits:overflow")
def test_among_equally_recent_the_least_recalled_goes(space: Namespace) -> None:
    space.configure(kind="note", max_memory_items=2)
    space.save_many([{"content": key, "memory_id": key} for key in ("a", "b")])
    space.touch("a")
    space.save("c", memory_id="c")
    assert {r.memory_id for r in space.list()} == {"a", "c"}


@pytest.mark.req("limits:overflow")
def test_the_cap_can_refuse_instead(space: Namespace) -> None:
    space.configure(kind="note", max_memory_items=2, overflow="refuse")
    space.save_many([{"content": "a", "key": "k"}, {"content": "b"}])
    with pytest.raises(LimitReached, match="note holds 2 memories"):
        space.save("c")
    assert space.save("a2", key="k").operation == "update"
    skipped = space.save_many([{"content": "c"}, {"content": "x", "kind": "fact"}], on_error="skip")
    assert (list(skipped.errors), skipped.count) == ([0], 1)


@pytest.mark.req("limits:overflow")
def test_restoring_makes_room_like_saving(space: Namespace, clock: FakeClock) -> None:
    space.configure(kind="note", max_memory_items=1)
    space.save("a", memory_id="a")
    clock.advance(1)
    space.save("b", memory_id="b")
    space.restore("a")
    assert [r.memory_id for r in space.list()] == ["a"]


@pytest.mark.req("limits:overflow")
def test_what_expired_does_not_count(space: Namespace, clock: FakeClock) -> None:
    space.configure(kind="note", max_memory_items=1, overflow="refuse")
    space.save("a", expires_in=60)
    clock.advance(60)
    assert space.save("b").operation == "save"


@pytest.mark.req("limits:overflow")
def test_a_batch_keeps_to_the_cap_too(space: Namespace) -> None:
    space.configure(kind="note", max_memory_items=5)
    space.save_many([{"content": f"b{n}"} for n in range(12)])
    assert space.count() == 5
    assert space.count({"state": "archived"}) == 7
    assert [r.content for r in space.list()] == ["b7", "b8", "b9", "b10", "b11"]


@pytest.mark.req("limits:overflow")
def test_what_an_open_task_or_a_conversation_holds_is_never_evicted(
    space: Namespace, clock: FakeClock
) -> None:
    space.configure(kind="task_state", max_memory_items=2)
    space.start_task("job", lease=600)
    space.save("of the task", kind="task_state", memory_id="t", task="job")
    space.save("held", kind="task_state", memory_id="h", hold="chat-1")
    with pytest.raises(LimitReached, match="held by an open task or conversation"):
        space.save("new", kind="task_state")
    space.release("chat-1")
    space.save("new", kind="task_state", memory_id="n")
    assert {r.memory_id for r in space.list()} == {"t", "n"}
    clock.advance(600)
    space.save("newer", kind="task_state", memory_id="m")
    assert {r.memory_id for r in space.list()} == {"n", "m"}


@pytest.mark.req("limits:overflow")
def test_a_memory_that_a_prompt_shows_is_held_by_its_conversation(space: Namespace) -> None:
    space.configure(kind="note", max_memory_items=1)
    space.save("shown", memory_id="s")
    ZeroMemRuntime(space, conversation="c").build_prompt(
        [{"role": "user", "content": "hi"}], require=["s"]
    )
    with pytest.raises(LimitReached):
        space.save("other")


@pytest.mark.req("limits:overflow", "limits:defaults")
def test_only_the_working_form_is_capped_by_default(space: Namespace) -> None:
    space.save_many([{"content": f"s{n}", "kind": "task_state"} for n in range(1002)])
    space.save_many([{"content": f"n{n}"} for n in range(1002)])
    assert space.count({"form": "working"}) == 1000
    assert space.count({"form": "semantic"}) == 1002


@pytest.mark.req("limits:two-sizes")
def test_what_is_stored_never_changes_the_size_of_a_prompt(space: Namespace) -> None:
    messages = [{"role": "user", "content": "hi"}]
    space.save("the rule of the house", form="procedural", memory_id="rule")
    small = ZeroMemRuntime(space, conversation="small").build_prompt(messages, require=["rule"])
    recalled = len(space.recall("refund order").text)
    space.save_many([{"content": f"refund order {n} " * 40} for n in range(300)])
    large = ZeroMemRuntime(space, conversation="large").build_prompt(messages, require=["rule"])
    assert large == small
    recall = space.recall("refund order")
    assert (recalled, len(recall.items)) == (0, 10)
    assert recall.tokens <= 1000


# Retention


@pytest.mark.req("limits:defaults")
def test_retention_archives_after_the_last_use_by_the_stores_clock(
    space: Namespace, clock: FakeClock
) -> None:
    old = datetime(2020, 1, 1, tzinfo=UTC)
    for name in ("idle", "updated", "read"):
        space.save("state", kind="task_state", memory_id=name, created_at=old)
    space.save("fact", memory_id="fact", created_at=old)
    assert space.expire().count == 0
    clock.advance(timedelta(days=20))
    space.update("updated", content="newer")
    space.recall_for_prompt(["read"])
    clock.advance(timedelta(days=10, microseconds=-1))
    assert space.expire().count == 0
    clock.advance(timedelta(microseconds=1))
    (swept,) = space.expire().swept
    assert (swept.memory_id, swept.operation, swept.reason) == ("idle", "archive", "retention")
    assert space.get("idle").state == "archived"
    clock.advance(timedelta(days=3650))
    assert {one.memory_id for one in space.expire().swept} == {"updated", "read"}


@pytest.mark.req("limits:overflow", "limits:defaults")
def test_retention_spares_what_an_owner_or_an_open_task_holds(
    space: Namespace, clock: FakeClock
) -> None:
    space.save("held", kind="task_state", memory_id="held", hold="conversation:1")
    space.start_task("t", lease=timedelta(days=60))
    space.save("busy", kind="task_state", memory_id="busy", task="t")
    space.save("idle", kind="task_state", memory_id="idle")
    clock.advance(timedelta(days=31))
    assert [one.memory_id for one in space.expire().swept] == ["idle"]
    space.release("conversation:1")
    assert [one.memory_id for one in space.expire().swept] == ["held"]


# By time


HIDDEN_FROM = {
    "get": lambda space: space.get_many(["x"]) != [None],
    "list": lambda space: [r.memory_id for r in space.list()] == ["x"],
    "search": lambda space: [hit.memory_id for hit in space.search("refund")] == ["x"],
    "recall": lambda space: [item.memory_id for item in space.recall("refund").items] == ["x"],
    "count": lambda space: space.count() == 1,
    "handle": lambda space: "refund" in space.recall_for_prompt(["x"]),
    "literal": lambda space: space.search("->") != [],
    "subtree": lambda space: len(space.memory.subtree("acme").list()) == 1,
    "subtree search": lambda space: len(space.memory.subtree().search("refund")) == 1,
    "filter": lambda space: space.count({"key": "k"}) == 1,
}


@pytest.mark.req("expire:hidden", "expire:time")
@pytest.mark.parametrize("shown", HIDDEN_FROM.values(), ids=HIDDEN_FROM)
def test_from_the_exact_instant_of_expiry_it_is_gone(
    space: Namespace, clock: FakeClock, shown: Any
) -> None:
    space.save("refund -> step 2", memory_id="x", key="k", expires_in=60)
    clock.advance(timedelta(seconds=60, microseconds=-1))
    assert shown(space)
    clock.advance(timedelta(microseconds=1))
    assert not shown(space)
    assert space.history("x")[-1].operation == "save", "no sweep has run"


@pytest.mark.req("expire:hidden")
def test_a_handle_of_an_expired_memory_says_so(space: Namespace, clock: FakeClock) -> None:
    space.save("x", memory_id="x", expires_in=60)
    clock.advance(60)
    for _ in range(2):
        for call in (space.get, space.read):
            with pytest.raises(NotFound, match=r"memory x (has|is) expired"):
                call("x")
        space.expire()
    assert "not readable: x" in space.recall_for_prompt(["x"])


@pytest.mark.req("expire:hidden")
@pytest.mark.parametrize("seconds", [-3600, 0, 3600])
def test_asking_for_another_moment_shows_nothing_that_has_expired(
    space: Namespace, clock: FakeClock, seconds: int
) -> None:
    space.save("refund", memory_id="x", expires_in=60)
    clock.advance(60)
    asked = clock() + timedelta(seconds=seconds)
    assert space.recall("refund", asked_at=asked).items == ()


@pytest.mark.req("expire:time", "op:restore")
def test_what_expired_is_not_restored_and_can_be_saved_anew(
    space: Namespace, clock: FakeClock
) -> None:
    space.save("a", memory_id="x", expires_in=60)
    clock.advance(60)
    with pytest.raises(NotFound):
        space.restore("x")
    space.expire()
    with pytest.raises(NotAllowed, match="expired; save it again"):
        space.restore("x")
    space.save("b", memory_id="x")
    assert space.get("x").expires_at is None


@pytest.mark.req("expire:time")
@pytest.mark.parametrize(("action", "message"), [("expire", "expired"), ("delete", "no memory x")])
def test_what_is_due_is_hidden_by_a_sweep_too(
    space: Namespace, clock: FakeClock, action: Any, message: str
) -> None:
    space.save("refund", memory_id="x", expires_in=60)
    clock.advance(60)
    assert space.expire(action=action).swept[0].operation == action
    assert space.history("x")[-1].operation == action
    with pytest.raises(NotFound, match=message):
        space.get("x")


@pytest.mark.req("expire:time", "op:archive")
def test_what_is_due_can_go_to_the_archive_and_come_back(
    space: Namespace, clock: FakeClock
) -> None:
    space.save("refund", memory_id="x", expires_in=60)
    clock.advance(60)
    assert space.expire(action="archive").swept[0].operation == "archive"
    assert (space.get("x").state, space.search("refund")) == ("archived", [])
    space.restore("x")
    assert space.get("x").expires_at is None


@pytest.mark.req("expire:hidden", "op:archive")
def test_the_archive_keeps_nothing_beyond_its_expiry(space: Namespace, clock: FakeClock) -> None:
    space.save("refund", memory_id="x", expires_in=60)
    space.archive("x")
    clock.advance(60)
    with pytest.raises(NotFound, match="expired"):
        space.get("x")
    assert "refund" not in space.recall_for_prompt(["x"])


@pytest.mark.req("expire:time")
def test_an_ending_that_is_none_is_refused(space: Namespace) -> None:
    unknown: Any = "forget"
    for call in (space.expire, partial(space.end_task, "t"), partial(space.raise_event, "e")):
        with pytest.raises(InvalidInput, match="expire, archive, delete"):
            call(action=unknown)


# By task


@pytest.mark.req("expire:task-end")
def test_the_end_of_a_task_ends_its_working_memory_only(space: Namespace) -> None:
    space.start_task("job")
    space.save("state", kind="task_state", memory_id="state", task="job")
    space.save("learnt", kind="user_pref", memory_id="pref", task="job")
    space.save("other", kind="task_state", memory_id="other", task="job-2")
    told = space.end_task("job", dry_run=True)
    assert [one.memory_id for one in told.swept] == ["state"]
    assert space.get("state").version == 1
    assert space.end_task("job").swept == told.swept
    with pytest.raises(NotFound, match="expired with its task"):
        space.get("state")
    assert {r.memory_id for r in space.list()} == {"pref", "other"}
    assert space.history("state")[-1].reason == "end of task job"


@pytest.mark.req("expire:task-end")
@pytest.mark.parametrize("action", ["archive", "delete"])
def test_a_tasks_memory_can_be_archived_or_deleted(space: Namespace, action: Any) -> None:
    space.save("state", kind="task_state", memory_id="s", task="job")
    space.end_task("job", action=action)
    assert space.count() == 0
    assert space.restore("s").operation == "restore"


@pytest.mark.req("expire:task-end")
def test_a_crashed_task_ends_with_its_lease_and_each_write_renews_it(
    space: Namespace, clock: FakeClock
) -> None:
    space.start_task("job", lease=60)
    space.save("state", kind="task_state", memory_id="s", task="job")
    clock.advance(59)
    space.update("s", content="next step")
    clock.advance(59)
    assert space.expire().count == 0
    clock.advance(1)
    assert space.expire(dry_run=True).tasks == ("job",)
    report = space.expire()
    assert (report.tasks, [one.memory_id for one in report.swept]) == (("job",), ["s"])
    assert space.expire().tasks == ()


@pytest.mark.req("expire:task-end")
@pytest.mark.parametrize("lease", [None, 0, -1, "long"])
def test_a_lease_is_a_duration(space: Namespace, lease: Any) -> None:
    with pytest.raises(InvalidInput):
        space.start_task("job", lease=lease)


# By event


@pytest.mark.req("expire:event")
def test_an_event_ends_what_names_it_and_matches(space: Namespace) -> None:
    named: dict[str, Any] = {"invalidated_by": ("order.cancelled",)}
    space.save("a", memory_id="57", metadata={"order": 57, "x": 1}, **named)
    space.save("b", memory_id="58", metadata={"order": 58}, **named)
    space.save("c", memory_id="none", **named)
    space.save("d", memory_id="unnamed", metadata={"order": 57})
    space.save("e", memory_id="text", metadata={"order": "57"}, **named)
    told = space.raise_event("order.cancelled", match={"order": 57}, dry_run=True)
    assert [one.memory_id for one in told.swept] == ["57"]
    assert space.count() == 5
    assert space.raise_event("order.cancelled", match={"order": 57}).swept == told.swept
    with pytest.raises(NotFound, match="expired by an event"):
        space.get("57")
    assert space.raise_event("order.shipped").count == 0
    assert space.raise_event("order.cancelled", action="archive").count == 3
    assert space.get("58").state == "archived"


@pytest.mark.req("expire:event")
def test_an_event_reaches_every_form_and_only_its_namespace(memory: Memory) -> None:
    one, other = memory.namespace("one"), memory.namespace("other")
    for space in (one, other):
        space.save("rule", form="procedural", invalidated_by=("policy.changed",))
    assert one.raise_event("policy.changed").count == 1
    assert (one.count(), other.count()) == (0, 1)


# The sweep


@pytest.mark.req("expire:sweeper")
def test_a_sweep_covers_every_namespace_and_says_what_why_and_when(
    memory: Memory, clock: FakeClock
) -> None:
    one, other = memory.namespace("acme", "alice"), memory.namespace("acme", "bob")
    one.save("a", memory_id="x", expires_in=60)
    other.save("b", memory_id="x", expires_in=60)
    clock.advance(61)
    told = memory.expire(dry_run=True)
    report = memory.expire()
    assert report.swept == told.swept
    assert [(s.namespace, s.memory_id, s.reason) for s in report.swept] == [
        (("acme", "alice"), "x", "expired"),
        (("acme", "bob"), "x", "expired"),
    ]
    entry = one.history("x")[-1]
    assert (entry.operation, entry.reason, entry.at) == ("expire", "expired", clock())
    assert entry.actor == "test"
    assert memory.expire().count == 0


@pytest.mark.req("expire:sweeper")
def test_what_a_sweep_did_can_be_undone_as_one_operation(
    space: Namespace, clock: FakeClock
) -> None:
    for name in ("a", "b"):
        space.save(name, memory_id=name, invalidated_by=("oops",))
    clock.advance(1)
    space.raise_event("oops")
    undone = space.rollback(operation=space.history("a")[-1].operation_id)
    assert undone.count == 2
    assert {r.memory_id for r in space.list()} == {"a", "b"}
