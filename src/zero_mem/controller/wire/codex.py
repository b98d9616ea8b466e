"""Codex session files (rollouts): entries to the neutral form.

Each line is an entry with a time, a type and a payload. What the model saw and said are the
`response_item` entries, whose payloads are OpenAI Responses items; `event_msg` repeats them
for the screen. After a `compacted` entry the model saw its history in place of what was
before, so a new run begins there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem.controller.messages import Defect
from zero_mem.controller.wire import openai_responses
from zero_mem.controller.wire.draft import Content, Draft, Parsed, json_text, kind, string
from zero_mem.controller.wire.moments import moment_of

ENTRY_TYPES: Final = frozenset(
    {"session_meta", "turn_context", "response_item", "event_msg", "compacted"}
)


@dataclass(slots=True, kw_only=True)
class Rollout:
    """A session file while it is being read, entry by entry."""

    file: str = ""
    name: str = ""
    _draft: Draft | None = None
    _produced: int | None = None
    _closed: list[Draft] = field(default_factory=list)
    _defects: list[Defect] = field(default_factory=list)

    def add(self, entry: Mapping[str, Any], line: int) -> None:
        """Read one entry; what cannot be read becomes a defect, the rest goes on."""
        payload = entry.get("payload")
        if not isinstance(payload, dict):
            problem = f"an entry without a payload object ({kind(payload)}): left out"
            self._defects.append(
                Defect(file=self.file, line=line, record=f"line {line}", problem=problem)
            )
            return
        match entry.get("type"):
            case "session_meta":
                self.name = self.name or string(payload.get("id"))
            case "turn_context":
                draft = self._open()
                draft.model = string(payload.get("model")) or draft.model
            case "response_item":
                self._at(entry, line)
                self._item(payload)
            case "compacted":
                self._compact(entry, payload, line)

    def parsed(self) -> Parsed:
        """Close every run that has a message."""
        drafts = [*self._closed, *([self._draft] if self._draft else [])]
        parts = [draft.parsed() for draft in drafts if draft.messages]
        return Parsed(
            transcripts=tuple(run for part in parts for run in part.transcripts),
            defects=(*self._defects, *(defect for part in parts for defect in part.defects)),
        )

    def _open(self) -> Draft:
        if self._draft is None:
            number = f"#{len(self._closed) + 1}" if self._closed else ""
            name = f"{self.name}{number}" if self.name else ""
            self._draft = Draft(wire_format="openai_responses", name=name, file=self.file)
        return self._draft

    def _at(self, entry: Mapping[str, Any], line: int) -> None:
        self._open().at(f"line {line}", line, moment_of(entry))

    def _item(self, item: Any) -> None:
        given = _as_sent(item) if isinstance(item, dict) else item
        self._produced = openai_responses.read_item(self._open(), given, self._produced)

    def _compact(self, entry: Mapping[str, Any], payload: Mapping[str, Any], line: int) -> None:
        """Begin a run with the history that took the place of what was before."""
        if self._draft is not None and self._draft.messages:
            self._closed.append(self._draft)
            self._draft = None
        self._produced = None
        self._at(entry, line)
        history = payload.get("replacement_history")
        if isinstance(history, list) and history:
            for item in history:
                self._item(item)
        elif summary := string(payload.get("message")):
            self._open().say("user", Content(text=summary))


def _as_sent(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write an item as the provider's own format has it: older clients kept it otherwise."""
    if item.get("type") == "local_shell_call" and item.get("call_id"):
        return {
            "type": "function_call",
            "call_id": item["call_id"],
            "name": "local_shell",
            "arguments": json_text(item.get("action")),
        }
    output = item.get("output")
    if isinstance(output, dict) and "content" in output:
        return {**item, "output": output["content"]}
    return item
