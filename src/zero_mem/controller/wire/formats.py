"""The wire formats by name, and what each can read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire import anthropic, openai_chat, openai_responses
from zero_mem.controller.wire.draft import Draft, Parsed


@dataclass(frozen=True, slots=True)
class Wire:
    """How a format's message list (with lines), request body and response body are read."""

    read_messages: Callable[[Draft, Sequence[Any], Sequence[int]], None]
    read_request: Callable[[Draft, Mapping[str, Any]], None]
    read_response: Callable[[Draft, Mapping[str, Any]], None]


WIRES: Final[Mapping[WireFormat, Wire]] = {
    "openai_chat": Wire(
        openai_chat.read_messages, openai_chat.read_request, openai_chat.read_response
    ),
    "openai_responses": Wire(
        openai_responses.read_messages,
        openai_responses.read_request,
        openai_responses.read_response,
    ),
    "anthropic": Wire(anthropic.read_messages, anthropic.read_request, anthropic.read_response),
}


def parse(
    messages: Sequence[Any],
    wire_format: WireFormat,
    *,
    name: str = "",
    file: str = "",
    lines: Sequence[int] = (),
) -> Parsed:
    """Read one run's list of messages or items.

    Args:
        messages: They, decoded, oldest first.
        wire_format: Their format.
        name: Name of the run, for defects and the transcript.
        file: Name of the file, for defects.
        lines: The 1-based line of each in the file, where it has one.
    """
    draft = Draft(wire_format=wire_format, name=name, file=file)
    WIRES[wire_format].read_messages(draft, messages, lines)
    return draft.parsed()
