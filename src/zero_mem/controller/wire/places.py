"""Where our own parts go in each vendor's request and response, beside the host's own.

The preamble and the tool definitions are added after the host's, once, and are the same
bytes in every request. Answers to calls take the form of the vendor's tool results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from zero_mem.controller.definitions import PREAMBLE, memory_definitions
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.draft import string
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


def answer_schema(request: Body) -> Any:
    """Give the schema of an answer that is asked for as JSON: {} for any, None for text."""
    text, output = request.get("text"), request.get("output_config")
    for asked in (
        request.get("response_format"),
        text.get("format") if isinstance(text, Mapping) else None,
        output.get("format") if isinstance(output, Mapping) else None,
        request.get("output_format"),
    ):
        if isinstance(asked, Mapping) and asked.get("type") in ("json_schema", "json_object"):
            inside = asked.get("json_schema")
            schema = (inside if isinstance(inside, Mapping) else asked).get("schema")
            return schema if isinstance(schema, Mapping) else {}
    return None


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
    if request.get("conversation"):  # the provider has the turn
        return {**request, "input": answered}
    turn = response_items(response, wire_format)
    items = [*items_of(request, wire_format), *turn, *answered]
    return {**request, LIST_FIELD[wire_format]: items}


def without_calls(
    response: Body, wire_format: WireFormat, call_ids: Collection[str]
) -> dict[str, Any]:
    """Take calls out of a response that the host must not see."""
    if wire_format == "openai_chat":
        choices = [_choice_without(choice, call_ids) for choice in response["choices"]]
        return {**response, "choices": choices}
    field, name = ("output", "call_id") if wire_format == "openai_responses" else ("content", "id")
    kinds = ("function_call", "custom_tool_call", "tool_use")
    items = [
        item
        for item in response[field]
        if not isinstance(item, Mapping)
        or item.get("type") not in kinds
        or string(item.get(name)) not in call_ids
    ]
    return {**response, field: items}


def _choice_without(choice: Any, call_ids: Collection[str]) -> Any:
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping) or not message.get("tool_calls"):
        return choice
    kept = [call for call in message["tool_calls"] if _id_of(call) not in call_ids]
    shown = {**choice, "message": {**message, "tool_calls": kept}}
    if not kept and choice.get("finish_reason") == "tool_calls":
        shown["finish_reason"] = "stop"
    return shown


def _id_of(call: Any) -> str:
    return string(call.get("id")) if isinstance(call, Mapping) else ""


ROUND_BREAK: Final = "\n\n"
"""What stands between the texts of two rounds where a message has one text for all."""


def joined(responses: Sequence[Body], wire_format: WireFormat) -> Body:
    """Show the rounds of one call as one response: the last one, with all that was said."""
    last = responses[-1]
    earlier = [each for each in responses[:-1] if says_something(each, wire_format)]
    if not earlier:
        return last
    shown = [*earlier, last]
    if wire_format != "openai_chat":
        field = "output" if wire_format == "openai_responses" else "content"
        return {**last, field: [item for each in shown for item in each[field]]}
    first, *others = last["choices"]
    message = _joined_messages([each["choices"][0]["message"] for each in shown])
    return {**last, "choices": [{**first, "message": message}, *others]}


def says_something(response: Body, wire_format: WireFormat) -> bool:
    """Tell whether a response shows anything but calls that were taken out."""
    if wire_format == "openai_chat":
        message = response["choices"][0]["message"]
        return any(v for k, v in message.items() if k not in ("role", "tool_calls"))
    return bool(response["output" if wire_format == "openai_responses" else "content"])


def _joined_messages(messages: Sequence[Body]) -> dict[str, Any]:
    """Join the fields of several messages the way a client joins those of a stream."""
    shown: dict[str, Any] = {}
    for message in messages:
        for name, value in message.items():
            shown[name] = _joined_field(name, shown.get(name), value)
    return shown


def _joined_field(name: str, before: Any, value: Any) -> Any:
    if isinstance(before, str) and isinstance(value, str) and name != "role":
        between = ROUND_BREAK if name == "content" and before and value else ""
        return f"{before}{between}{value}"
    if isinstance(before, list) and isinstance(value, list):
        return before + value
    return before if value is None else value
