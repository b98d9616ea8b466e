"""The protocol over streamable HTTP, as a part of the server.

No session is kept between two requests: each shows its key, and each is answered whole. What
stays open is a client that listens, and it ends with the server or with its key.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zero_mem.api.problems import Refusal, problem_json, problem_of
from zero_mem.errors import InvalidInput, NotAllowed, ZeroMemError
from zero_mem.mcp.sdk import StreamableHTTPSessionManager
from zero_mem.mcp.server import Context, Session, server
from zero_mem.mcp.watching import AT_ONCE, News, last_position
from zero_mem.operations.history import HistoryEntry
from zero_mem.server import body
from zero_mem.server.access import bearer
from zero_mem.server.app import SECURITY
from zero_mem.server.host import Host
from zero_mem.space import Namespace
from zero_mem.types import Path

R = TypeVar("R")
LOG: Final = logging.getLogger("zero_mem.server")

PREFIX: Final = "/mcp"
DEFAULT: Final = ("default",)
"""The namespace of the bare address."""

_OF_THE_PROTOCOL: Final = ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")
_SESSION: Final = "zero_mem.mcp.session"
# One line for each request is enough, and it is ours.
logging.getLogger("mcp.server.streamable_http").setLevel(logging.WARNING)
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class Endpoint:
    """A part of the server at `/mcp`; `/mcp/acme/alice` names a namespace.

    Args:
        host: The server.
    """

    prefix = PREFIX

    def __init__(self, host: Host) -> None:
        self._host = host
        self._origins = {o.strip() for o in host.settings.cors.split(",") if o.strip()}
        self._names = _LOOPBACK | {n for n in host.settings.names.split(",") if n}
        self._listeners = _Listeners(host.settings.max_streams)
        self._manager = StreamableHTTPSessionManager(
            server(_session_of),
            json_response=True,
            stateless=True,
            max_request_body_size=host.settings.max_body,
        )
        self._app = self._with_cors(self._serve)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Live as long as the server does."""
        async with self._manager.run():
            yield

    def stop(self) -> None:
        """Let the server stop; who listens waits for the host's `stopping`, as its feeds do."""

    def _with_cors(self, app: ASGIApp) -> ASGIApp:
        if not self._origins:
            return app
        return CORSMiddleware(
            app,
            allow_origins=sorted(self._origins),
            allow_methods=["POST"],
            allow_headers=["Authorization", "Content-Type", *_OF_THE_PROTOCOL],
        )

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            self._check(request)
            credential = bearer(request.headers.get("authorization"))
            memory = await self._host.view(credential, request.headers)
            settings = self._host.settings
            content = await body.whole(
                request, most=settings.max_body, seconds=settings.body_timeout
            )
            space = memory.namespace(*_namespace(scope))
        except ClientDisconnect:
            LOG.info("mcp: the client went away")
            return
        except ZeroMemError as error:
            await _refusal(error)(scope, receive, send)
            return
        session = _HttpSession(self._host, credential, space, self._listeners)
        await self._manager.handle_request(
            {**scope, _SESSION: session}, _again(content, receive), _secured(send)
        )

    def _check(self, request: Request) -> None:
        """Refuse pages of other origins, and what is no call."""
        origin = request.headers.get("origin")
        if origin is not None and not self._is_ours(origin):
            raise NotAllowed("pages of this origin may not call here; the setting cors names some")
        if request.method != "POST":
            raise Refusal("wrong-method", "send each call by POST", {"Allow": "POST"})

    def _is_ours(self, origin: str) -> bool:
        if self._origins & {origin, "*"}:
            return True
        try:
            return (urlsplit(origin).hostname or "") in self._names
        except ValueError:
            return False


class _Listeners:
    """How many listen, and at most may."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count one more for the length of the block."""
        if self._count >= self._most:
            raise Refusal("busy", f"{self._count} clients listen already; try again")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1


class _HttpSession:
    """What one request may do: the namespace as its key opens it."""

    def __init__(
        self, host: Host, credential: str | None, space: Namespace, listeners: _Listeners
    ) -> None:
        self.space = space
        self._listeners = listeners
        self._host = host
        self._credential = credential

    async def run(self, work: Callable[[], R]) -> R:
        return await self._host.run(work)

    def wrote(self) -> None:
        self._host.bell.ring()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[News]:
        host = self._host

        async def look(after: int) -> list[HistoryEntry]:
            if host.doors.known(self._credential) is None:
                await host.run(lambda: host.doors.opened(self._credential))
            return await host.run(partial(self.space.changes, after=after, limit=AT_ONCE))

        with self._listeners.one():
            yield News(
                look,
                after=await host.run(partial(last_position, self.space)),
                ringing=host.bell.next,
                ended=host.stopping,
                poll=host.settings.poll,
            )


def _session_of(context: Context) -> Session:
    request: Request = context.request  # type: ignore[assignment]
    session: Session = request.scope[_SESSION]
    return session


def _namespace(scope: Scope) -> Path:
    """Read the namespace in the address: its segments after the prefix, percent-encoded."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    path, root = raw.decode("ascii", "replace"), scope["root_path"]
    if not path.startswith(root):
        raise InvalidInput(f"the address begins with {root}, written without percent signs")
    below = path.removeprefix(root).strip("/")
    if not below:
        return DEFAULT
    try:
        return tuple(unquote(segment, errors="strict") for segment in below.split("/"))
    except UnicodeDecodeError:
        raise InvalidInput("the namespace in the address is percent-encoded UTF-8") from None


def _again(content: bytes, receive: Receive) -> Receive:
    """Give a body that was read as if it came now."""
    first: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


def _secured(send: Send) -> Send:
    begun = perf_counter()

    async def secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(SECURITY)
            LOG.info("POST mcp %d %.1f ms", message["status"], 1000 * (perf_counter() - begun))
        await send(message)

    return secured


def _refusal(error: ZeroMemError) -> Response:
    problem = problem_of(error)
    headers = SECURITY | (error.headers if isinstance(error, Refusal) else {})
    content: dict[str, Any] = problem_json(error, problem)
    return Response(
        json.dumps(content), problem.status, headers, media_type="application/problem+json"
    )
