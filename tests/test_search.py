"""Finding memories by their words and fields, in English and Chinese, whatever they hold."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem import Json, Memory, MemoryStore
from zero_mem.errors import InvalidInput
from zero_mem.space import Namespace
from zero_mem.testing.fakes import START, FakeClock


def found(space: Namespace, query: str, **arguments: Any) -> list[str]:
    return [hit.memory_id for hit in space.search(query, **arguments)]


@pytest.mark.req("index:languages", "index:offline")
@pytest.mark.parametrize(
    "query", ["退款", "退", "第二步", "申请退款", "ABC退款123", "流程到第二步"]
)
def test_chinese_is_found_by_words_and_single_characters(space: Namespace, query: str) -> None:
    space.save("用户正在申请退款，流程到第二步", memory_id="zh")
    space.save("The user asks about delivery", memory_id="en")
    assert found(space, query) == ["zh"]


@pytest.mark.req("index:languages")
@pytest.mark.parametrize(
    ("body", "query"),
    [
        ("The refunds were approved", "refund approval"),
        ("café au lait", "cafe\u0301"),
        ("ＦＵＬＬ width", "full"),
        ("Straße", "STRASSE"),
        ("party 🎉 tonight", "party"),
        ("退款 was asked for by Alice", "alice 退款"),
    ],
)
def test_folding_and_stemming_find_other_spellings(space: Namespace, body: str, query: str) -> None:
    space.save("something else entirely", memory_id="other")
    space.save(body, memory_id="x")
    assert found(space, query) == ["x"]
    assert space.get("x").content == body


ODD = [
    "pre-edit",
    "POL-358",
    "don't",
    r"C:\repo\a.py",
    "GB/s",
    "20.04",
    "AND OR NOT",
    '"',
    "*",
    "(",
    "NEAR(a b)",
    "content:x",
    "-minus",
    "^caret",
    "123e4567-e89b-12d3-a456-426614174000",
    "a\x00b",
    "lone \ud83d surrogate",
    "'; DROP TABLE record; --",
    "%_%",
    "🏳️‍🌈",
    "the",
    "是",
]


@pytest.mark.req("index:any-text")
@pytest.mark.parametrize("text", ODD)
def test_any_text_is_found_by_itself(space: Namespace, text: str) -> None:
    space.save("something else entirely, with more words", memory_id="other")
    space.save(f"before {text} after", memory_id="x")
    assert found(space, text)[:1] == ["x"]
    space.recall(text)
    space.as_of(space.get("x").recorded_at).search(text)


@pytest.mark.req("index:any-text")
@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=30))
def test_no_query_and_no_body_breaks_a_search(body: str, query: str) -> None:
    space = MemoryStore()
    if body.strip():
        space.save(body, memory_id="x")
        assert space.get("x").content == body
    if query.strip():
        assert set(found(space, query)) <= {"x"}


@pytest.mark.req("index:any-text")
@pytest.mark.parametrize("query", ["", " ", "\n\t", None, 7])
def test_a_query_that_says_nothing_is_refused(space: Namespace, query: Any) -> None:
    for call in (space.search, space.recall):
        with pytest.raises(InvalidInput, match="query"):
            call(query)


@pytest.mark.req("index:offline", "recall:fresh")
def test_each_form_of_a_change_is_in_the_index_at_once(space: Namespace) -> None:
    space.save("red bicycle", memory_id="x", tags=("vehicle",))
    assert found(space, "vehicle") == ["x"]
    space.update("x", content="blue car")
    assert (found(space, "bicycle"), found(space, "car"), found(space, "vehicle")) == (
        [],
        ["x"],
        ["x"],
    )
    space.update("x", tags=None)
    assert found(space, "vehicle") == []
    space.archive("x")
    assert found(space, "car") == []
    space.restore("x")
    assert found(space, "car") == ["x"]
    space.delete("x")
    assert found(space, "car") == []


@pytest.mark.req("index:offline")
def test_scores_lie_in_0_to_1_and_the_better_match_comes_first(space: Namespace) -> None:
    space.save("refund", memory_id="short")
    space.save("refund " + "many other words on the delivery of parcels " * 5, memory_id="long")
    space.save("refund of the order was approved", memory_id="both")
    hits = space.search("refund order")
    assert [hit.memory_id for hit in hits] == ["both", "short", "long"]
    assert all(0 < hit.score < 1 for hit in hits)
    assert len(space.search("refund", limit=2)) == 2


@pytest.mark.req("index:offline", "handle:scope")
def test_another_tenants_words_never_change_a_score(memory: Memory) -> None:
    mine = memory.namespace("acme", "alice")
    mine.save_many([{"content": "refund order"}, {"content": "order"}, {"content": "parcel"}])
    before = [(hit.memory_id, hit.score) for hit in mine.search("refund order")]
    memory.namespace("acme").save_many([{"content": "refund refund order"}] * 50)
    assert [(hit.memory_id, hit.score) for hit in mine.search("refund order")] == before


@pytest.mark.req("index:offline")
def test_common_words_do_not_decide(space: Namespace) -> None:
    space.save_many([{"content": f"what is the state of the {n}"} for n in range(30)])
    space.save("the refund", memory_id="x")
    assert found(space, "what is the state of the refund")[0] == "x"


@pytest.mark.req("index:any-text")
def test_a_body_too_long_to_index_as_a_whole_is_stored_as_a_whole(space: Namespace) -> None:
    body = "beginning " + "filler " * 60_000 + "ending"
    items = [{"content": body, "memory_id": "x"}, {"content": "small", "memory_id": "y"}]
    space.save_many(items)
    assert space.get("x").content == body
    assert (found(space, "beginning"), found(space, "small")) == (["x"], ["y"])


# Filters in every read


@pytest.fixture
def filled(space: Namespace, clock: FakeClock) -> Namespace:
    common = {"content": "refund"}
    space.save_many(
        [
            {**common, "memory_id": "a", "kind": "fact", "tags": ("x", "y"), "metadata": {"n": 1}},
            {**common, "memory_id": "b", "kind": "fact", "tags": ("y",), "metadata": {"n": 5}},
            {**common, "memory_id": "c", "task": "t", "session": "s", "metadata": {"n": "5"}},
            {**common, "memory_id": "d", "form": "working", "key": "k"},
        ]
    )
    clock.advance(10)
    space.save("refund", memory_id="e", source="tool", speaker="bo")
    space.archive("d")
    return space


@pytest.mark.req("index:filters")
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"kind": "fact"}, "ab"),
        ({"tag": "y"}, "ab"),
        ({"metadata.n": {"gte": 2}}, "b"),
        ({"metadata.n": {"in": [1, "5"]}}, "ac"),
        ({"metadata.n": {"ne": 1}}, "bc"),
        ({"metadata.n": {"exists": False}}, "e"),
        ({"not": {"metadata.n": 1}}, "bc"),
        ({"or": [{"task": "t"}, {"source": "tool"}]}, "ce"),
        ({"and": [{"kind": "fact"}, {"not": {"tag": "x"}}]}, "b"),
        ({"state": "archived"}, "d"),
        ({"state": "archived", "form": "working", "key": "k"}, "d"),
        ({"created_at": {"gt": START}}, "e"),
        ({"created_at": {"lte": START + timedelta(seconds=9)}}, "abc"),
        ({"session": "s", "speaker": "bo"}, ""),
        ({"tag": "*"}, ""),
        ({"kind": "fact' OR 1=1 --"}, ""),
    ],
)
def test_a_filter_means_the_same_in_every_read(
    filled: Namespace, clock: FakeClock, where: dict[str, Any], expected: str
) -> None:
    assert "".join(r.memory_id for r in filled.list(where)) == expected
    assert filled.count(where) == len(expected)
    assert "".join(sorted(found(filled, "refund", where=where))) == expected
    recalled = filled.recall("refund", where=where).items
    assert "".join(sorted(item.memory_id for item in recalled)) == expected
    assert "".join(r.memory_id for r in filled.as_of(clock()).list(where)) == expected
    assert len(filled.memory.subtree("acme").list(where)) == len(expected)
    if expected and "state" not in where:
        assert filled.delete_many(where).count == len(expected)


@pytest.mark.req("index:filters")
@pytest.mark.parametrize(
    "wrong",
    [
        {"metadata.n": {"like": "x"}},
        {"metadata.n": {"$gt": 1}},
        {"colour": "red"},
        {"kind": {"regex": ".*"}},
        {"or": {"kind": "x"}},
        {"metadata.n": {}},
        ["kind"],
    ],
)
def test_an_unknown_operator_or_field_is_an_error(filled: Namespace, wrong: Any) -> None:
    for call in (filled.list, filled.count, lambda w: filled.search("x", where=w)):
        with pytest.raises(InvalidInput):
            call(wrong)
    with pytest.raises(InvalidInput):
        filled.delete_many(wrong)
    assert filled.count() == 4


@pytest.mark.req("index:filters")
def test_a_filtered_search_goes_on_until_it_has_enough(space: Namespace) -> None:
    space.save_many([{"content": "refund", "tags": ("no",)} for _ in range(400)])
    space.save("refund and many other words beside it", memory_id="x", tags=("yes",))
    assert found(space, "refund", where={"tag": "yes"}) == ["x"]


@pytest.mark.req("index:filters", "index:any-text")
def test_json_bodies_are_searched_by_their_values(space: Namespace) -> None:
    space.save(Json({"customer": "Müller", "items": ["Lampe"]}), memory_id="x")
    assert found(space, "müller") == found(space, "lampe") == ["x"]
