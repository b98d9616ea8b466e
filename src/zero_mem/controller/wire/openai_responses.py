"""OpenAI Responses: items to the neutral form.

The items that the model produced one after another are one LLM call's output, so they make
one assistant message. Hosted and built-in tools (shell, patches, MCP, search, reasoning,
compaction …) are opaque: the provider wants them back unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from zero_mem.controller.messages import Role, ToolCall
from zero_mem.controller.wire.draft import (
    Content,
    Draft,
    Usage,
    arguments,
    count,
    kind,
    read_content,
    string,
    tool_definitions,
)

_ROLES: Final[Mapping[str, Role]] = {"system": "system", "developer": "system", "user": "user"}
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})

# Opaque items that the model (or a tool the provider runs) produced; `…_call` besides.
_PRODUCED: Final = frozenset({"reasoning", "mcp_list_tools", "mcp_approval_request", "program"})


def read_messages(draft: Draft, items: Iterable[Any], lines: Sequence[int] = ()) -> None:
    """Read a list of items into a draft; it begins with a new LLM call."""
    produced: int | None = None
    for item in draft.each("item", items, lines):
        produced = read_item(draft, item, produced)


def read_request(draft: Draft, body: Mapping[str, Any]) -> None:
    """Read a request body: instructions, then an input that is a string or items."""
    draft.model = string(body.get("model")) or draft.model
    draft.tools = tool_definitions(body.get("tools")) or draft.tools
    if body.get("instructions") and not _says(draft, body["instructions"]):
        draft.say("system", read_content(draft, body["instructions"]))
    given = body.get("input", body.get("messages"))
    if isinstance(given, str):
        draft.say("user", Content(text=given))
    elif isinstance(given, list):
        read_messages(draft, given)
    else:
        draft.defect(f"input is neither a string nor a list of items ({kind(given)})")


def read_response(draft: Draft, body: Mapping[str, Any]) -> None:
    """Read a complete response body: its output items are the output of one call."""
    draft.model = string(body.get("model")) or draft.model
    output = body.get("output")
    if not isinstance(output, list):
        draft.defect("response without a list of output items: left out")
        return
    produced: int | None = None
    for item in output:
        produced = read_item(draft, item, produced)
    if produced is not None and isinstance(body.get("usage"), dict):
        draft.usage[produced] = usage(body["usage"])


def _says(draft: Draft, instructions: Any) -> bool:
    """Tell whether a later request repeats the instructions that the run already has."""
    first = draft.messages[0] if draft.messages else None
    return first is not None and first.role == "system" and first.text == instructions


def read_item(draft: Draft, item: Any, produced: int | None) -> int | None:
    """Read one item of a run.

    Args:
        draft: The run.
        item: The decoded item.
        produced: The index of the assistant message that is still open, None where none is.

    Returns:
        The index of the one that is open after it.
    """
    if not isinstance(item, dict):
        draft.defect(f"not an item object ({kind(item)}): left out")
        return produced
    # An item reference may go without a type, an easy message too.
    item_type = string(item.get("type")) or ("message" if "role" in item else "item_reference")
    if item_type == "message":
        return _read_message(draft, item, produced)
    if item_type in _CALLS:
        call = _call(draft, item, _CALLS[item_type])
        return _produce(draft, produced, Content(), [call])
    if item_type in _RESULTS:
        _read_result(draft, item)
        return None
    opaque = Content(opaque=(item_type,))
    if item_type in _PRODUCED or item_type.endswith("_call"):
        return _produce(draft, produced, opaque)
    draft.say("user", opaque)
    return None


def _read_message(draft: Draft, item: Mapping[str, Any], produced: int | None) -> int | None:
    role = string(item.get("role"))
    content = read_content(draft, item.get("content"))
    if role == "assistant":
        return _produce(draft, produced, content)
    if role in _ROLES:
        draft.say(_ROLES[role], content)
        return None
    draft.defect("role of a message item is none of user, assistant, system, developer: left out")
    return produced


def _produce(
    draft: Draft, produced: int | None, content: Content, calls: Sequence[ToolCall] = ()
) -> int:
    if produced is None:
        return draft.assistant(content, calls)
    draft.extend(produced, content, calls)
    return produced


def _call(draft: Draft, item: Mapping[str, Any], field: str) -> ToolCall:
    name = string(item.get("name"))
    if not name:
        draft.defect("a tool call names no tool")
    return ToolCall(
        call_id=string(item.get("call_id")), name=name, arguments=arguments(item.get(field))
    )


def _read_result(draft: Draft, item: Mapping[str, Any]) -> None:
    draft.result(
        read_content(draft, item.get("output")),
        call_id=string(item.get("call_id")),
        tool=string(item.get("name")),
    )


def usage(given: Mapping[str, Any]) -> Usage:
    """Split the provider's figures so that nothing is counted twice.

    Returns:
        Tokens by `input` (neither read from nor written to the cache), `cache_read`,
        `cache_write`, `output`. The provider's cached figures are subsets of its input.
    """
    read = count(given, "input_tokens_details", "cached_tokens")
    write = count(given, "input_tokens_details", "cache_write_tokens")
    return {
        "input": max(0, count(given, "input_tokens") - read - write),
        "cache_read": read,
        "cache_write": write,
        "output": count(given, "output_tokens"),
    }
