"""Anthropic Messages: content blocks to the neutral form.

A user message may hold the results of all calls of the turn before, then text: each result
becomes a message of its own. Thinking, images, documents and the blocks of tools that the
provider runs are opaque.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem.controller.messages import Role, ToolCall
from zero_mem.controller.wire.draft import (
    Content,
    Draft,
    Usage,
    arguments,
    count,
    is_text,
    joined,
    kind,
    part_text,
    read_content,
    string,
    tool_definitions,
)

_ROLES: Final[Mapping[str, Role]] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
}


@dataclass(slots=True)
class Blocks:
    """The blocks of one message, sorted: text, calls, results, and the names of the rest."""

    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[Mapping[str, Any]] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)

    @property
    def content(self) -> Content:
        """Everything but calls and results."""
        return Content(text=joined(self.texts), opaque=tuple(self.opaque))


def read_messages(draft: Draft, messages: Iterable[Any], lines: Sequence[int] = ()) -> None:
    """Read a list of messages into a draft."""
    for message in draft.each("message", messages, lines):
        read_message(draft, message)


def read_request(draft: Draft, body: Mapping[str, Any]) -> None:
    """Read a request body, or a record of a run that has the same fields."""
    draft.model = string(body.get("model")) or draft.model
    draft.tools = tool_definitions(body.get("tools"))
    if body.get("system"):
        draft.say("system", read_content(draft, body["system"]))
    messages = body.get("messages")
    if isinstance(messages, list):
        read_messages(draft, messages)
    else:
        draft.defect(f"messages is not a list ({kind(messages)})")


def read_response(draft: Draft, body: Mapping[str, Any]) -> None:
    """Read a complete response body: its content is the output of one call."""
    if not isinstance(body.get("content"), list):
        draft.defect("response without a list of content blocks: left out")
        return
    read_message(draft, {**body, "role": "assistant"})


def read_message(draft: Draft, message: Any) -> None:
    """Read one message; what cannot be read becomes a defect."""
    if not isinstance(message, dict):
        draft.defect(f"not a message object ({kind(message)}): left out")
        return
    role = _ROLES.get(string(message.get("role")))
    if role is None:
        draft.defect("role is none of user, assistant, system: left out")
    elif role == "assistant":
        _read_assistant(draft, message)
    else:
        read_input(draft, role, message.get("content"))


def read_input(draft: Draft, role: Role, content: Any) -> None:
    """Read what went to the model: results first, each on its own, then the rest."""
    blocks = read_blocks(draft, content)
    for result in blocks.results:
        draft.result(
            read_content(draft, result.get("content")),
            call_id=string(result.get("tool_use_id")),
            is_error=result.get("is_error") is True,
        )
    if blocks.texts or blocks.opaque or not blocks.results:
        draft.say(role, blocks.content)
    if blocks.calls:
        draft.defect("tool_use outside an assistant message: left out")


def _read_assistant(draft: Draft, message: Mapping[str, Any]) -> None:
    blocks = read_blocks(draft, message.get("content"))
    index = draft.assistant(blocks.content, blocks.calls)
    draft.model = string(message.get("model")) or draft.model
    if isinstance(message.get("usage"), dict):
        draft.usage[index] = usage(message["usage"])
    if blocks.results:
        draft.defect("tool_result inside an assistant message: left out")


def read_blocks(draft: Draft, content: Any) -> Blocks:
    """Sort the blocks of a message's content, which may also be a string or absent."""
    blocks = Blocks()
    if not isinstance(content, list):
        plain = read_content(draft, content)
        blocks.texts = [plain.text] if plain.text else []
        return blocks
    for block in content:
        _sort(draft, blocks, block)
    return blocks


def _sort(draft: Draft, blocks: Blocks, block: Any) -> None:
    block_type = string(block.get("type")) if isinstance(block, dict) else ""
    if not block_type:
        draft.defect(f"a content block is no object with a type ({kind(block)}): left out")
    elif is_text(block):
        blocks.texts.append(part_text(draft, block))
    elif block_type == "tool_use":
        blocks.calls.append(_call(draft, block))
    elif block_type == "tool_result":
        blocks.results.append(block)
    else:
        blocks.opaque.append(block_type)


def _call(draft: Draft, block: Mapping[str, Any]) -> ToolCall:
    name = string(block.get("name"))
    if not name:
        draft.defect("a tool call names no tool")
    return ToolCall(
        call_id=string(block.get("id")), name=name, arguments=arguments(block.get("input"))
    )


def usage(given: Mapping[str, Any]) -> Usage:
    """Name the provider's figures as the ledger does; here input excludes the cache already.

    Returns:
        Tokens by `input`, `cache_read`, `cache_write`, `output`.
    """
    return {
        "input": count(given, "input_tokens"),
        "cache_read": count(given, "cache_read_input_tokens"),
        "cache_write": count(given, "cache_creation_input_tokens"),
        "output": count(given, "output_tokens"),
    }
