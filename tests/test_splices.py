"""Edits of JSON bodies as splices."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.controller.wire.sites import splice
from zero_mem.controller.wire.splices import read_json, spliced

pytestmark = pytest.mark.req("controller:modes")

BLANKS = st.sampled_from(["", " ", "\n  ", "\t", "\r\n"])
SCALARS = st.sampled_from(
    ["null", "true", "false", "0", "-0", "1", "1.0", "1e400", "-1E-5", "0.10",
     "12345678901234567890",
     '""', '"a"', '"text"', r'"\u0041\n\/"', r'"\ud83d"', '"🙂 退款"', r'"\\\""', '"]}"']
)  # fmt: skip
KEYS = st.sampled_from(['"a"', '"b"', r'"\u0061"', '"content"', '"退款"'])
NEW = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


def _joined(open_: str, close: str, inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    padded = st.tuples(BLANKS, inner, BLANKS).map("".join)
    members = st.lists(padded, max_size=4).map(",".join)
    return st.tuples(BLANKS, members).map(lambda two: open_ + "".join(two) + close)


def _containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(KEYS, BLANKS, st.just(":"), BLANKS, inner).map("".join)
    return _joined("[", "]", inner) | _joined("{", "}", member)


TEXTS = st.recursive(SCALARS, _containers, max_leaves=20)
BODIES = st.tuples(st.sampled_from([b"", b"\xef\xbb\xbf"]), BLANKS, TEXTS, BLANKS).map(
    lambda parts: parts[0] + "".join(parts[1:]).encode()
)


def edited(draw: st.DrawFn, value: Any) -> Any:
    """Edit a value at some depth, sharing all else, as the controller does."""
    kind = draw(st.sampled_from(["inside", "inside", "replace", "add", "remove", "keep"]))
    if kind == "keep":
        return value
    if not isinstance(value, dict | list) or kind == "replace":
        return draw(NEW)
    children: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    copy: Any = value.copy()
    if kind == "add":
        if isinstance(copy, dict):
            copy[draw(st.text(max_size=3))] = draw(NEW)
        else:
            copy.insert(draw(st.integers(0, len(copy))), draw(NEW))
    elif children and kind == "remove":
        del copy[draw(st.sampled_from(children))]
    elif children:
        chosen = draw(st.sampled_from(children))
        copy[chosen] = edited(draw, copy[chosen])
    return copy


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


@given(st.data(), BODIES)
def test_an_edit_decodes_to_what_was_wanted(data: st.DataObject, raw: bytes) -> None:
    before = read_json(raw)
    after = data.draw(st.composite(lambda draw: edited(draw, edited(draw, before)))())
    got = read_json(spliced(raw, before, after))
    assert json.dumps(got, sort_keys=True) == json.dumps(after, sort_keys=True)


@given(BODIES)
def test_without_an_edit_the_bytes_are_the_same(raw: bytes) -> None:
    value = read_json(raw)
    assert spliced(raw, value, value) is raw
    assert repr(read_json(spliced(raw, value, read_json(raw)))) == repr(value)


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


MESSY = (
    b'\xef\xbb\xbf {"model" : "m", "n":1.0, "big": 1e400,\n "n": 2.50 , "messages": [\n'
    b'  {"role":"user","content":"\\u9000\\u6b3e \\ud83d"} ,\n'
    b'  {"role": "tool", "x": -0.0, "tool_call_id" : "c1", "content": "long \\/ result"},\n'
    b'  {"role": "tool", "tool_call_id" : "c2", "content": [{"type":"text", "text": "b"}]}\n'
    b" ], \"z\": 0.10}\n"
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "old"),
    [
        (("messages", 1, "content"), b'"long \\/ result"'),
        (("messages", 2, "content", 0, "text"), b'"b"'),
        (("n",), b"2.50"),
        (("messages", 0, "content"), b'"\\u9000\\u6b3e \\ud83d"'),
    ],
)
def test_only_the_edited_value_changes(path: tuple[Any, ...], old: bytes) -> None:
    before = read_json(MESSY)
    after = splice(before, {path: "退款 [memo:1]"})
    assert spliced(MESSY, before, after) == MESSY.replace(old, '"退款 [memo:1]"'.encode())


def test_messages_and_members_are_added_beside_what_stands() -> None:
    before = read_json(MESSY)
    first, *rest = before["messages"]
    after = splice({**before, "tools": [1]}, {("messages", 1, "content"): "[memo:1]"})
    after["messages"] = [{"role": "system"}, first, after["messages"][1], rest[1], {"a": 1}]
    expected = (
        MESSY.replace(b'[\n  {"role":"user"', b'[\n  {"role":"system"},{"role":"user"')
        .replace(b'"long \\/ result"', b'"[memo:1]"')
        .replace(b'"b"}]}\n', b'"b"}]},{"a":1}\n')
        .replace(b"0.10}", b'0.10,"tools":[1]}')
    )
    assert spliced(MESSY, before, after) == expected


def test_members_go_with_their_commas() -> None:
    raw = b'[ 1 , {"a": 1.0, "b": "bb", "c" : [ 2 , 3.0 ]} , "x" ]'
    before = read_json(raw)
    inner = {"b": before[1]["b"], "c": before[1]["c"]}
    assert spliced(raw, before, [inner]) == b'[ {"b": "bb", "c" : [ 2 , 3.0 ]} ]'
    assert spliced(raw, before, []) == b"[]"


def test_the_last_of_repeated_keys_is_edited() -> None:
    raw = b'{"a": "first", "a": "second", "b": 1}'
    before = read_json(raw)
    assert spliced(raw, before, {**before, "a": "new"}) == b'{"a": "first", "a": "new", "b": 1}'
    assert spliced(raw, before, {"b": 1}) == b'{"b": 1}'
    raw = b'{"a": {"x": [1]}, "a": [[1.0, "long"], 2.0], "a": [["long", 1.0]]}'
    before = read_json(raw)
    edited = [[before["a"][0][0], 2]]
    assert spliced(raw, before, {"a": edited}) == raw.replace(b'["long", 1.0]', b'["long", 2]')


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff", b'{"a":1}{', b"[" * 100_000, "{}".encode("utf-16")]
)
def test_what_is_no_json_is_said(raw: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the kinds of it differ
        read_json(raw)


def test_half_a_surrogate_pair_is_written_as_an_escape() -> None:
    raw = b'{"a":""}'
    assert spliced(raw, read_json(raw), {"a": "\ud83d"}) == b'{"a":"\\ud83d"}'
    assert _at(read_json(raw), ("a",)) == ""
