"""What was said in a run: its messages as the records of a trace would hold them, pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from zero_mem.controller.messages import Message, ToolCall, Transcript
from zero_mem.operations.requests import name_of
from zero_mem.types import Body, Json

_THOUGHTS: Final = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_content", "thinking_blocks"}
)
"""Parts that hold what a model thought: sealed by most providers, and said to nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message or tool result of a thread.

    `position` is its index among the run's messages, the left-out ones counted.
    """

    position: int
    line: int
    kind: str
    content: Body
    speaker: str
    created_at: datetime | None
    metadata: Mapping[str, Any]


def said(transcript: Transcript) -> Iterator[Said]:
    """Give what was said in a run, in order.

    System prompts are no part of it, nor is an output that holds thoughts alone. A message
    without a time bears that of the one before it, the first ones that of the first that has
    one, so that order and time agree.
    """
    times = (message.created_at for message in transcript.messages)
    moment = next((time for time in times if time is not None), None)
    for position, message in enumerate(transcript.messages):
        moment = message.created_at or moment
        if message.role != "system" and not _only_thoughts(message):
            yield Said(
                position=position,
                line=message.source_line,
                kind=_kind(message),
                content=_content(message),
                speaker=name_of(message.speaker) or name_of(message.tool) or message.role,
                created_at=moment,
                metadata=_metadata(message, position),
            )


def _kind(message: Message) -> str:
    """Keep what was said, called and given apart: each kind is a thread of its own."""
    if message.role == "tool":
        return "tool_result"
    return "tool_call" if message.calls and not message.text.strip() else "message"


def _only_thoughts(message: Message) -> bool:
    spoken = message.text.strip() or message.calls or message.role != "assistant"
    return not spoken and _THOUGHTS.issuperset(message.opaque)


def _content(message: Message) -> Body:
    """Give the text; where there is none, what stands for it: calls, or the names of parts.

    A text of white space alone is a JSON string, as `ZeroMemRuntime` keeps it: it is a body.
    """
    if message.text.strip():
        return message.text
    if message.calls:
        return called([_call(call) for call in message.calls])
    if message.opaque:
        return f"({', '.join(dict.fromkeys(message.opaque))})"
    return Json(message.text)


def called(calls: Sequence[Mapping[str, str]]) -> str:
    """Write calls as a body, each as `name(arguments)` on a line."""
    return "\n".join(f"{call['name']}({call['arguments']})" for call in calls)


def _call(call: ToolCall) -> dict[str, str]:
    return {"id": call.call_id, "name": call.name, "arguments": call.arguments}


def _metadata(message: Message, position: int) -> dict[str, Any]:
    found: dict[str, Any] = {"position": position}
    if message.role == "tool":
        found |= {"tool": message.tool, "call_id": message.call_id}
    if message.is_error:
        found["error"] = True
    if message.calls:
        found["tools"] = list(dict.fromkeys(call.name for call in message.calls))
        found["calls"] = [_call(call) for call in message.calls]
    parts = [name for name in dict.fromkeys(message.opaque) if name not in _THOUGHTS]
    return found | ({"parts": parts} if parts else {})
