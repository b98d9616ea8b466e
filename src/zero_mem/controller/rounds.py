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
from zero_mem.controller.wire.sites import LIST_FIELD, Turn, is_result, items_of, steps


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
    """What belongs around a visible turn.

    `before` are the rounds before it. `cut` is the last one as the provider produced it, where
    the host was shown less than that, or the text of earlier rounds too. `response_id` names it
    to a provider that keeps the history, where the host knows it by another id.
    """

    before: tuple[Answered, ...] = ()
    cut: Answered | None = None
    response_id: str | None = None


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
    """Name a visible turn: by its calls, else by its text, and which of its like it is.

    Hosts join and trim texts, so blanks don't count.
    """
    calls = [call.call_id for call in turn.calls]
    text = "" if any(calls) else "".join("".join(site.text.split()) for site in turn.texts)
    key = content_key("turn", calls, text)
    seen[key] += 1
    return f"{key}:{seen[key] - 1}"


def turn_keys(turns: Iterable[Turn]) -> tuple[list[str], Counter[str]]:
    """Name the turns of a request in order; the counter goes on for the turn to come."""
    seen: Counter[str] = Counter()
    return [turn_key(turn, seen) for turn in turns], seen


def summed(one: Any, other: Any) -> Any:
    """Add up the figures of two usage objects."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {k: summed(one.get(k), other.get(k)) for k in {**one, **other}}
    if isinstance(one, int) and isinstance(other, int) and not isinstance(one, bool):
        return one + other
    return one if other is None else other


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


def response_key(name: Any) -> str:
    """Name a turn that stays on the server, by the id of its response or of a call in it."""
    return content_key("response", name)


def _continued(
    request: Mapping[str, Any], wire_format: WireFormat, find: Callable[[str], Hidden | None]
) -> Mapping[str, Any]:
    """Add our answers to a turn that the provider keeps, so that each call has its result."""
    named = [request.get("previous_response_id")]
    if request.get("conversation"):
        named = [item.get("call_id") for item in items_of(request, wire_format) if is_result(item)]
    hidden = next((h for name in named if name and (h := find(response_key(name)))), None)
    if hidden is None:
        return request
    continued = dict(request)
    if hidden.response_id is not None:
        continued["previous_response_id"] = hidden.response_id
    answers = answer_items(hidden.cut.answers, wire_format) if hidden.cut else []
    if answers:
        continued[LIST_FIELD[wire_format]] = [*answers, *items_of(request, wire_format)]
    return continued


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
