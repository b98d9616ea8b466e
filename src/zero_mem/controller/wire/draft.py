"""A transcript while it is being read: results find their calls, faults become defects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from zero_mem.controller.messages import Defect, Message, Role, ToolCall, Transcript, WireFormat
from zero_mem.controller.wire.moments import moment_of

Usage = Mapping[str, int]

_TEXT_OF: Final = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What one source gave: its runs in order, and what could not be read."""

    transcripts: tuple[Transcript, ...] = ()
    defects: tuple[Defect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a message: the text that the model reads, and the names of other parts."""

    text: str = ""
    opaque: tuple[str, ...] = ()


@dataclass(slots=True)
class _Turn:
    """The calls of one assistant message that still wait for their results."""

    index: int
    record: str
    waiting: list[ToolCall] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Draft:
    """One run under construction.

    Call ids repeat in real runs, and some are absent. So a result belongs to the newest
    turn that waits for its id, and there to the first such call; an absent id is filled in,
    and a result without an id takes the first waiting call (of its tool, if it names one).
    A result that no call waits for is left out, with a defect.
    """

    wire_format: WireFormat
    name: str = ""
    file: str = ""
    model: str = ""
    line: int = 0
    record: str = ""
    moment: datetime | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    messages: list[Message] = field(default_factory=list)
    defects: list[Defect] = field(default_factory=list)
    usage: dict[int, Usage] = field(default_factory=dict)
    _turns: list[_Turn] = field(default_factory=list)
    _calls: int = 0
    _filled: set[str] = field(default_factory=set)

    def at(self, record: str, line: int = 0, moment: datetime | None = None) -> None:
        """Say which record is read now, for the defects and messages that follow."""
        self.record, self.line, self.moment = record, line, moment

    def each(self, what: str, items: Iterable[Any], lines: Sequence[int]) -> Iterator[Any]:
        """Go through a run's items, each named for the defects that it may have."""
        for index, item in enumerate(items):
            line = lines[index] if index < len(lines) else self.line
            self.at(f"{what} {index + 1}", line, moment_of(item))
            yield item

    def defect(self, problem: str) -> None:
        """Note that something in the current record could not be read as it stands."""
        self.defects.append(self._defect_at(self.line, self.record, problem))

    def _defect_at(self, line: int, record: str, problem: str) -> Defect:
        where = " ".join(part for part in (self.name, record) if part)
        return Defect(file=self.file, line=line, record=where, problem=problem)

    def say(self, role: Role, content: Content, *, speaker: str = "") -> None:
        """Add a message that is neither a model's output nor a tool's result."""
        self._add(Message(role=role, text=content.text, opaque=content.opaque, speaker=speaker))

    def _add(self, message: Message) -> None:
        """Add a message with the line and the time of the current record."""
        self.messages.append(replace(message, source_line=self.line, created_at=self.moment))

    def assistant(
        self, content: Content, calls: Sequence[ToolCall] = (), *, speaker: str = ""
    ) -> int:
        """Add the output of one LLM call; give its index."""
        index = len(self.messages)
        self._add(Message(role="assistant", speaker=speaker))
        self.extend(index, content, calls)
        return index

    def extend(self, index: int, content: Content, calls: Sequence[ToolCall] = ()) -> None:
        """Add to the output at `index` what came as a further piece of the same LLM call."""
        message, named = self.messages[index], [self._named(call) for call in calls]
        self.messages[index] = replace(
            message,
            text=joined((message.text, content.text)),
            calls=(*message.calls, *named),
            opaque=(*message.opaque, *content.opaque),
        )
        if named:
            self._turn(index).waiting.extend(named)

    def result(
        self, content: Content, *, call_id: str = "", tool: str = "", is_error: bool = False
    ) -> None:
        """Add a tool's result where a call waits for it."""
        call = self._answer(call_id, tool)
        if call is None:
            self.defect(f"result without a call ({_brief(call_id) or 'no id'}): left out")
            return
        self._add(
            Message(
                role="tool",
                text=content.text,
                call_id=call.call_id,
                tool=call.name,
                is_error=is_error,
                opaque=content.opaque,
            )
        )

    def transcript(self) -> Transcript:
        """Close the run as it stands."""
        return Transcript(
            name=self.name,
            wire_format=self.wire_format,
            messages=tuple(self.messages),
            tools=self.tools,
            usage=dict(self.usage),
            model=self.model,
        )

    def parsed(self) -> Parsed:
        """Close the run, with its defects: calls that were never answered are among them."""
        return Parsed(
            transcripts=(self.transcript(),), defects=(*self.defects, *self._unanswered())
        )

    def _turn(self, index: int) -> _Turn:
        if not self._turns or self._turns[-1].index != index:
            self._turns.append(_Turn(index, self.record))
        return self._turns[-1]

    def _named(self, call: ToolCall) -> ToolCall:
        self._calls += 1
        if call.call_id:
            return call
        filled = f"call_{self._calls}"
        self._filled.add(filled)
        return replace(call, call_id=filled)

    def _answer(self, call_id: str, tool: str) -> ToolCall | None:
        """Take the call that a result answers: its id decides, else its tool, else the place."""
        found = self._find(call_id, tool) or (None if call_id else self._find("", ""))
        if found is None:
            return None
        turn, call = found
        turn.waiting.remove(call)
        self._turns = [turn for turn in self._turns if turn.waiting]
        return call

    def _find(self, call_id: str, tool: str) -> tuple[_Turn, ToolCall] | None:
        for turn in reversed(self._turns):
            for call in turn.waiting:
                if self._matches(call, call_id, tool):
                    return turn, call
        return None

    def _matches(self, call: ToolCall, call_id: str, tool: str) -> bool:
        if call_id and call.call_id not in self._filled:
            return call.call_id == call_id
        return call.call_id == call_id or tool in ("", call.name)

    def _unanswered(self) -> Iterable[Defect]:
        """Name the calls without a result; those that end the run are its natural end."""
        last = max((i for i, m in enumerate(self.messages) if m.role != "tool"), default=-1)
        for turn in self._turns:
            for call in turn.waiting if turn.index < last else ():
                problem = f"call without a result: {_brief(call.name)} ({_brief(call.call_id)})"
                line = self.messages[turn.index].source_line
                yield self._defect_at(line, turn.record, problem)


def joined(texts: Iterable[str]) -> str:
    """Join the text parts of one message."""
    return "\n".join(text for text in texts if text)


def json_text(value: Any) -> str:
    """Write a decoded value as compact JSON, the way models write arguments."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return f"({kind(value)} nested too deeply)"


def string(value: Any) -> str:
    """Read an id or a name: text as it is, a number as its digits, all else as absent."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def arguments(value: Any) -> str:
    """Read a call's arguments: text as given, an object as compact JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)


def read_content(draft: Draft, content: Any) -> Content:
    """Read a content that is absent, a string, or a list of parts."""
    if content is None:
        return Content()
    if isinstance(content, str):
        return Content(text=content)
    if isinstance(content, list):
        return _read_parts(draft, content)
    draft.defect(f"content is neither text nor a list of parts ({kind(content)}): read as JSON")
    return Content(text=json_text(content))


def _read_parts(draft: Draft, parts: list[Any]) -> Content:
    texts: list[str] = []
    opaque: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif not isinstance(part, dict) or not string(part.get("type")):
            draft.defect(f"a part of the content is no object with a type ({kind(part)}): left out")
        elif part["type"] in _TEXT_OF:
            texts.append(part_text(draft, part))
        else:
            opaque.append(string(part["type"]))
    return Content(text=joined(texts), opaque=tuple(opaque))


def part_text(draft: Draft, part: Mapping[str, Any]) -> str:
    """Read the text of a text part."""
    text = part.get(_TEXT_OF[part["type"]])
    if isinstance(text, str):
        return text
    draft.defect(f"a text part holds no text ({kind(text)})")
    return ""


def is_text(part: Mapping[str, Any]) -> bool:
    """Tell whether a part is text in one of the formats."""
    return part.get("type") in _TEXT_OF


def tool_definitions(value: Any) -> tuple[Mapping[str, Any], ...]:
    """Keep the tool definitions that are objects, as they were sent."""
    tools = value if isinstance(value, list) else []
    return tuple(tool for tool in tools if isinstance(tool, dict))


def count(usage: Any, *path: str) -> int:
    """Read a number of tokens deep in a usage object; absent is 0."""
    for step in path:
        usage = usage.get(step) if isinstance(usage, dict) else None
    return usage if isinstance(usage, int) and usage > 0 else 0


def kind(value: Any) -> str:
    """Name the JSON type of a value, never the value."""
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def _brief(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}…"
