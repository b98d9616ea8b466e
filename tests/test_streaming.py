"""Streams through the controller, event by event, and the same as if they had come whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from conversations import FIELD, FORMATS, SCHEMA, request, results, turn, user
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_client import assembled
from upstream import stream

from zero_mem import Memory, MemoryController
from zero_mem.controller.definitions import MEMORY_TOOLS, READ_TOOL
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.server_sent import Event, EventReader, event_bytes
from zero_mem.conversation.exchange import exchange
from zero_mem.conversation.streaming import StreamedExchange
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


def answered(
    wire_format: WireFormat, items: list[dict[str, Any]], number: int, *, whole: bool = False
) -> dict[str, Any]:
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
        calls = any("name" in item for item in items)
        return {"id": f"m{number}", "type": "message", "role": "assistant", "model": "m-1",
                "content": blocks, "stop_reason": "tool_use" if calls else "end_turn",
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
    calls = [
        {"id": item["id"], "type": "function", "function": {
            "name": item["name"], "arguments": json.dumps(item["arguments"], ensure_ascii=False)}}
        for item in items if "name" in item
    ]  # fmt: skip
    if calls:
        message["tool_calls"] = calls
    finish = "tool_calls" if calls else "stop"
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
@settings(max_examples=40)
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
    streaming, whole = opened()[1], opened()[1]
    out, sent = run_stream(streaming, asked, wire_format, responses, fragments(data))
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
    made = {call: "done" for call in call_ids(wire_format, seen)}
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
