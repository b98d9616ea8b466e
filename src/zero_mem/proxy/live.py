"""The live page and its figures: numbers of the ledger, never a body."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from zero_mem.ledger.entries import Mode
from zero_mem.proxy.ledger import Ledger

ROOT: Final = "/zero-mem"

_COOKIE: Final = "zero-mem-page"
_HERE: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})
_EVERY: Final = 1.0
"""Seconds between two looks for a change."""

_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_FILES: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


class LivePage:
    """Serves the page, its figures as JSON and as server-sent events, and the health check.

    Args:
        ledger: What is shown.
        mode: The proxy's mode.
        token: Opens the page from elsewhere; without one it opens only on this machine, to a
            browser that names it so (a page of another site that points its own name at this
            machine gets nothing).
    """

    def __init__(self, ledger: Ledger, *, mode: Mode, token: str) -> None:
        self._ledger = ledger
        self._mode = mode
        self._token = token
        self._stopping = asyncio.Event()

    def routes(self) -> list[Route]:
        """Give the routes below `/zero-mem`."""
        return [
            Route(ROOT, self._page),
            Route(f"{ROOT}/health", self._health),
            Route(f"{ROOT}/ledger", self._figures),
            Route(f"{ROOT}/events", self._events),
            Route(f"{ROOT}/{{name:path}}", self._file),
        ]

    def stop(self) -> None:
        """End the streams of events, so that the server can stop."""
        self._stopping.set()

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok", "mode": self._mode}, headers=_HEADERS)

    async def _page(self, request: Request) -> Response:
        given = request.query_params.get("token", "")
        if self._token and hmac.compare_digest(given.encode(), self._token.encode()):
            # Out of the address bar and the history; a cookie that no script can read.
            response: Response = RedirectResponse(ROOT, 303, headers=_HEADERS)
            response.set_cookie(
                _COOKIE, self._token, path=ROOT, httponly=True, samesite="strict", max_age=86_400
            )
            return response
        return self._refused(request) or _packaged("page.html", "text/html; charset=utf-8")

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _FILES:
            return Response("not found", 404, headers=_HEADERS)
        return _packaged(name, _FILES[name])

    async def _figures(self, request: Request) -> Response:
        refused = self._refused(request)
        return refused or JSONResponse(await self._read(), headers=_HEADERS)

    async def _events(self, request: Request) -> Response:
        refused = self._refused(request)
        return refused or StreamingResponse(
            self._changes(), media_type="text/event-stream", headers=_HEADERS
        )

    async def _read(self) -> dict[str, Any]:
        return {"mode": self._mode, **await asyncio.to_thread(self._ledger.read, self._mode)}

    async def _changes(self) -> AsyncIterator[str]:
        seen = -1
        while not self._stopping.is_set():
            if self._ledger.version != seen:
                seen = self._ledger.version
                yield f"data: {json.dumps(await self._read())}\n\n"
            try:
                await asyncio.wait_for(self._stopping.wait(), _EVERY)
            except TimeoutError:
                continue

    def _refused(self, request: Request) -> Response | None:
        """Refuse whoever is neither on this machine nor has the token."""
        if self._token:
            scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
            given = bearer if scheme.lower() == "bearer" else request.cookies.get(_COOKIE, "")
            if hmac.compare_digest(given.encode(), self._token.encode()):
                return None
            return Response("open this page with ?token=…", 401, headers=_HEADERS)
        host = request.headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        caller = request.client.host if request.client is not None else ""
        if name.lower() in _HERE and caller in _LOOPBACK:
            return None
        return Response("this page opens on the proxy's own machine only", 403, headers=_HEADERS)


def _packaged(name: str, media_type: str) -> Response:
    content = (files("zero_mem.proxy") / "page" / name).read_bytes()
    return Response(content, media_type=media_type, headers=_HEADERS)
