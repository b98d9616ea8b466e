"""The operations of layer 1: what each write does, alone, in a batch and against another writer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from zero_mem import UNSET, Blob, Json, Memory, MemoryReceipt
from zero_mem.errors import (
    Conflict,
    InvalidInput,
    LimitReached,
    NotAllowed,
    NotFound,
    StoreUnavailable,
)
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock

DAY = timedelta(days=1)


# Records


@pytest.mark.req("record:fields", "op:save", "op:get")
def test_every_field_comes_back_as_it_was_given(space: Namespace, clock: FakeClock) -> None:
    happened = datetime(2025, 12, 31, 23, 59, 59, 123456, tzinfo=timezone(timedelta(hours=8)))
    space.save(
        "aisle seat",
        kind="user_pref",
        key="seat",
        memory_id="pref-1",
        metadata={"order": 57, "deep": {"list": [1, None, True]}},
        tags=("travel", "seat"),
        task="t",
        session="s",
        speaker="alice",
        source="import",
        expires_in=DAY,
        invalidated_by=("order.cancelled",),
        created_at=happened,
    )
    record = space.get("pref-1")
    assert (record.kind, record.key, record.form) == ("user_pref", "seat", "semantic")
    assert record.metadata == {"order": 57, "deep": {"list": [1, None, True]}}
    assert (record.tags, record.task, record.session) == (("travel", "seat"), "t", "s")
    assert (record.speaker, record.source) == ("alice", "import")
    assert record.invalidated_by == ("order.cancelled",)
    assert (record.created_at, record.created_at.tzinfo) == (happened, UTC)
    assert record.recorded_at == record.updated_at == record.accessed_at == clock()
    assert record.expires_at == clock() + DAY
    assert (record.version, record.state, record.access_count) == (1, "active", 0)
    assert record.namespace == ("acme", "alice")


@pytest.mark.req("record:fields")
def test_a_uid_is_global_and_outlives_every_change(memory: Memory) -> None:
    one, other = memory.namespace("one"), memory.namespace("other")
    one.save("a", memory_id="x")
    other.save("a", memory_id="x")
    uid = one.get("x").uid
    assert uid != other.get("x").uid
    one.delete("x")
    one.save("b", memory_id="x")
    assert one.get("x").uid == uid


@pytest.mark.req("record:fields")
@pytest.mark.parametrize("name", ["created_at", "expires_at"])
def test_a_naive_time_is_refused(space: Namespace, name: str) -> None:
    naive: dict[str, Any] = {name: datetime(2026, 1, 1)}  # noqa: DTZ001
    with pytest.raises(InvalidInput, match=r"aware|naive"):
        space.save("x", **naive)


@pytest.mark.req("record:body")
@pytest.mark.parametrize(
    "text",
    [
        '{"a":1}',
        "  leading and trailing  \r\n",
        "e\u0301 is not \u00e9",
        "nul \x00 inside",
        "lone \ud83d surrogate",
        "🏳️‍🌈 退款 \ufeff",
        "x" * 200_000,
    ],
)
def test_text_is_kept_byte_for_byte(space: Namespace, text: str) -> None:
    identity = space.save(text).memory_id
    assert space.get(identity).content == text


@pytest.mark.req("record:body")
def test_json_and_binary_are_bodies_of_their_own(space: Namespace) -> None:
    value = {"b": [1, 2.5, None, "退"], "a": {}}
    blob = Blob(data=b"\x89PNG\x00", media_type="image/png")
    data, picture = space.save(Json(value)).memory_id, space.save(blob).memory_id
    assert space.get(data).content == Json(value)
    assert space.get(picture).content == blob
    assert "PNG" not in space.recall_for_prompt([picture])
    assert "image/png" in space.recall_for_prompt([picture])


@pytest.mark.req("record:body")
def test_a_json_body_is_the_stores_own_copy(space: Namespace) -> None:
    value = {"items": [1]}
    identity = space.save(Json(value)).memory_id
    value["items"].append(2)
    first = space.get(identity).content
    assert isinstance(first, Json)
    first.value["items"].append(3)
    assert space.get(identity).content == Json({"items": [1]})


@pytest.mark.req("record:body")
@pytest.mark.parametrize(
    "body",
    [
        Json(float("nan")),
        Json({"a": [float("inf")]}),
        Json({1: 2}),
        Json({1, 2}),
        Json(b"x"),
        "",
        " \n\t",
        None,
        7,
        {"a": 1},
        Blob(data=b""),
    ],
)
def test_what_is_no_body_is_refused(space: Namespace, body: Any) -> None:
    with pytest.raises(InvalidInput, match="content"):
        space.save(body)
    assert space.count() == 0


@pytest.mark.req("record:forms")
@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (None, "semantic"),
        ("task_state", "working"),
        ("message", "episodic"),
        ("tool_result", "episodic"),
        ("user_pref", "semantic"),
        ("anything_else", "semantic"),
    ],
)
def test_a_kind_has_its_default_form(space: Namespace, kind: str | None, form: str) -> None:
    record = space.get(space.save("x", kind=kind).memory_id)
    assert (record.kind, record.form) == (kind or "note", form)
    given = space.get(space.save("y", kind=kind, form="procedural").memory_id)
    assert given.form == "procedural"


@pytest.mark.req("record:forms")
def test_episodes_are_never_de_duplicated(space: Namespace) -> None:
    for _ in range(3):
        space.save("hello", kind="message")
    assert space.count({"form": "episodic"}) == 3


@pytest.mark.req("op:save")
@pytest.mark.parametrize(
    "wrong",
    [
        {"form": "vague"},
        {"source": "stranger"},
        {"metadata": {"x": float("nan")}},
        {"metadata": ["x"]},
        {"tags": "one"},
        {"tags": [1]},
        {"expires_in": -1},
        {"expires_in": 0},
        {"expires_in": float("inf")},
        {"expires_in": "soon"},
        {"expires_in": 5, "expires_at": datetime(2027, 1, 1, tzinfo=UTC)},
        {"if_version": "1"},
        {"if_version": -1},
        {"mode": "later"},
        {"kind": "  "},
        {"key": 7},
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_stored(
    space: Namespace, wrong: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong)).replace("tags", "tag")):
        space.save("x", **wrong)
    assert space.count() == 0


@pytest.mark.req("op:save")
def test_an_empty_optional_name_counts_as_not_given(space: Namespace) -> None:
    identity = space.save("x", kind="", key="", task="", session="", memory_id="").memory_id
    record = space.get(identity)
    assert (record.kind, record.key, record.task, record.session) == ("note", None, None, None)


# Versions


@pytest.mark.req("op:version")
def test_the_version_rises_with_every_change_but_touch(space: Namespace) -> None:
    identity = space.save("a").memory_id
    assert space.update(identity, content="b").version == 2
    assert space.touch(identity).version == 2
    assert space.touch(identity, expires_in=60).version == 2
    assert space.update(identity, tags=("t",)).version == 3
    assert space.archive(identity).version == 4
    assert space.restore(identity).version == 5
    assert space.get(identity).version == 5


WRITES: dict[str, Callable[[Namespace, int], object]] = {
    "save": lambda space, version: space.save("new", memory_id="x", if_version=version),
    "update": lambda space, version: space.update("x", content="new", if_version=version),
    "touch": lambda space, version: space.touch("x", if_version=version),
    "archive": lambda space, version: space.archive("x", if_version=version),
    "restore": lambda space, version: space.restore("x", if_version=version),
    "delete": lambda space, version: space.delete("x", if_version=version),
    "purge": lambda space, version: space.purge("x", if_version=version),
}


@pytest.mark.req("op:version")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_stale_writer_is_told_both_versions(
    space: Namespace, write: Callable[[Namespace, int], object]
) -> None:
    space.save("one", memory_id="x")
    space.update("x", content="two")
    with pytest.raises(Conflict, match="version 2, not 1"):
        write(space, 1)
    assert space.get("x").content == "two"
    write(space, 2)


@pytest.mark.req("op:version")
def test_if_version_0_writes_only_what_is_not_there(space: Namespace, clock: FakeClock) -> None:
    space.save("one", memory_id="x", if_version=0, expires_in=60)
    with pytest.raises(Conflict, match="version 1, not 0"):
        space.save("two", memory_id="x", if_version=0)
    clock.advance(60)
    assert space.save("three", memory_id="x", if_version=0).operation == "save"
    space.delete("x")
    space.save("four", memory_id="x", if_version=0)
    assert space.get("x").content == "four"


# Update and merge


@pytest.mark.req("op:merge", "op:update")
def test_an_update_leaves_what_it_does_not_name(space: Namespace, clock: FakeClock) -> None:
    space.save(
        "a", memory_id="x", metadata={"m": 1}, tags=("t",), task="job", expires_in=60, speaker="bo"
    )
    before = space.get("x")
    clock.advance(1)
    space.update("x", content="b")
    after = space.get("x")
    assert (after.content, after.updated_at) == ("b", clock())
    for name in ("metadata", "tags", "task", "expires_at", "speaker", "created_at", "uid", "kind"):
        assert getattr(after, name) == getattr(before, name)


@pytest.mark.req("op:merge")
def test_metadata_merge_key_by_key_and_none_removes(space: Namespace) -> None:
    space.save("a", memory_id="x", metadata={"keep": 1, "drop": 2, "change": {"a": 1}})
    space.update("x", metadata={"drop": None, "change": {"b": 2}, "new": 3})
    assert space.get("x").metadata == {"keep": 1, "change": {"b": 2}, "new": 3}
    space.update("x", metadata=None, tags=None)
    assert space.get("x").metadata == {}


@pytest.mark.req("op:merge")
@pytest.mark.parametrize("name", ["expires_in", "expires_at"])
def test_none_clears_an_expiry_and_unset_leaves_it(space: Namespace, name: str) -> None:
    space.save("a", memory_id="x", expires_in=60)
    kept: dict[str, Any] = {name: UNSET}
    cleared: dict[str, Any] = {name: None}
    space.update("x", content="b", **kept)
    assert space.get("x").expires_at is not None
    space.update("x", **cleared)
    assert space.get("x").expires_at is None


@pytest.mark.req("op:update")
def test_an_update_needs_an_active_record(space: Namespace, clock: FakeClock) -> None:
    space.save("a", memory_id="x", expires_in=60)
    space.archive("x")
    with pytest.raises(NotAllowed, match="archived; restore it first"):
        space.update("x", content="b")
    space.restore("x")
    clock.advance(60)
    with pytest.raises(NotFound, match="expired"):
        space.update("x", content="b")


# One record for one key


@pytest.mark.req("op:dedupe-key")
def test_twenty_saves_under_one_key_leave_one_record(space: Namespace) -> None:
    receipts = [space.save(f"v{n}", kind="user_pref", key="tz") for n in range(20)]
    assert {one.memory_id for one in receipts} == {"1"}
    assert [one.operation for one in receipts] == ["save"] + ["update"] * 19
    assert space.count() == 1
    assert space.get("1").content == "v19"


@pytest.mark.req("op:dedupe-key")
def test_threads_that_save_one_key_at_once_leave_one_record(tmp_path: Path) -> None:
    with Memory.open(f"sqlite:///{tmp_path / 'a.db'}", durability="normal") as memory:
        space = memory.namespace("acme")
        receipts: list[MemoryReceipt] = []

        def save(number: int) -> None:
            receipts.append(space.save(f"v{number}", kind="user_pref", key="tz"))

        threads = [threading.Thread(target=save, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {one.memory_id for one in receipts} == {"1"}
        assert (len(receipts), space.count()) == (8, 1)


@pytest.mark.req("op:dedupe-key")
def test_a_key_is_unique_per_kind_and_namespace_only(memory: Memory) -> None:
    one, other = memory.namespace("one"), memory.namespace("other")
    one.save("a", kind="user_pref", key="tz")
    one.save("b", kind="fact", key="tz")
    other.save("c", kind="user_pref", key="tz")
    assert (one.count(), other.count()) == (2, 1)


@pytest.mark.req("op:dedupe-key")
def test_saving_the_same_again_adds_no_version(space: Namespace) -> None:
    given: dict[str, Any] = {"key": "k", "metadata": {"m": [1]}, "tags": ("t",)}
    space.save(Json({"a": 1, "b": 2}), **given)
    again = space.save(Json({"b": 2, "a": 1}), **given)
    assert again.unchanged
    assert (again.operation, again.version) == ("update", 1)
    assert len(space.history(again.memory_id)) == 1
    assert space.update(again.memory_id, tags=("t",)).unchanged


@pytest.mark.req("op:dedupe-key")
@pytest.mark.parametrize(
    "different",
    [
        {"content": "b"},
        {"content": Json("a")},
        {"metadata": {"m": 1.0}},
        {"metadata": {"m": True}},
        {"tags": ("t", "u")},
        {"tags": ("u",)},
        {"expires_in": 60},
        {"task": "job"},
    ],
)
def test_anything_different_is_a_change(space: Namespace, different: dict[str, Any]) -> None:
    space.save("a", key="k", metadata={"m": 1}, tags=("t",))
    changed = space.save(**{"content": "a", "key": "k", **different})
    assert (changed.unchanged, changed.version) == (False, 2)


@pytest.mark.req("op:dedupe-key")
def test_going_back_to_an_earlier_value_is_a_change(space: Namespace) -> None:
    receipts = [space.save(body, key="k") for body in ("A", "B", "A")]
    assert [one.version for one in receipts] == [1, 2, 3]
    assert not receipts[-1].unchanged
    assert space.get("1").content == "A"


@pytest.mark.req("op:dedupe-key")
def test_a_lifetime_compares_as_a_duration_and_starts_anew(
    space: Namespace, clock: FakeClock
) -> None:
    space.save("a", key="k", expires_in=60)
    clock.advance(30)
    again = space.save("a", key="k", expires_in=60.0)
    assert (again.unchanged, again.version) == (True, 1)
    assert space.get("1").expires_at == clock() + timedelta(seconds=60)
    longer = space.save("a", key="k", expires_in=61)
    assert (longer.unchanged, longer.version) == (False, 2)
    assert space.save("a", key="k", expires_at=clock() + timedelta(seconds=61)).version == 3


@pytest.mark.req("op:dedupe-key")
def test_a_key_whose_record_expired_is_free(space: Namespace, clock: FakeClock) -> None:
    first = space.save("a", key="k", expires_in=60)
    clock.advance(60)
    second = space.save("a", key="k")
    assert second.operation == "save"
    assert second.memory_id != first.memory_id
    assert [r.memory_id for r in space.list()] == [second.memory_id]


@pytest.mark.req("op:dedupe-key", "op:restore")
@pytest.mark.parametrize("end", ["archive", "delete"])
def test_restoring_onto_a_taken_key_is_a_conflict(space: Namespace, end: str) -> None:
    first = space.save("old", key="k").memory_id
    getattr(space, end)(first)
    second = space.save("new", key="k").memory_id
    with pytest.raises(Conflict, match=f"belongs to memory {second}"):
        space.restore(first)
    space.archive(second)
    assert space.restore(first).operation == "restore"


@pytest.mark.req("op:dedupe-key")
def test_a_save_can_not_change_what_a_record_is(space: Namespace) -> None:
    space.save("a", memory_id="x", kind="user_pref", key="tz")
    space.save("b", memory_id="y", kind="user_pref", key="lang")
    for wrong in (
        {"memory_id": "x", "kind": "fact"},
        {"memory_id": "x", "key": "other"},
        {"memory_id": "x", "form": "working"},
        {"memory_id": "x", "kind": "user_pref", "key": "lang"},
    ):
        with pytest.raises(Conflict):
            space.save("c", **wrong)  # type: ignore[arg-type]
    assert {r.content for r in space.list()} == {"a", "b"}


@pytest.mark.req("op:dedupe-key", "limits:defaults")
def test_equal_bodies_are_one_record_where_the_namespace_asks_for_it(space: Namespace) -> None:
    space.configure(kind="fact", dedupe_key="content")
    receipts = [space.save("the sky is blue", kind="fact") for _ in range(20)]
    assert (space.count(), {one.unchanged for one in receipts[1:]}) == (1, {True})
    space.configure(kind="fact", dedupe_key="metadata.order")
    space.save("one", kind="fact", metadata={"order": 7})
    assert space.save("two", kind="fact", metadata={"order": 7}).operation == "update"
    assert space.save("two", kind="fact", metadata={"order": 8}).operation == "save"


@pytest.mark.req("op:dedupe-key")
def test_a_derived_key_can_pass_from_one_record_to_another_in_one_batch(space: Namespace) -> None:
    space.configure(kind="fact", dedupe_key="metadata.seat")
    for name in ("a", "b"):
        space.save(name, kind="fact", memory_id=name, metadata={"seat": name})
    moves = [("a", "c"), ("b", "a")]
    space.update_many([{"memory_id": key, "metadata": {"seat": seat}} for key, seat in moves])
    assert space.save("new", kind="fact", metadata={"seat": "a"}).memory_id == "b"


@pytest.mark.req("op:dedupe-key")
def test_near_equal_records_are_counted_and_merged(space: Namespace) -> None:
    bodies = ["The user likes green tea", "the user likes green tea!", "the USER likes green tea"]
    ids = [space.save(body, kind="fact").memory_id for body in bodies]
    space.save("The user drinks coffee", kind="fact")
    space.save("The user likes green tea", kind="fact", key="tea")
    (group,) = space.duplicates("fact")
    assert (group.count, {group.memory_id, *group.others}) == (3, set(ids))
    assert space.count() == 5
    space.duplicates("fact", merge=True)
    assert (space.count(), space.duplicates("fact")) == (3, [])
    assert {space.get(key).state for key in group.others} == {"archived"}


# Retries


@pytest.mark.req("op:idempotency")
def test_a_retried_write_is_applied_once(space: Namespace, clock: FakeClock) -> None:
    first = space.save("a", kind="message", idempotency_key="turn-7")
    clock.advance(5)
    again = space.save("a", kind="message", idempotency_key="turn-7")
    assert again.replayed
    assert not first.replayed
    assert (again.memory_id, again.version, again.created_at) == (
        first.memory_id,
        first.version,
        first.created_at,
    )
    assert space.count() == 1


@pytest.mark.req("op:idempotency")
def test_a_retry_does_not_bring_an_older_value_back(space: Namespace) -> None:
    space.save("a", key="k", idempotency_key="one")
    space.save("b", key="k", idempotency_key="two")
    assert space.save("a", key="k", idempotency_key="one").replayed
    assert space.get("1").content == "b"


@pytest.mark.req("op:idempotency")
@pytest.mark.parametrize("changed", [{"content": "b"}, {"tags": ("t",)}, {"expires_in": 60}])
def test_a_key_used_for_another_request_is_a_conflict(
    space: Namespace, changed: dict[str, Any]
) -> None:
    space.save("a", idempotency_key="one")
    with pytest.raises(Conflict, match="used for a different request"):
        space.save(**{"content": "a", "idempotency_key": "one", **changed})


@pytest.mark.req("op:idempotency", "history:purge")
def test_a_retry_never_brings_a_purged_memory_back(space: Namespace) -> None:
    space.purge(space.save("a", idempotency_key="one").memory_id)
    with pytest.raises(Conflict, match="purged"):
        space.save("a", idempotency_key="one")


@pytest.mark.req("op:idempotency")
def test_a_failed_write_can_be_retried_under_its_key(space: Namespace) -> None:
    space.configure(kind="note", max_memory_items=1, overflow="refuse")
    space.save("first")
    with pytest.raises(LimitReached):
        space.save("second", idempotency_key="s")
    space.configure(kind="note", max_memory_items=2)
    assert not space.save("second", idempotency_key="s").replayed
    assert space.count() == 2


# Touch, archive, restore, delete


@pytest.mark.req("op:touch")
def test_touch_marks_a_use_and_is_not_journalled(space: Namespace, clock: FakeClock) -> None:
    space.save("a", memory_id="x", expires_in=60)
    clock.advance(10)
    space.touch("x")
    record = space.get("x")
    assert (record.accessed_at, record.access_count) == (clock(), 1)
    assert record.expires_at == clock() + timedelta(seconds=50)
    assert len(space.history("x")) == 1


@pytest.mark.req("op:touch")
def test_touch_with_a_lifetime_moves_the_expiry_and_is_journalled(
    space: Namespace, clock: FakeClock
) -> None:
    space.save("a", memory_id="x", expires_in=60)
    clock.advance(59)
    space.touch("x", expires_in=60)
    assert space.get("x").expires_at == clock() + timedelta(seconds=60)
    assert [entry.operation for entry in space.history("x")] == ["save", "touch"]
    space.touch("x", expires_in=None)
    assert space.get("x").expires_at is None


@pytest.mark.req("op:touch", "expire:hidden")
def test_touch_revives_nothing(space: Namespace, clock: FakeClock) -> None:
    space.save("a", memory_id="x", expires_in=60)
    clock.advance(60)
    with pytest.raises(NotFound, match="expired"):
        space.touch("x", expires_in=60)


@pytest.mark.req("op:touch", "record:fields")
def test_only_prompts_note_a_use(space: Namespace) -> None:
    space.save("refund", memory_id="x")
    space.get("x")
    space.list()
    space.search("refund")
    space.recall("refund")
    space.read("x")
    space.as_of(space.get("x").recorded_at).get("x")
    assert space.get("x").access_count == 0
    space.recall_for_prompt(["x"])
    assert space.get("x").access_count == 1


@pytest.mark.req("op:archive", "op:restore")
def test_the_archive_is_out_of_search_and_readable_by_id(space: Namespace) -> None:
    space.save("refund policy", memory_id="x")
    space.archive("x")
    assert space.search("refund") == []
    assert space.recall("refund").items == ()
    assert (space.count(), list(space.list())) == (0, [])
    assert space.get("x").state == "archived"
    assert "refund policy" in space.recall_for_prompt(["x"])
    assert [hit.memory_id for hit in space.search("refund", where={"state": "archived"})] == ["x"]
    space.restore("x")
    assert [hit.memory_id for hit in space.search("refund")] == ["x"]
    assert space.restore("x").unchanged


@pytest.mark.req("op:delete")
def test_a_deleted_record_is_out_of_every_read_and_can_come_back(space: Namespace) -> None:
    space.save("red bicycle", memory_id="x", metadata={"m": 1})
    space.delete("x")
    for call in (space.get, space.read, space.delete, space.touch):
        with pytest.raises(NotFound, match="no memory x"):
            call("x")
    assert space.search("bicycle") == []
    assert "bicycle" not in space.recall_for_prompt(["x"])
    space.restore("x")
    assert (space.get("x").content, space.get("x").metadata) == ("red bicycle", {"m": 1})


@pytest.mark.req("op:delete")
def test_a_saved_id_that_had_ended_is_a_new_version_of_the_same(space: Namespace) -> None:
    space.save("old", memory_id="x", metadata={"m": 1}, tags=("t",))
    space.delete("x")
    assert space.save("new", memory_id="x").operation == "save"
    record = space.get("x")
    assert (record.version, record.metadata, record.tags) == (3, {}, ())


@pytest.mark.req("op:delete")
def test_deleting_all_needs_to_be_said(space: Namespace) -> None:
    space.save_many([{"content": f"b{n}", "tags": ("odd",) * (n % 2)} for n in range(4)])
    without: list[dict[str, Any] | None] = [None, {}]
    for nothing in without:
        with pytest.raises(InvalidInput, match="everything=True"):
            space.delete_many(nothing)
    assert space.delete_many({"tag": "odd"}).count == 2
    assert space.delete_many(everything=True).count == 2
    assert space.count() == 0


@pytest.mark.req("op:expire")
def test_expire_ends_what_is_due_and_can_first_tell(space: Namespace, clock: FakeClock) -> None:
    space.save("a", memory_id="x", expires_in=60)
    space.save("b", memory_id="y")
    clock.advance(60)
    told = space.expire(dry_run=True)
    assert (told.count, told.dry_run) == (1, True)
    assert len(space.history("x")) == 1
    assert space.expire().swept == told.swept
    assert space.expire().count == 0
    assert space.history("x")[-1].operation == "expire"


# Batches


@pytest.mark.req("op:save")
def test_a_batch_is_one_operation_with_a_receipt_for_each(space: Namespace) -> None:
    items = [{"content": "a", "memory_id": "x"}, {"content": "b"}, {"content": "c", "key": "k"}]
    result = space.save_many(items)
    assert [one.memory_id for one in result.receipts] == ["x", "1", "2"]
    ids = {entry.operation_id for key in ("x", "1", "2") for entry in space.history(key)}
    assert len(ids) == 1


@pytest.mark.req("op:save")
def test_an_item_sees_those_before_it(space: Namespace) -> None:
    result = space.save_many([{"content": body, "key": "k"} for body in ("a", "b", "b")])
    assert [one.version for one in result.receipts] == [1, 2, 2]
    assert result.receipts[-1].unchanged
    assert [entry.version for entry in space.history("1")] == [1, 2]


BAD_ITEMS: list[Any] = [
    {"content": " "},
    {"content": "x", "colour": "red"},
    {"memory_id": "x"},
    "text",
    {"content": "x", "memory_id": "known", "if_version": 9},
]


@pytest.mark.req("op:save", "op:version")
@pytest.mark.parametrize("bad", BAD_ITEMS)
def test_a_bad_item_aborts_the_batch_or_takes_its_place(space: Namespace, bad: Any) -> None:
    space.save("known", memory_id="known")
    items = [{"content": "first"}, bad, {"content": "last"}]
    with pytest.raises((InvalidInput, Conflict), match="item 1"):
        space.save_many(items)
    assert space.count() == 1
    result = space.save_many(items, on_error="skip")
    assert (result.count, list(result.errors)) == (2, [1])
    assert space.count() == 3


@pytest.mark.req("op:update", "op:touch", "op:archive", "op:restore")
def test_every_write_has_a_batch_form_with_both_ways_to_fail(space: Namespace) -> None:
    space.save_many([{"content": key, "memory_id": key} for key in ("a", "b")])
    batches: list[Callable[..., Any]] = [
        lambda ids, **how: space.update_many(
            [{"memory_id": key, "tags": ("t",)} for key in ids], **how
        ),
        space.touch_many,
        space.archive_many,
        space.restore_many,
    ]
    for batch in batches:
        before = len(space.history("a"))
        with pytest.raises(NotFound, match="item 1: no memory missing"):
            batch(["a", "missing", "b"])
        assert len(space.history("a")) == before
        result = batch(["a", "missing", "b"], on_error="skip")
        assert [one.memory_id for one in result.receipts] == ["a", "b"]
        assert isinstance(result.results[1], NotFound)
    with pytest.raises(InvalidInput, match="on_error"):
        space.touch_many(["a"], on_error="ignore")  # type: ignore[arg-type]


@pytest.mark.req("history:purge")
def test_a_purge_of_many_is_all_or_nothing(space: Namespace) -> None:
    space.save("a", memory_id="a")
    with pytest.raises(NotFound):
        space.purge_many(["a", "missing"])
    assert space.get("a").content == "a"


# Reads


@pytest.mark.req("op:get")
def test_many_are_read_in_the_order_asked_for(space: Namespace) -> None:
    space.save_many([{"content": key, "memory_id": key} for key in ("a", "b")])
    found = space.get_many(["b", "missing", "a"])
    assert [record and record.content for record in found] == ["b", None, "a"]


@pytest.mark.req("op:list")
def test_pages_are_stable_while_records_change(space: Namespace) -> None:
    space.save_many([{"content": f"b{n}", "memory_id": f"m{n}"} for n in range(10)])
    first = space.list(limit=4)
    assert [r.memory_id for r in first] == ["m0", "m1", "m2", "m3"]
    space.update("m0", content="changed")
    space.delete("m5")
    space.save("new", memory_id="m10")
    rest = space.list(limit=100, cursor=first.next_cursor)
    assert [r.memory_id for r in rest] == ["m4", "m6", "m7", "m8", "m9", "m10"]
    assert rest.next_cursor is None


@pytest.mark.req("op:list")
@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": -1}, {"limit": True}, {"cursor": "x"}])
def test_a_wrong_page_is_refused(space: Namespace, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        space.list(**wrong)


@pytest.mark.req("op:stats")
def test_stats_count_what_is_there(memory: Memory) -> None:
    one, other = memory.namespace("one"), memory.namespace("other")
    one.save("a", kind="task_state", memory_id="x")
    one.save("b")
    other.save("c")
    one.archive("x")
    stats = memory.stats()
    assert (stats.namespaces, stats.records, stats.journal) == (2, 3, 4)
    assert stats.by_state == {"active": 2, "archived": 1}
    assert stats.by_form == {"semantic": 2, "working": 1}


@pytest.mark.req("op:order", "recall:fresh")
def test_a_write_is_seen_by_every_reader_before_its_receipt(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    with Memory.open(url) as writer, Memory.open(url) as reader:
        for number in range(3):
            writer.namespace("a").save(f"v{number}", memory_id="x")
            assert reader.namespace("a").get("x").content == f"v{number}"
            assert reader.namespace("a").search(f"v{number}")[0].record.version == number + 1
        writer.namespace("a").delete("x")
        assert reader.namespace("a").get_many(["x"]) == [None]


# What a careful reader found


@pytest.mark.req("op:idempotency")
def test_a_retry_may_name_its_metadata_in_another_order(space: Namespace) -> None:
    first = space.save("x", metadata={"a": 1, "b": 2}, idempotency_key="once")
    again = space.save("x", metadata={"b": 2, "a": 1}, idempotency_key="once")
    assert (again.memory_id, again.replayed) == (first.memory_id, True)


@pytest.mark.req("op:merge", "record:fields")
def test_the_time_of_a_newer_event_replaces_the_older_ones(space: Namespace) -> None:
    happened = datetime(2026, 1, 1, tzinfo=UTC)
    space.save("Paris", kind="user_pref", key="city", created_at=happened)
    space.save("Rome", kind="user_pref", key="city", created_at=happened + DAY)
    assert space.get(1).created_at == happened + DAY
    space.save("Oslo", kind="user_pref", key="city")
    assert space.get(1).created_at == happened + DAY


@pytest.mark.req("op:save", "op:archive", "op:merge")
def test_a_save_onto_an_archived_id_loses_nothing_of_it(space: Namespace) -> None:
    space.save("step 1", kind="task_state", memory_id="t", metadata={"a": 1}, tags=("x",))
    space.archive("t")
    receipt = space.save("step 2", memory_id="t", metadata={"b": 2})
    record = space.get("t")
    assert (receipt.operation, record.state, record.text) == ("save", "active", "step 2")
    assert (record.metadata, record.tags) == ({"a": 1, "b": 2}, ("x",))
    assert (record.kind, record.version) == ("task_state", 3)


@pytest.mark.req("op:save")
def test_a_host_can_decide_only_what_is_new(space: Namespace) -> None:
    assert space.decide("scope", "k", "first")
    assert not space.decide("scope", "k", "second", only_new=True)
    assert space.decision("scope", "k") == "first"
    assert space.decide("scope", "k", "third")
    assert space.decision("scope", "k") == "third"


@pytest.mark.req("op:stats", "expire:hidden")
def test_stats_tell_expired_records_from_active_ones(
    memory: Memory, space: Namespace, clock: FakeClock
) -> None:
    space.save("a")
    space.save("b", expires_in=60)
    assert memory.stats().by_state == {"active": 2}
    clock.advance(60)
    assert memory.stats().by_state == {"active": 1, "expired": 1}
    memory.expire()
    assert memory.stats().by_state == {"active": 1, "deleted": 1}


@pytest.mark.req("op:save")
@pytest.mark.parametrize("url", ["memory://", "sqlite://"])
def test_a_closed_store_says_so(url: str, tmp_path: Path) -> None:
    memory = Memory.open(url if url == "memory://" else f"{url}/{tmp_path}/a.db")
    memory.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        memory.namespace("a").save("x")


@pytest.mark.req("prod:files")
def test_a_store_that_must_be_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="no store here"):
        Memory.open(f"sqlite:///{tmp_path}/none.db", create=False)
    assert list(tmp_path.iterdir()) == []
    Memory.open(f"sqlite:///{tmp_path}/one.db").close()
    Memory.open(f"sqlite:///{tmp_path}/one.db", create=False).close()


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize("url", ["", "sqlite:///:memory:", "sqlite:///", Path("a.db"), "a.db"])
def test_what_names_no_store_is_refused(
    url: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="sqlite:///"):
        Memory.open(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("op:dedupe-key")
def test_near_equal_words_about_different_facts_are_no_duplicates(space: Namespace) -> None:
    space.save("Alice pays Bob 50 euros")
    space.save("Bob pays Alice 50 euros")
    space.save("I like green tea in the morning")
    space.save("I do not like green tea in the morning")
    space.save("please ship the order to the usual address today", metadata={"order": 57})
    space.save("please ship the order to the usual address today", metadata={"order": 58})
    space.save("the customer of order 57 has asked for a full refund again")
    space.save("the customer of order 58 has asked for a full refund again")
    assert space.duplicates("note", merge=True) == []
    assert space.count() == 8
