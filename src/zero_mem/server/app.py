"""The ASGI application: who asks, what is asked, and the thread that answers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from email.utils import formatdate
from itertools import islice
from time import perf_counter
from typing import Any, Final

from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from zero_mem.api.arguments import argument, namespace_path
from zero_mem.api.openapi import document
from zero_mem.api.problems import Refusal
from zero_mem.api.routes import HEADERS, Route, match
from zero_mem.api.text import dump
from zero_mem.errors import InvalidInput, ZeroMemError
from zero_mem.exchange import FORMAT, READABLE, import_records, json_line, record_json
from zero_mem.memory import Memory
from zero_mem.server import body, feed
from zero_mem.server.access import bearer
from zero_mem.server.answering import Answer, Asked, perform, refused
from zero_mem.server.host import Host, Part
from zero_mem.server.settings import Settings

LOG: Final = logging.getLogger("zero_mem.server")

SECURITY: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
CONSOLE: Final = "/console"
"""Where a browser is led that names no page."""

_LINES: Final = 100


class App:
    """The store as an ASGI application.

    It begins and ends with the lifespan that a server drives: then the sweeper and the parts
    run, and at the end calls that were taken finish, queued writes are applied and the store is
    closed.

    Args:
        memory: The store; it is closed with the application.
        settings: How to serve it.
        is_open: Whether it may be used without a key as long as there is none: only where
            nobody but this machine's users can reach it.
        parts: Make what is served beneath paths of its own.
    """

    def __init__(
        self,
        memory: Memory,
        settings: Settings | None = None,
        *,
        is_open: bool = False,
        parts: Iterable[Callable[[Host], Part]] = (),
    ) -> None:
        self.host = Host(memory, settings or Settings(), is_open=is_open)
        self.parts = [make(self.host) for make in parts]
        self._answering = _with_cors(self._serve, self.host.settings.cors)
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
            part = self._part(scope["path"])
            if part is None:
                home = self._home(scope)
                await (home or self._answering)(scope, receive, send)
            else:
                root = scope.get("root_path", "") + part.prefix
                await part({**scope, "root_path": root}, receive, send)
        else:
            # Nothing here speaks WebSocket.
            await send({"type": "websocket.close", "code": 1003})

    def _part(self, path: str) -> Part | None:
        for part in self.parts:
            if path == part.prefix or path.startswith(part.prefix + "/"):
                return part
        return None

    def _home(self, scope: Scope) -> Response | None:
        """Lead a browser that names no page to the console, where there is one."""
        if scope["path"] != "/" or self._part(CONSOLE) is None:
            return None
        if "text/html" not in Request(scope).headers.get("accept", ""):
            return None
        return RedirectResponse(f"{scope.get('root_path', '')}{CONSOLE}/", headers=SECURITY)

    def stop(self) -> None:
        """End the feeds: they would keep the server from stopping."""
        self.host.stop()
        for part in self.parts:
            part.stop()

    async def close(self) -> None:
        """Let calls that were taken finish, apply queued writes, close the store."""
        self.stop()
        await self.host.close()

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Run the sweeper, backups and parts; at the end calls finish and the store is closed."""
        try:
            async with AsyncExitStack() as stack:
                for part in self.parts:
                    await stack.enter_async_context(part.lifespan())
                if self.host.settings.sweep_every:
                    await stack.enter_async_context(_beside(self.host.sweeper.run()))
                if self.host.backups is not None:
                    await stack.enter_async_context(_beside(self.host.backups.run()))
                yield
                self.stop()
        finally:
            await self.close()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()  # that it starts
        async with self.living():
            await send({"type": "lifespan.startup.complete"})
            await receive()  # that it stops
        await send({"type": "lifespan.shutdown.complete"})

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
        response.headers.update({**SECURITY, "Date": formatdate(usegmt=True)})
        LOG.info(
            "%s %s %d %.1f ms",
            request.method,
            name,
            response.status_code,
            1000 * (perf_counter() - begun),
        )
        await response(scope, receive, send)

    async def _respond(
        self, request: Request, route: Route, in_path: Mapping[str, str]
    ) -> Response:
        if route.call in self._pages and route.target == "server":
            return await self._pages[route.call](request, route)
        memory = await self._view(request)
        content = await self._body(request) if route.has_body else None
        asked = Asked(route, in_path, request.query_params.multi_items(), request.headers, content)
        most = self.host.settings.max_results
        answer = await self.host.run(lambda: perform(memory, asked, most=most))
        if request.method != "GET":
            self.host.bell.ring()
        return _response(answer)

    async def _view(self, request: Request) -> Memory:
        credential = bearer(request.headers.get("authorization"))
        return await self.host.view(credential, request.headers)

    async def _body(self, request: Request) -> bytes:
        content = await body.whole(
            request, most=self.host.settings.max_body, seconds=self.host.settings.body_timeout
        )
        if content:
            # A form of another page can send any other type without asking first.
            _check_type(request, "application/json")
        return content

    # What no operation of the library answers

    async def _follow(self, request: Request, route: Route) -> Response:
        memory = await self._view(request)
        query = _query(request, route)
        after = feed.position(request.headers.get("last-event-id", query.get("after", "0")))
        credential = bearer(request.headers.get("authorization"))
        path = namespace_path(query["namespace"])
        events = await self.host.follow(memory, credential, path, after)
        return StreamingResponse(events, media_type=route.media_type)

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

        first = await self.host.run(lines)  # what is refused is refused before the stream begins

        async def stream() -> AsyncIterator[bytes]:
            part = first
            while part:
                yield part
                part = await self.host.run(lines)

        return StreamingResponse(stream(), media_type=route.media_type)

    async def _import(self, request: Request, route: Route) -> Response:
        memory = await self._view(request)
        query = _query(request, route)
        there = query.get("namespace")
        one = None if there is None else namespace_path(there)
        conflict: Any = query.get("on_conflict", "refuse")
        _check_type(request, "application/x-ndjson")
        kept = await body.spooled(
            request, most=self.host.settings.max_import, seconds=self.host.settings.body_timeout
        )
        with kept:
            report = await self.host.run(
                lambda: import_records(
                    lambda path: memory.namespace(*(one or path)), kept, on_conflict=conflict
                )
            )
        self.host.bell.ring()
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

        text = await self.host.run(lambda: exposition(self.host.memory, stats=False))
        return Response(text, media_type="text/plain; version=0.0.4")

    async def _alive(self, request: Request, route: Route) -> Response:
        return _json({"alive": True})

    async def _ready(self, request: Request, route: Route) -> Response:
        health = await self.host.run(self.host.memory.health)
        if health.ready:
            return _json({"ready": True})
        # The whole of it would tell anyone where the file is.
        return _json({"ready": False, "problem": health.problem.partition(":")[0]}, 503)

    async def _document(self, request: Request, route: Route) -> Response:
        return Response(json.dumps(document()), media_type="application/json")


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run work that never ends beside the block."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


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
