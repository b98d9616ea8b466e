"""What a plain client makes of a stream, with the rules of each format checked on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.server_sent import Event, EventReader, event_bytes


def read_back(events: Sequence[Event]) -> list[Event]:
    """Send events over the wire."""
    reader = EventReader()
    return [*reader.feed(b"".join(map(event_bytes, events))), *reader.close()]


def assembled(wire_format: WireFormat, events: Sequence[Event]) -> dict[str, Any]:
    """Put a stream together as the format's own rules say."""
    listed = read_back(events)
    if wire_format == "anthropic":
        return _anthropic(listed)
    return _chat(listed) if wire_format == "openai_chat" else _responses(listed)


def _anthropic(events: list[Event]) -> dict[str, Any]:
    names = [event.name for event in events if event.name != "ping"]
    assert names[0] == "message_start"
    assert names.count("message_start") == names.count("message_stop") == 1
    assert names[-1] == "message_stop"
    message: dict[str, Any] = {}
    texts: dict[int, str] = {}
    for event in events:
        data = event.data
        assert event.name == data["type"]
        match event.name:
            case "message_start":
                message = {**data["message"], "content": []}
            case "content_block_start":
                assert data["index"] == len(message["content"])
                message["content"].append(dict(data["content_block"]))
            case "content_block_delta":
                block, delta = message["content"][data["index"]], data["delta"]
                if delta["type"] == "input_json_delta":
                    texts[data["index"]] = texts.get(data["index"], "") + delta["partial_json"]
                    continue
                name = delta["type"].removesuffix("_delta")
                block[name] = block.get(name, "") + delta[name]
            case "message_delta":
                message.update(data["delta"])
                message["usage"] = {**message["usage"], **data["usage"]}
    for index, text in texts.items():
        message["content"][index]["input"] = json.loads(text) if text else {}
    return message


def _chat(events: list[Event]) -> dict[str, Any]:
    assert events[-1].data == "[DONE]"
    assert [event.data for event in events].count("[DONE]") == 1
    chunks = [event.data for event in events[:-1]]
    assert len({chunk["id"] for chunk in chunks}) == 1
    choices: dict[int, dict[str, Any]] = {}
    usage = None
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for part in chunk["choices"]:
            new: dict[str, Any] = {
                "message": {"content": None, "tool_calls": []},
                "finish_reason": None,
            }
            choice = choices.setdefault(part["index"], {"index": part["index"], **new})
            assert choice["finish_reason"] is None
            choice["finish_reason"] = part["finish_reason"]
            _add_delta(choice["message"], part["delta"])
    listed = [choice for _, choice in sorted(choices.items())]
    return {"id": chunks[0]["id"], "choices": listed, "usage": usage}


def _add_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        if name == "tool_calls":
            for entry in value:
                _add_call(message["tool_calls"], entry)
        elif isinstance(value, str):
            message[name] = (message.get(name) or "") + value


def _add_call(calls: list[dict[str, Any]], entry: dict[str, Any]) -> None:
    entry = dict(entry)
    index = entry.pop("index")
    if index == len(calls):
        calls.append({k: dict(v) if isinstance(v, dict) else v for k, v in entry.items()})
        return
    for form, name in (("function", "arguments"), ("custom", "input")):
        if form in entry:
            calls[index][form][name] += entry[form][name]


def _responses(events: list[Event]) -> dict[str, Any]:
    data = [event.data for event in events]
    assert [each["sequence_number"] for each in data] == list(range(len(data)))
    kinds = [each["type"] for each in data]
    assert kinds[0] == "response.created"
    assert kinds.count("response.created") == kinds.count("response.in_progress") == 1
    assert kinds[-1] == "response.completed"
    assert {each["response"]["id"] for each in data if "response" in each} == {
        data[0]["response"]["id"]
    }
    texts: dict[tuple[int, int], str] = {}
    items: dict[int, Any] = {}
    for each in data:
        place = (each.get("output_index", -1), each.get("content_index", 0))
        kind = each["type"]
        if kind == "response.output_item.added":
            assert place[0] == len(items)
            items[place[0]] = None
        elif kind.endswith(".delta"):
            texts[place] = texts.get(place, "") + each["delta"]
        elif kind == "response.output_item.done":
            items[place[0]] = each["item"]
        elif kind.endswith(".done") and "part" not in each:
            (said,) = (each[k] for k in ("text", "arguments", "input") if k in each)
            assert texts.get(place, "") == said
        elif kind.endswith("part.done"):
            assert texts.get(place, "") == each["part"]["text"]
    whole: dict[str, Any] = data[-1]["response"]
    assert whole["output"] == [item for _, item in sorted(items.items())]
    return whole
