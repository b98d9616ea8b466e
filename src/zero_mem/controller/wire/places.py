"""Where our own parts go in each vendor's request and response, beside the host's own.

The preamble and the tool definitions are added after the host's, once, and are the same
bytes in every request. Answers to calls take the form of the vendor's tool results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from zero_mem.controller.definitions import PREAMBLE, memory_definitions
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.sites import LIST_FIELD, items_of

Body = Mapping[str, Any]


def with_memory(request: Body, wire_format: WireFormat) -> Body:
    """Add the preamble and the memory tools to a request that does not have them."""
    tools = _tools(request)
    messages = request.get("messages")
    if tools is None or (wire_format == "openai_chat" and not isinstance(messages, list | tuple)):
        return request  # the provider will say what is wrong with it
    named = {tool_name(tool) for tool in tools}
    added = [tool for tool in memory_definitions(wire_format) if tool_name(tool) not in named]
    prepared = {**request, "tools": [*tools, *added]}
    if wire_format == "openai_chat":
        return {**prepared, "messages": _with_system_message(items_of(request, wire_format))}
    field = "instructions" if wire_format == "openai_responses" else "system"
    return {**prepared, field: _with_text(request.get(field))}


def tool_name(tool: Any) -> str:
    """Read the name of a tool definition; "" for tools that have none."""
    if not isinstance(tool, Mapping):
        return ""
    shape = tool.get("function")
    name = (shape if isinstance(shape, Mapping) else tool).get("name")
    return name if isinstance(name, str) else ""


def _tools(request: Body) -> list[Any] | None:
    """Read the tools of a request; None where they are no list."""
    tools = request.get("tools")
    if isinstance(tools, list | tuple):
        return list(tools)
    # A client's own mark for "not given" is none of JSON's types.
    return None if isinstance(tools, str | Mapping | int | float) else []


def input_schemas(request: Body) -> dict[str, Any]:
    """Give the schema of each tool's arguments, by the tool's name."""
    schemas: dict[str, Any] = {}
    for tool in _tools(request) or []:
        if isinstance(tool, Mapping):
            inside = tool.get("function")
            shape = inside if isinstance(inside, Mapping) else tool
            schemas[tool_name(tool)] = shape.get("parameters") or shape.get("input_schema")
    return schemas


def _with_system_message(messages: list[Any]) -> list[Any]:
    ours = {"role": "system", "content": PREAMBLE}
    if ours in messages:
        return messages
    at = 0
    while at < len(messages) and _is_system(messages[at]):
        at += 1
    return [*messages[:at], ours, *messages[at:]]


def _is_system(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("role") in ("system", "developer")


def _with_text(own: Any) -> Any:
    if isinstance(own, list | tuple):
        ours = {"type": "text", "text": PREAMBLE}
        return list(own) if ours in own else [*own, ours]
    if isinstance(own, str) and own:
        return own if own.endswith(PREAMBLE) else f"{own}\n\n{PREAMBLE}"
    return own if own and isinstance(own, Mapping | int | float) else PREAMBLE


def response_items(response: Body, wire_format: WireFormat) -> list[Any]:
    """Give a response's turn as the items that stand for it in the next request."""
    if wire_format == "openai_chat":
        message = response["choices"][0]["message"]
        kept = {name: value for name, value in message.items() if value not in (None, [])}
        return [{"content": None, **kept, "role": "assistant"}]
    if wire_format == "openai_responses":
        return list(response["output"])
    return [{"role": "assistant", "content": response["content"]}]


def answer_items(answers: Mapping[str, str], wire_format: WireFormat) -> list[Any]:
    """Write answers to calls, by call id, as the items that follow the turn."""
    if wire_format == "openai_chat":
        return [
            {"role": "tool", "tool_call_id": call_id, "content": text}
            for call_id, text in answers.items()
        ]
    if wire_format == "openai_responses":
        return [
            {"type": "function_call_output", "call_id": call_id, "output": text}
            for call_id, text in answers.items()
        ]
    blocks = [
        {"type": "tool_result", "tool_use_id": call_id, "content": text}
        for call_id, text in answers.items()
    ]
    return [{"role": "user", "content": blocks}] if blocks else []


def follow_up(
    request: Body, response: Body, answers: Mapping[str, str], wire_format: WireFormat
) -> dict[str, Any]:
    """Give the request that continues a conversation after calls that were answered by us."""
    answered = answer_items(answers, wire_format)
    if request.get("previous_response_id"):
        return {**request, "previous_response_id": response["id"], "input": answered}
    turn = response_items(response, wire_format)
    items = [*items_of(request, wire_format), *turn, *answered]
    return {**request, LIST_FIELD[wire_format]: items}


def without_calls(
    response: Body, wire_format: WireFormat, call_ids: Collection[str]
) -> dict[str, Any]:
    """Take calls out of a response that the host must not see."""
    if wire_format == "openai_chat":
        first, *others = response["choices"]
        message = first["message"]
        kept = [call for call in message["tool_calls"] if call.get("id") not in call_ids]
        shown = {**first, "message": {**message, "tool_calls": kept}}
        return {**response, "choices": [shown, *others]}
    field, name = ("output", "call_id") if wire_format == "openai_responses" else ("content", "id")
    kinds = ("function_call", "custom_tool_call", "tool_use")
    items = [
        item
        for item in response[field]
        if item.get("type") not in kinds or item.get(name) not in call_ids
    ]
    return {**response, field: items}
