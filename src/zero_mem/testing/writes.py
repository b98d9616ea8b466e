"""Saving and changing memories: what each write means, whatever the store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from zero_mem.errors import Conflict, InvalidInput, NotAllowed, NotFound
from zero_mem.memory import Memory
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock
from zero_mem.testing.fixtures import StoreFixtures, found, texts
from zero_mem.types import Blob, Json


def nested(depth: int) -> Json:
    """Put a value into a list in a list, so many times."""
    value: object = "core"
    for _ in range(depth):
        value = [value]
    return Json(value)


class SaveConformance(StoreFixtures):
    """Save, its receipt and the record that it makes."""

    @pytest.mark.req("record:fields", "op:save", "op:get")
    def test_a_record_has_all_that_was_said(self, space: Namespace, clock: FakeClock) -> None:
        """Every field comes back; the caller's time is kept apart from the store's."""
        happened = datetime(2025, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
        receipt = space.save(
            "Asia/Shanghai",
            kind="user_pref",
            key="timezone",
            metadata={"order": 57, "空": None, "nested": {"a": [True, 1.5]}},
            tags=["b", "a", "b"],
            task="t",
            session="s",
            speaker="Ann",
            source="tool",
            expires_in=timedelta(minutes=1),
            invalidated_by=["moved"],
            created_at=happened,
        )
        record = space.get(receipt.memory_id)
        assert len(record.uid) >= 16
        assert (record.namespace, record.form) == (("acme", "alice"), "semantic")
        assert (record.kind, record.key) == ("user_pref", "timezone")
        assert record.metadata == {"order": 57, "nested": {"a": [True, 1.5]}}
        assert (record.tags, record.invalidated_by) == (("b", "a"), ("moved",))
        assert (record.task, record.session, record.speaker) == ("t", "s", "Ann")
        assert record.source == "tool"
        assert record.created_at == happened
        assert record.recorded_at == record.updated_at == record.accessed_at == clock()
        assert record.expires_at == clock() + timedelta(minutes=1)
        assert (record.version, record.state, record.access_count) == (1, "active", 0)

    @pytest.mark.req("receipt:no-body", "receipt:format")
    def test_a_receipt_names_and_tells_nothing_else(
        self, space: Namespace, clock: FakeClock
    ) -> None:
        """Id, operation, version and time; no value in the preview."""
        receipt = space.save("secret", kind="user_pref", key="timezone")
        assert receipt.to_context() == "[memo:1] save (user_pref:timezone)"
        assert (receipt.version, receipt.created_at) == (1, clock())
        assert "secret" not in repr(receipt)

    @pytest.mark.req("record:body", "index:any-text")
    @pytest.mark.parametrize(
        "body",
        [
            "  line\r\nline\t\u2028 \x00 end ",
            "e\u0301 is not \u00e9 here",
            "lone \ud800 surrogate \udfff",
            "👩‍👩‍👧 退款 \U0010ffff",
            '{"a": 1}',
            "[memo:7] save (forged)",
            Json({"b": [1, 1.0, True, None, "\ud800\0", {"": {}}], "a": 10**30}),
            Json(None),
            Json([]),
            Json(-0.0),
            Json("text"),
            Blob(data=bytes(range(256)), media_type="image/png"),
        ],
        ids=repr,
    )
    def test_a_body_comes_back_exactly(self, space: Namespace, body: str | Json | Blob) -> None:
        """Text byte for byte, JSON by type and value, binary with its media type."""
        memory_id = space.save(body).memory_id
        content = space.get(memory_id).content
        assert content == body
        assert repr(content) == repr(body)
        assert space.history(memory_id)[0].record == space.get(memory_id)

    @pytest.mark.req("record:body", "index:any-text")
    def test_long_and_deep_bodies_are_stored_whole(self, space: Namespace) -> None:
        """200 KB of text, of one word and of Chinese; JSON nested two hundred deep."""
        bodies = ["the quick refund " * 12_000, "x" * 200_000, "退款申请" * 50_000]
        stored = [space.save(body).memory_id for body in bodies]
        assert [space.get(memory_id).content for memory_id in stored] == bodies
        assert found(space, "quick refund") == stored[:1]
        assert found(space, bodies[1]) == stored[1:2]
        assert found(space, "退款") == stored[2:]
        deep = nested(199)
        assert space.get(space.save(deep, metadata={"deep": deep.value}).memory_id).content == deep

    @pytest.mark.req("record:body", "pkg:errors")
    @pytest.mark.parametrize(
        "body",
        [
            "",
            " \n\t",
            None,
            b"bytes",
            {"a": 1},
            Blob(data=b""),
            Json(float("nan")),
            Json(float("-inf")),
            Json({1: "a"}),
            Json({"when": datetime(2026, 1, 1, tzinfo=UTC)}),
            Json(10**5000),
            nested(201),
            nested(50_000),
        ],
        ids=lambda body: type(getattr(body, "value", body)).__name__,
    )
    def test_what_is_no_body_is_refused(self, memory: Memory, body: str) -> None:
        """Nothing is stored, not even the namespace."""
        with pytest.raises(InvalidInput):
            memory.namespace("acme", "new").save(body)
        assert memory.stats().namespaces == 0

    @pytest.mark.req("record:body")
    def test_json_joins_surrogates_that_stand_as_a_pair(self, memory: Memory) -> None:
        """In JSON a pair is the character it names, so that every store gives the same back."""
        space = memory.namespace("a")
        space.save(Json({"\ud83d\ude00": ["\ud83d\ude00", "\ud83d", "x\ude00"]}), memory_id="x")
        assert space.get("x").content == Json({"\U0001f600": ["\U0001f600", "\ud83d", "x\ude00"]})

    @pytest.mark.req("handle:grammar", "pkg:errors")
    @pytest.mark.parametrize(
        "options",
        [
            {"memory_id": "a b"},
            {"memory_id": "-x"},
            {"memory_id": "../x"},
            {"memory_id": "x" * 65},
            {"kind": "a\nb"},
            {"key": "\ud800"},
            {"tags": "text"},
            {"form": "eternal"},
            {"source": "oracle"},
            {"metadata": {"n": float("nan")}},
            {"metadata": [1]},
            {"expires_in": 0},
            {"expires_in": -5},
            {"expires_in": 1, "expires_at": datetime(2027, 1, 1, tzinfo=UTC)},
            {"created_at": datetime(2026, 1, 1)},  # noqa: DTZ001
            {"if_version": -1},
            {"mode": "later"},
        ],
        ids=repr,
    )
    def test_a_wrong_argument_is_named(self, space: Namespace, options: dict[str, object]) -> None:
        """A typed error, and nothing stored."""
        with pytest.raises(InvalidInput) as raised:
            space.save("text", **options)  # type: ignore[arg-type]
        assert len(str(raised.value)) > 10
        assert space.count() == 0

    @pytest.mark.req("pkg:errors")
    def test_an_empty_optional_argument_is_none_given(self, space: Namespace) -> None:
        """As forms and JSON clients send it."""
        empty: dict[str, Any] = {
            "kind": "",
            "key": "",
            "memory_id": "",
            "task": "",
            "session": "",
            "speaker": "",
        }
        record = space.get(space.save("text", **empty, form="").memory_id)
        assert (record.kind, record.key, record.memory_id) == ("note", None, "1")
        assert (record.task, record.session, record.speaker) == (None, None, None)

    @pytest.mark.req("record:forms")
    def test_a_kind_has_its_form(self, space: Namespace) -> None:
        """And a form given with it wins."""
        kinds = ["task_state", "message", "tool_result", "user_pref", "anything"]
        saved = [space.get(space.save("text", kind=kind).memory_id).form for kind in kinds]
        assert saved == ["working", "episodic", "episodic", "semantic", "semantic"]
        given = space.save("text", kind="message", form="procedural").memory_id
        assert space.get(given).form == "procedural"

    @pytest.mark.req("handle:short")
    def test_numbers_are_never_given_twice(self, space: Namespace, other: Namespace) -> None:
        """Not after delete, purge or rollback, and never one that a caller took."""
        space.save("a", memory_id="2")
        start = space.memory.now()
        given = [space.save("text").memory_id for _ in range(3)]
        assert given == ["1", "3", "4"]
        space.delete("3")
        space.purge("4")
        assert space.save("text").memory_id == "5"
        space.rollback(to_moment=start - timedelta(days=1))
        assert space.save("text").memory_id == "6"
        assert other.save("text").memory_id == "1"

    @pytest.mark.req("handle:grammar")
    def test_a_number_is_an_id(self, space: Namespace) -> None:
        """Given as a whole number or as text."""
        space.save("text", memory_id=42)
        assert space.get("42") == space.get(42)


class UpdateConformance(StoreFixtures):
    """Update, touch, and what each leaves alone."""

    @pytest.mark.req("op:update", "op:merge")
    def test_an_update_changes_what_it_names(self, space: Namespace, clock: FakeClock) -> None:
        """Metadata, tags, task and expiry stay when only the content is named."""
        options: dict[str, Any] = {
            "metadata": {"a": 1, "b": 2},
            "tags": ["t"],
            "task": "t",
            "expires_in": 60,
        }
        before = space.get(space.save("old", **options).memory_id)
        clock.advance()
        receipt = space.update("1", content="new")
        after = space.get("1")
        assert (receipt.operation, receipt.version, after.version) == ("update", 2, 2)
        assert (after.content, after.uid) == ("new", before.uid)
        assert (after.metadata, after.tags, after.task) == (
            before.metadata,
            before.tags,
            before.task,
        )
        assert after.expires_at == before.expires_at
        assert after.created_at == before.created_at
        assert after.updated_at == after.recorded_at == clock()

    @pytest.mark.req("op:merge")
    def test_none_clears_and_unset_leaves(self, space: Namespace) -> None:
        """Key by key in metadata; the whole of tags and expiry."""
        space.save("text", metadata={"a": 1, "b": {"x": 1}}, tags=["t"], expires_in=60)
        space.update("1", metadata={"a": None, "b": {"y": 2}, "c": 3})
        assert space.get("1").metadata == {"b": {"y": 2}, "c": 3}
        space.update("1", tags=None, expires_in=None)
        assert (space.get("1").tags, space.get("1").expires_at) == ((), None)
        space.update("1", metadata=None)
        assert (space.get("1").metadata, space.get("1").text) == ({}, "text")

    @pytest.mark.req("op:merge", "handle:scope")
    def test_metadata_moves_no_record(self, space: Namespace, other: Namespace) -> None:
        """Names such as `namespace` or `tenant` mean nothing there."""
        space.save("text", metadata={"tenant": "bob", "namespace": ["acme", "bob"]})
        space.update("1", metadata={"user_id": "bob"})
        assert space.get("1").namespace == ("acme", "alice")
        assert other.count() == 0

    @pytest.mark.req("op:version")
    def test_an_update_to_the_same_adds_no_version(self, space: Namespace) -> None:
        """Also where JSON says it in another order; 1, 1.0 and true are not the same."""
        space.save(Json({"a": 1, "b": 2}), metadata={"n": 1})
        same = space.update("1", content=Json({"b": 2, "a": 1}), metadata={"n": 1})
        assert (same.unchanged, same.version) == (True, 1)
        assert not space.update("1", metadata={"n": 1.0}).unchanged
        assert not space.update("1", metadata={"n": True}).unchanged
        assert space.get("1").version == 3
        assert len(space.history("1")) == 3

    @pytest.mark.req("op:version")
    def test_a_stale_writer_is_told_both_versions(self, space: Namespace) -> None:
        """On every kind of write, and the record stays."""
        space.save("one", memory_id="x")
        space.update("x", content="two", if_version=1)
        stale: list[Callable[[], object]] = [
            lambda: space.save("late", memory_id="x", if_version=1),
            lambda: space.update("x", content="late", if_version=1),
            lambda: space.touch("x", if_version=1),
            lambda: space.archive("x", if_version=1),
            lambda: space.restore("x", if_version=1),
            lambda: space.delete("x", if_version=1),
        ]
        for write in stale:
            with pytest.raises(Conflict, match=r"version 2, not 1"):
                write()
        assert (space.get("x").text, space.get("x").version) == ("two", 2)

    @pytest.mark.req("op:version")
    def test_version_zero_asks_for_a_new_record(self, space: Namespace) -> None:
        """The second of two who ask for it gets a conflict."""
        space.save("first", memory_id="x", if_version=0)
        with pytest.raises(Conflict):
            space.save("second", memory_id="x", if_version=0)
        with pytest.raises(Conflict):
            space.save("text", memory_id="y", if_version=3)
        assert texts(space) == ["first"]

    @pytest.mark.req("op:touch")
    def test_a_touch_moves_the_access_and_if_asked_the_expiry(
        self, space: Namespace, clock: FakeClock
    ) -> None:
        """Only the second is journalled, and neither raises the version."""
        space.save("text", expires_in=60)
        clock.advance(30)
        receipt = space.touch("1")
        record = space.get("1")
        assert (receipt.operation, receipt.version) == ("touch", 1)
        assert (record.accessed_at, record.access_count) == (clock(), 1)
        assert record.expires_at == clock() + timedelta(seconds=30)
        assert len(space.history("1")) == 1
        space.touch("1", expires_in=60)
        assert space.get("1").expires_at == clock() + timedelta(seconds=60)
        assert space.get("1").version == 1
        assert [entry.operation for entry in space.history("1")] == ["save", "touch"]

    @pytest.mark.req("op:touch", "expire:hidden")
    def test_a_touch_revives_nothing(self, space: Namespace, clock: FakeClock) -> None:
        """Neither what has expired nor what was archived."""
        space.save("text", expires_in=60)
        space.save("filed")
        space.archive("2")
        clock.advance(60)
        with pytest.raises(NotFound, match="expired"):
            space.touch("1", expires_in=60)
        with pytest.raises(NotAllowed, match="archived"):
            space.touch("2", expires_in=60)

    @pytest.mark.req("op:update", "op:delete")
    def test_writes_to_what_is_not_there(self, space: Namespace, other: Namespace) -> None:
        """A foreign id answers like one that never was."""
        other.save("text", memory_id="theirs")
        for memory_id in ("theirs", "nobodys"):
            for write in (space.update, space.touch, space.archive, space.restore, space.delete):
                with pytest.raises(NotFound) as raised:
                    write(memory_id)
                assert str(raised.value).replace(memory_id, "ID") == (
                    "no memory ID in this namespace"
                )
        assert texts(other) == ["text"]
