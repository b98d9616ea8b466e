"""Streams through the controller, event by event, and the same as if they had come whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import pytest
from conversations import FIELD, FORMATS, SCHEMA, request, results, user
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from stream_client import assembled
from test_conversation_properties import junk, places
from upstream import stream

from zero_mem import Memory, MemoryController
from zero_mem.controller.definitions import MEMORY_TOOLS, READ_TOOL
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.server_sent import Event, EventReader, event_bytes
from zero_mem.controller.wire.sites import splice
from zero_mem.conversation.exchange import exchange
from zero_mem.conversation.streaming import StreamedExchange
from zero_mem.errors import StoreUnavailable
from zero_mem.space import Namespace

each_format = pytest.mark.parametrize("wire_format", FORMATS)
BODIES = ['[{"id": "A-1", "no": 7}]', 'pla"in\n 退款', "[memo:1] save (x)"]


def opened() -> tuple[Namespace, MemoryController]:
    """A namespace with three memories that the conversation showed, and one it did not."""
    space = Memory.open("memory://").namespace("a")
    for body in [*BODIES, "never shown"]:
        space.save(body, kind="tool_result")
    subject = MemoryController(space, conversation="c")
    subject.show("1", "2", "3")
    return space, subject


def answered(wire_format: WireFormat, items: list[dict[str, Any]], number: int) -> dict[str, Any]:
    """A response of texts, thinking and calls, in the order given."""
    usage = {"input_tokens": 10 + number, "output_tokens": 2}
    if wire_format == "anthropic":
        blocks = []
        for item in items:
            if "text" in item:
                blocks.append({"type": "text", "text": item["text"]})
            elif "thinking" in item:
                blocks.append({"type": "thinking", "signature": "c2ln", **item})
            else:
                blocks.append({"type": "tool_use", "id": item["id"], "name": item["name"],
                               "input": item["arguments"]})  # fmt: skip
        called = any("name" in item for item in items)
        return {"id": f"m{number}", "type": "message", "role": "assistant", "model": "m-1",
                "content": blocks, "stop_reason": "tool_use" if called else "end_turn",
                "stop_sequence": None, "usage": usage}  # fmt: skip
    if wire_format == "openai_responses":
        output: list[Any] = []
        for at, item in enumerate(items):
            named = f"i{number}-{at}"
            if "text" in item:
                part = {"type": "output_text", "text": item["text"], "annotations": []}
                output.append({"type": "message", "id": named, "role": "assistant",
                               "status": "completed", "content": [part]})  # fmt: skip
            elif "thinking" in item:
                output.append({"type": "reasoning", "id": named, "summary": [],
                               "encrypted_content": item["thinking"]})  # fmt: skip
            else:
                text = json.dumps(item["arguments"], ensure_ascii=False)
                output.append({"type": "function_call", "id": named, "call_id": item["id"],
                               "name": item["name"], "arguments": text,
                               "status": "completed"})  # fmt: skip
        return {"id": f"r{number}", "object": "response", "model": "m-1", "output": output,
                "usage": {**usage, "total_tokens": 12 + number}}  # fmt: skip
    text = "".join(item["text"] for item in items if "text" in item)
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    made = [
        {"id": item["id"], "type": "function", "function": {
            "name": item["name"], "arguments": json.dumps(item["arguments"], ensure_ascii=False)}}
        for item in items if "name" in item
    ]  # fmt: skip
    if made:
        message["tool_calls"] = made
    finish = "tool_calls" if made else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": f"c{number}", "object": "chat.completion", "created": 1, "model": "m-1",
            "choices": [choice],
            "usage": {"prompt_tokens": 10 + number, "completion_tokens": 2}}  # fmt: skip


def run_stream(
    subject: MemoryController,
    asked: dict[str, Any],
    wire_format: WireFormat,
    responses: Sequence[dict[str, Any]],
    cut: Callable[[str], Sequence[str]],
) -> tuple[list[Event], list[Any]]:
    """Drive a streamed exchange; gives what the host got and what the provider was sent."""
    script = list(responses)
    call = StreamedExchange(subject, asked, wire_format)
    upstream: Any = call.start()
    out: list[Event] = []
    sent: list[Any] = []
    while upstream is not None:
        sent.append(upstream)
        for event in read_events(stream(wire_format, script.pop(0), cut)):
            out += call.feed(event)
        finished = call.finish()
        out += finished.events
        upstream = finished.request
    assert call.ended
    return out, sent


def read_events(events: Sequence[Event]) -> list[Event]:
    reader = EventReader()
    return reader.feed(b"".join(map(event_bytes, events)))


def run_whole(
    subject: MemoryController, asked: dict[str, Any], wire_format: WireFormat,
    responses: Sequence[dict[str, Any]],
) -> tuple[Any, list[Any]]:  # fmt: skip
    script = list(responses)
    run = exchange(subject, asked, wire_format)
    sent = [next(run)]
    while True:
        try:
            sent.append(run.send(script.pop(0)))
        except StopIteration as end:
            return end.value, sent


def turn_of(wire_format: WireFormat, response: Any) -> list[Any]:
    """The items that a host appends to its history."""
    if wire_format == "anthropic":
        return [{"role": "assistant", "content": response["content"]}]
    if wire_format == "openai_responses":
        return list(response["output"])
    message = response["choices"][0]["message"]
    kept = {k: v for k, v in message.items() if v not in (None, [], "")}
    return [{"role": "assistant", "content": None, **kept}]


def call_ids(wire_format: WireFormat, response: Any) -> list[str]:
    if wire_format == "anthropic":
        return [b["id"] for b in response["content"] if b["type"] == "tool_use"]
    if wire_format == "openai_responses":
        return [i["call_id"] for i in response["output"] if i["type"] == "function_call"]
    return [c["id"] for c in response["choices"][0]["message"].get("tool_calls") or []]


def plain(value: Any) -> Any:
    """A turn with its JSON texts decoded, to compare what they mean."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {k: json.loads(v) if k == "arguments" else plain(v) for k, v in value.items()}
    return value


pieces = st.sampled_from(
    ["[", "[memo:", "[memo:1]", "[memo:1#/0/id]", "[memo:1,2]", "[memo:3]", "[\\memo:1]", "[mem",
     "]", " ", "\n", "退", "😀", '"', "\\", "o:2]", "word", "[memo:1#/0", ","]
)  # fmt: skip
texts = st.one_of(
    st.lists(pieces, min_size=1, max_size=6).map("".join), st.sampled_from(["[memo:1]", "ok"])
)
values = st.recursive(
    st.one_of(texts, st.integers(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["body", "rows", "to", "[memo:1]"]), inner, max_size=2),
    ),
    max_leaves=5,
)
fields = st.dictionaries(st.sampled_from(list(SCHEMA["properties"])), values, max_size=3)
said = texts.filter(lambda text: "[memo:4" not in text).map(lambda text: {"text": text})
thought = texts.map(lambda text: {"thinking": text})


def calls(name: str, arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return arguments.map(lambda given: {"name": name, "arguments": given})


ours = calls(READ_TOOL, st.sampled_from([{"id": "1"}, {"id": "4", "query": "x"}, {}]))
theirs = calls("orders", fields)
rounds = st.lists(st.lists(st.one_of(said, thought), max_size=2), max_size=2)
final = st.lists(st.one_of(said, thought, theirs, theirs, ours), min_size=1, max_size=5)


def numbered(items: list[Any], number: int) -> list[Any]:
    return [
        {**item, "id": f"call-{number}-{at}"} if "name" in item else item
        for at, item in enumerate(items)
    ]


def fragments(data: st.DataObject) -> Callable[[str], list[str]]:
    def cut(text: str) -> list[str]:
        places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
        parts = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
        return [part for part in parts if part]

    return cut


@pytest.mark.req("controller:by-reference", "controller:safe", "recall:no-loop")
@each_format
@given(data=st.data(), hidden=rounds, last=final)
@settings(max_examples=60)
def test_a_stream_is_the_whole_response_in_pieces(
    wire_format: WireFormat, data: st.DataObject, hidden: list[Any], last: list[Any]
) -> None:
    listed = [[*before, {"name": READ_TOOL, "arguments": {"id": "2"}}] for before in hidden]
    if all(item.get("name") == READ_TOOL for item in last if "name" in item):
        last = [item for item in last if "name" not in item] or [{"text": "done"}]
    responses = [
        answered(wire_format, numbered(items, n), n) for n, items in enumerate([*listed, last])
    ]
    asked = request(wire_format, user("go"), stream=True)
    space, streaming = opened()
    _, whole = opened()
    out, sent = run_stream(streaming, asked, wire_format, responses, fragments(data))
    decided = space.decisions("controller:c")
    assume(not any(key.startswith("refused:") for key in decided))  # it was seen: not refused
    visible, expected = run_whole(whole, asked, wire_format, responses)
    seen = assembled(wire_format, out)
    mine, theirs_ = turn_of(wire_format, seen), turn_of(wire_format, visible)
    assert plain(mine) == plain(theirs_)
    assert not set(MEMORY_TOOLS) & set(json.dumps(mine).split('"'))
    assert json.dumps(sent) == json.dumps(expected)
    assert usage_of(seen) == usage_of(visible)
    assert len(streaming.audit()) == len(whole.audit())
    assert [p.executed for p in streaming.audit()] == [p.executed for p in whole.audit()]
    assert streaming.phantoms() == whole.phantoms()
    made = dict.fromkeys(call_ids(wire_format, seen), "done")
    after = results(wire_format, **made) if made else [user("and?")]
    again = [
        subject.prepare(request(wire_format, user("go"), *back, *after), wire_format)
        for subject, back in ((streaming, mine), (whole, theirs_))
    ]
    assert json.dumps(again[0]) == json.dumps(again[1])
    before = [json.dumps(item) for item in sent[-1][FIELD[wire_format]]]
    assert [json.dumps(item) for item in again[0][FIELD[wire_format]]][: len(before)] == before


def usage_of(response: Any) -> Any:
    return {k: v for k, v in response["usage"].items() if isinstance(v, int)}


def exchange_of(
    wire_format: WireFormat, subject: MemoryController, **fields: Any
) -> StreamedExchange:
    call = StreamedExchange(subject, request(wire_format, user("go"), **fields), wire_format)
    call.start()
    return call


def one_response(wire_format: WireFormat, *items: dict[str, Any]) -> list[Event]:
    """The events of a response, one character a delta, as they are read from the wire."""
    return read_events(stream(wire_format, answered(wire_format, numbered([*items], 0), 0), list))


def text_in(event: Event) -> str:
    """The text of a delta."""
    data = event.data
    if not isinstance(data, dict):
        return ""
    choices = data.get("choices") or [{"delta": data.get("delta")}]
    delta = choices[0]["delta"]
    if isinstance(delta, dict):
        delta = delta.get("content", delta.get("text"))
    return delta if isinstance(delta, str) else ""


@pytest.mark.req("controller:modes", "controller:by-reference")
@each_format
def test_events_pass_at_once_and_unchanged_but_for_a_handle(wire_format: WireFormat) -> None:
    call = exchange_of(wire_format, opened()[1])
    shown = ""
    written = ""
    for event in one_response(wire_format, {"text": "Hi [memory [memo:1#/0/id] or [memo:9]."}):
        written += text_in(event)
        out = call.feed(event)
        shown += "".join(map(text_in, out))
        if "[" not in written:
            assert [one is event for one in out] == [True]
        if written.endswith(("[memory", "[memo:1#/0/id]", "[memo:9]", "or ")):
            assert len(shown) == len(written) - 11 * written.count("/0/id]")
    assert shown == "Hi [memory A-1 or [memo:9]."


@pytest.mark.req("controller:modes")
@each_format
def test_observing_a_stream_gives_every_event_as_it_is(wire_format: WireFormat) -> None:
    space, _ = opened()
    observer = MemoryController(space, conversation="c", mode="observe")
    asked = request(wire_format, user("go"))
    call = StreamedExchange(observer, asked, wire_format)
    assert call.start() is asked
    for event in one_response(
        wire_format, {"text": "[memo:1]"}, {"name": READ_TOOL, "arguments": {}}
    ):
        (out,) = call.feed(event)
        assert out is event
        assert not call.may_block(event)
    assert call.finish().events == []


@pytest.mark.req("controller:safe")
@each_format
@pytest.mark.parametrize(
    "data",
    [
        {"type": "ping"},
        {"type": "response.audio.delta", "delta": "[memo:1]", "sequence_number": 3},
        {"type": "something_new", "text": "[memo:1]", "index": 0},
        {"type": "response.refusal.delta", "delta": "[memo:1]", "output_index": 7},
        {"object": "chat.completion.chunk", "choices": [
            {"index": 0, "delta": {"refusal": "[memo:1]", "audio": {"data": "[memo:1]"}}}]},
        {"error": {"message": "[memo:1]"}},
        {"type": "error", "error": {"message": "[memo:1]"}},
        [], None, "text", 7,
    ],
    ids=str,
)  # fmt: skip
def test_what_an_editor_does_not_know_passes_untouched(wire_format: WireFormat, data: Any) -> None:
    call = exchange_of(wire_format, opened()[1])
    for before in one_response(wire_format, {"text": "ok"})[:2]:
        call.feed(before)
    (event,) = read_events([Event(name="x", data=data)])
    (out,) = call.feed(event)
    assert out is event


@pytest.mark.req("controller:by-reference", "controller:safe")
def test_thinking_and_what_the_provider_runs_are_never_touched() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "[memo:1]", "signature": "c2ln"},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "[memo:1]"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "[memo:1]"}]},
        {"type": "redacted_thinking", "data": "[memo:1]"},
    ]
    body = {**answered("anthropic", [], 0), "content": blocks}
    call = exchange_of("anthropic", opened()[1])
    for event in read_events(stream("anthropic", body, list)):
        assert [out is event for out in call.feed(event)] == [True]
    items = [
        {"type": "reasoning", "id": "x", "summary": [{"type": "summary_text", "text": "[memo:1]"}]},
        {"type": "mcp_call", "id": "y", "name": "orders", "arguments": '{"a": "[memo:1]"}'},
    ]
    call = exchange_of("openai_responses", opened()[1])
    body = {**answered("openai_responses", [], 0), "output": items}
    for event in read_events(stream("openai_responses", body, list)):
        assert [out is event for out in call.feed(event)] == [True]


@pytest.mark.req("controller:by-reference")
@pytest.mark.parametrize("wire_format", ["openai_chat", "openai_responses"])
def test_the_free_text_of_a_custom_tool_expands_as_text(wire_format: WireFormat) -> None:
    body = answered(wire_format, [], 0)
    if wire_format == "openai_chat":
        made = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "[memo:1]"}}
        body["choices"][0]["message"]["tool_calls"] = [made]
        body["choices"][0]["finish_reason"] = "tool_calls"
    else:
        body["output"] = [{"type": "custom_tool_call", "id": "i", "call_id": "c1", "name": "sql",
                           "input": "[memo:1]"}]  # fmt: skip
    out, _ = run_stream(opened()[1], request(wire_format, user("go")), wire_format, [body], list)
    seen = assembled(wire_format, out)
    if wire_format == "openai_chat":
        custom = seen["choices"][0]["message"]["tool_calls"][0]["custom"]
    else:
        custom = seen["output"][0]
    assert custom["input"] == BODIES[0]


@pytest.mark.req("controller:safe", "recall:no-loop")
def test_several_choices_are_told_apart_and_none_is_continued() -> None:
    first = answered("openai_chat", [{"text": "see [memo:2]"}], 0)["choices"][0]
    second = answered(
        "openai_chat", numbered([{"name": READ_TOOL, "arguments": {"id": "1"}}], 0), 0
    )
    body = {**second, "choices": [first, {**second["choices"][0], "index": 1}]}
    events = stream("openai_chat", body, list)
    *chunks, usage, done = events
    parts = [[e for e in chunks if e.data["choices"][0]["index"] == n] for n in (0, 1)]
    interleaved = [e for pair in zip_longest(*parts) for e in pair if e] + [usage, done]
    call = exchange_of("openai_chat", opened()[1], n=2)
    out = [one for event in read_events(interleaved) for one in call.feed(event)]
    assert call.finish().request is None
    one, other = assembled("openai_chat", out)["choices"]
    assert one["message"]["content"] == f"see {BODIES[1]}"
    assert (other["message"]["tool_calls"], other["finish_reason"]) == ([], "stop")


def failures(wire_format: WireFormat, events: list[Event]) -> list[str]:
    """The messages of the errors in a stream, each in the vendor's own form."""
    found = []
    for event in events:
        data = event.data
        if wire_format == "openai_responses" and data.get("type") == "error":
            found.append(data["message"])
        elif isinstance(data, dict) and "error" in data and data.get("type") in (None, "error"):
            assert event.name == ("error" if wire_format == "anthropic" else "")
            found.append(data["error"]["message"])
    return found


@pytest.mark.req("controller:safe")
@each_format
def test_a_model_that_only_uses_its_memory_ends_the_stream_with_an_error(
    wire_format: WireFormat,
) -> None:
    _, subject = opened()
    call = StreamedExchange(subject, request(wire_format, user("go")), wire_format, rounds=2)
    call.start()
    search = {"name": "memory_search", "arguments": {"query": "x"}}
    for event in one_response(wire_format, search):
        call.feed(event)
    assert call.finish().request is not None
    for event in one_response(wire_format, search):
        call.feed(event)
    finished = call.finish()
    assert finished.request is None
    (message,) = failures(wire_format, finished.events)
    assert "2 rounds" in message
    assert call.ended


@pytest.mark.req("controller:safe", "pkg:errors")
@each_format
@pytest.mark.parametrize("failing", ["get", "decide_many"])
def test_a_store_that_fails_ends_the_stream_with_an_error(
    wire_format: WireFormat, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = exchange_of(wire_format, opened()[1])

    def fail(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(Namespace, failing, fail)
    out = [
        one
        for event in one_response(wire_format, {"text": "a [memo:1] b"})
        for one in call.feed(event)
    ]
    assert failures(wire_format, out[-1:]) == ["the disk is full"]
    assert call.ended
    assert call.finish().events == []


@pytest.mark.req("pkg:async")
@each_format
@given(data=st.data(), last=final)
@settings(max_examples=30)
def test_an_event_that_may_not_block_uses_no_store(
    wire_format: WireFormat, data: st.DataObject, last: list[Any]
) -> None:
    call = exchange_of(wire_format, opened()[1])
    body = answered(wire_format, numbered(last, 0), 0)

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("the store was used")

    for event in read_events(stream(wire_format, body, fragments(data))):
        if call.may_block(event):
            call.feed(event)
            continue
        with pytest.MonkeyPatch.context() as patch:
            for name in ("get", "decision", "decisions", "decide", "recall", "save"):
                patch.setattr(Namespace, name, fail)
            call.feed(event)


@pytest.mark.req("controller:safe")
@each_format
def test_a_turn_that_broke_off_after_a_hidden_round_goes_back_in_rounds(
    wire_format: WireFormat,
) -> None:
    space, subject = opened()
    asked = request(wire_format, user("go"))
    call = StreamedExchange(subject, asked, wire_format)
    call.start()
    search = {"name": "memory_search", "arguments": {"query": "退款"}}
    out = [e for event in one_response(wire_format, {"text": "First."}, search)
           for e in call.feed(event)]  # fmt: skip
    assert call.finish().request is not None
    second = one_response(wire_format, {"text": "Then [memo:2] and [mem"})
    written = ""
    while not written.endswith("and [mem"):
        event = second.pop(0)
        written += text_in(event)
        out += call.feed(event)
    out += call.interrupted()
    assert call.ended
    between = "\n\n" if wire_format == "openai_chat" else ""
    shown = "".join(map(text_in, out))
    assert shown == f"First.{between}Then {BODIES[1]} and [mem"
    said = {"role": "assistant", "content": shown}
    prepared = MemoryController(space, conversation="c").prepare(
        request(wire_format, user("go"), said, user("on")), wire_format
    )
    sent = json.dumps(prepared[FIELD[wire_format]])
    assert "memory_search" in sent
    assert "Then [memo:2] and [mem" in sent
    assert "First.Then" not in sent


@pytest.mark.req("controller:safe")
@each_format
@given(data=st.data(), wrong=junk)
@settings(max_examples=120)
def test_what_no_provider_would_stream_passes_without_an_error(
    wire_format: WireFormat, data: st.DataObject, wrong: Any
) -> None:
    call = exchange_of(wire_format, opened()[1])
    made = [{"text": "see [memo:1]"}, {"name": "orders", "arguments": {"to": "[memo:1]"}},
            {"name": READ_TOOL, "arguments": {"id": "1"}}]  # fmt: skip
    events = stream(wire_format, answered(wire_format, numbered(made, 0), 0), lambda t: [t])
    at = data.draw(st.integers(0, len(events) - 1))
    whole = events[at].data
    if isinstance(whole, dict):
        place = data.draw(st.sampled_from(places(whole)))
        events[at] = Event(name=events[at].name, data=splice(whole, {place: wrong}))
    for event in read_events(events):
        for out in call.feed(event):
            event_bytes(out)
    call.finish()


@pytest.mark.req("controller:safe", "controller:by-reference")
@each_format
def test_streams_that_overlap_in_a_conversation_are_kept_apart(wire_format: WireFormat) -> None:
    _, subject = opened()
    first = exchange_of(wire_format, subject)
    second = exchange_of(wire_format, subject, tools=[])  # which knows no schema
    found = []
    for call in (first, second):
        made = {"name": "orders", "arguments": {"to": "[memo:1]"}}
        out = [e for event in one_response(wire_format, made) for e in call.feed(event)]
        (item,) = turn_of(wire_format, assembled(wire_format, out))
        found.append(json.dumps(plain(item)))
    assert json.dumps(BODIES[0]) in found[0]  # text, as the schema asks
    assert json.dumps(json.loads(BODIES[0])) in found[1]
