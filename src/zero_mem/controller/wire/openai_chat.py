"""OpenAI Chat Completions: messages to the neutral form, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from zero_mem.controller.messages import Message, Role, ToolCall
from zero_mem.controller.wire.draft import (
    Content,
    Draft,
    Usage,
    arguments,
    count,
    joined,
    kind,
    read_content,
    string,
    tool_definitions,
)

_ROLES: Final[Mapping[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

# Parts of an assistant message beside its content that are not text we may touch.
_OPAQUE_FIELDS: Final = ("audio", "reasoning_content", "reasoning", "thinking_blocks")


def read_messages(draft: Draft, messages: Iterable[Any], lines: Sequence[int] = ()) -> None:
    """Read a list of messages into a draft."""
    for message in draft.each("message", messages, lines):
        read_message(draft, message)


def read_request(draft: Draft, body: Mapping[str, Any]) -> None:
    """Read a request body, or a record of a run that has the same fields."""
    draft.model = string(body.get("model")) or draft.model
    draft.tools = tool_definitions(body.get("tools") or body.get("functions"))
    if "system" in body:
        draft.say("system", read_content(draft, body["system"]))
    messages = body.get("messages")
    if isinstance(messages, list):
        read_messages(draft, messages)
    else:
        draft.defect(f"messages is not a list ({kind(messages)})")


def read_response(draft: Draft, body: Mapping[str, Any]) -> None:
    """Read a complete response body: its first choice is the output of the call."""
    draft.model = string(body.get("model")) or draft.model
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        draft.defect("response without choices[0].message: left out")
        return
    read_message(draft, {**message, "role": "assistant", "usage": body.get("usage")})


def read_message(draft: Draft, message: Any) -> None:
    """Read one message; what cannot be read becomes a defect."""
    if not isinstance(message, dict):
        draft.defect(f"not a message object ({kind(message)}): left out")
        return
    role = _ROLES.get(string(message.get("role")))
    if role is None:
        known = ", ".join(_ROLES)
        draft.defect(f"role is none of {known}: left out")
    elif role == "assistant":
        _read_assistant(draft, message)
    elif role == "tool":
        _read_result(draft, message)
    else:
        speaker = string(message.get("name"))
        draft.say(role, read_content(draft, message.get("content")), speaker=speaker)


def _read_assistant(draft: Draft, message: Mapping[str, Any]) -> None:
    content = read_content(draft, message.get("content"))
    opaque = tuple(name for name in _OPAQUE_FIELDS if message.get(name))
    content = Content(
        text=joined((content.text, string(message.get("refusal")))),
        opaque=(*content.opaque, *opaque),
    )
    speaker = string(message.get("name"))
    index = draft.assistant(content, _calls(draft, message), speaker=speaker)
    if isinstance(message.get("usage"), dict):
        draft.usage[index] = usage(message["usage"])


def _calls(draft: Draft, message: Mapping[str, Any]) -> list[ToolCall]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        draft.defect(f"tool_calls is not a list ({kind(calls)}): left out")
        calls = []
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        calls = [*calls, {"function": legacy}]
    return [read for call in calls if (read := _call(draft, call)) is not None]


def _call(draft: Draft, call: Any) -> ToolCall | None:
    shape = call if isinstance(call, dict) else {}
    body = shape.get("function") or shape.get("custom")
    if not isinstance(body, dict):
        draft.defect("a tool call has neither function nor custom: left out")
        return None
    name = string(body.get("name"))
    if not name:
        draft.defect("a tool call names no tool")
    given = body.get("arguments", body.get("input"))
    return ToolCall(call_id=string(shape.get("id")), name=name, arguments=arguments(given))


def _read_result(draft: Draft, message: Mapping[str, Any]) -> None:
    draft.result(
        read_content(draft, message.get("content")),
        call_id=string(message.get("tool_call_id")),
        tool=string(message.get("name")),
    )


def usage(given: Mapping[str, Any]) -> Usage:
    """Split the provider's figures so that nothing is counted twice.

    Returns:
        Tokens by `input` (neither read from nor written to the cache), `cache_read`,
        `cache_write`, `output`. The provider's cached figures are subsets of its prompt.
    """
    read = count(given, "prompt_tokens_details", "cached_tokens")
    read = read or count(given, "prompt_cache_hit_tokens")
    write = count(given, "prompt_tokens_details", "cache_write_tokens")
    return {
        "input": max(0, count(given, "prompt_tokens") - read - write),
        "cache_read": read,
        "cache_write": write,
        "output": count(given, "completion_tokens"),
    }


def drop_orphans(messages: Iterable[Message]) -> list[Message]:
    """Leave out results whose call is not among the messages, as after a cut of the history."""
    waiting: Counter[str] = Counter()
    kept: list[Message] = []
    for message in messages:
        waiting.update(call.call_id for call in message.calls)
        if message.role == "tool":
            if not waiting[message.call_id]:
                continue
            waiting[message.call_id] -= 1
        kept.append(message)
    return kept


def render_chat(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Write neutral messages of any format as an OpenAI chat message list.

    Parts that are not text have no place in it and are left out, and so are results whose
    call is not in the list. Reading the list again and writing it gives the same list.
    """
    return [_render(message) for message in drop_orphans(messages)]


def _render(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    return {
        "role": message.role,
        "content": message.text or None,
        "tool_calls": [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ],
    }
