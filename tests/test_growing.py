"""Requests that grow: each is read and written from where the last one ended."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_splices import BLANKS, NEW, TEXTS, edited

from zero_mem.controller.wire.growing import Documents
from zero_mem.controller.wire.sites import splice
from zero_mem.controller.wire.splices import read_json, spliced

pytestmark = pytest.mark.req("controller:modes")

ITEMS = st.tuples(
    st.sampled_from(
        ['{"role":"user","content":', '{"content" : ', '{"退": 1, "x":', '{"x":[1.0],"x":']
    ),
    TEXTS,
    BLANKS,
).map(lambda parts: f"{''.join(parts)}}}")
HEADS = st.sampled_from(
    [
        '{"messages":',
        '{ "model":"退款" ,\n"messages" :',
        '\n{"n":1.0,"messages":',
        '\ufeff {"messages": ',
    ]
)
TAILS = st.sampled_from(
    [
        "}",
        ', "stream":true}',
        ',"system":"s","tools":[{"name":"退", "x":1.0}] }\n',
        ',"messages":[]}',
    ]
)


@st.composite
def runs(draw: st.DrawFn) -> list[bytes]:
    """Bodies that mostly begin as one before them did, and now and then change on the way."""
    head, items = draw(HEADS), draw(st.lists(ITEMS, max_size=3))
    bodies = []
    for _ in range(draw(st.integers(1, 5))):
        change = draw(st.sampled_from(["grow", "grow", "grow", "cut", "head", "scalar"]))
        if change == "cut":
            items = items[: draw(st.integers(0, len(items)))]
        elif change == "head":
            head = draw(HEADS)
        items = items + draw(st.lists(ITEMS, max_size=2))
        listed = [*items, draw(st.sampled_from(["1", "null"]))] if change == "scalar" else items
        comma = draw(BLANKS) + "," + draw(BLANKS)
        bodies.append(f"{head} [{comma.join(listed)}{draw(BLANKS)}]{draw(TAILS)}".encode())
    return bodies


def _edit(draw: st.DrawFn, value: Any) -> Any:
    after = dict(value)
    for _ in range(draw(st.integers(0, 3))):
        where = draw(st.sampled_from(["item", "item", "item", "other", "list"]))
        if where == "item" and after["messages"]:
            at = draw(st.integers(0, len(after["messages"]) - 1))
            new = edited(draw, after["messages"][at])
            after = splice(after, {("messages", at): new})
        elif where == "other":
            name = draw(st.sampled_from(["system", "tools", "model", "n"]))
            after = {**after, name: draw(NEW)}
        else:
            after = {**after, "messages": edited(draw, after["messages"])}
            if not isinstance(after["messages"], list):
                break
    return after


@given(st.data(), runs())
def test_a_run_is_read_and_written_as_each_body_alone(
    data: st.DataObject, run: list[bytes]
) -> None:
    documents = Documents()
    for raw in run:
        plain = read_json(raw)
        document = documents.read(raw, "messages")
        assert repr(document.value) == repr(plain)
        assert document.written(document.value) is raw
        after = data.draw(st.composite(lambda draw, value: _edit(draw, value))(document.value))
        got = document.written(after)
        assert json.dumps(read_json(got)) == json.dumps(
            read_json(spliced(raw, document.value, after))
        )
        assert document.written(after) == got


@given(st.data(), runs())
def test_the_first_edit_gives_the_bytes_of_the_plain_way(
    data: st.DataObject, run: list[bytes]
) -> None:
    documents = Documents()
    for raw in run:
        document = documents.read(raw, "messages")
    after = data.draw(st.composite(lambda draw, value: _edit(draw, value))(document.value))
    assert document.written(after) == spliced(run[-1], document.value, after)
