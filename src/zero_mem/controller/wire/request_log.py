"""Logs of requests: each repeats the history so far, so they are folded into runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from zero_mem.controller.messages import Message
from zero_mem.controller.wire.detect import wire_format
from zero_mem.controller.wire.draft import Draft, string
from zero_mem.controller.wire.formats import WIRES
from zero_mem.controller.wire.moments import moment_of

_Key: TypeAlias = tuple[Any, ...]


@dataclass(slots=True, kw_only=True)
class RequestLog:
    """Folds requests, in the order they were sent, into the runs they belong to.

    A request continues the longest run whose messages it repeats, or the one that its
    `previous_response_id` names (then it holds only what is new). What an earlier request
    sent stays as it was first sent.
    """

    file: str = ""
    _runs: list[Draft] = field(default_factory=list)
    _answered: dict[str, Draft] = field(default_factory=dict)

    def add(self, record: Mapping[str, Any], line: int) -> None:
        """Take a request body, or a record with `request` and `response`."""
        request = _body(record.get("request", record))
        response = _body(record["response"]) if "response" in record else {}
        draft = self._request(request, line)
        answered = bool(response) and not response.get("error")
        if answered:
            draft.at("response", line, moment_of(response) or moment_of(record))
            WIRES[draft.wire_format].read_response(draft, response)
            if answer := string(response.get("id")):
                self._answered[answer] = draft
        self._place(draft, answered=answered)

    def runs(self) -> Iterator[Draft]:
        """Give the runs in the order of their first request."""
        yield from self._runs

    def _request(self, request: Mapping[str, Any], line: int) -> Draft:
        """Read a request: onto the run that it names, or on its own."""
        items = request.get("messages", request.get("input"))
        form = wire_format(items if isinstance(items, list) else (), request)
        draft = self._answered.pop(string(request.get("previous_response_id")), None)
        if draft is None or draft.wire_format != form:
            draft = Draft(wire_format=form, file=self.file)
        draft.at("request", line)
        WIRES[form].read_request(draft, request)
        return draft

    def _place(self, draft: Draft, *, answered: bool) -> None:
        """Put a request where it continues a run, or begin a run with it."""
        if any(draft is run for run in self._runs):
            return
        if not answered and any(_continues(run, draft) for run in self._runs):
            return  # a retry, or a request that only counted tokens
        places = [place for place, run in enumerate(self._runs) if _continues(draft, run)]
        longest = max(places, key=lambda place: len(self._runs[place].messages), default=None)
        self._join(draft, longest)

    def _join(self, draft: Draft, place: int | None) -> None:
        if place is None:
            self._runs.append(draft)
            return
        run = self._runs[place]
        seen = {(defect.record, defect.problem) for defect in run.defects}
        fresh = [d for d in draft.defects if (d.record, d.problem) not in seen]
        draft.messages[: len(run.messages)] = run.messages
        draft.defects[:] = [*run.defects, *fresh]
        draft.usage = {**run.usage, **draft.usage}
        self._runs[place] = draft


def _body(value: Any) -> Mapping[str, Any]:
    """Unwrap the body of a logged request or response; absent or unreadable is empty."""
    if not isinstance(value, dict):
        return {}
    body = value.get("body")
    return body if isinstance(body, dict) else value


def _continues(draft: Draft, run: Draft) -> bool:
    """Tell whether a draft repeats the whole of a run, to go on from there."""
    if len(run.messages) > len(draft.messages):
        return False
    pairs = zip(run.messages, draft.messages, strict=False)
    return all(_key(known) == _key(given) for known, given in pairs)


def _key(message: Message) -> _Key:
    """What makes two messages the same to a reader of the log: not lines, not opaque parts."""
    calls = tuple((call.call_id, call.name, call.arguments) for call in message.calls)
    return message.role, message.text.strip(), calls, message.call_id
