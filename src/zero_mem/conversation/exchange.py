"""The rounds of one call of the host: those that the model spends on its memory stay inside."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final, TypeAlias

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.rounds import Answered, Hidden, summed
from zero_mem.controller.wire.places import (
    follow_up,
    joined,
    response_items,
    says_something,
    without_calls,
)
from zero_mem.controller.wire.sites import response_turns
from zero_mem.conversation.controller import MemoryController
from zero_mem.conversation.outputs import Absorbed, Output
from zero_mem.errors import LimitReached

Body: TypeAlias = Mapping[str, Any]
Exchange: TypeAlias = Generator[Body, Body, Body]

MOST_ROUNDS: Final = 8


def exchange(
    controller: MemoryController,
    request: Body,
    wire_format: WireFormat,
    rounds: int = MOST_ROUNDS,
) -> Exchange:
    """Run one call of the host: yields each request to send, takes its response, returns ours.

    Raises:
        LimitReached: The model used only its memory in every one of the rounds.
    """
    call = Call(controller, request, wire_format, rounds)
    while True:
        prepared, output = call.begin()
        response = yield prepared
        absorbed = controller.absorb(response, wire_format, output=output)
        visible = call.take(response, absorbed)
        if visible is not None:
            return visible


class Call:
    """One call of the host, round by round.

    Args:
        controller: The conversation's.
        request: The decoded body as the host sent it.
        wire_format: As in `MemoryController.prepare`.
        rounds: Most requests that are made, memory rounds included.
    """

    def __init__(
        self, controller: MemoryController, request: Body, wire_format: WireFormat, rounds: int
    ) -> None:
        self._controller = controller
        self._request = self._current = request
        self._wire_format = wire_format
        self._rounds = rounds
        self._sent = 0
        self._before: list[Answered] = []
        self._shown: list[Body] = []
        self.usage: Any = None

    def begin(self) -> tuple[Body, Output]:
        """Give the request of the next round, and what its response begins with.

        Raises:
            LimitReached: There were as many rounds as are allowed.
        """
        if self._sent == self._rounds:
            message = f"the model used its memory in {self._rounds} rounds and gave no answer"
            raise LimitReached(message)
        self._sent += 1
        return self._controller.begin(self._current, self._wire_format)

    def take(
        self, response: Body, absorbed: Absorbed, *, shown_as: str | None = None
    ) -> Body | None:
        """Take the response of a round.

        Args:
            response: As the provider gave it.
            absorbed: What became of it.
            shown_as: The id by which the host knows the response, if that is another.

        Returns:
            What the host gets, or None where the next round is to follow.
        """
        self.usage = summed(self.usage, response.get("usage"))
        answered = _answered(response, absorbed, self._wire_format)
        shown: Body = absorbed.response
        if absorbed.pieces:
            shown = without_calls(shown, self._wire_format, absorbed.answers)
        if answered is not None and absorbed.all_ours:
            self._before.append(answered)
            self._shown.append(shown)
            self._current = follow_up(self._current, response, answered.answers, self._wire_format)
            return None
        return self._visible(response, shown, answered, shown_as)

    def break_off(self, response: Body, absorbed: Absorbed, *, shown_as: str | None = None) -> None:
        """Take as much as there is of a round that broke off in the middle of its stream."""
        shown = absorbed.response
        if any(says_something(each, self._wire_format) for each in [*self._shown, shown]):
            self._visible(response, shown, None, shown_as)

    def _visible(
        self, response: Body, shown: Body, answered: Answered | None, shown_as: str | None
    ) -> Body:
        visible = joined([*self._shown, shown], self._wire_format)
        if visible is not shown and answered is None:
            answered = _own(response, self._wire_format)
        if shown_as is not None:
            visible = {**visible, "id": shown_as}
        if not self._before and answered is None and shown_as is None:
            return visible
        if self.usage is not None:
            visible = {**visible, "usage": self.usage}
        hidden = Hidden(
            before=tuple(self._before),
            cut=answered,
            response_id=None if shown_as is None else response.get("id"),
        )
        self._controller.hide(self._request, visible, hidden, self._wire_format)
        return visible


def _own(response: Body, wire_format: WireFormat) -> Answered:
    called = any(turn.calls for turn in response_turns(response, wire_format))
    if not called and not says_something(response, wire_format):
        return Answered(turn=(), pieces={})
    return Answered(turn=tuple(response_items(response, wire_format)), pieces={})


def _answered(response: Body, absorbed: Absorbed, wire_format: WireFormat) -> Answered | None:
    """Keep a turn with our answers to it; None where it had no call for us."""
    turns = response_turns(response, wire_format)[:1]
    called = [call.call_id for turn in turns for call in turn.calls]
    pieces = {call_id: absorbed.pieces[call_id] for call_id in called if call_id in absorbed.pieces}
    if not pieces:
        return None
    return Answered(turn=tuple(response_items(response, wire_format)), pieces=pieces)
