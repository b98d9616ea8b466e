"""One call of the host whose response is streamed, without I/O.

    exchange = StreamedExchange(controller, request, "anthropic")
    upstream = exchange.start()
    while upstream is not None:
        for event in events_of(upstream):
            pass_on(exchange.feed(event))
        finished = exchange.finish()
        pass_on(finished.events)
        upstream = finished.request

The stream of each hidden round is merged into the one that the host gets. What a handle stands
for is read when the stream reaches it; what was decided is in the store before the host sees
the end of the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.server_sent import Event
from zero_mem.controller.wire.stream_anthropic import AnthropicEditor
from zero_mem.controller.wire.stream_chat import ChatEditor
from zero_mem.controller.wire.stream_responses import ResponsesEditor
from zero_mem.controller.wire.streams import StreamEditor
from zero_mem.conversation.controller import MemoryController
from zero_mem.conversation.exchange import MOST_ROUNDS, Call
from zero_mem.conversation.outputs import Absorbed, Output
from zero_mem.errors import ZeroMemError

_HANDLE_BEGUN: Final = b"[memo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The end of an upstream stream: what to pass on, and the next request, if there is one."""

    events: list[Event] = field(default_factory=list)
    request: Mapping[str, Any] | None = None


class StreamedExchange:
    """Edits the stream that answers one request of the host.

    Args:
        controller: The conversation's.
        request: The decoded body as the host sent it.
        wire_format: As in `MemoryController.prepare`.
        rounds: Most requests that are made, memory rounds included.
    """

    def __init__(
        self,
        controller: MemoryController,
        request: Mapping[str, Any],
        wire_format: WireFormat,
        *,
        rounds: int = MOST_ROUNDS,
    ) -> None:
        self._controller = controller
        self._request = request
        self._wire_format = wire_format
        self._call = Call(controller, request, wire_format, rounds)
        self._editor = _editor(request, wire_format)
        self._output: Output | None = None
        self._visible: Mapping[str, Any] | None = None
        self._settled = False
        self._goes_on = False
        self.ended = False
        """True when nothing more is passed on, so that the upstream can be closed."""

    def start(self) -> Mapping[str, Any]:
        """Give the request to send upstream."""
        return self._request if self._controller.observes else self._round()

    def _round(self) -> Mapping[str, Any]:
        prepared, self._output = self._call.begin()
        self._editor.begin(self._output)
        self._settled = self._goes_on = False
        return prepared

    @property
    def visible(self) -> Mapping[str, Any] | None:
        """The whole response as the host sees it; None as long as it is not complete."""
        return self._visible

    def may_block(self, event: Event) -> bool:
        """Tell whether `feed` may use the store for this event.

        An event loop can run the other calls of `feed` itself; these, and `start`, `finish`,
        `failed` and `interrupted`, belong into a thread.
        """
        if self._controller.observes or self.ended:
            return False
        raw = event.raw
        return raw is None or _HANDLE_BEGUN in raw or self._busy(event)

    def _busy(self, event: Event) -> bool:
        return self._editor.holds_back or self._editor.ends(event)

    def feed(self, event: Event) -> list[Event]:
        """Take the next event of the upstream; give what to pass on now, in order.

        An event that is not edited is given as the same object. A failure of the store becomes
        an error event in the vendor's own form, which ends the exchange.
        """
        if self._controller.observes:
            return [event]
        if self.ended:
            return []
        out: list[Event] = []
        try:
            out += self._editor.feed(event)
            if self._editor.complete and not self._settled:
                self._settle()
                out += self._editor.release(swallow=self._goes_on)
        except ZeroMemError as error:
            out += self._fail(str(error))
        return out

    def _settle(self) -> None:
        """Decide about the whole response, before the host sees that it has ended."""
        self._settled = True
        response = self._editor.response()
        absorbed = self._absorbed(response)
        visible = self._call.take(response, absorbed, shown_as=self._shown_as(response))
        self._goes_on = visible is None
        self._visible = visible

    def _absorbed(self, response: Mapping[str, Any]) -> Absorbed:
        return self._controller.absorb(
            response, self._wire_format, output=self._output, streamed=True
        )

    def _shown_as(self, response: Mapping[str, Any]) -> str | None:
        """Give the id by which the host knows the response, where it is not the provider's."""
        first = self._editor.first_id if isinstance(self._editor, ResponsesEditor) else None
        return None if first == response.get("id") else first

    def finish(self) -> Finished:
        """Take the end of an upstream stream.

        Returns:
            What is still to be passed on, and the next hidden round's request, or None.
        """
        if self._controller.observes or self.ended:
            return Finished()
        if not self._settled:
            return Finished(events=self.interrupted())
        if not self._goes_on:
            self.ended = True
            return Finished()
        try:
            return Finished(request=self._round())
        except ZeroMemError as error:
            return Finished(events=[*self._fail(str(error)), *self._break_off()])

    def failed(self, status: int | None, body: Any = None) -> list[Event]:
        """Take the failure of a hidden round's request, when the host already has a stream.

        Args:
            status: The status of the answer; None where there was no answer.
            body: Its body, decoded where it is JSON: what it says is passed on.

        Returns:
            An error event in the vendor's own form.
        """
        if self.ended:
            return []
        said = _message_of(body) or "the provider gave no answer"
        before = "a request that answers the model's memory calls failed"
        events = self._fail(f"{before} ({status}): {said}" if status else f"{before}: {said}")
        return events + self._break_off()

    def interrupted(self, *, passed_on: bool = True) -> list[Event]:
        """Take a stream that broke off, upstream or because the host closed it.

        Args:
            passed_on: False where the host gets no more, so not even what is returned.

        Returns:
            What was held back, as it was.
        """
        if self._controller.observes or self.ended:
            return []
        self.ended = True
        events = self._editor.flush() if passed_on else []
        return events + self._break_off()

    def _break_off(self) -> list[Event]:
        """Keep the turn as far as the host has seen it."""
        if self._settled and not self._goes_on:
            return []
        if self._settled and self._output is not None:  # the next round did not begin
            self._editor.begin(self._output)
        self._settled, self._goes_on = True, False
        response = self._editor.response(partial=True)
        try:
            absorbed = self._absorbed(response)
            self._call.break_off(response, absorbed, shown_as=self._shown_as(response))
        except ZeroMemError as error:
            return self._editor.failure(str(error))
        return []

    def _fail(self, message: str) -> list[Event]:
        self.ended = True
        return [*self._editor.flush(), *self._editor.failure(message)]


def _editor(request: Mapping[str, Any], wire_format: WireFormat) -> StreamEditor:
    if wire_format == "openai_chat":
        wanted = request.get("n")
        return ChatEditor(wanted if isinstance(wanted, int) and wanted > 0 else 1)
    return ResponsesEditor() if wire_format == "openai_responses" else AnthropicEditor()


def _message_of(body: Any) -> str:
    """Read what an error body says, in whichever vendor's form."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    said = error.get("message") if isinstance(error, Mapping) else None
    return said if isinstance(said, str) else ""
