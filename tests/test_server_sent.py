"""Server-sent events: read in any pieces, without losing a byte."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zero_mem.controller.wire.server_sent import Event, EventReader, event_bytes, json_bytes

pytestmark = pytest.mark.req("controller:modes")

lines = st.sampled_from(
    ["data: 1", "data:[DONE]", 'data: {"a": "退款😀"}', "event: ping", ": comment", "id: 7", "data",
     "", "retry", "data:  two", "unknown: x"]
)  # fmt: skip
ends = st.sampled_from(["\n", "\r\n", "\r"])
streams = st.lists(st.tuples(lines, ends), max_size=12).map(
    lambda drawn: "".join(line + end for line, end in drawn).encode()
)


def read(chunks: list[bytes]) -> list[Event]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)] + reader.close()


def meant(events: list[Event]) -> list[tuple[str, Any]]:
    return [(event.name, event.data) for event in events if event.data != ""]


@given(sent=streams, data=st.data())
@example(sent=b"data: 1\r\n\r\ndata: 2\r\r", data=None)
def test_the_pieces_do_not_matter_and_no_byte_is_lost(sent: bytes, data: Any) -> None:
    places = [] if data is None else data.draw(st.lists(st.integers(0, len(sent)), max_size=6))
    edges = [0, *sorted(places), len(sent)]
    chunks = [sent[a:b] for a, b in pairwise(edges)]
    events = read(chunks)
    assert b"".join(map(event_bytes, events)) == sent
    assert meant(events) == meant(read([sent])) == meant(read([bytes([b]) for b in sent]))


def test_each_field_means_what_the_standard_says() -> None:
    sent = (
        "\ufeff: hello\n\nevent: first\ndata: {\"a\":\ndata: 1}\nid: 3\n\n"
        "data:no space\r\n\r\ndata: [DONE]\r\rdata: 退\n\ndata: \u2028{}\n\n"
    ).encode()  # fmt: skip
    assert meant(read([sent])) == [
        ("first", {"a": 1}), ("", "no space"), ("", "[DONE]"), ("", "退"), ("", "\u2028{}"),
    ]  # fmt: skip


def test_an_event_is_given_as_soon_as_its_blank_line_is_there() -> None:
    reader = EventReader()
    assert reader.feed(b"data: 1\n") == []
    assert [event.data for event in reader.feed(b"\ndata: 2\n\nda")] == [1, 2]
    assert reader.close() == [Event(raw=b"da")]


@given(st.recursive(st.one_of(st.none(), st.integers(), st.text()), st.lists, max_leaves=5))
def test_what_is_written_here_is_read_back(value: Any) -> None:
    event = Event(name="x", data={"value": value})
    (again,) = read([event_bytes(event)])
    assert (again.name, again.data) == ("x", {"value": value})
    assert json.loads(json_bytes("\ud800")) == "\ud800"
