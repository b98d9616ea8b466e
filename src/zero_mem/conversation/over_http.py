"""One call of the host over HTTP, as steps that somebody else takes.

`serve` is a generator without I/O: it yields what is to be done (send a request, read what
answers it, use the store, pass bytes on) and is sent what came of it. A loop for threads and
one for an event loop take the steps, so the two can't differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.failures import failure_body
from zero_mem.controller.wire.server_sent import Event, EventReader, event_bytes, json_bytes
from zero_mem.conversation.controller import MemoryController
from zero_mem.conversation.exchange import Exchange, exchange
from zero_mem.conversation.streaming import StreamedExchange
from zero_mem.errors import ZeroMemError

Body: TypeAlias = Mapping[str, Any]


class HostClosed(BaseException):
    """Thrown into the steps when the host closes its stream before the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """How an upstream response begins."""

    status: int
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """What came in the place of a response, or of its next bytes."""

    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a request; its response takes the place of the one before. Gives a Head or Broken."""

    body: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Read the response to its end. Gives its bytes or Broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Read on in the response. Gives bytes, None at the end, or Broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Call something that uses the store. Gives its result or Refused."""

    run: Callable[[], Any]

    def result(self) -> Any:
        """Call it."""
        try:
            return self.run()
        except ZeroMemError as error:
            return Refused(error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What came in the place of a result of Work."""

    error: ZeroMemError


@dataclass(frozen=True, slots=True, kw_only=True)
class Give:
    """Give the host a response: that of upstream, with other content where there is some.

    With `streams` its content is what is passed on from now on. A `status` of its own makes it
    an error of ours.
    """

    content: bytes | None = None
    streams: bool = False
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Pass bytes on in the host's stream."""

    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """Let the host see the error that broke its call."""

    error: Exception


Step: TypeAlias = Send | Read | Chunk | Work | Give | Pass | Fail
Steps: TypeAlias = Generator[Step, Any, None]


@dataclass(slots=True)
class Suspended:
    """A call of which a round failed: the host's retry goes on with that round."""

    run: Exchange
    prepared: Body


@dataclass(slots=True, kw_only=True)
class Served:
    """One call of the host.

    Args:
        controller: The conversation's.
        body: The decoded request.
        wire_format: As in `MemoryController.prepare`.
        rounds: Most requests that are made, memory rounds included.
        suspended: What an earlier attempt at the same call left; what this one leaves.
    """

    controller: MemoryController
    body: Body
    wire_format: WireFormat
    rounds: int
    suspended: Suspended | None = field(default=None)

    def serve(self) -> Steps:
        """Give the steps of the call."""
        try:
            yield from self._streamed() if self.body.get("stream") is True else self._whole()
        except ZeroMemError as error:
            yield self._failed(error)

    def prepared(self) -> Steps:
        """Give the steps of a call whose request alone is edited, as where tokens are counted."""
        try:
            prepare = partial(self.controller.prepare, self.body, self.wire_format)
            head = yield Send(body=(yield from _done(prepare)))
            yield Fail(error=head.error) if isinstance(head, Broken) else Give()
        except ZeroMemError as error:
            yield self._failed(error)

    def _failed(self, error: ZeroMemError) -> Give:
        said = failure_body(self.wire_format, f"{type(error).__name__}: {error}")
        return Give(content=json_bytes(said), status=500)

    def _entry(self, sent: Body, response: Body, *, hidden: bool) -> Work:
        """Enter a round into the ledger; where the store fails, the call goes on without."""
        given = {} if hidden else self.body
        account = partial(self.controller.account, sent, self.wire_format)
        return Work(run=partial(account, response=response, given=given))

    # Whole responses

    def _whole(self, head: Head | Broken | None = None) -> Steps:
        """Give the steps of a call that is not streamed, or whose first response is not."""
        suspended, self.suspended = self.suspended, None
        if suspended is None:
            run = exchange(self.controller, self.body, self.wire_format, self.rounds)
            _, prepared = yield from _done(partial(_step, run, None))
        else:
            run, prepared = suspended.run, suspended.prepared
        while True:
            self.suspended = Suspended(run, prepared)
            response = yield from self._json(head or (yield Send(body=prepared)))
            if response is None:
                return
            self.suspended = None
            done, value = yield from _done(partial(_step, run, response))
            yield self._entry(prepared, response, hidden=not done)
            if done:
                yield Give() if value is response else Give(content=json_bytes(value))
                return
            prepared, head = value, None

    def _json(self, head: Head | Broken) -> Generator[Step, Any, Body | None]:
        """Read a response that is to be absorbed; else it goes to the host as it is."""
        if isinstance(head, Broken):
            yield Fail(error=head.error)
            return None
        if head.status != 200:
            yield Give()
            return None
        raw = yield Read()
        if isinstance(raw, Broken):
            yield Fail(error=raw.error)
            return None
        response = _decoded(raw)
        if not isinstance(response, Mapping):
            yield Give()
            return None
        return response

    # Streams

    def _streamed(self) -> Steps:
        call = StreamedExchange(self.controller, self.body, self.wire_format, rounds=self.rounds)
        prepared = yield from _done(call.start)
        head = yield Send(body=prepared)
        if isinstance(head, Broken):
            yield Fail(error=head.error)
        elif head.status != 200:
            yield Give()
        elif not head.media_type.startswith("text/event-stream"):
            yield from self._whole(head)
        else:
            yield Give(streams=True)
            yield from self._merged(call)

    def _merged(self, call: StreamedExchange) -> Steps:
        """Pass the streams of all rounds on as one."""
        try:
            while True:
                broken = yield from self._passed(call)
                if broken is not None:
                    yield Pass(content=_bytes((yield from _done(call.interrupted))))
                    yield Fail(error=broken.error)
                    return
                finished = yield from _done(call.finish)
                if call.answered is not None:
                    sent, response = call.answered
                    yield self._entry(sent, response, hidden=finished.request is not None)
                yield Pass(content=_bytes(finished.events))
                if finished.request is None:
                    return
                failed = yield from self._next_round(finished.request)
                if failed is not None:
                    yield Pass(content=_bytes((yield from _done(partial(call.failed, *failed)))))
                    return
        except HostClosed:
            yield from _done(partial(call.interrupted, passed_on=False))

    def _next_round(self, request: Body) -> Generator[Step, Any, tuple[int | None, Any] | None]:
        head = yield Send(body=request)
        if isinstance(head, Broken):
            return None, {"message": type(head.error).__name__}
        if head.status == 200:
            return None
        raw = yield Read()
        return head.status, None if isinstance(raw, Broken) else _decoded(raw)

    def _passed(self, call: StreamedExchange) -> Generator[Step, Any, Broken | None]:
        """Pass one upstream stream on; gives what broke it."""
        reader = EventReader()
        while not call.ended:
            chunk = yield Chunk()
            if isinstance(chunk, Broken):
                yield from self._fed(call, reader.close())
                return chunk
            yield from self._fed(call, reader.close() if chunk is None else reader.feed(chunk))
            if chunk is None:
                return None
        return None

    def _fed(self, call: StreamedExchange, events: Iterable[Event]) -> Steps:
        out: list[Event] = []
        for event in events:
            if call.may_block(event):
                out += yield from _done(partial(call.feed, event))
            else:
                out += call.feed(event)
        if out:
            yield Pass(content=_bytes(out))


def _done(run: Callable[[], Any]) -> Generator[Step, Any, Any]:
    """Have something done that uses the store."""
    result = yield Work(run=run)
    if isinstance(result, Refused):
        raise result.error
    return result


def _bytes(events: Iterable[Event]) -> bytes:
    return b"".join(map(event_bytes, events))


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _step(run: Exchange, response: Any) -> tuple[bool, Any]:
    try:
        return False, run.send(response)
    except StopIteration as end:
        return True, end.value
