"""Lists, filters and search, whatever the store."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import pytest

from zero_mem.errors import InvalidInput, NotFound
from zero_mem.memory import Memory
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock
from zero_mem.testing.fixtures import StoreFixtures, found, texts
from zero_mem.types import Json

ANY_TEXT = [
    "pre-edit",
    "POL-358",
    "don't",
    r"C:\repo\a.py",
    "GB/s",
    "20.04",
    "AND OR NOT",
    '"quoted"',
    "a*",
    "(",
    "*",
    "->",
    "'; DROP TABLE record; --",
    "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "NEAR(a b)",
    "col:umn",
    "^start",
    "nul\x00byte",
    "lone\ud800surrogate",
    "🚲",
    "ＡＢＣ",
    "café",
    "退",
    "%_",
    "{}",
]


class ListConformance(StoreFixtures):
    """Get, list, paging, subtree and isolation."""

    @pytest.mark.req("op:list")
    def test_pages_hold_every_record_once(self, space: Namespace) -> None:
        """In the order of first saving, and the last page says so."""
        space.save_many([{"content": f"text {n}", "memory_id": f"m{n}"} for n in range(25)])
        pages = [space.list(limit=10)]
        while pages[-1].next_cursor is not None:
            pages.append(space.list(limit=10, cursor=pages[-1].next_cursor))
        assert [len(page) for page in pages] == [10, 10, 5]
        assert [r.memory_id for page in pages for r in page] == [f"m{n}" for n in range(25)]
        assert space.list(limit=25).next_cursor is None
        assert len(space.list(limit=sys.maxsize)) == 25

    @pytest.mark.req("op:list")
    def test_paging_is_stable_under_writes(self, space: Namespace, other: Namespace) -> None:
        """Changes, endings and new records between pages shift nothing."""
        space.save_many([{"content": "text", "memory_id": f"m{n}"} for n in range(12)])
        seen = []
        cursor = None
        for step in range(3):
            page = space.list(limit=4, cursor=cursor)
            seen += [record.memory_id for record in page]
            cursor = page.next_cursor
            space.delete(f"m{step}")
            space.update(f"m{11 - step}", content=f"changed {step}")
            space.save("late", memory_id=f"late{step}")
            other.save("elsewhere")
        assert seen == [f"m{n}" for n in range(12)]
        assert cursor is not None
        assert [r.memory_id for r in space.list(cursor=cursor)] == ["late0", "late1", "late2"]

    @pytest.mark.req("op:list", "pkg:errors")
    @pytest.mark.parametrize("cursor", ["x", "p", "p-1", "p1.5", "p²", "p" + "9" * 40, 7])
    def test_what_is_no_cursor_is_refused(self, space: Namespace, cursor: Any) -> None:
        """With a typed error."""
        with pytest.raises(InvalidInput, match="cursor"):
            space.list(cursor=cursor)

    @pytest.mark.req("op:get")
    def test_many_are_read_in_one_snapshot(self, space: Namespace, other: Namespace) -> None:
        """None where there is none to read, foreign ids included."""
        space.save("a", memory_id="a")
        space.save("b", memory_id="b")
        other.save("c", memory_id="c")
        records = space.get_many(["b", "c", "a", "b"])
        assert [record and record.text for record in records] == ["b", None, "a", "b"]

    @pytest.mark.req("handle:scope")
    def test_no_read_leaves_its_namespace(self, memory: Memory) -> None:
        """Look-alike paths are other places; a foreign id answers like a missing one."""
        paths = [("acme",), ("acme-corp",), ("acme", "b:c"), ("acme", "b", "c"), ("Acme",)]
        for number, path in enumerate(paths):
            memory.namespace(*path).save(f"refund {number}", memory_id=f"m{number}", key="k")
        for number, path in enumerate(paths):
            space = memory.namespace(*path)
            assert texts(space) == [f"refund {number}"]
            assert found(space, "refund") == [f"m{number}"]
            assert len(space.as_of(memory.now()).list()) == 1
            foreign = f"m{(number + 1) % len(paths)}"
            for read in (space.get, space.history, space.read):
                with pytest.raises(NotFound) as raised:
                    read(foreign)
                assert str(raised.value) == f"no memory {foreign} in this namespace"
        with pytest.raises(InvalidInput):
            memory.namespace()

    @pytest.mark.req("handle:scope")
    def test_names_are_one_in_every_normal_form(self, memory: Memory) -> None:
        """NFC and NFD spell the same namespace and key."""
        memory.namespace("Ren\u00e9").save("one", key="caf\u00e9")
        space = memory.namespace("Rene\u0301")
        space.save("two", key="cafe\u0301")
        assert texts(space) == ["two"]

    @pytest.mark.req("op:list", "recall:explicit")
    def test_a_subtree_is_read_explicitly(self, memory: Memory) -> None:
        """At and below a path, namespace by namespace."""
        for path in (("acme",), ("acme", "a"), ("acme-corp",), ("acme", "b", "c")):
            memory.namespace(*path).save(f"refund of {'/'.join(path)}")
        tree = memory.subtree("acme")
        assert tree.namespaces() == [("acme",), ("acme", "a"), ("acme", "b", "c")]
        assert tree.count() == 3
        first = tree.list(limit=2)
        rest = tree.list(limit=2, cursor=first.next_cursor)
        read = [record.text for page in (first, rest) for record in page]
        assert read == ["refund of acme", "refund of acme/a", "refund of acme/b/c"]
        assert rest.next_cursor is None
        assert {hit.record.namespace for hit in tree.search("refund")} == set(tree.namespaces())
        assert len(tree.recall("refund").items) == 3
        assert memory.subtree().count() == 4
        assert memory.subtree("nowhere").count() == 0
        for cursor in ("x", "s1", "s1.", "s" + "9" * 40 + ".1"):
            with pytest.raises(InvalidInput, match="cursor"):
                tree.list(cursor=cursor)

    @pytest.mark.req("op:stats")
    def test_stats_count_the_whole_store(
        self, memory: Memory, space: Namespace, other: Namespace
    ) -> None:
        """Records by state and form, and the journal's entries."""
        space.save("a", kind="task_state")
        space.save("b")
        space.archive("2")
        other.save("c", kind="message")
        other.delete("1")
        stats = memory.stats()
        assert (stats.namespaces, stats.records, stats.journal) == (2, 3, 5)
        assert stats.by_state == {"active": 1, "archived": 1, "deleted": 1}
        assert stats.by_form == {"working": 1, "semantic": 1, "episodic": 1}

    @pytest.mark.req("record:body")
    def test_what_a_caller_changes_afterwards_changes_no_record(self, space: Namespace) -> None:
        """Neither the value that was saved nor the one that was read."""
        body, metadata = {"a": [1]}, {"m": [1]}
        space.save(Json(body), metadata=metadata, memory_id="x")
        body["a"].append(2)
        metadata["m"].append(2)
        read = space.get("x")
        assert isinstance(read.content, Json)
        read.content.value["a"].append(3)
        read.metadata["m"].append(3)
        again = space.get("x")
        assert (again.content, again.metadata) == (Json({"a": [1]}), {"m": [1]})
        assert space.history("x")[0].record == again


class FilterConformance(StoreFixtures):
    """Filters: one evaluator, whatever a store narrows down by itself."""

    @pytest.fixture
    def filled(self, space: Namespace, clock: FakeClock) -> Namespace:
        """Save records that differ in every field."""
        space.save("one", memory_id="one", kind="task_state", task="t", tags=["red", "big"])
        clock.advance(10)
        space.save("two", memory_id="two", kind="user_pref", key="tz", metadata={"order": 57})
        space.save("three", memory_id="three", session="s", speaker="Ann", metadata={"order": 58.5})
        space.save("four", memory_id="four", source="tool", metadata={"order": "57", "a": {"b": 1}})
        space.save("five", memory_id="five", expires_in=5, form="episodic")
        space.save("six", memory_id="six")
        space.archive("six")
        clock.advance(5)
        return space

    @pytest.mark.req("index:filters")
    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            (None, "one two three four"),
            ({}, "one two three four"),
            ({"kind": "task_state"}, "one"),
            ({"kind": {"in": ["task_state", "user_pref"]}}, "one two"),
            ({"kind": {"in": []}}, ""),
            ({"kind": "*"}, ""),
            ({"kind": {"ne": "task_state"}}, "two three four"),
            ({"form": "semantic", "source": "tool"}, "four"),
            ({"task": "t", "state": "active"}, "one"),
            ({"session": {"exists": False}}, "one two four"),
            ({"speaker": "Ann"}, "three"),
            ({"key": {"exists": True}}, "two"),
            ({"memory_id": {"in": ["four", "one", "nobody"]}}, "one four"),
            ({"tag": "red"}, "one"),
            ({"tags": {"exists": True}}, "one"),
            ({"metadata.order": 57}, "two"),
            ({"metadata.order": {"gte": 57}}, "two three"),
            ({"metadata.order": {"gt": 57, "lt": 60}}, "three"),
            ({"metadata": {"a.b": 1}}, "four"),
            ({"not": {"metadata.order": 57}}, "three four"),
            ({"metadata.order": {"exists": False}}, "one"),
            ({"or": [{"task": "t"}, {"speaker": "Ann"}]}, "one three"),
            ({"and": [{"or": [{"task": "t"}, {"key": "tz"}]}, {"not": {"tag": "big"}}]}, "two"),
            ({"text": {"contains": "OU"}}, "four"),
            ({"created_at": {"lt": "2026-03-01T09:00:10+00:00"}}, "one"),
            ({"expires_at": {"exists": True}}, ""),
            ({"version": {"gt": 1}}, ""),
            ({"state": "archived"}, "six"),
            ({"state": "expired"}, "five"),
            ({"state": {"in": ["active", "expired", "archived"]}, "form": "episodic"}, "five"),
            ({"or": [{"state": "expired"}, {"state": "archived"}]}, "five six"),
            ({"kind": 'task_state" OR 1=1'}, ""),
            ({"kind": "\ud800"}, ""),
        ],
        ids=repr,
    )
    def test_a_filter_selects_the_same_in_every_read(
        self, filled: Namespace, where: dict[str, Any] | None, expected: str
    ) -> None:
        """List, count and search agree."""
        wanted = expected.split()
        assert [record.memory_id for record in filled.each(where)] == wanted
        assert filled.count(where) == len(wanted)
        query = "one two three four five six"
        assert sorted(found(filled, query, where=where)) == sorted(wanted)

    @pytest.mark.req("index:filters")
    @pytest.mark.parametrize(
        "where",
        [
            {"colour": "red"},
            {"kind": {"like": "t%"}},
            {"kind": {"eq": {"a": 1}}},
            {"kind": 5},
            {"created_at": {"gt": "yesterday"}},
            {"or": {}},
            {"form": "eternal"},
            [("kind", "x")],
        ],
        ids=repr,
    )
    def test_an_unknown_condition_is_an_error(self, filled: Namespace, where: Any) -> None:
        """In every read that takes a filter."""
        for read in (filled.list, filled.count, filled.delete_many):
            with pytest.raises(InvalidInput):
                read(where)
        with pytest.raises(InvalidInput):
            filled.search("one", where=where)
        assert filled.count() == 4

    @pytest.mark.req("index:filters", "op:delete")
    def test_deleting_by_a_filter_deletes_what_it_lists(self, filled: Namespace) -> None:
        """A state that it names included."""
        receipts = filled.delete_many({"kind": {"in": ["task_state", "user_pref"]}}).receipts
        assert [receipt.memory_id for receipt in receipts] == ["one", "two"]
        assert filled.delete_many({"state": "archived"}).count == 1
        assert [record.memory_id for record in filled.each()] == ["three", "four"]


class SearchConformance(StoreFixtures):
    """Search and recall by words."""

    @pytest.mark.req("index:languages", "index:offline")
    @pytest.mark.parametrize("query", ["退款", "第二步", "退", "ABC退款123", "用户 退款"])
    def test_chinese_is_found(self, space: Namespace, query: str) -> None:
        """By words, single characters and mixed text."""
        space.save("用户正在申请退款，流程到第二步", memory_id="x")
        space.save("天气很好", memory_id="y")
        assert found(space, query) == ["x"]

    @pytest.mark.req("index:languages")
    def test_english_is_found_by_its_stem_and_fold(self, space: Namespace) -> None:
        """Also across capital letters, width and accents' normal forms."""
        space.save("The customer was REFUNDED at the café", memory_id="x")
        for query in ("refunds", "Customers", "cafe\u0301", "ＣＵＳＴＯＭＥＲ"):
            assert found(space, query) == ["x"]

    @pytest.mark.req("index:any-text")
    @pytest.mark.parametrize("text", ANY_TEXT, ids=ascii)
    def test_any_text_can_be_saved_and_searched(self, space: Namespace, text: str) -> None:
        """No character means anything to a store, as body, query, tag or filter."""
        space.save(f"before {text} after", memory_id="x", metadata={text: text})
        space.save("something else", memory_id="y")
        assert "x" in found(space, text)
        assert "y" in found(space, f'"{text}" OR ({text}* something')
        space.recall(text)
        assert texts(space, {"text": {"contains": text}}) == [f"before {text} after"]

    @pytest.mark.req("index:any-text", "pkg:errors")
    @pytest.mark.parametrize("query", ["", "  \n", None, 5])
    def test_a_query_must_say_something(self, space: Namespace, query: Any) -> None:
        """A typed error otherwise, on a namespace with or without records."""
        for _ in range(2):
            with pytest.raises(InvalidInput, match="query"):
                space.search(query)
            space.save("text")

    @pytest.mark.req("recall:explicit")
    def test_better_matches_come_first(self, space: Namespace) -> None:
        """Scores fall, lie in [0, 1], and the newer of equals comes first."""
        space.save("refund", memory_id="a")
        space.save("refund of the long order that was made in spring", memory_id="b")
        space.save("refund", memory_id="c")
        space.save("weather", memory_id="d")
        hits = space.search("refund")
        assert [hit.memory_id for hit in hits] == ["c", "a", "b"]
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)
        assert found(space, "refund", limit=2) == ["c", "a"]

    @pytest.mark.req("index:languages", "handle:scope")
    def test_scores_know_only_their_own_namespace(self, space: Namespace, other: Namespace) -> None:
        """A thousand foreign records move no score."""
        space.save_many([{"content": text} for text in ("refund order", "order", "weather")])
        before = [(hit.memory_id, hit.score) for hit in space.search("refund order")]
        other.save_many([{"content": "refund " * 9} for _ in range(1000)])
        assert [(hit.memory_id, hit.score) for hit in space.search("refund order")] == before

    @pytest.mark.req("recall:explicit", "index:filters")
    def test_a_filter_reaches_behind_the_first_hits(self, space: Namespace) -> None:
        """Though hundreds of better matches are filtered out."""
        space.save("refund, long ago, among many other words", memory_id="x", tags=["rare"])
        space.save_many([{"content": "refund"} for _ in range(400)])
        assert found(space, "refund", where={"tag": "rare"}) == ["x"]

    @pytest.mark.req("recall:explicit")
    def test_common_words_do_not_hide_a_record(self, space: Namespace) -> None:
        """One that has only the commonest word of a query is found after the others."""
        space.save_many([{"content": f"order number{n}"} for n in range(3500)])
        space.save("the only refund", memory_id="x")
        hits = found(space, "refund order", limit=4000)
        assert (hits[0], len(hits)) == ("x", 3501)

    @pytest.mark.req("limits:two-sizes", "recall:explicit")
    def test_a_recall_is_bounded_whatever_is_stored(
        self, space: Namespace, clock: FakeClock
    ) -> None:
        """By items and by tokens, and what was left out is said."""
        space.save_many([{"content": f"refund number {n}"} for n in range(50)])
        recall = space.recall("refund")
        assert (len(recall.items), recall.tokens_exact) == (10, True)
        assert recall.left_out
        assert len(space.recall("refund", limit=50).items) == 50
        small = space.recall("refund", budget=12)
        assert 0 < small.tokens <= 12
        assert len(small.items) < 10
        asked = clock() + timedelta(days=1)
        space.save("refund until tonight", memory_id="x", expires_in=3600)
        assert "x" in [item.memory_id for item in space.recall("tonight").items]
        assert space.recall("tonight", asked_at=asked).items == ()
