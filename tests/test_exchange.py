"""Memories as JSON lines: out of a store and into another, twice without a change."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem import Blob, Json, Memory, MemoryRecord
from zero_mem.errors import Conflict, InvalidInput, MigrationNeeded
from zero_mem.exchange import BATCH, ImportReport, OnConflict, export_records, import_records
from zero_mem.space import Namespace
from zero_mem.types import Body

pytestmark = pytest.mark.req("pkg:cli")

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
KEPT = (
    "memory_id", "form", "kind", "key", "content", "metadata", "tags", "task", "session",
    "speaker", "source", "created_at", "expires_at", "invalidated_by", "state",
)  # fmt: skip


class Tick:
    """A clock that goes on by a second at each look."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def store() -> Memory:
    return Memory.open("memory://", clock=Tick())


@pytest.fixture
def memory() -> Iterator[Memory]:
    with store() as opened:
        yield opened


@pytest.fixture
def space(memory: Memory) -> Namespace:
    return memory.namespace("acme", "alice")


def exported(space: Namespace, **options: Any) -> bytes:
    out = io.StringIO()
    export_records(space, out, **options)
    return out.getvalue().encode("utf-8")


def imported(
    memory: Memory, text: bytes, on_conflict: OnConflict = "refuse", **options: Any
) -> ImportReport:
    return import_records(
        lambda path: memory.namespace(*path),
        io.BytesIO(text),
        on_conflict=on_conflict,
        **options,
    )


def kept(records: Iterable[MemoryRecord]) -> list[dict[str, Any]]:
    return [{name: getattr(record, name) for name in KEPT} for record in records]


def everything(space: Namespace) -> list[MemoryRecord]:
    return list(space.each({"state": {"in": ["active", "archived", "deleted", "expired"]}}))


def fill(space: Namespace) -> None:
    space.save(
        "Asia/Shanghai",
        kind="user_pref",
        key="timezone",
        metadata={"order": 57, "deep": {"a": [1, None]}},
        tags=["one", "two"],
        session="s-1",
        speaker="Ann",
        source="model",
        invalidated_by=["order.cancelled"],
        created_at=datetime(2020, 2, 3, 4, 5, 6, 789, tzinfo=UTC),
        expires_at=datetime(2030, 1, 1, tzinfo=UTC),
    )
    space.save(
        "用户正在申请退款 \U0001f9fe", kind="task_state", memory_id="task-001", task="task-001"
    )
    space.save(Json({"b": [1, 2.5, None, "x"], "a": {}}), kind="tool_result")
    space.save(Blob(data=bytes(range(256)), media_type="image/png"))
    space.save('{"a":1}')
    space.save("old")
    space.archive(5)
    space.update(1, tags=["two"])


def test_all_that_can_be_read_comes_back_in_another_store(space: Namespace) -> None:
    fill(space)
    with store() as other:
        report = imported(other, exported(space))
        target = other.namespace("acme", "alice")
        assert report.imported == 6
        assert kept(everything(target)) == kept(everything(space))


@pytest.mark.req("op:idempotency")
@pytest.mark.parametrize("conflict", ["refuse", "skip", "renumber"])
def test_importing_twice_changes_nothing(space: Namespace, conflict: OnConflict) -> None:
    fill(space)
    with store() as other:
        imported(other, exported(space), conflict)
        target = other.namespace("acme", "alice")
        before = everything(target)
        report = imported(other, exported(space), conflict)
        assert (report.imported, report.unchanged) == (0, 6)
        assert everything(target) == before


def test_importing_into_the_store_it_came_from_changes_nothing(
    memory: Memory, space: Namespace
) -> None:
    fill(space)
    before = everything(space)
    assert imported(memory, exported(space)).unchanged == 6
    assert everything(space) == before


def test_a_later_export_brings_what_was_changed_meanwhile(space: Namespace) -> None:
    fill(space)
    with store() as other:
        imported(other, exported(space))
        space.update(1, content="Europe/Paris", metadata={"order": None, "new": 1}, tags=None)
        report = imported(other, exported(space))
        target = other.namespace("acme", "alice")
        assert (report.imported, report.unchanged) == (1, 5)
        assert kept([target.get(1)]) == kept([space.get(1)])


def test_an_import_that_was_cut_short_is_made_good_by_the_next(
    space: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(space)
    with store() as other:
        text = exported(space)
        with monkeypatch.context() as patch:
            patch.setattr(Namespace, "archive", interrupt)
            with pytest.raises(KeyboardInterrupt):
                imported(other, text)
        assert imported(other, exported(space)).unchanged == 6
        assert other.namespace("acme", "alice").get(5).state == "archived"


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_deleted_records_go_along_when_asked_for(space: Namespace) -> None:
    space.save("kept")
    space.save("gone")
    space.delete(2)
    assert b"gone" not in exported(space)
    with store() as other:
        imported(other, exported(space, where={"state": "deleted"}))
        (record,) = everything(other.namespace("acme", "alice"))
        assert (record.memory_id, record.state, record.content) == ("2", "deleted", "gone")


def test_an_id_that_is_another_record_is_refused_with_its_place(
    memory: Memory, space: Namespace
) -> None:
    fill(space)
    with store() as other:
        target = other.namespace("acme", "alice")
        target.save("mine")
        with pytest.raises(Conflict, match=r"notes\.jsonl:1: memory 1 of acme/alice"):
            imported(other, exported(space), name="notes.jsonl")
        assert target.count() == 1


def test_ids_that_are_taken_can_be_left_out_or_renumbered(space: Namespace) -> None:
    space.save("tea")
    space.save("coffee", memory_id="drink")
    with store() as other:
        target = other.namespace("acme", "alice")
        target.save("mine")
        assert imported(other, exported(space), "skip").skipped == ["input:1"]
        report = imported(other, exported(space), "renumber")
        assert report.renumbered == {(("acme", "alice"), "1"): "2"}
        assert [record.content for record in target.each()] == ["mine", "coffee", "tea"]
        space.update(1, content="green tea")
        imported(other, exported(space), "renumber")
        assert target.get(2).content == "green tea"
        assert target.get(1).content == "mine"


def test_a_key_that_is_taken_is_refused_with_its_place(space: Namespace) -> None:
    space.save("Paris", kind="city", key="home", memory_id="a")
    with store() as other:
        target = other.namespace("acme", "alice")
        target.save("Rome", kind="city", key="home")
        with pytest.raises(Conflict, match=r"^input:1: "):
            imported(other, exported(space))
        assert imported(other, exported(space), "skip").skipped == ["input:1"]
        assert target.get(1).content == "Rome"


@pytest.mark.req("history:purge")
def test_a_purged_memory_does_not_come_back(memory: Memory, space: Namespace) -> None:
    space.save("secret")
    text = exported(space)
    space.purge(1)
    with pytest.raises(Conflict, match=r"^input:1: "):
        imported(memory, text)
    assert everything(space)[0].content != "secret"


@pytest.mark.req("pkg:errors")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"content": "cut', "breaks off"),
        (b"[1]", "object"),
        (b'{"memory_id": "1"}', "content"),
        (b'{"content": "x", "state": "lost"}', "state"),
        (b'{"content": "x", "namespace": "a/b"}', "namespace"),
        (b'{"content": "x", "created_at": "yesterday"}', "created_at"),
        (b'{"content": "x", "created_at": "2026-01-01T00:00:00"}', "zone"),
        (b'{"content": "!", "content_type": "blob"}', "Base64"),
        (b'{"content": 1, "content_type": "text"}', "string"),
        (b'{"content": "x", "memory_id": "a/b"}', "memory_id"),
        (b'{"content": "x", "version": "two"}', "version"),
        (b'{"content": "x", "tags": "one"}', "tags"),
        (b'{"content": "\xff"}', "object"),
        (b'{"content": "x", "memory_id": "same"}', "same"),
    ],
)
def test_a_bad_line_is_named_and_its_batch_is_not_written(
    memory: Memory, line: bytes, says: str
) -> None:
    good = b'{"content": "tea", "memory_id": "same"}'
    with pytest.raises((InvalidInput, Conflict), match=r"^notes\.jsonl:3: ") as caught:
        imported(memory, b"\n".join([good, b"", line]), name="notes.jsonl")
    assert says in str(caught.value)
    assert memory.stats().records == 0


def test_a_newer_format_asks_for_an_upgrade(memory: Memory) -> None:
    with pytest.raises(MigrationNeeded, match="input:1"):
        imported(memory, b'{"format": 99, "content": "x"}')


def test_what_stands_before_a_bad_batch_stays_and_nothing_is_doubled(memory: Memory) -> None:
    lines = [json.dumps({"content": f"note {n}"}).encode() for n in range(BATCH + 2)]
    broken = [*lines[: BATCH + 1], b"{", lines[-1]]
    with pytest.raises(InvalidInput, match=f"input:{BATCH + 2}: "):
        imported(memory, b"\n".join(broken))
    assert memory.stats().records == BATCH
    imported(memory, b"\n".join(lines))
    assert memory.stats().records == BATCH + 2


def test_a_bare_line_becomes_a_note_of_an_import(memory: Memory) -> None:
    report = imported(memory, b'\xef\xbb\xbf{"content": {"a": 1}}\r\n')
    record = memory.namespace("default").get(1)
    assert (report.imported, record.content, record.source) == (1, Json({"a": 1}), "import")
    assert (record.kind, record.created_at) == ("note", record.recorded_at)


def test_namespaces_come_back_each_in_its_place(memory: Memory) -> None:
    memory.namespace("a", "b:c").save("one")
    memory.namespace("a", "b", "c").save("two")
    text = b"".join(exported(memory.namespace(*path)) for path in memory.subtree().namespaces())
    with store() as other:
        assert imported(other, text).imported == 2
        assert other.namespace("a", "b:c").get(1).content == "one"
        assert other.namespace("a", "b", "c").get(1).content == "two"


def test_progress_is_told_in_bytes_and_ends_at_the_last(memory: Memory) -> None:
    text = b'{"content": "tea"}\n' * 1 + b'{"content": "coffee"}\n'
    told: list[int] = []
    imported(memory, text, on_progress=told.append)
    assert told == [len(text)]


BODIES = st.one_of(
    st.text(st.characters(), min_size=1).filter(str.strip),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ).map(Json),
    st.binary(min_size=1).map(lambda data: Blob(data=data, media_type="application/x-any")),
)  # fmt: skip


@pytest.mark.req("record:body", "index:any-text")
@given(st.lists(BODIES, min_size=1, max_size=4))
def test_every_body_survives_exactly_lone_surrogates_too(bodies: list[Body]) -> None:
    with store() as first, store() as second:
        space = first.namespace("acme")
        space.save_many([{"content": body} for body in [*bodies, "lone \ud83d surrogate"]])
        imported(second, exported(space))
        there = [record.content for record in second.namespace("acme").each()]
        assert there == [record.content for record in space.each()]
        assert there[-1] == "lone \ud83d surrogate"
