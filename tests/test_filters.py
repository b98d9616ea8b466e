"""The `where` language: what matches, what is refused, and what a store may push down."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.errors import InvalidInput
from zero_mem.filters import lookup, parse, parse_rows
from zero_mem.types import Blob, Json, MemoryRecord

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)


def record(**changes: Any) -> MemoryRecord:
    """Give a record with the fields that a test is about."""
    fields: dict[str, Any] = {
        "uid": "u-1",
        "memory_id": "7",
        "namespace": ("acme", "alice"),
        "form": "working",
        "kind": "task_state",
        "key": None,
        "content": "用户正在申请退款",
        **dict.fromkeys(("created_at", "recorded_at", "updated_at", "accessed_at"), NOW),
    }
    return MemoryRecord(**(fields | changes))


def matches(where: dict[str, Any], **changes: Any) -> bool:
    return parse(where).matches(record(**changes), NOW)


@pytest.mark.req("index:filters")
@pytest.mark.parametrize(
    ("where", "changes"),
    [
        ({}, {}),
        ({"kind": "task_state"}, {}),
        ({"memory_id": 7}, {}),
        ({"kind": {"in": ["note", "task_state"]}}, {}),
        ({"kind": {"ne": "note"}}, {}),
        ({"access_count": {"gte": 3, "lt": 9}}, {"access_count": 3}),
        ({"tag": "vip"}, {"tags": ("vip", "eu")}),
        ({"tags": {"contains": "eu"}}, {"tags": ("vip", "eu")}),
        ({"tags": {"in": ["eu", "us"]}}, {"tags": ("vip", "eu")}),
        ({"tag": {"ne": "vip"}}, {}),
        ({"tags": {"exists": False}}, {}),
        ({"text": {"contains": "退款"}}, {}),
        ({"text": {"contains": "ＲＥＦＵＮＤ"}}, {"content": "the Refund"}),
        ({"text": {"contains": "gift_card"}}, {"content": Json({"method": "gift_card"})}),
        ({"key": {"exists": False}}, {}),
        ({"created_at": {"gte": "2026-08-01T14:00:00+02:00"}}, {}),
        ({"created_at": {"lt": NOW + timedelta(microseconds=1)}}, {}),
        ({"metadata.order.id": 57}, {"metadata": {"order": {"id": 57}}}),
        ({"metadata.order.id": 57.0}, {"metadata": {"order": {"id": 57}}}),
        ({"metadata": {"order.id": {"gt": 56.5}}}, {"metadata": {"order": {"id": 57}}}),
        ({"metadata.a.b": 1}, {"metadata": {"a.b": 1}}),
        ({"metadata.gone": None}, {"metadata": {"gone": None}}),
        ({"or": [{"kind": "note"}, {"not": {"form": "semantic"}}]}, {}),
        ({"and": [{"kind": "task_state"}, {"form": "working"}]}, {}),
    ],
)
def test_a_filter_matches(where: dict[str, Any], changes: dict[str, Any]) -> None:
    assert matches(where, **changes)


@pytest.mark.req("index:filters")
@pytest.mark.parametrize(
    ("where", "changes"),
    [
        ({"kind": "note"}, {}),
        ({"kind": "task_state", "form": "semantic"}, {}),
        ({"kind": {"in": []}}, {}),
        ({"kind": "*"}, {}),
        ({"kind": "task_%"}, {}),
        ({"kind": "' OR '1'='1"}, {}),
        ({"text": {"contains": "*"}}, {}),
        ({"metadata.n": True}, {"metadata": {"n": 1}}),
        ({"metadata.n": 0}, {"metadata": {"n": False}}),
        ({"metadata.n": "57"}, {"metadata": {"n": 57}}),
        ({"metadata.n": {"gt": 5}}, {"metadata": {"n": "57"}}),
        ({"not": {"metadata.n": {"gt": 5}}}, {"metadata": {"n": "57"}}),
        ({"text": {"contains": "png"}}, {"content": Blob(data=b"x", media_type="image/png")}),
    ],
)
def test_a_filter_does_not_match(where: dict[str, Any], changes: dict[str, Any]) -> None:
    assert not matches(where, **changes)


@pytest.mark.req("index:filters")
@pytest.mark.parametrize(
    "condition", ["a", {"ne": "a"}, {"in": ["a"]}, {"gt": "a"}, {"lte": "a"}, {"exists": True}]
)
@pytest.mark.parametrize("field", ["key", "task", "session", "speaker", "metadata.a"])
def test_a_missing_field_excludes_the_record(field: str, condition: Any) -> None:
    assert not matches({field: condition})
    if condition != {"exists": True}:
        assert not matches({"not": {field: condition}})
        assert matches({"or": [{field: condition}, {"kind": "task_state"}]})


@pytest.mark.req("index:filters", "expire:hidden")
def test_expired_is_told_apart_at_the_exact_instant() -> None:
    assert matches({"state": "expired"}, expires_at=NOW)
    assert not matches({"state": "active"}, expires_at=NOW)
    assert matches({"state": "active"}, expires_at=NOW + timedelta(microseconds=1))
    assert matches({"state": "archived"}, state="archived", expires_at=NOW)
    assert matches({"state": {"in": ["active", "expired"]}}, expires_at=NOW)


@pytest.mark.req("index:filters")
def test_a_filter_tells_whether_it_names_the_state() -> None:
    assert parse({"or": [{"kind": "a"}, {"not": {"state": "deleted"}}]}).names_state
    assert not parse({"kind": "state", "metadata.state": "x"}).names_state


@pytest.mark.req("index:filters")
@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"colour": "red"}, r"where\.colour: no such field; fields are access_count"),
        ({"kind": {"like": "a"}}, r"where\.kind\.like: no such operator here; use one of eq"),
        ({"kind": {"$gt": ""}}, r"where\.kind\.\$gt"),
        ({"kind": {}}, r"where\.kind: no operator"),
        ({"kind": 7}, r"where\.kind: must be a string, not int"),
        ({"key": None}, r"where\.key: .*'exists': False"),
        ({"kind": {"contains": "a"}}, r"where\.kind\.contains"),
        ({"text": {"gt": "a"}}, r"where\.text\.gt"),
        ({"text": {"contains": ""}}, r"where\.text\.contains: must not be empty"),
        ({"form": "episodes"}, r"where\.form: must be one of working, episodic"),
        ({"state": "gone"}, r"where\.state: must be one of active, archived, deleted, expired"),
        ({"version": "1"}, r"where\.version: must be a number, not str"),
        ({"version": True}, r"where\.version: must be a number, not bool"),
        ({"version": float("nan")}, r"where\.version: must be a finite number"),
        ({"created_at": datetime(2026, 1, 1)}, r"where\.created_at: .*zone"),  # noqa: DTZ001
        ({"created_at": "2026-01-01"}, r"where\.created_at: .*zone"),
        ({"created_at": "yesterday"}, r"where\.created_at: not an ISO 8601 time"),
        ({"created_at": 5}, r"where\.created_at: must be a datetime"),
        ({"created_at": "0001-01-01T00:00:00+10:00"}, r"where\.created_at: .*years"),
        ({"tags": ["a"]}, r"where\.tags: must be a string, not list"),
        ({"kind": {"in": "ab"}}, r"where\.kind\.in: must be a list"),
        ({"kind": {"in": ["a", 1]}}, r"where\.kind\.in\[1\]: must be a string"),
        ({"key": {"exists": "yes"}}, r"where\.key\.exists: must be True or False"),
        ({"metadata": {"a": {"b": 1}}}, r"where\.metadata\.a\.b: no such operator"),
        ({"metadata.a": {"eq": {"$ne": 1}}}, r"where\.metadata\.a\.eq: must be .* not dict"),
        ({"metadata.a": [1]}, r"where\.metadata\.a: must be .* not list"),
        ({"metadata.a": {"gt": None}}, r"where\.metadata\.a\.gt: needs a number"),
        ({"metadata.a": {"lt": False}}, r"where\.metadata\.a\.lt: needs a number"),
        ({"metadata": "a"}, r"where\.metadata: must map paths"),
        ({"metadata.": 1}, r"where\.metadata\.: no such field"),
        ({"and": {"kind": "a"}}, r"where\.and: must be a list"),
        ({"or": []}, r"where\.or: must be a list of at least one"),
        ({"and": [{"kind": "a"}, {"or": [{"x": 1}]}]}, r"where\.and\[1\]\.or\[0\]\.x"),
        ({"not": [{"kind": "a"}]}, r"where\.not: must be a mapping"),
        ({7: "a"}, r"where: a field is a string"),
        ("kind", r"where: must be a mapping"),
    ],
)
def test_a_wrong_filter_says_where_and_what(where: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse(where)


@pytest.mark.req("index:filters")
def test_a_filter_nested_without_end_is_refused() -> None:
    where: dict[str, Any] = {"kind": "a"}
    for _ in range(10_000):
        where = {"not": where}
    with pytest.raises(InvalidInput, match="deeper than 32"):
        parse(where)


@pytest.mark.req("index:filters")
def test_what_a_store_may_narrow_down_by() -> None:
    where = {
        "kind": {"in": ["a", "b"]},
        "and": [{"kind": {"in": ["b", "c"]}}, {"task": "t"}],
        "state": {"in": ["expired", "active", "archived"]},
        "memory_id": 7,
        "or": [{"speaker": "Ann"}, {"session": "s"}],
        "not": {"source": "tool"},
        "metadata.x": 1,
    }
    assert dict(parse(where).equalities()) == {
        "kind": ("b",),
        "task": ("t",),
        "state": ("active", "archived"),
        "memory_id": ("7",),
    }
    assert parse({"kind": "a", "and": [{"kind": "b"}]}).equalities()["kind"] == ()
    assert dict(parse(None).equalities()) == {}


# A second, naive evaluator over the same language: sets of records and plain comparisons.
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
RECORDS = [
    record(memory_id=str(index), kind=kind, key=key, tags=tags, metadata=metadata)
    for index, (kind, key, tags, metadata) in enumerate(
        (kind, key, tags, metadata)
        for kind in ("a", "b")
        for key in (None, "a", "c")
        for tags in ((), ("a",), ("a", "b"))
        for metadata in ({}, {"n": 1}, {"n": 2.5}, {"n": "a"}, {"n": True}, {"n": None})
    )
]
WORDS = st.sampled_from("abc")
SCALARS = st.sampled_from([1, 2, 2.5, "a", "b", True, False, None])
COMPARED = st.sampled_from(sorted(COMPARISONS))
LEAVES = st.one_of(
    st.tuples(st.sampled_from(["kind", "key"]), COMPARED, WORDS),
    st.tuples(st.just("metadata.n"), st.sampled_from(["eq", "ne"]), SCALARS),
    st.tuples(st.just("metadata.n"), COMPARED, st.sampled_from([1, 2, "a"])),
    st.tuples(st.just("tags"), st.sampled_from(["eq", "ne"]), WORDS),
    st.tuples(st.sampled_from(["key", "metadata.n"]), st.just("exists"), st.booleans()),
).map(lambda leaf: {leaf[0]: {leaf[1]: leaf[2]}})
FILTERS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda each: {"and": each}),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: {"or": each}),
        inner.map(lambda each: {"not": each}),
    ),
    max_leaves=6,
)


def naive_leaf(one: MemoryRecord, field: str, asked: str, value: Any) -> bool | None:
    if field == "tags":
        return bool((value in one.tags) == (asked == "eq"))
    there = "n" in one.metadata if field == "metadata.n" else one.key is not None or field != "key"
    found = one.metadata.get("n") if field == "metadata.n" else getattr(one, field)
    if asked == "exists":
        return there is value
    if not there:
        return None
    number = [isinstance(each, int | float) and each is not True and each is not False
              for each in (found, value)]  # fmt: skip
    if not (all(number) or type(found) is type(value)):
        return {"eq": False, "ne": True}.get(asked)
    return COMPARISONS[asked](found, value)


def naive(one: MemoryRecord, where: dict[str, Any]) -> bool | None:
    ((name, inner),) = where.items()
    if name == "not":
        truth = naive(one, inner)
        return None if truth is None else not truth
    if name in ("and", "or"):
        truths = {naive(one, each) for each in inner}
        decisive = name == "or"
        return decisive if decisive in truths else None if None in truths else not decisive
    ((asked, value),) = inner.items()
    return naive_leaf(one, name, asked, value)


@pytest.mark.req("index:filters")
@given(FILTERS)
def test_the_evaluator_agrees_with_a_naive_one(where: dict[str, Any]) -> None:
    parsed = parse(where)
    for one in RECORDS:
        assert parsed.matches(one, NOW) == (naive(one, where) is True)


@pytest.mark.req("index:filters")
@given(FILTERS)
def test_narrowing_down_never_loses_a_match(where: dict[str, Any]) -> None:
    parsed = parse(where)
    for one in RECORDS:
        if parsed.matches(one, NOW):
            for field, values in parsed.equalities().items():
                assert getattr(one, field) in values


@pytest.mark.req("recall:where")
def test_rows_are_filtered_by_the_same_language() -> None:
    rows = [{"id": 1, "to": {"city": "Paris"}, "tags": ["x"]}, {"id": "1"}, 7]
    for where, kept in (
        ({"id": 1}, rows[:1]),
        ({"id": {"ne": 1}}, rows[1:2]),
        ({"to.city": {"contains": "par"}}, rows[:1]),
        ({"tags": {"contains": "x"}}, rows[:1]),
        ({"or": [{"id": "1"}, {"to.city": "Paris"}]}, rows[:2]),
        ({"to": {"exists": False}}, rows[1:2]),
    ):
        assert [row for row in rows if parse_rows(where).matches(row)] == kept
    with pytest.raises(InvalidInput, match=r"rows\.id\.like"):
        parse_rows({"id": {"like": "a"}})


@pytest.mark.req("index:filters")
def test_a_path_finds_keys_that_hold_dots() -> None:
    assert lookup({"a.b": {"c": 1}, "a": {"b.c": 2}}, "a.b") == {"c": 1}
    assert lookup({"a": {"b.c": 2}}, "a.b.c") == 2
