"""Rounds that the host does not see, and how they go back into its next request.

A round in which the model used only its memory is answered at once; in a mixed turn the
memory calls are taken out of what the host gets. The provider has seen all of it, so it is
put back, verbatim, around the visible turn when that turn comes back.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.places import answer_items
from zero_mem.controller.wire.sites import LIST_FIELD, Turn, items_of, steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of an answer to a call, and the memory whose body it quotes."""

    text: str
    memory_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A turn as the provider produced it, and the pieces of our answers, by call id."""

    turn: tuple[Any, ...]
    pieces: Mapping[str, Sequence[Piece]]

    @property
    def answers(self) -> dict[str, str]:
        """Our answers by call id."""
        return {call_id: text_of(pieces) for call_id, pieces in self.pieces.items()}

    def items(self, wire_format: WireFormat) -> list[Any]:
        """Write both as they stood in the request."""
        return [*self.turn, *answer_items(self.answers, wire_format)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What belongs around a visible turn: rounds before it, and its own form if it was cut."""

    before: tuple[Answered, ...] = ()
    cut: Answered | None = None


def text_of(pieces: Iterable[Piece]) -> str:
    """Write an answer out."""
    return "\n".join(piece.text for piece in pieces)


def content_key(*parts: Any) -> str:
    """Name a content of any length, such as a call id of kilobytes, by a short key."""
    text = json.dumps(parts, sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def answer_key(call_id: str, *texts: str) -> str:
    """Name an answer of ours to a call."""
    return content_key("answer", call_id, texts)


def turn_key(turn: Turn, seen: Counter[str]) -> str:
    """Name a visible turn: by its calls, else by its text, and which of its like it is."""
    calls = [call.call_id for call in turn.calls]
    texts = [] if any(calls) else [site.text.strip() for site in turn.texts]
    key = content_key("turn", calls, texts)
    seen[key] += 1
    return f"{key}:{seen[key] - 1}"


def turn_keys(turns: Iterable[Turn]) -> tuple[list[str], Counter[str]]:
    """Name the turns of a request in order; the counter goes on for the turn to come."""
    seen: Counter[str] = Counter()
    return [turn_key(turn, seen) for turn in turns], seen


def with_hidden(
    request: Mapping[str, Any],
    wire_format: WireFormat,
    find: Callable[[str], Hidden | None],
) -> Mapping[str, Any]:
    """Put hidden rounds back around the visible turns that they belong to."""
    request = _continued(request, wire_format, find)
    turns = [step for step in steps(request, wire_format) if isinstance(step, Turn)]
    keys, _ = turn_keys(turns)
    places = {
        turn.start: (turn, hidden)
        for turn, key in zip(turns, keys, strict=True)
        if (hidden := find(key)) is not None
    }
    if not places:
        return request
    given = items_of(request, wire_format)
    items: list[Any] = []
    at = 0
    for start, (turn, hidden) in places.items():
        items += given[at:start]
        for answered in hidden.before:
            items += answered.items(wire_format)
        items += given[start : turn.stop] if hidden.cut is None else hidden.cut.turn
        at = turn.stop
        if hidden.cut is not None:
            answers = answer_items(hidden.cut.answers, wire_format)
            merged, taken = _with_results(answers, given[at : at + 1])
            items += merged
            at += taken
    return {**request, LIST_FIELD[wire_format]: [*items, *given[at:]]}


def response_key(response_id: Any) -> str:
    """Name a turn that stays on the server, by the id of its response."""
    return content_key("response", response_id)


def _continued(
    request: Mapping[str, Any], wire_format: WireFormat, find: Callable[[str], Hidden | None]
) -> Mapping[str, Any]:
    """Add our answers to a turn that the provider keeps, so that each call has its result."""
    previous = request.get("previous_response_id")
    hidden = find(response_key(previous)) if previous else None
    if hidden is None or hidden.cut is None:
        return request
    items = [*answer_items(hidden.cut.answers, wire_format), *items_of(request, wire_format)]
    return {**request, LIST_FIELD[wire_format]: items}


def _with_results(answers: list[Any], following: Sequence[Any]) -> tuple[list[Any], int]:
    """Join our answers with the host's results, where all belong into one user message."""
    if not following or not answers or answers[0].get("role") != "user":
        return answers, 0
    (host,) = following
    if not isinstance(host, Mapping) or host.get("role") != "user":
        return answers, 0
    content = host.get("content")
    own = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
    return [{**host, "content": [*answers[0]["content"], *own]}], 1
