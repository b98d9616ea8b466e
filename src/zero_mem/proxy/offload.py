"""Calls whose conversation is offloaded: the request and the answer edited, all else as it is.

What touches the store runs in threads; bytes that need no edit never wait for one.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, cast

from zero_mem.aio.threads import Threads
from zero_mem.controller.wire.growing import Document, Documents
from zero_mem.controller.wire.server_sent import Event, EventReader, event_bytes
from zero_mem.controller.wire.sites import LIST_FIELD
from zero_mem.controller.wire.splices import read_json, spliced
from zero_mem.conversation.controller import MemoryController
from zero_mem.conversation.exchange import Exchange, exchange
from zero_mem.conversation.streaming import StreamedExchange
from zero_mem.errors import LimitReached, StoreUnavailable
from zero_mem.proxy import threads
from zero_mem.proxy.client import Client, as_received, for_new_body
from zero_mem.proxy.codings import Decoder, Unreadable, coding, decoded, decoder
from zero_mem.proxy.conversations import Conversations
from zero_mem.proxy.counting import Passed
from zero_mem.proxy.headers import Field, Headers, first, for_upstream, without
from zero_mem.proxy.identity import Asked
from zero_mem.proxy.ledger import Ledger
from zero_mem.proxy.reach import answers_pass_here, is_complete, may_call
from zero_mem.proxy.settings import Settings
from zero_mem.proxy.targets import Endpoint
from zero_mem.proxy.tenants import Tenants
from zero_mem.proxy.threads import Thread
from zero_mem.proxy.upstream import Answer, Dropped, Unreachable, Upstream
from zero_mem.proxy.usage import UsageTap
from zero_mem.proxy.vendor_errors import error_body, error_headers
from zero_mem.space import Namespace

P = ParamSpec("P")
R = TypeVar("R")

_OK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request to a model as it came in."""

    endpoint: Endpoint
    url: str
    headers: Headers
    raw: bytes = field(repr=False)


class Unedited(Exception):
    """The call is passed on as it is: it can't be read, or its conversation is only observed."""


def _plain(call: Call, limit: int) -> bytes:
    return decoded(coding(call.headers), call.raw, limit)


@dataclass(slots=True, kw_only=True)
class Opened:
    """A call in the conversation that it belongs to.

    `first` is the first request's body as it was sent, `taps` have the usage of all of them.
    `turn` lets one thread at a time work on the answer: what is cancelled still runs to its end.
    """

    call: Call
    document: Document = field(repr=False)
    asked: Asked
    thread: Thread
    tenant: str
    space: Namespace
    controller: MemoryController
    first: bytes | None = field(default=None, repr=False)
    taps: list[UsageTap] = field(default_factory=list)
    marked: bool = False
    turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def request(self) -> Mapping[str, Any]:
        """The host's request, decoded."""
        return self.asked.request

    @property
    def streams(self) -> bool:
        """Whether the answer is to be streamed."""
        return self.request.get("stream") is True

    def body(self, request: Mapping[str, Any]) -> bytes:
        """Write a request for the upstream: the host's own bytes but for the edits."""
        body = self.call.raw
        if request is not self.request:
            body = self.document.written(request)
        if self.first is None:
            self.first = self.document.raw if request is self.request else body
        return body

    def headers(self, body: bytes) -> list[Field]:
        """Give the fields to send; the answer is wanted plain, since it is read here."""
        headers = without(for_upstream(self.call.headers), {b"accept-encoding"})
        if body is not self.call.raw:
            headers = without(headers, {b"content-encoding"})
        return [*headers, (b"accept-encoding", b"identity")]

    def note(self, answer: Answer, received: bytes = b"") -> UsageTap:
        """Read the usage of one more answer."""
        self.taps.append(UsageTap(answer.headers))
        self.taps[-1].feed(received)
        return self.taps[-1]

    def mark(self, visible: Mapping[str, Any] | None) -> None:
        """Note the answer, so that a later request that repeats it continues the thread."""
        self.marked = True
        if visible is not None:
            threads.mark(self.space, self.thread, self.asked, visible)

    def passed(self) -> Passed:
        """Give the call for the ledger, without its keys."""
        return Passed(
            tenant=self.tenant,
            headers=(),
            wire_format=self.asked.wire_format,
            coding="",
            raw=self.document.raw,
            sent=self.first,
            usages=[tap.figures() for tap in self.taps],
            thread=self.thread.name,
            origin=self.thread.origin,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What comes next: another request's body, or the response that the host sees."""

    body: bytes | None = None
    visible: Mapping[str, Any] | None = None


class _Streaming(NamedTuple):
    """A call whose answer is streamed, and the body of its next request."""

    exchange: StreamedExchange
    body: bytes | None


class Offloading:
    """Answers the calls of offloaded conversations.

    Args:
        settings: How to run.
        upstream: The client to send with.
        tenants: Tells credentials apart.
        ledger: Is handed every call that is over.
    """

    def __init__(
        self, settings: Settings, upstream: Upstream, tenants: Tenants, ledger: Ledger
    ) -> None:
        self._settings = settings
        self._upstream = upstream
        self._tenants = tenants
        self._ledger = ledger
        self._conversations = Conversations(tenants, share=settings.share)
        self._documents = Documents()
        self._threads = Threads()
        self._ending: set[asyncio.Future[object]] = set()

    async def close(self) -> None:
        """Let the work in threads end."""
        if self._ending:
            await asyncio.wait(self._ending)
        await self._threads.end(lambda: None)

    async def answer(self, client: Client, call: Call) -> None:
        """Answer a call.

        Raises:
            Unedited: It is to be passed on as it is; nothing was sent yet.
            Unreachable: No answer came from the upstream.
            Dropped: The upstream went away in the middle of its answer.
        """
        try:
            opened, begun = await self._run(self._begin, call)
            if isinstance(begun, bytes):
                await self._count_tokens(client, opened, begun)
            elif isinstance(begun, _Streaming):
                await self._stream(client, opened, begun)
            else:
                await self._complete(client, opened, *begun)
        except LimitReached as error:
            await _fail(client, call, 500, str(error), retry=False)
        except StoreUnavailable as error:
            # Without its decisions the conversation's earlier bytes can't be sent again.
            await _fail(client, call, 503, str(error))

    async def _run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._threads.run(partial(work, *args, **kwargs))

    def _begin(self, call: Call) -> tuple[Opened, bytes | _Streaming | tuple[Exchange, _Step]]:
        """Find the call's conversation and prepare the request, all in one visit to a thread."""
        opened = self._open(call)
        form, rounds = opened.asked.wire_format, self._settings.rounds
        if call.endpoint.counts:
            return opened, opened.body(opened.controller.prepare(opened.request, form))
        if opened.streams:
            streamed = StreamedExchange(opened.controller, opened.request, form, rounds=rounds)
            return opened, _Streaming(streamed, opened.body(streamed.start()))
        run = exchange(opened.controller, opened.request, form, rounds)
        return opened, (run, _advance(opened, run, None))

    def _open(self, call: Call) -> Opened:
        """Find the call's conversation."""
        wire_format = call.endpoint.wire_format
        try:
            plain = _plain(call, self._settings.body_limit)
            document = self._documents.read(plain, LIST_FIELD[wire_format])
        except (Unreadable, ValueError) as error:
            raise Unedited from error
        request = document.value
        if not isinstance(request, dict) or not is_complete(request, wire_format):
            raise Unedited
        asked = Asked(
            headers=call.headers,
            request=request,
            wire_format=wire_format,
        )
        tenant = self._tenants.name(call.headers)
        space = self._tenants.space(tenant)
        thread = threads.find(space, asked)
        if not thread.offloads:
            raise Unedited
        if thread.is_new and not call.endpoint.counts:
            threads.begin(space, thread)
        controller = self._conversations.controller(
            tenant, thread, reachable=answers_pass_here(request, wire_format)
        )
        if not may_call(request):
            controller.keep(request, wire_format)
        return Opened(
            call=call,
            document=document,
            asked=asked,
            thread=thread,
            tenant=tenant,
            space=space,
            controller=controller,
        )

    def _send(self, opened: Opened, body: bytes) -> AbstractAsyncContextManager[Answer]:
        return self._upstream.send("POST", opened.call.url, opened.headers(body), body)

    def _account(self, opened: Opened) -> None:
        if opened.taps:
            self._ledger.add(opened.passed)

    # Counting

    async def _count_tokens(self, client: Client, opened: Opened, body: bytes) -> None:
        """Count the request as it would be sent."""
        async with self._send(opened, body) as answer:
            received = await answer.read()
        await client.respond(answer.status, as_received(answer.headers), received)

    # Answers in one piece

    async def _complete(self, client: Client, opened: Opened, run: Exchange, step: _Step) -> None:
        try:
            while step.body is not None:
                async with self._send(opened, step.body) as answer:
                    received = await answer.read()
                response = _response(answer, received)
                if response is None:
                    await client.respond(answer.status, as_received(answer.headers), received)
                    return
                opened.note(answer, received)
                step = await self._run(_advance, opened, run, response)
            shown = spliced(_decoded(answer, received), response, step.visible)
            await client.respond(answer.status, for_new_body(answer.headers, shown), shown)
        finally:
            self._account(opened)

    # Streams

    async def _stream(self, client: Client, opened: Opened, begun: _Streaming) -> None:
        streamed, body = begun
        try:
            while body is not None:
                body = await self._round(client, opened, streamed, body)
            if not client.ended:
                await client.end()
        except asyncio.CancelledError:
            self._break_off(opened, streamed)
            raise
        finally:
            self._account(opened)

    def _break_off(self, opened: Opened, streamed: StreamedExchange) -> None:
        """Keep the turn as far as the client that went away has seen it."""

        def broken_off() -> object:
            with opened.turn:
                return streamed.interrupted(passed_on=False)

        ending: asyncio.Future[object] = asyncio.ensure_future(self._run(broken_off))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _in_turn(
        self, opened: Opened, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        def locked() -> R:
            with opened.turn:
                return work(*args, **kwargs)

        return await self._run(locked)

    async def _round(
        self,
        client: Client,
        opened: Opened,
        streamed: StreamedExchange,
        body: bytes,
    ) -> bytes | None:
        """Make one request and pass its stream on; give the next request, if there is one."""
        try:
            async with self._send(opened, body) as answer:
                if not _is_stream(answer):
                    await self._not_streamed(client, opened, streamed, answer)
                    return None
                if not client.started:
                    await client.start(answer.status, for_new_body(answer.headers, None))
                await self._pass_on(client, opened, streamed, answer)
        except Unreachable as error:
            if not client.started:
                raise
            events = await self._in_turn(opened, streamed.failed, None, str(error))
            await _write(client, events)
            return None
        finished = await self._in_turn(opened, streamed.finish)
        await _write(client, finished.events)
        request = finished.request
        return None if request is None else await self._run(opened.body, request)

    async def _pass_on(
        self, client: Client, opened: Opened, streamed: StreamedExchange, answer: Answer
    ) -> None:
        reader, tap = EventReader(), opened.note(answer)
        decode = _decoder(answer)
        try:
            async for chunk in answer.chunks():
                tap.feed(chunk)
                await self._feed(client, opened, streamed, reader.feed(decode(chunk)))
                if streamed.ended:
                    return
            await self._feed(client, opened, streamed, reader.close())
        except Dropped:
            await _write(client, await self._in_turn(opened, streamed.interrupted))
            raise

    async def _feed(
        self,
        client: Client,
        opened: Opened,
        streamed: StreamedExchange,
        events: Sequence[Event],
    ) -> None:
        shown: list[Event] = []
        for event in events:
            if streamed.may_block(event):
                shown += await self._in_turn(opened, streamed.feed, event)
            else:
                shown += streamed.feed(event)
        if streamed.visible is not None and not opened.marked:
            # Before the client sees the end: its next request may come at once.
            await self._run(opened.mark, streamed.visible)
        await _write(client, shown)

    async def _not_streamed(
        self, client: Client, opened: Opened, streamed: StreamedExchange, answer: Answer
    ) -> None:
        """Pass on what is no stream: an error, in the form that fits what the client has."""
        received = await answer.read()
        if not client.started:
            await client.respond(answer.status, as_received(answer.headers), received)
            return
        try:
            body = read_json(_decoded(answer, received))
        except ValueError:
            body = received.decode("utf-8", errors="replace")
        await _write(client, await self._in_turn(opened, streamed.failed, answer.status, body))


def _advance(opened: Opened, run: Exchange, response: Mapping[str, Any] | None) -> _Step:
    """Take a response, and give what comes next."""
    try:
        # A generator that was not started takes None.
        return _Step(body=opened.body(run.send(cast(Mapping[str, Any], response))))
    except StopIteration as end:
        opened.mark(end.value)
        return _Step(visible=end.value)


def _decoded(answer: Answer, received: bytes) -> bytes:
    try:
        return decoded(coding(answer.headers), received, sys.maxsize)
    except Unreadable as error:
        raise Unreachable(f"the upstream's answer cannot be read: {error}") from error


def _decoder(answer: Answer) -> Decoder:
    decode = decoder(coding(answer.headers))
    if decode is None:
        raise Unreachable("the upstream answered in a coding that was not asked for")
    return decode


def _response(answer: Answer, received: bytes) -> Mapping[str, Any] | None:
    """Decode a complete response; None for an error, and for what is no JSON object."""
    if answer.status != _OK:
        return None
    try:
        value = read_json(_decoded(answer, received))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _is_stream(answer: Answer) -> bool:
    kind = (first(answer.headers, b"content-type") or b"").split(b";")[0].strip().lower()
    return answer.status == _OK and kind == b"text/event-stream"


async def _write(client: Client, events: Sequence[Event]) -> None:
    if events:
        await client.write(b"".join(map(event_bytes, events)))


async def _fail(
    client: Client, call: Call, status: int, message: str, *, retry: bool = True
) -> None:
    if client.started:
        return  # the response is cut off
    body = error_body(call.endpoint.wire_format, status, message)
    await client.respond(status, error_headers(body, retry=retry), body)
