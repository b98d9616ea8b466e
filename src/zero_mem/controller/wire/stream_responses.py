"""The stream of OpenAI's Responses: events with a sequence number around items with an index.

Texts and arguments come in deltas and are repeated whole by the events that end a part, an
item and the response; all of these show the same. A delta that is held back altogether goes
on empty, so that the numbers of what follows stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem.controller.rounds import summed
from zero_mem.controller.wire.draft import string
from zero_mem.controller.wire.server_sent import Event
from zero_mem.controller.wire.streams import Passage, StreamEditor, edited, fields_of, place_of

Data = Mapping[str, Any]

_ARGUMENTS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_STARTS: Final = frozenset({"response.created", "response.queued", "response.in_progress"})
_ENDS: Final = frozenset({"response.completed", "response.incomplete"})
# The events of a text on its way: its deltas, and where it is repeated whole.
_DELTAS: Final = {
    "response.output_text.delta": "output_text",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
_DONES: Final = {
    "response.output_text.done": "text",
    "response.function_call_arguments.done": "arguments",
    "response.custom_tool_call_input.done": "input",
}


@dataclass(slots=True)
class _Item:
    """An output item: the provider's own form, and where the host sees it (None: nowhere)."""

    own: dict[str, Any]
    shown_at: int | None
    passages: dict[int, Passage] = field(default_factory=dict)
    deltas: dict[int, Event] = field(default_factory=dict)
    done: bool = False


class ResponsesEditor(StreamEditor):
    """Edits the events of the Responses API."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0
        self._number = -1
        self._shift = 0
        self._first: dict[str, Any] = {}
        self._shown: list[Any] = []
        self._begin()

    def _begin(self) -> None:
        self._items: dict[int, _Item] = {}
        self._response: dict[str, Any] = {}
        self._counting = self.rounds <= 1

    def _passages(self) -> Iterator[Passage]:
        return (p for item in self._items.values() for p in item.passages.values())

    def ends(self, event: Event) -> bool:
        """Tell whether an event ends the provider's turn."""
        return isinstance(event.data, Mapping) and event.data.get("type") in _ENDS

    @property
    def first_id(self) -> str | None:
        """The id by which the host knows the response, once it began."""
        return self._first.get("id")

    def feed(self, event: Event) -> list[Event]:
        """Take an event; give what the host gets of it now."""
        data = event.data
        if not isinstance(data, Mapping):
            return [] if self._swallowing else [event]
        if not self._counting and isinstance(data.get("sequence_number"), int):
            self._counting = True
            self._shift = self._number + 1 - data["sequence_number"]
        return self._numbered(event, self._edit(event, data))

    def _numbered(self, event: Event, given: list[Event]) -> list[Event]:
        """Number what takes the place of an event on from what was passed on before."""
        number = event.data.get("sequence_number")
        if not isinstance(number, int):
            return given
        waits = 1 if self._waiting and event.data.get("type") in _ENDS else 0
        out = [
            edited(each, sequence_number=number + self._shift + at) for at, each in enumerate(given)
        ]
        self._shift += len(given) + waits - 1
        self._number = number + self._shift
        if waits:
            self._waiting = [edited(each, sequence_number=self._number) for each in self._waiting]
        return out

    def _edit(self, event: Event, data: Data) -> list[Event]:
        kind = string(data.get("type"))
        if kind in _STARTS:
            return self._start(event, data)
        if kind in _ENDS:
            return self._ended(event, data)
        if kind == "response.failed":
            return [*self.flush(), self._whole(event, data)]
        if kind == "error":
            return [*self.flush(), event]
        if kind == "response.output_item.added":
            return self._add_item(event, data)
        item = self._items.get(place_of(data, "output_index")) if "output_index" in data else None
        if item is None:
            return [] if self._swallowing else [event]
        if item.shown_at is None:
            if kind == "response.output_item.done":
                _finish(item, data)
            return []
        return self._inside(event, data, kind, item)

    def _start(self, event: Event, data: Data) -> list[Event]:
        self._response = fields_of(data.get("response"))
        if self.rounds > 1:
            return []
        self._first = self._response
        return [event]

    def _add_item(self, event: Event, data: Data) -> list[Event]:
        own = fields_of(data.get("item"))
        kind, tool = string(own.get("type")), string(own.get("name"))
        is_ours = kind in _ARGUMENTS and self._expander.is_ours(tool)
        item = _Item(own=own, shown_at=None if is_ours else self._next)
        self._items[place_of(data, "output_index")] = item
        if is_ours:
            return []
        self._next += 1
        if kind not in _ARGUMENTS:
            return [edited(event, output_index=item.shown_at)]
        passage = Passage(self._expander.arguments(tool, free=kind == "custom_tool_call"))
        item.passages[0] = passage
        name = _ARGUMENTS[kind]
        shown = passage.feed(string(own.get(name)))
        if shown == string(own.get(name)):
            return [edited(event, output_index=item.shown_at)]
        return [edited(event, output_index=item.shown_at, item={**own, name: shown})]

    def _inside(self, event: Event, data: Data, kind: str, item: _Item) -> list[Event]:
        event = edited(event, output_index=item.shown_at)
        place = place_of(data, "content_index")
        if kind in _DELTAS:
            return [self._delta(event, data, item, place)]
        if kind in _DONES:
            return self._done(event, data, item, place, _DONES[kind])
        if kind == "response.content_part.added":
            return [self._part_added(event, data, item, place)]
        if kind == "response.content_part.done":
            shown = self._part(data.get("part"), item, place)
            return [*self._flushed(item, place), edited(event, part=shown)]
        if kind == "response.output_item.done":
            _finish(item, data)
            shown = self._item(item)
            flushed = [e for at in item.passages for e in self._flushed(item, at)]
            return [*flushed, edited(event, item=shown)]
        return [event]

    def _passage(self, item: _Item, place: int) -> Passage:
        if place not in item.passages:
            item.passages[place] = Passage(self._expander.text())
        return item.passages[place]

    def _delta(self, event: Event, data: Data, item: _Item, place: int) -> Event:
        fragment = string(data.get("delta"))
        item.deltas[place] = event
        shown = self._passage(item, place).feed(fragment)
        return event if shown == fragment else edited(event, delta=shown)

    def _done(self, event: Event, data: Data, item: _Item, place: int, name: str) -> list[Event]:
        flushed = self._flushed(item, place)
        written = data.get(name)
        if not isinstance(written, str):
            return [*flushed, event]
        shown = self._shown_for(item, place, written)
        return [*flushed, event if shown == written else edited(event, **{name: shown})]

    def _shown_for(self, item: _Item, place: int, written: str) -> str:
        """Give what the host sees of a text that is repeated whole."""
        passage = self._passage(item, place)
        if passage.written == written:
            return passage.shown + passage.held
        item.passages[place] = passage = Passage(self._fragments(item))
        passage.feed(written)
        passage.close()
        return passage.shown

    def _fragments(self, item: _Item) -> Any:
        kind = string(item.own.get("type"))
        if kind not in _ARGUMENTS:
            return self._expander.text()
        tool = string(item.own.get("name"))
        return self._expander.arguments(tool, free=kind == "custom_tool_call")

    def _flushed(self, item: _Item, place: int) -> list[Event]:
        passage = item.passages.get(place)
        held = passage.close() if passage else ""
        last = item.deltas.get(place)
        if not held or last is None:
            return []
        return [edited(last, delta=held)]

    def _part_added(self, event: Event, data: Data, item: _Item, place: int) -> Event:
        part = data.get("part")
        if not isinstance(part, Mapping) or part.get("type") != "output_text":
            return event
        text = string(part.get("text"))
        shown = self._passage(item, place).feed(text)
        return event if shown == text else edited(event, part={**part, "text": shown})

    def _part(self, part: Any, item: _Item, place: int) -> Any:
        if not isinstance(part, Mapping) or part.get("type") != "output_text":
            return part
        text = string(part.get("text"))
        shown = self._shown_for(item, place, text)
        return part if shown == text else {**part, "text": shown}

    def _item(self, item: _Item) -> Any:
        """Give an item that is whole as the host sees it."""
        own = item.own
        name = _ARGUMENTS.get(string(own.get("type")))
        if name is not None:
            written = string(own.get(name))
            shown = self._shown_for(item, 0, written)
            return own if shown == written else {**own, name: shown}
        content = own.get("content")
        if own.get("type") != "message" or not isinstance(content, list):
            return own
        parts = [self._part(part, item, place) for place, part in enumerate(content)]
        changed = any(new is not old for new, old in zip(parts, content, strict=True))
        return {**own, "content": parts} if changed else own

    def _ended(self, event: Event, data: Data) -> list[Event]:
        flushed = self.flush()
        self._end(self._whole(event, data))
        return flushed

    def _whole(self, event: Event, data: Data) -> Event:
        """Show the whole response with what the host has seen of it."""
        given = data.get("response")
        self._response = response = dict(given) if isinstance(given, Mapping) else self._response
        output = response.get("output")
        self._take_output(output if isinstance(output, list) else [])
        items = [item for _, item in sorted(self._items.items()) if item.shown_at is not None]
        shown = [*self._shown, *(self._item(item) for item in items if item.done)]
        changed: dict[str, Any] = {}
        if self._shown or (output and shown != output):
            changed["output"] = shown
        if self.rounds > 1:
            changed.update({k: self._first[k] for k in _NAMING if k in self._first})
            changed["usage"] = summed(self.usage, response.get("usage"))
        self._shown = shown
        return edited(event, response={**response, **changed}) if changed else event

    def _take_output(self, output: list[Any]) -> None:
        """Take the items of the whole response, which count, by their places."""
        for place, own in enumerate(output):
            if not isinstance(own, Mapping):
                continue
            if place not in self._items:  # a server that tells of no items before
                added = {"output_index": place, "item": own}
                self._add_item(Event(data=added), added)
            item = self._items[place]
            item.own, item.done = dict(own), True

    def release(self, *, swallow: bool) -> list[Event]:
        """Give the events that end the turn, or swallow them where another round follows."""
        self.usage = summed(self.usage, self._response.get("usage"))
        if swallow:
            self._number -= len(self._waiting)
        return super().release(swallow=swallow)

    def flush(self) -> list[Event]:
        """Give what is held back, as it is."""
        return [
            event
            for item in self._items.values()
            if item.shown_at is not None
            for place in item.passages
            for event in self._flushed(item, place)
        ]

    def response(self, *, partial: bool = False) -> dict[str, Any]:
        """Give what the provider produced in this round, in its own form."""
        listed = [item for _, item in sorted(self._items.items())]
        output: list[Any] = [item.own for item in listed]
        if partial:
            output = [own for item in listed if (own := _passed_on(item)) is not None]
        elif self._response.get("output"):
            output = self._response["output"]
        return {**self._response, "output": output}

    def failure(self, message: str) -> list[Event]:
        """Write an error as this vendor does in a stream."""
        self._number += 1
        data = {
            "type": "error",
            "code": "server_error",
            "message": message,
            "param": None,
            "sequence_number": self._number,
        }
        return [Event(name="error", data=data)]


# What names the one response that the host gets.
_NAMING: Final = ("id", "created_at", "model", "previous_response_id")


def _finish(item: _Item, data: Data) -> None:
    given = data.get("item")
    if isinstance(given, Mapping):
        item.own = dict(given)
    item.done = True


def _passed_on(item: _Item) -> Any:
    if item.shown_at is None:
        return None
    if item.done or item.own.get("type") != "message":
        return item.own if item.done else None
    parts = [
        {"type": "output_text", "annotations": [], "text": passage.passed_on}
        for _, passage in sorted(item.passages.items())
    ]
    return {**item.own, "content": parts} if parts else None
