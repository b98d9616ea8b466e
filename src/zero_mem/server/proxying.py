"""The proxy as a part of the server: the same code as `zero-mem proxy`, on the same store."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from zero_mem.access.grants import BELOW, Right, reaches
from zero_mem.api.arguments import namespace_path
from zero_mem.api.problems import Refusal, problem_of
from zero_mem.errors import InvalidInput, MissingExtra, ZeroMemError
from zero_mem.memory import Memory
from zero_mem.proxy.app import Proxy
from zero_mem.proxy.client import Client
from zero_mem.proxy.counting import CountingProcess
from zero_mem.proxy.live import ROOT
from zero_mem.proxy.serving import traffic_first
from zero_mem.proxy.settings import Settings as ProxySettings
from zero_mem.proxy.settings import read
from zero_mem.proxy.vendor_errors import error_body, error_headers
from zero_mem.server.access import bearer
from zero_mem.server.host import Host
from zero_mem.server.settings import Settings

PREFIX: Final = "/proxy"
KEY: Final = "x-zero-mem-key"
"""The field for a key of the store, since `Authorization` is the provider's."""

_WANTED: Final = (
    f"{KEY} takes a key of this server, and none was given, or one that is unknown, was revoked "
    "or has expired"
)
_ELSEWHERE: Final = frozenset({"cross-site", "same-site"})


def proxy_settings(settings: Settings) -> ProxySettings:
    """Read the proxy's part of the settings; without a page token, one is made up.

    Raises:
        InvalidInput: Something can't be.
        MissingExtra: The extra `proxy` is not installed.
    """
    if find_spec("aiohttp") is None:
        raise MissingExtra("the proxy", "proxy")
    return read(
        upstream=[settings.proxy_upstream],
        mode=settings.proxy_mode,
        share=settings.proxy_share,
        prices=settings.proxy_prices or None,
        namespace=namespace_path(settings.proxy_namespace, "proxy_namespace"),
        one_user=settings.proxy_one_user,
        body_limit=settings.proxy_body_limit,
        timeout=settings.proxy_timeout,
        page_token=settings.proxy_page_token or secrets.token_urlsafe(18),
    )


class ProxyPart:
    """Serves the proxy beneath `/proxy`; its live page is `/proxy/zero-mem`.

    Whoever may use the server may use it: with keys, one that may write the proxy's namespaces
    comes in a field of its own, which is not sent on; without, whoever can use this machine,
    but no page of the web.

    Args:
        host: The server.
        settings: The proxy's.
    """

    prefix = PREFIX

    def __init__(self, host: Host, settings: ProxySettings) -> None:
        self._host = host
        self._settings = settings
        self._proxy: Proxy | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        assert self._proxy is not None
        client = Client(scope, receive, send)
        # The page looks for itself. It is told by the path as it was sent, as the forwarder does:
        # another spelling of the page's path must not be passed on unasked.
        if client.path != ROOT and not client.path.startswith(f"{ROOT}/"):
            try:
                await self._admit(Headers(scope=scope))
            except ZeroMemError as error:
                await self._refuse(client, error)
                return
        fields = [each for each in scope["headers"] if each[0] != KEY.encode()]
        await self._proxy.app({**scope, "headers": fields}, receive, send)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Live as long as the server; at the end the ledger is written."""
        self._proxy = await self._host.run(self._made)
        with traffic_first():
            async with self._proxy.lifespan():
                yield

    def _made(self) -> Proxy:
        counter = CountingProcess(self._settings.rates)
        return Proxy(self._host.memory, self._settings, counter=counter, may_look=self._may_look)

    def stop(self) -> None:
        """End the live page's streams."""
        if self._proxy is not None:
            self._proxy.stop()

    def check_no_loop(self, url: str) -> None:
        """Refuse upstreams that lead back here.

        Raises:
            InvalidInput: One does.
        """
        if self._settings.upstreams.leads_to(f"{url}{PREFIX}"):
            raise InvalidInput("the upstream is the proxy's own address")

    def page(self, url: str, *, with_token: bool) -> str:
        """Give the address of the live page."""
        token = f"?token={self._settings.page_token}" if with_token else ""
        return f"{url}{PREFIX}{ROOT}{token}"

    async def _admit(self, headers: Mapping[str, str]) -> None:
        """Let a request pass that may use the proxy.

        Raises:
            ZeroMemError: It may not.
        """
        memory = await self._host.view(headers.get(KEY), headers)
        if memory.key is None:
            if headers.get("sec-fetch-site", "").lower() in _ELSEWHERE:
                raise Refusal("not-allowed", "a page of another site may not use this proxy")
        elif not self._reaches(memory, "write"):
            raise Refusal("not-allowed", f"the key in {KEY} gives no right to use the proxy")

    def _reaches(self, memory: Memory, right: Right) -> bool:
        pattern = (*self._settings.namespace, BELOW)
        return memory.key is None or reaches(memory.key.grants, right, pattern)

    async def _may_look(self, request: Request) -> bool:
        """Open the figures to an admin of the proxy's namespaces."""
        try:
            credential = bearer(request.headers.get("authorization"))
            memory = await self._host.view(credential, request.headers)
        except ZeroMemError:
            return False
        return self._reaches(memory, "admin")

    async def _refuse(self, client: Client, error: ZeroMemError) -> None:
        status = problem_of(error).status
        wire_format = self._settings.upstreams.vendor_of(client.path, client.headers)
        text = _WANTED if status == 401 else str(error)
        body = error_body(wire_format, status, text)
        retry = status in (429, 503)
        await client.respond(status, error_headers(body, retry=retry), body)
