"""What a decoded JSON value is, told by its content: never by a file's name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.codex import ENTRY_TYPES

Shape: TypeAlias = Literal[
    "session", "rollout", "pair", "request", "run", "message", "messages", "several"
]

# What we say we looked for when nothing of it is found.
LOOKED_FOR: Final = (
    "OpenAI chat messages, OpenAI Responses items, Anthropic messages, a Claude Code or Codex "
    "session, or a log of their requests; as JSON or as one JSON value a line"
)

_ITEM_TYPES: Final = frozenset(
    {
        "reasoning",
        "item_reference",
        "compaction",
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
    }
)
_SESSION_KEYS: Final = ("sessionId", "parentUuid", "leafUuid", "isSnapshotUpdate")
_REQUEST_KEYS: Final = ("model", "max_tokens", "max_completion_tokens", "max_output_tokens")
_NAME_KEYS: Final = ("trajectory", "id", "name", "run_id", "task_id", "instance_id")

_CHAT_KEYS: Final = ("tool_calls", "tool_call_id", "function_call")
_CHAT_PARTS: Final = frozenset({"image_url", "input_audio", "file"})
_ANTHROPIC_PARTS: Final = frozenset(
    {
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "mcp_tool_use",
        "image",
        "document",
        "search_result",
    }
)
_RESPONSES_PARTS: Final = frozenset({"input_text", "output_text", "input_image", "input_file"})


def shape(value: Any, *, depth: int = 3) -> Shape | None:
    """Tell what a decoded value is.

    Args:
        value: The decoded value.
        depth: How many lists may stand in one another.

    Returns:
        `session` (an entry of a Claude Code file), `rollout` (one of a Codex file), `pair`
        (request and response), `request` (a body), `run` (a record that holds a list of
        messages or items), `message` (one message or item), `messages` (a list of them),
        `several` (a list of the others); None where it is nothing we know.
    """
    if isinstance(value, list):
        return _shape_of_list(value, depth - 1) if depth else None
    if not isinstance(value, dict):
        return None
    if _is_entry(value):
        return "session"
    if value.get("type") in ENTRY_TYPES and "payload" in value:
        return "rollout"
    if isinstance(value.get("request"), dict):
        return "pair"
    if isinstance(value.get("messages"), list) or _is_responses_body(value):
        return "request" if _is_request(value) else "run"
    return "message" if _is_message(value) else None


def _shape_of_list(values: Sequence[Any], depth: int) -> Shape | None:
    shapes = {shape(value, depth=depth) for value in values}
    if "message" in shapes:
        return "messages"
    return "several" if shapes - {None} else None


def _is_entry(value: Mapping[str, Any]) -> bool:
    if "role" in value or not isinstance(value.get("type"), str):
        return False
    if value["type"] in ("user", "assistant"):
        return "message" in value
    return any(key in value for key in _SESSION_KEYS)


def _is_responses_body(value: Mapping[str, Any]) -> bool:
    given = value.get("input")
    if isinstance(given, list):
        return _shape_of_list(given, 1) == "messages"
    return isinstance(given, str) and "model" in value


def _is_request(value: Mapping[str, Any]) -> bool:
    return any(key in value for key in _REQUEST_KEYS) and not own_name(value)


def _is_message(value: Mapping[str, Any]) -> bool:
    if isinstance(value.get("role"), str):
        return True
    item_type = value.get("type")
    return isinstance(item_type, str) and (item_type in _ITEM_TYPES or item_type.endswith("_call"))


def own_name(record: Mapping[str, Any]) -> str:
    """Give the name that a record of a run bears itself, or nothing."""
    for key in _NAME_KEYS:
        value = record.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
            return str(value)
    return ""


def wire_format(items: Iterable[Any], body: Mapping[str, Any] | None = None) -> WireFormat:
    """Tell the format of messages, and of the body around them where there is one.

    Messages with nothing but a role and text read alike in every format; then it is called
    OpenAI chat.
    """
    for item in items:
        found = _format_of(item) if isinstance(item, dict) else None
        if found is not None:
            return found
    return _format_of_body(body or {})


def _format_of(item: Mapping[str, Any]) -> WireFormat | None:
    if item.get("role") in ("tool", "function") or any(item.get(key) for key in _CHAT_KEYS):
        return "openai_chat"
    if "role" not in item:
        return "openai_responses"
    for part in _part_types(item.get("content")):
        if part in _RESPONSES_PARTS:
            return "openai_responses"
        if part in _CHAT_PARTS:
            return "openai_chat"
        if part in _ANTHROPIC_PARTS or part.endswith("_tool_result"):
            return "anthropic"
    return "anthropic" if "stop_reason" in item else None


def _part_types(content: Any) -> list[str]:
    parts = content if isinstance(content, list) else []
    return [str(part.get("type")) for part in parts if isinstance(part, dict)]


def _format_of_body(body: Mapping[str, Any]) -> WireFormat:
    if "input" in body or "instructions" in body:
        return "openai_responses"
    tools = body.get("tools")
    first = tools[0] if isinstance(tools, list) and tools else None
    if isinstance(first, dict) and "input_schema" in first:
        return "anthropic"
    return "anthropic" if "system" in body or "anthropic_version" in body else "openai_chat"
