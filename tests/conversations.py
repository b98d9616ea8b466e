"""Wire requests and responses in the three formats, for the tests of the controller."""

from __future__ import annotations

import json
from typing import Any

from zero_mem.controller.messages import WireFormat

FORMATS: list[WireFormat] = ["openai_chat", "openai_responses", "anthropic"]
FIELD = {"openai_chat": "messages", "openai_responses": "input", "anthropic": "messages"}
TOOL = {"name": "orders", "description": "List orders."}
SCHEMA = {
    "type": "object",
    "properties": {"body": {"type": "string"}, "rows": {}, "to": {"type": "string"}},
}


def request(wire_format: WireFormat, *items: Any, **fields: Any) -> dict[str, Any]:
    """Make a request whose list holds the given items, each one item or a list of them."""
    listed = [one for item in items for one in (item if isinstance(item, list) else [item])]
    tool: dict[str, Any] = {**TOOL, "parameters": SCHEMA, "type": "function"}
    if wire_format == "openai_chat":
        tool = {"type": "function", "function": {**TOOL, "parameters": SCHEMA}}
    if wire_format == "anthropic":
        tool = {**TOOL, "input_schema": SCHEMA}
    extra: dict[str, Any] = {"max_tokens": 100} if wire_format == "anthropic" else {}
    return {"model": "m-1", "tools": [tool], FIELD[wire_format]: listed, **extra, **fields}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def turn(wire_format: WireFormat, text: str = "", **calls: Any) -> list[Any]:
    """Make an assistant turn; each keyword is a call id with (tool, arguments)."""
    if wire_format == "openai_chat":
        made = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, (n, a) in calls.items()
        ]
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        return [{**message, "tool_calls": made} if made else message]
    if wire_format == "openai_responses":
        said = {"type": "output_text", "text": text, "annotations": []}
        message = {"type": "message", "role": "assistant", "content": [said]}
        return [
            *([message] if text else []),
            *(
                {"type": "function_call", "call_id": i, "name": n, "arguments": json.dumps(a)}
                for i, (n, a) in calls.items()
            ),
        ]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, (n, a) in calls.items()]
    return [{"role": "assistant", "content": blocks}]


def results(wire_format: WireFormat, **texts: Any) -> list[Any]:
    """Make the results of calls, by call id."""
    if wire_format == "openai_chat":
        return [{"role": "tool", "tool_call_id": i, "content": t} for i, t in texts.items()]
    if wire_format == "openai_responses":
        return [
            {"type": "function_call_output", "call_id": i, "output": t} for i, t in texts.items()
        ]
    blocks = [{"type": "tool_result", "tool_use_id": i, "content": t} for i, t in texts.items()]
    return [{"role": "user", "content": blocks}]


def response(wire_format: WireFormat, items: list[Any]) -> dict[str, Any]:
    """Wrap a turn as the body of a complete response."""
    if wire_format == "openai_chat":
        choice = {"index": 0, "message": items[0], "finish_reason": "stop"}
        return {"id": "r", "object": "chat.completion", "model": "m-1", "choices": [choice]}
    if wire_format == "openai_responses":
        return {"id": "r", "object": "response", "model": "m-1", "output": items}
    return {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": items[0]["content"],
    }


def texts(body: Any) -> list[str]:
    """Find every string of a body."""
    if isinstance(body, str):
        return [body]
    if isinstance(body, dict):
        return [t for value in body.values() for t in texts(value)]
    return [t for value in body for t in texts(value)] if isinstance(body, list) else []


def result_texts(body: dict[str, Any], wire_format: WireFormat) -> list[Any]:
    """Give the contents of the tool results of a body, in order."""
    found: list[Any] = []
    for item in body[FIELD[wire_format]]:
        if item.get("role") == "tool":
            found.append(item["content"])
        elif item.get("type") == "function_call_output":
            found.append(item["output"])
        elif isinstance(item.get("content"), list):
            found += [b["content"] for b in item["content"] if b.get("type") == "tool_result"]
    return found


def rows(count: int = 200) -> list[dict[str, Any]]:
    return [
        {
            "order_id": f"ORD-{i:05d}",
            "customer": f"cust_{i * 7 % 97}",
            "status": "late" if i in (17, 121) else "on time",
            "total": 17.5 + i,
        }
        for i in range(count)
    ]


BODY = json.dumps(rows())
