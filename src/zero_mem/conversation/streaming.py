"""One call of the host whose response is streamed, without I/O.

    exchange = StreamedExchange(controller, request, "anthropic")
    request = exchange.start()
    while request is not None:
        for event in upstream(request):
            pass_on(exchange.feed(event))
        finished = exchange.finish()
        pass_on(finished.events)
        request = finished.request
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.server_sent import Event
from zero_mem.conversation.controller import MemoryController

MOST_ROUNDS: Final = 8


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
        self._rounds = rounds

    def start(self) -> Mapping[str, Any]:
        """Give the request to send upstream."""
        return self._controller.prepare(self._request, self._wire_format)

    @property
    def ended(self) -> bool:
        """True when nothing more is passed on, so the upstream can be closed."""
        return False

    @property
    def visible(self) -> Mapping[str, Any] | None:
        """The whole response as the host saw it, once `finish` gave no further request."""
        return None

    def may_block(self, event: Event) -> bool:
        """Tell whether `feed` may have to read the store for this event.

        An event loop can run all other calls of `feed` itself; `start`, `finish`, `failed`
        and `interrupted` always belong into a thread.
        """
        return False

    def feed(self, event: Event) -> list[Event]:
        """Take the next event of the upstream; give what to pass on now, in order.

        An event that is not edited is given as the same object.
        """
        return [event]

    def finish(self) -> Finished:
        """Take the end of an upstream stream.

        Returns:
            What is still to be passed on, and the next hidden round's request, or None.
        """
        return Finished()

    def failed(self, status: int | None, body: Any) -> list[Event]:
        """Take the failure of a hidden round's request, when the host already has a stream.

        Args:
            status: The status of the answer; None where there was no answer.
            body: Its body, decoded where it is JSON.

        Returns:
            An error event in the vendor's own form.
        """
        return []

    def interrupted(self) -> list[Event]:
        """Take a stream that broke off, upstream or because the host closed it.

        Returns:
            What was held back, as it was.
        """
        return []
