"""Anthropic's stream: message_start, blocks with an index, message_delta, message_stop."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from zero_mem.controller.rounds import summed
from zero_mem.controller.wire.draft import json_text, string
from zero_mem.controller.wire.server_sent import Event
from zero_mem.controller.wire.streams import (
    Passage,
    StreamEditor,
    edited,
    fields_of,
    place_of,
)

Data = Mapping[str, Any]


@dataclass(slots=True)
class _Block:
    """A content block: the provider's own form, and where the host sees it (None: nowhere).

    `own` is the block as it began, with what came since in `parts`, by the field that it adds to.
    """

    own: dict[str, Any]
    shown_at: int | None
    passage: Passage | None = None
    parts: dict[str, list[str]] = field(default_factory=dict)
    stopped: bool = False

    @property
    def is_call(self) -> bool:
        return self.own.get("type") == "tool_use"

    def add(self, delta: Data) -> None:
        """Add a delta's fields to those of the block."""
        for name, value in delta.items():
            if name == "type":
                continue
            if name == "citation":
                self.own["citations"] = [*(self.own.get("citations") or ()), value]
            elif isinstance(value, str) and name != "signature":  # that one comes whole
                self.parts.setdefault(name, []).append(value)
            else:
                self.own[name] = value

    def complete(self) -> dict[str, Any]:
        """Give the block as it stands in a whole response."""
        texts = {name: "".join(parts) for name, parts in self.parts.items()}
        written = texts.pop("partial_json", "")
        own = {**self.own, **{k: string(self.own.get(k)) + text for k, text in texts.items()}}
        try:
            return {**own, "input": json.loads(written)} if written else own
        except (ValueError, RecursionError):
            return own


@dataclass(slots=True)
class _Round:
    message: dict[str, Any] = field(default_factory=dict)
    blocks: dict[int, _Block] = field(default_factory=dict)


class AnthropicEditor(StreamEditor):
    """Edits the events of the Messages API."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0
        self._round = _Round()

    def _begin(self) -> None:
        self._round = _Round()

    def _passages(self) -> Iterator[Passage]:
        return (block.passage for block in self._round.blocks.values() if block.passage)

    def ends(self, event: Event) -> bool:
        """Tell whether an event ends the provider's turn."""
        kind = event.data.get("type") if isinstance(event.data, Mapping) else None
        return kind in ("message_delta", "message_stop") and not self.complete

    def feed(self, event: Event) -> list[Event]:
        """Take an event; give what the host gets of it now."""
        data = event.data
        if not isinstance(data, Mapping):
            return [event]
        match data.get("type"):
            case "message_start":
                return self._start(event, data)
            case "content_block_start":
                return self._start_block(event, data)
            case "content_block_delta":
                return self._delta(event, data)
            case "content_block_stop":
                return self._stop_block(event, data)
            case "message_delta":
                return self._message_delta(event, data)
            case "message_stop":
                return self._stop(event)
            case "error":
                return [*self.flush(), event]
        return [event]

    def _start(self, event: Event, data: Data) -> list[Event]:
        self._round.message = fields_of(data.get("message"))
        return [event] if self.rounds == 1 else []

    def _start_block(self, event: Event, data: Data) -> list[Event]:
        own = fields_of(data.get("content_block"))
        tool = string(own.get("name"))
        is_ours = own.get("type") == "tool_use" and self._expander.is_ours(tool)
        block = _Block(own=own, shown_at=None if is_ours else self._next)
        self._round.blocks[place_of(data)] = block
        if is_ours:
            return []
        self._next += 1
        if own.get("type") == "text":
            block.passage = Passage(self._expander.text())
            return [self._begun(event, block, "text", block.passage.feed(string(own.get("text"))))]
        if block.is_call:
            block.passage = Passage(self._expander.arguments(tool))
            return [self._begun_call(event, block, block.passage)]
        return [edited(event, index=block.shown_at)]

    def _begun_call(self, event: Event, block: _Block, passage: Passage) -> Event:
        given = block.own.get("input")
        if not given:
            return edited(event, index=block.shown_at)
        text = json_text(given)
        shown = passage.feed(text)
        return self._begun(event, block, "input", given if shown == text else json.loads(shown))

    def _begun(self, event: Event, block: _Block, name: str, shown: Any) -> Event:
        if block.own.get(name) == shown:
            return edited(event, index=block.shown_at)
        return edited(event, index=block.shown_at, content_block={**block.own, name: shown})

    def _delta(self, event: Event, data: Data) -> list[Event]:
        block = self._round.blocks.get(place_of(data))
        delta = data.get("delta")
        if block is None or not isinstance(delta, Mapping):
            return [event]
        kind = delta.get("type")
        if kind == "input_json_delta":
            return self._pass(event, block, delta, "partial_json")
        if kind == "text_delta" and block.own.get("type") == "text":
            return self._pass(event, block, delta, "text")
        block.add(delta)
        return [] if block.shown_at is None else [edited(event, index=block.shown_at)]

    def _pass(self, event: Event, block: _Block, delta: Data, name: str) -> list[Event]:
        block.add(delta)
        fragment = string(delta.get(name))
        if block.shown_at is None:
            return []
        shown = fragment if block.passage is None else block.passage.feed(fragment)
        if shown == fragment:
            return [edited(event, index=block.shown_at)]
        if not shown:
            return []
        return [edited(event, index=block.shown_at, delta={**delta, name: shown})]

    def _stop_block(self, event: Event, data: Data) -> list[Event]:
        block = self._round.blocks.get(place_of(data))
        if block is None:
            return [event]
        block.stopped = True
        if block.shown_at is None:
            return []
        return [*self._flushed(block), edited(event, index=block.shown_at)]

    def _flushed(self, block: _Block) -> list[Event]:
        held = block.passage.close() if block.passage else ""
        if not held:
            return []
        delta = {"type": "input_json_delta", "partial_json": held}
        if not block.is_call:
            delta = {"type": "text_delta", "text": held}
        data = {"type": "content_block_delta", "index": block.shown_at, "delta": delta}
        return [Event(name="content_block_delta", data=data)]

    def _stop(self, event: Event) -> list[Event]:
        if self.complete:
            return [] if self._swallowing else [event]
        flushed = self.flush()
        self._end(event)
        return flushed

    def _message_delta(self, event: Event, data: Data) -> list[Event]:
        message = self._round.message
        message.update(fields_of(data.get("delta")))
        usage = data.get("usage")
        if isinstance(usage, Mapping):
            given = {name: value for name, value in usage.items() if value is not None}
            message["usage"] = {**fields_of(message.get("usage")), **given}
            if self.usage is not None:
                event = edited(event, usage=self._total(usage, message["usage"]))
        if self.complete or message.get("stop_reason") is None:
            return [] if self._swallowing else [event]
        flushed = self.flush()
        self._end(event)
        return flushed

    def _total(self, usage: Data, whole: Data) -> dict[str, Any]:
        """Sum the rounds: the figures here replace those of message_start, which was passed on."""
        total = summed(self.usage, whole)
        figures = {k: v for k, v in total.items() if k in usage or isinstance(v, int)}
        return {**usage, **figures}

    def release(self, *, swallow: bool) -> list[Event]:
        """Give the events that end the turn, or swallow them where another round follows."""
        self.usage = summed(self.usage, self._round.message.get("usage"))
        return super().release(swallow=swallow)

    def flush(self) -> list[Event]:
        """Give what is held back, as it is."""
        blocks = self._round.blocks.values()
        return [event for block in blocks for event in self._flushed(block)]

    def response(self, *, partial: bool = False) -> dict[str, Any]:
        """Give what the provider produced in this round, in its own form."""
        listed = [block for _, block in sorted(self._round.blocks.items())]
        content = [block.complete() for block in listed]
        if partial:
            content = [own for block in listed if (own := _passed_on(block)) is not None]
        return {"role": "assistant", **self._round.message, "content": content}

    def failure(self, message: str) -> list[Event]:
        """Write an error as this vendor does in a stream."""
        error = {"type": "api_error", "message": message}
        return [Event(name="error", data={"type": "error", "error": error})]


def _passed_on(block: _Block) -> dict[str, Any] | None:
    if block.own.get("type") == "text" and block.passage is not None:
        text = block.passage.passed_on
        return {**block.own, "text": text} if text else None
    return block.complete() if block.stopped and block.shown_at is not None else None
