"""OpenAI's chat stream: chunks with deltas of choices, then usage, then [DONE].

What ends a turn is the chunk with the last choice's finish_reason; usage and [DONE] follow it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem.controller.rounds import summed
from zero_mem.controller.wire.draft import string
from zero_mem.controller.wire.places import ROUND_BREAK
from zero_mem.controller.wire.server_sent import Event
from zero_mem.controller.wire.streams import (
    Passage,
    StreamEditor,
    accumulate,
    edited,
    place_of,
)

Data = Mapping[str, Any]

DONE: Final = "[DONE]"
_KEPT_APART: Final = frozenset({"role", "content", "tool_calls"})
_FORMS: Final = {"function": "arguments", "custom": "input"}
# What names the one response that the host gets.
_NAMING: Final = ("id", "created", "model")


@dataclass(slots=True)
class _Call:
    """A tool call: the provider's own form, and where the host sees it.

    The arguments stand in `parts`, of which there may be many.
    """

    own: dict[str, Any] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)
    named: bool = False
    shown_at: int | None = None
    passage: Passage | None = None

    @property
    def form(self) -> str:
        """Where the name and the arguments stand; "" where that is not known yet."""
        return next((form for form in _FORMS if isinstance(self.own.get(form), Mapping)), "")

    def add(self, entry: Data) -> None:
        """Add an entry of a delta."""
        for form, name in _FORMS.items():
            body = entry.get(form)
            if isinstance(body, Mapping) and name in body:
                self.parts.append(string(body[name]))
                entry = {**entry, form: {k: v for k, v in body.items() if k != name}}
        accumulate(self.own, entry)

    def complete(self) -> dict[str, Any]:
        """Give the call as it stands in a whole response, with its index."""
        form = self.form
        if not form:
            return dict(self.own)
        return {**self.own, form: {**self.own[form], _FORMS[form]: "".join(self.parts)}}


@dataclass(slots=True)
class _Choice:
    content: Passage
    own: dict[str, Any] = field(default_factory=dict)
    calls: dict[int, _Call] = field(default_factory=dict)
    finish_reason: Any = None
    spoke: bool = False


@dataclass(slots=True)
class _Shown:
    """What the host has seen of a choice in all rounds."""

    calls: int = 0
    spoke: bool = False


class ChatEditor(StreamEditor):
    """Edits the chunks of the Chat Completions API.

    Args:
        choices: How many choices were asked for.
    """

    def __init__(self, choices: int = 1) -> None:
        super().__init__()
        self._wanted = choices
        self._naming: dict[str, Any] = {}
        self._shown: dict[int, _Shown] = {}
        self._begin()

    def _begin(self) -> None:
        self._head: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}
        self._usage: Any = None

    def _passages(self) -> Iterator[Passage]:
        for choice in self._choices.values():
            yield choice.content
            yield from (call.passage for call in choice.calls.values() if call.passage)

    def ends(self, event: Event) -> bool:
        """Tell whether an event ends the provider's turn."""
        if self.complete:
            return False
        return bool(event.data == DONE) or any(
            choice.get("finish_reason") for choice in _choices(event.data)
        )

    def feed(self, event: Event) -> list[Event]:
        """Take an event; give what the host gets of it now."""
        data = event.data
        if data == DONE:
            return self._done(event)
        if not isinstance(data, Mapping):
            return [event]
        if not isinstance(data.get("choices"), list):
            return [*self.flush(), event] if data.get("error") else [event]
        return self._chunk(event, data)

    def _done(self, event: Event) -> list[Event]:
        if self.complete:
            return [] if self._swallowing else [event]
        flushed = self.flush()
        self._end(event)
        return flushed

    def _chunk(self, event: Event, data: Data) -> list[Event]:
        self._head = {k: v for k, v in data.items() if k not in ("choices", "usage")}
        if not self._naming and data["choices"]:  # what some servers send before has no id
            self._naming = {k: data[k] for k in _NAMING if k in data}
        event = self._with_usage(event, data)
        if self._swallowing:  # what follows the end of a hidden round
            return []
        choices = [self._choice(choice) for choice in data["choices"]]
        kept = [choice for choice in choices if choice is not None]
        if not kept and choices and not data.get("usage"):
            return []
        if any(new is not old for new, old in zip(choices, data["choices"], strict=True)):
            event = edited(event, choices=kept)
        if self.rounds > 1:
            event = edited(event, **self._naming)
        if self.complete or not self._is_last():
            return [event]
        self._end(event)
        return []

    def _with_usage(self, event: Event, data: Data) -> Event:
        usage = data.get("usage")
        if not isinstance(usage, Mapping):
            return event
        self._usage = usage
        return event if self.usage is None else edited(event, usage=summed(self.usage, usage))

    def _is_last(self) -> bool:
        done = [choice for choice in self._choices.values() if choice.finish_reason]
        return 0 < len(self._choices) == len(done) >= self._wanted

    def _choice(self, choice: Any) -> Any:
        """Edit a choice of a chunk; None where nothing of it is left."""
        if not isinstance(choice, Mapping) or not isinstance(choice.get("delta"), Mapping):
            return choice
        number = place_of(choice)
        state = self._choices.get(number)
        if state is None:
            state = self._choices[number] = _Choice(content=Passage(self._expander.text()))
        state.finish_reason = choice.get("finish_reason") or state.finish_reason
        ended = bool(choice.get("finish_reason"))
        delta = self._delta(number, state, choice["delta"], ended=ended)
        shown = choice if delta is choice["delta"] else {**choice, "delta": delta}
        if ended and self._wanted > 1 and state.calls and not _any_shown(state):
            return {**shown, "finish_reason": "stop"}
        return None if shown is not choice and not delta and not ended else shown

    def _delta(self, number: int, state: _Choice, delta: Data, *, ended: bool) -> Data:
        seen = self._shown.setdefault(number, _Shown())
        accumulate(state.own, {k: v for k, v in delta.items() if k not in _KEPT_APART})
        changed: dict[str, Any] = {}
        content = delta.get("content")
        fragment = content if isinstance(content, str) else ""
        text = state.content.feed(fragment) + (state.content.close() if ended else "")
        if text:
            if self.rounds > 1 and seen.spoke and not state.spoke:
                text = ROUND_BREAK + text
            state.spoke = seen.spoke = True
        if text != fragment:
            changed["content"] = text or None
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            shown = [e for entry in calls for e in self._entry(state, seen, entry)]
            if list(map(id, shown)) != list(map(id, calls)):
                changed["tool_calls"] = shown or None
        if ended and (held := list(_held_calls(state))):
            changed["tool_calls"] = [*(changed.get("tool_calls", calls) or ()), *held]
        if self.rounds > 1 and "role" in delta:
            changed["role"] = None
        if not changed:
            return delta
        gone = {name for name, value in changed.items() if value is None}
        merged = {k: v for k, v in {**delta, **changed}.items() if k not in gone}
        return merged if any(v not in (None, "") for v in merged.values()) else {}

    def _entry(self, state: _Choice, seen: _Shown, entry: Any) -> Iterator[Any]:
        """Edit an entry of a delta's tool calls."""
        if not isinstance(entry, Mapping):
            yield entry
            return
        call = state.calls.setdefault(place_of(entry), _Call())
        call.add(entry)
        if not call.named:
            yield from self._name(call, seen, entry)
        elif call.passage is not None:
            yield from _pass(call, call.passage, entry)

    def _name(self, call: _Call, seen: _Shown, entry: Data) -> Iterator[Any]:
        """Learn whose a call is, which its name tells; until then it is held back."""
        form = call.form
        tool = string(call.own[form].get("name")) if form else ""
        if not tool:
            return
        call.named = True
        if self._expander.is_ours(tool):
            return
        call.shown_at, seen.calls = seen.calls, seen.calls + 1
        call.passage = Passage(self._expander.arguments(tool, free=form == "custom"))
        first = call.complete()
        yield from _pass(call, call.passage, entry if first == entry else first, first=True)

    def flush(self) -> list[Event]:
        """Give what is held back, as it is."""
        choices = []
        for number, state in self._choices.items():
            text = state.content.close()
            delta: dict[str, Any] = {"content": text} if text else {}
            if held := list(_held_calls(state)):
                delta["tool_calls"] = held
            if delta:
                choices.append({"index": number, "delta": delta, "finish_reason": None})
        if not choices:
            return []
        return [Event(data={**self._head, **self._naming, "choices": choices})]

    def release(self, *, swallow: bool) -> list[Event]:
        """Give the events that end the turn; of those swallowed, what they say besides."""
        waiting = list(self._waiting)
        passed_on = super().release(swallow=swallow)
        for event in waiting if swallow else ():
            said = [each for each in _choices(event.data) if _says_something(each)]
            if said:
                choices = [{**each, "finish_reason": None} for each in said]
                passed_on.append(edited(event, choices=choices))
        return passed_on

    def begin(self, expander: Any) -> None:
        """Begin with the next upstream stream."""
        self.usage = summed(self.usage, self._usage)
        super().begin(expander)

    def response(self, *, partial: bool = False) -> dict[str, Any]:
        """Give what the provider produced in this round, in its own form."""
        numbers = sorted(self._choices) or [0]
        choices = [
            {
                "index": number,
                "message": self._message(self._choices.get(number), partial=partial),
                "finish_reason": self._finish_reason(number),
            }
            for number in numbers
        ]
        head = {**self._head, "object": "chat.completion"}
        return {**head, "choices": choices, "usage": self._usage}

    def _finish_reason(self, number: int) -> Any:
        return self._choices[number].finish_reason if number in self._choices else None

    def _message(self, state: _Choice | None, *, partial: bool) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if state is None:
            return message
        message.update(state.own)
        content = state.content.passed_on if partial else state.content.written
        message["content"] = content or None  # as it is in a whole response
        calls = [call for _, call in sorted(state.calls.items())]
        if partial:
            calls = [call for call in calls if state.finish_reason and call.shown_at is not None]
        if calls:
            message["tool_calls"] = [
                {name: value for name, value in call.complete().items() if name != "index"}
                for call in calls
            ]
        return message

    def failure(self, message: str) -> list[Event]:
        """Write an error as this vendor does in a stream."""
        error = {"message": message, "type": "server_error", "param": None, "code": None}
        return [Event(data={"error": error})]


def _choices(data: Any) -> list[Data]:
    listed = data.get("choices") if isinstance(data, Mapping) else None
    found = listed if isinstance(listed, list) else []
    return [each for each in found if isinstance(each, Mapping)]


def _any_shown(state: _Choice) -> bool:
    return any(call.shown_at is not None for call in state.calls.values())


def _says_something(choice: Any) -> bool:
    delta = choice.get("delta") if isinstance(choice, Mapping) else None
    return isinstance(delta, Mapping) and any(
        value for name, value in delta.items() if name != "role"
    )


def _held_calls(state: _Choice) -> Iterator[dict[str, Any]]:
    for call in state.calls.values():
        held = call.passage.close() if call.passage else ""
        if held:
            yield {"index": call.shown_at, call.form: {_FORMS[call.form]: held}}


def _pass(
    call: _Call, passage: Passage, entry: Data, *, first: bool = False
) -> Iterator[Mapping[str, Any]]:
    form = next((form for form in _FORMS if isinstance(entry.get(form), Mapping)), None)
    body = entry[form] if form else {}
    name = _FORMS[form] if form else ""
    fragment = string(body.get(name))
    shown = passage.feed(fragment)
    edit: dict[str, Any] = {}
    if form and shown != fragment:
        if not shown and not first and set(body) <= {name}:
            return
        edit[form] = {**body, name: shown}
    if place_of(entry) != call.shown_at:
        edit["index"] = call.shown_at
    yield {**entry, **edit} if edit else entry
