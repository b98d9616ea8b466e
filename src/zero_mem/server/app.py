"""The ASGI application: who asks, what is asked, and the thread that answers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any, Final, TypeVar

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from zero_mem.aio.threads import Threads
from zero_mem.api.arguments import argument, namespace_path
from zero_mem.api.openapi import document
from zero_mem.api.problems import Refusal
from zero_mem.api.routes import HEADERS, Route, match
from zero_mem.api.text import dump
from zero_mem.errors import InvalidInput, ZeroMemError
from zero_mem.exchange import FORMAT, READABLE, import_records, json_line, record_json
from zero_mem.memory import Memory
from zero_mem.operations.history import HistoryEntry
from zero_mem.server import body, feed
from zero_mem.server.access import Doors, bearer
from zero_mem.server.answering import Answer, Asked, perform, refused
from zero_mem.server.settings import Settings
from zero_mem.server.sweeper import Sweeper
from zero_mem.space import Namespace

LOG: Final = logging.getLogger("zero_mem.server")
R = TypeVar("R")

SECURITY: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_LINES: Final = 100
_LONGEST_POSITION: Final = 19


class App:
    """The store as an ASGI application.

    It begins and ends with the lifespan that a server drives: then the sweeper runs, and at the
    end calls that were taken finish, queued writes are applied and the store is closed.

    Args:
        memory: The store; it is closed with the application.
        settings: How to serve it.
        is_open: Whether it may be used without a key as long as there is none: only where
            nobody but this machine's users can reach it.
    """

    def __init__(
        self, memory: Memory, settings: Settings | None = None, *, is_open: bool = False
    ) -> None:
        self.settings = settings or Settings()
        self.memory = memory
        self.doors = Doors(
            memory,
            is_open=is_open,
            recheck=self.settings.recheck,
            rate=self.settings.rate,
            burst=self.settings.burst,
        )
        self._is_open = is_open
        self._names = _LOOPBACK | {name for name in self.settings.names.split(",") if name}
        self._threads = Threads()
        self._waiting = 0
        self._streams = 0
        self._bell = feed.Bell()
        self._stopping = asyncio.Event()
        self.sweeper = Sweeper(
            lambda: self._threads.run(memory.expire), every=self.settings.sweep_every
        )
        self._answering = _with_cors(self._serve, self.settings.cors)
        self._pages: Mapping[str, Callable[[Request, Route], Awaitable[Response]]] = {
            "follow": self._follow,
            "export": self._export,
            "import": self._import,
            "metrics": self._metrics,
            "alive": self._alive,
            "ready": self._ready,
            "document": self._document,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or live one lifespan."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answering(scope, receive, send)
        else:
            # Nothing here speaks WebSocket.
            await send({"type": "websocket.close", "code": 1003})

    def stop(self) -> None:
        """End the feeds: they would keep the server from stopping."""
        self._stopping.set()
        self._bell.ring()

    async def close(self) -> None:
        """Let calls that were taken finish, apply queued writes, close the store."""
        self.stop()
        await self._threads.end(self.memory.close)

    async def _live(self, receive: Receive, send: Send) -> None:
        sweeping = None
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                if self.settings.sweep_every:
                    sweeping = asyncio.create_task(self.sweeper.run())
                await send({"type": "lifespan.startup.complete"})
            else:
                if sweeping is not None:
                    sweeping.cancel()
                    with suppress(asyncio.CancelledError):
                        await sweeping
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = perf_counter()
        request = Request(scope, receive)
        name = "-"
        try:
            route, in_path = match(request.method, scope.get("raw_path") or b"/")
            name = route.name
            response = await self._respond(request, route, in_path)
        except ZeroMemError as error:
            response = _response(refused(error, if_match="if-match" in request.headers))
        except ClientDisconnect:
            LOG.info("%s %s: the client went away", request.method, name)
            return
        response.headers.update(SECURITY)
        LOG.info(
            "%s %s %d %.1f ms",
            request.method,
            name,
            response.status_code,
            1000 * (perf_counter() - begun),
        )
        await response(scope, receive, send)

    def _check_host(self, request: Request) -> None:
        """Refuse a page of the web that has made its own name lead here; it has no key."""
        host = request.headers.get("host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        if name not in self._names:
            raise Refusal("wrong-host", "without keys, this server answers to loopback names only")

    async def _respond(
        self, request: Request, route: Route, in_path: Mapping[str, str]
    ) -> Response:
        if route.call in self._pages and route.target == "server":
            return await self._pages[route.call](request, route)
        memory = await self._view(request)
        content = await self._body(request) if route.has_body else None
        asked = Asked(route, in_path, request.query_params.multi_items(), request.headers, content)
        most = self.settings.max_results
        answer = await self._run(lambda: perform(memory, asked, most=most))
        if request.method != "GET":
            self._bell.ring()
        return _response(answer)

    async def _view(self, request: Request) -> Memory:
        credential = bearer(request.headers.get("authorization"))
        memory = self.doors.known(credential)
        if credential is None and self._is_open:
            self._check_host(request)
        if memory is None:
            memory = await self._run(lambda: self.doors.opened(credential))
        self.doors.admit(credential)
        return memory

    async def _body(self, request: Request) -> bytes:
        content = await body.whole(
            request, most=self.settings.max_body, seconds=self.settings.body_timeout
        )
        if content:
            # A form of another page can send any other type without asking first.
            _check_type(request, "application/json")
        return content

    async def _run(self, work: Callable[[], R]) -> R:
        """Run work in a thread of the store's.

        Raises:
            Refusal: Too many wait already.
        """
        if self._waiting >= self.settings.backlog:
            raise Refusal("busy", f"{self._waiting} requests wait for the store; try again")
        self._waiting += 1
        try:
            return await self._threads.run(work)
        finally:
            self._waiting -= 1

    # What no operation of the library answers

    async def _follow(self, request: Request, route: Route) -> Response:
        memory = await self._view(request)
        query = _query(request, route)
        space = memory.namespace(*namespace_path(query["namespace"]))
        text = request.headers.get("last-event-id", query.get("after", "0"))
        if not (text.isascii() and text.isdecimal() and len(text) < _LONGEST_POSITION):
            raise InvalidInput("a position in the journal is a whole number from 0")
        after = int(text)
        read = partial(self._entries, request, space)
        await read(after)  # what is refused is refused before the stream begins
        if self._streams >= self.settings.max_streams:
            raise Refusal("busy", f"{self._streams} feeds are open already; try again")
        found = feed.events(
            read,
            after,
            bell=self._bell,
            stopping=self._stopping,
            poll=self.settings.poll,
            heartbeat=self.settings.heartbeat,
        )
        return StreamingResponse(self._counted(found), media_type=route.media_type)

    async def _counted(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._streams += 1
        try:
            async for event in events:
                yield event
        except ZeroMemError as error:
            # The key has ended, or the store; the client asks again and is told so.
            LOG.info("a feed ended: %s", type(error).__name__)
        finally:
            self._streams -= 1

    async def _entries(self, request: Request, space: Namespace, after: int) -> list[HistoryEntry]:
        credential = bearer(request.headers.get("authorization"))
        if self.doors.known(credential) is None:
            await self._run(lambda: self.doors.opened(credential))
        return await self._run(lambda: space.changes(after=after, limit=feed.AT_ONCE))

    async def _export(self, request: Request, route: Route) -> Response:
        memory = await self._view(request)
        query = _query(request, route)
        space = memory.namespace(*namespace_path(query["namespace"]))
        given = query.get("where")
        where = READABLE if given is None else argument("where").from_text(given, "where")
        records = space.each(where)

        def lines() -> bytes:
            taken = islice(records, _LINES)
            return "".join(
                json_line({"format": FORMAT, **record_json(record)}) for record in taken
            ).encode()

        first = await self._run(lines)  # what is refused is refused before the stream begins

        async def stream() -> AsyncIterator[bytes]:
            part = first
            while part:
                yield part
                part = await self._run(lines)

        return StreamingResponse(stream(), media_type=route.media_type)

    async def _import(self, request: Request, route: Route) -> Response:
        memory = await self._view(request)
        query = _query(request, route)
        there = query.get("namespace")
        one = None if there is None else namespace_path(there)
        conflict: Any = query.get("on_conflict", "refuse")
        _check_type(request, "application/x-ndjson")
        kept = await body.spooled(
            request, most=self.settings.max_import, seconds=self.settings.body_timeout
        )
        with kept:
            report = await self._run(
                lambda: import_records(
                    lambda path: memory.namespace(*(one or path)), kept, on_conflict=conflict
                )
            )
        self._bell.ring()
        return _json(
            {
                "imported": report.imported,
                "unchanged": report.unchanged,
                "skipped": report.skipped,
                "renumbered": [
                    {"namespace": list(path), "memory_id": old, "became": new}
                    for (path, old), new in report.renumbered.items()
                ],
            }
        )

    async def _metrics(self, request: Request, route: Route) -> Response:
        await self._view(request)
        # Loaded on first use: the extra is not every server's.
        from zero_mem.metrics.prometheus import exposition

        text = await self._run(lambda: exposition(self.memory, stats=False))
        return Response(text, media_type="text/plain; version=0.0.4")

    async def _alive(self, request: Request, route: Route) -> Response:
        return _json({"alive": True})

    async def _ready(self, request: Request, route: Route) -> Response:
        health = await self._run(self.memory.health)
        if health.ready:
            return _json({"ready": True})
        # The whole of it would tell anyone where the file is.
        return _json({"ready": False, "problem": health.problem.partition(":")[0]}, 503)

    async def _document(self, request: Request, route: Route) -> Response:
        return Response(json.dumps(document()), media_type="application/json")


def _with_cors(app: ASGIApp, origins: str) -> ASGIApp:
    """Let pages of some origins call, where any are named."""
    named = [origin.strip() for origin in origins.split(",") if origin.strip()]
    if not named:
        return app
    return CORSMiddleware(
        app,
        allow_origins=named,
        allow_methods=["GET", "POST", "PATCH", "DELETE"],
        allow_headers=["Authorization", "Content-Type", *HEADERS.values(), "Last-Event-ID"],
        expose_headers=["ETag", "Retry-After"],
    )


def _query(request: Request, route: Route) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, text in request.query_params.multi_items():
        if name not in route.query or name in found:
            raise InvalidInput(f"the query has {name[:80]!r}, unknown here or given twice")
        found[name] = text
    for name, needed in route.query.items():
        if needed and name not in found:
            raise InvalidInput(f"{name} is missing in the query")
    return found


def _check_type(request: Request, wanted: str) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != wanted:
        raise Refusal("wrong-type", f"the body's Content-Type is {wanted}")


def _json(value: Any, status: int = 200) -> Response:
    return Response(dump(value), status, media_type="application/json")


def _response(answer: Answer) -> Response:
    return Response(
        answer.body, answer.status, dict(answer.headers), media_type=answer.media_type or None
    )
