"""Transports that stand between a client and its own HTTP client, for threads and event loops.

They are made for whichever HTTP library the client uses, httpx or its successor, and import
none. All that they do is take the steps of `over_http`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.server_sent import json_bytes
from zero_mem.conversation.controller import MemoryController
from zero_mem.conversation.over_http import (
    Broken,
    Chunk,
    Fail,
    Give,
    Head,
    HostClosed,
    Pass,
    Read,
    Send,
    Served,
    Step,
    Steps,
    Suspended,
    Work,
)

_FORMATS: Final[Mapping[str, WireFormat]] = {
    "/chat/completions": "openai_chat",
    "/responses": "openai_responses",
    "/messages": "anthropic",
    ":rawPredict": "anthropic",
    ":streamRawPredict": "anthropic",
}
_COUNTED: Final[Mapping[str, WireFormat]] = {
    "/messages/count_tokens": "anthropic",
    "/responses/input_tokens": "openai_responses",
}
_MOST_SUSPENDED: Final = 8
# These describe the bytes of a response that was edited, or a request that is now another one.
_OF_THE_BYTES: Final = frozenset({"content-length", "content-encoding", "transfer-encoding"})
_OF_ONE_REQUEST: Final = frozenset({"content-length", "transfer-encoding", "idempotency-key"})
_OURS: Final = {"content-type": "application/json", "x-should-retry": "false"}


def memory_transport(library: Any, inner: Any, controller: MemoryController, rounds: int) -> Any:
    """Make the transport that sends what it edits by another HTTP client.

    Args:
        library: The module of the HTTP library.
        inner: The client that sends the requests.
        controller: The conversation's.
        rounds: Most requests that one call makes.
    """
    calls = _Calls(controller, rounds)
    if isinstance(inner, library.AsyncClient):
        kind = type("MemoryTransport", (_AsyncTransport, library.AsyncBaseTransport), {})
    else:
        kind = type("MemoryTransport", (_Transport, library.BaseTransport), {})
    return kind(library, inner, calls)


class _Calls:
    """Knows which requests are edited, and which go on where an earlier attempt failed."""

    def __init__(self, controller: MemoryController, rounds: int) -> None:
        self._controller = controller
        self._rounds = rounds
        self._suspended: dict[bytes, Suspended] = {}

    def call(self, request: Any, content: bytes) -> _Call | None:
        """Begin with a request; None where it is passed on as it is."""
        counted, served = _ending(request, _COUNTED), _ending(request, _FORMATS)
        wire_format = counted or served
        body = _body(content) if wire_format and not self._controller.observes else None
        if wire_format is None or body is None:
            return None
        digest = hashlib.blake2b(content, digest_size=16).digest()
        suspended = self._suspended.pop(digest, None)
        if request.headers.get("x-stainless-retry-count", "0") == "0":
            suspended = None
        made = Served(
            controller=self._controller,
            body=body,
            wire_format=wire_format,
            rounds=self._rounds,
            suspended=suspended,
        )
        steps = made.prepared() if counted else made.serve()
        return _Call(request=request, content=content, served=made, steps=steps, digest=digest)

    def end(self, call: _Call) -> None:
        """Keep a call of which a round failed, for the client's own retry."""
        if call.served.suspended is None:
            return
        self._suspended[call.digest] = call.served.suspended
        while len(self._suspended) > _MOST_SUSPENDED:
            self._suspended.pop(next(iter(self._suspended)))


@dataclass(slots=True, kw_only=True)
class _Call:
    """A request of the host on its way, and the upstream response that is open."""

    request: Any
    content: bytes
    served: Served
    steps: Steps
    digest: bytes
    response: Any = None
    chunks: Any = None
    done: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, step: Work) -> Any:
        """Use the store, after whatever a cancelled task has left running in its thread."""
        with self.lock:
            return step.result()

    def upstream(self, library: Any, body: Mapping[str, Any]) -> Any:
        """Write a request to send: the host's own bytes where nothing is edited."""
        is_follow_up, request = self.response is not None, self.request
        dropped = _OF_ONE_REQUEST if is_follow_up else _OF_ONE_REQUEST - {"idempotency-key"}
        return library.Request(
            request.method,
            request.url,
            headers=_without(request.headers, dropped),
            content=self.content if body is self.served.body else json_bytes(body),
            extensions=request.extensions,
        )

    def head(self) -> Head:
        """Tell how the response begins."""
        media_type = self.response.headers.get("content-type", "")
        return Head(status=self.response.status_code, media_type=media_type)

    def given(self, library: Any, give: Give, stream: Any = None) -> Any:
        """Make the host's response."""
        upstream = self.response
        if give.status is not None:
            return library.Response(give.status, headers=_OURS, content=give.content)
        if not give.streams and give.content is None and not upstream.is_stream_consumed:
            return upstream
        body = {"stream": stream} if give.streams else {"content": give.content}
        if not give.streams and give.content is None:
            body = {"content": upstream.content}
        return library.Response(
            upstream.status_code, headers=_without(upstream.headers, _OF_THE_BYTES), **body
        )


def _ending(request: Any, formats: Mapping[str, WireFormat]) -> WireFormat | None:
    path = request.url.path if request.method == "POST" else ""
    return next((formats[ending] for ending in formats if path.endswith(ending)), None)


def _body(content: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _without(headers: Any, names: frozenset[str]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.multi_items() if name.lower() not in names]


# For threads


class _Transport:
    def __init__(self, library: Any, inner: Any, calls: _Calls) -> None:
        self._library, self._inner, self._calls = library, inner, calls

    def handle_request(self, request: Any) -> Any:
        """Answer a request of the client."""
        content = request.read()
        call = self._calls.call(request, content)
        if call is None:
            return self._inner.send(request, stream=True)
        driver = _Driver(self._library, self._inner, call)
        try:
            give = driver.until_given()
        finally:
            self._calls.end(call)
        if give.streams:
            stream = type("MemoryStream", (_Stream, self._library.SyncByteStream), {})
            return call.given(self._library, give, stream(driver))
        return call.given(self._library, give)

    def close(self) -> None:
        """Close the client's own HTTP client."""
        self._inner.close()


class _Stream:
    def __init__(self, driver: _Driver) -> None:
        self._driver = driver

    def __iter__(self) -> Iterator[bytes]:
        return self._driver.passed()

    def close(self) -> None:
        """End the call, whether or not it has come to its end."""
        self._driver.close()


class _Driver:
    def __init__(self, library: Any, inner: Any, call: _Call) -> None:
        self._library, self._inner, self._call = library, inner, call

    def until_given(self) -> Give:
        """Take steps until there is a response for the host."""
        step: Step = next(self._call.steps)
        while not isinstance(step, Give):
            if isinstance(step, Fail):
                raise step.error
            step = self._call.steps.send(self._taken(step))
        return step

    def passed(self) -> Iterator[bytes]:
        """Take the steps of a stream, giving what is passed on."""
        call, result = self._call, None
        while (step := _next(call, result)) is not None:
            result = None
            if isinstance(step, Fail):
                raise step.error
            if isinstance(step, Pass):
                if step.content:
                    yield step.content
            else:
                result = self._taken(step)

    def close(self) -> None:
        """Close the stream; what the host has seen of it is kept."""
        step = _thrown(self._call)
        while step is not None:
            step = _next(self._call, self._taken(step))
        if self._call.response is not None:
            self._call.response.close()

    def _taken(self, step: Step) -> Any:
        call = self._call
        try:
            match step:
                case Work():
                    return call.work(step)
                case Send():
                    request = call.upstream(self._library, step.body)
                    if call.response is not None:
                        call.response.close()
                    call.response = self._inner.send(request, stream=True)
                    call.chunks = None
                    return call.head()
                case Read():
                    return call.response.read()
                case Chunk():
                    call.chunks = call.chunks or call.response.iter_bytes()
                    return next(call.chunks, None)
        except self._library.RequestError as error:
            return Broken(error=error)
        return None


# For event loops


class _AsyncTransport:
    def __init__(self, library: Any, inner: Any, calls: _Calls) -> None:
        self._library, self._inner, self._calls = library, inner, calls

    async def handle_async_request(self, request: Any) -> Any:
        """Answer a request of the client."""
        content = await request.aread()
        call = self._calls.call(request, content)
        if call is None:
            return await self._inner.send(request, stream=True)
        driver = _AsyncDriver(self._library, self._inner, call)
        try:
            give = await driver.until_given()
        finally:
            self._calls.end(call)
        if give.streams:
            stream = type("MemoryStream", (_AsyncStream, self._library.AsyncByteStream), {})
            return call.given(self._library, give, stream(driver))
        return call.given(self._library, give)

    async def aclose(self) -> None:
        """Close the client's own HTTP client."""
        await self._inner.aclose()


class _AsyncStream:
    def __init__(self, driver: _AsyncDriver) -> None:
        self._driver = driver

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._driver.passed()

    async def aclose(self) -> None:
        """End the call, whether or not it has come to its end."""
        await self._driver.close()


class _AsyncDriver:
    def __init__(self, library: Any, inner: Any, call: _Call) -> None:
        self._library, self._inner, self._call = library, inner, call

    async def until_given(self) -> Give:
        """Take steps until there is a response for the host."""
        step: Step = next(self._call.steps)
        while not isinstance(step, Give):
            if isinstance(step, Fail):
                raise step.error
            step = self._call.steps.send(await self._taken(step))
        return step

    async def passed(self) -> AsyncIterator[bytes]:
        """Take the steps of a stream, giving what is passed on."""
        call, result = self._call, None
        while (step := _next(call, result)) is not None:
            result = None
            if isinstance(step, Fail):
                raise step.error
            if isinstance(step, Pass):
                if step.content:
                    yield step.content
            else:
                result = await self._taken(step)

    async def close(self) -> None:
        """Close the stream; what the host has seen of it is kept, even as its task is cancelled."""
        step = _thrown(self._call)
        while step is not None:
            step = _next(self._call, await asyncio.shield(self._taken(step)))
        if self._call.response is not None:
            await self._call.response.aclose()

    async def _taken(self, step: Step) -> Any:
        call = self._call
        try:
            match step:
                case Work():
                    return await asyncio.to_thread(call.work, step)
                case Send():
                    request = call.upstream(self._library, step.body)
                    if call.response is not None:
                        await call.response.aclose()
                    call.response = await self._inner.send(request, stream=True)
                    call.chunks = None
                    return call.head()
                case Read():
                    return await call.response.aread()
                case Chunk():
                    call.chunks = call.chunks or call.response.aiter_bytes()
                    return await anext(call.chunks, None)
        except self._library.RequestError as error:
            return Broken(error=error)
        return None


def _next(call: _Call, result: Any) -> Step | None:
    """Give the next step of a stream; None after the last."""
    try:
        return None if call.done else call.steps.send(result)
    except StopIteration:
        call.done = True
        return None


def _thrown(call: _Call) -> Step | None:
    """Tell the steps that the host has closed its stream; give what is still to be done."""
    try:
        return None if call.done else call.steps.throw(HostClosed())
    except (StopIteration, HostClosed):
        call.done = True
        return None
