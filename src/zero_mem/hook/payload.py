"""What Claude Code gives a hook on stdin."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zero_mem.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """One event.

    `agent` names the child agent that an event is about, "" for the main one. `response` is
    the tool's result in the client's own shape, None before the tool runs.
    """

    event: str
    session: str
    folder: str = ""
    transcript: str = ""
    source: str = ""
    agent: str = ""
    tool: str = ""
    call_id: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    response: Any = None

    @classmethod
    def read(cls, text: str) -> Payload:
        """Read the JSON of an event.

        Raises:
            InvalidInput: It is not the event of a session.
        """
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"a hook gets an event as JSON on stdin: {error}") from None
        if not isinstance(given, Mapping):
            raise InvalidInput("a hook gets an event as a JSON object on stdin")
        event, session = _text(given, "hook_event_name"), _text(given, "session_id")
        if not event or not session:
            raise InvalidInput("an event has a hook_event_name and a session_id")
        arguments = given.get("tool_input")
        return cls(
            event=event,
            session=session,
            folder=_text(given, "cwd"),
            transcript=_text(given, "transcript_path"),
            source=_text(given, "source"),
            agent=_text(given, "agent_id"),
            tool=_text(given, "tool_name"),
            call_id=_text(given, "tool_use_id"),
            arguments=arguments if isinstance(arguments, Mapping) else {},
            response=given.get("tool_response"),
        )


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    return value if isinstance(value, str) else ""
