"""Messages as the controller sees them: one neutral form for every wire format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
WireFormat: TypeAlias = Literal["openai_chat", "openai_responses", "anthropic", "claude_code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call that the assistant made; `arguments` is the text as the provider gave it."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. A tool result is a message of its own with role `tool`.

    `text` is what the model reads (text parts joined by a newline). `opaque` names parts
    that are not text (image, thinking, document …), which are never touched. `source_line`
    is the 1-based line of the transcript file, 0 where it has none. `speaker` is the name of
    who spoke and `created_at` when, where the transcript says so.
    """

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool: str = ""
    is_error: bool = False
    opaque: tuple[str, ...] = ()
    source_line: int = 0
    speaker: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """Something in a transcript that could not be read; the rest was."""

    file: str
    line: int
    record: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One agent run in order: each assistant message is the output of one LLM call.

    `tools` are the tool definitions as sent, if the file has them. `usage` maps the index
    of an assistant message in `messages` to the provider's own usage figures.
    """

    name: str
    wire_format: WireFormat
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    usage: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    model: str = ""
