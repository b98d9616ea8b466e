"""Passing requests on: what is not ours to edit goes both ways byte for byte."""

from __future__ import annotations

import logging
from typing import Final

from zero_mem.proxy.client import Client, Gone, Receive, Scope, Send, TooLong, as_received
from zero_mem.proxy.codings import coding
from zero_mem.proxy.counting import Passed
from zero_mem.proxy.headers import Headers, first, for_upstream
from zero_mem.proxy.identity import without_credentials
from zero_mem.proxy.ledger import Ledger
from zero_mem.proxy.offload import Call, Offloading, Unedited
from zero_mem.proxy.settings import Settings
from zero_mem.proxy.targets import Endpoint, endpoint
from zero_mem.proxy.tenants import Tenants
from zero_mem.proxy.upstream import Answer, Dropped, Unreachable, Upstream
from zero_mem.proxy.usage import UsageTap
from zero_mem.proxy.vendor_errors import error_body, error_headers

_logger = logging.getLogger(__name__)
_FAILED: Final = 400


class Forwarder:
    """An ASGI application that passes every request on to its upstream.

    Args:
        settings: How to run.
        upstream: The client to send with.
        tenants: Tells credentials apart.
        ledger: Is handed every call that is over.
        offloading: Edits requests; None where requests are only observed.
        own: A path below which nothing is passed on, since it is the proxy's.
    """

    def __init__(
        self,
        settings: Settings,
        upstream: Upstream,
        tenants: Tenants,
        ledger: Ledger,
        offloading: Offloading | None,
        *,
        own: str,
    ) -> None:
        self._settings = settings
        self._upstream = upstream
        self._tenants = tenants
        self._ledger = ledger
        self._offloading = offloading
        self._own = own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        client = Client(scope, receive, send)
        if client.path == self._own or client.path.startswith(f"{self._own}/"):
            await client.respond(405, [(b"content-length", b"0")], b"")
            return
        asked = endpoint(client.method, client.path)
        try:
            if asked is None:
                await self._pass_through(client)
            else:
                await self._call(client, asked)
        except Gone:
            return
        except TooLong:
            limit = self._settings.body_limit
            await self._fail(client, 413, f"the body is longer than {limit:,} bytes", retry=False)
        except Unreachable as error:
            await self._fail(client, error.status, str(error))
        except Dropped as error:
            # Without an end the server cuts the response off, as the upstream did.
            _logger.info("the upstream dropped a response (%s)", error)
            if not client.started:
                await self._fail(client, 502, "the upstream dropped its answer")

    async def _fail(self, client: Client, status: int, message: str, *, retry: bool = True) -> None:
        wire_format = self._settings.upstreams.vendor_of(client.path, client.headers)
        body = error_body(wire_format, status, message)
        await client.respond(status, error_headers(body, retry=retry), body)

    async def _pass_through(self, client: Client) -> None:
        upstreams = self._settings.upstreams
        wire_format = upstreams.vendor_of(client.path, client.headers)
        url = upstreams.url(wire_format, client.path, client.query)
        headers = for_upstream(client.headers)
        if not client.has_body:
            await client.while_connected(self._pass_on(client, url, headers))
            return
        length = first(client.headers, b"content-length")
        headers += [(b"content-length", length)] if length is not None else []
        async with self._upstream.send(client.method, url, headers, client.pieces()) as answer:
            await client.while_connected(_relay(client, answer, None))

    async def _pass_on(self, client: Client, url: str, headers: Headers) -> None:
        async with self._upstream.send(client.method, url, headers, None) as answer:
            await _relay(client, answer, None)

    async def _call(self, client: Client, asked: Endpoint) -> None:
        raw = await client.body(self._settings.body_limit)
        url = self._settings.upstreams.url(asked.wire_format, client.path, client.query)
        call = Call(endpoint=asked, url=url, headers=client.headers, raw=raw)
        await client.while_connected(self._answer(client, call))

    async def _answer(self, client: Client, call: Call) -> None:
        if self._offloading is not None:
            try:
                await self._offloading.answer(client, call)
                return
            except Unedited:
                await self._observe(client, call, rehearse=False)
                return
        await self._observe(client, call, rehearse=True)

    async def _observe(self, client: Client, call: Call, *, rehearse: bool) -> None:
        """Pass a call on unchanged, and account for it when it is over."""
        headers = for_upstream(call.headers)
        async with self._upstream.send("POST", call.url, headers, call.raw) as answer:
            tap = UsageTap(answer.headers)
            try:
                await _relay(client, answer, tap)
            finally:
                if answer.status < _FAILED and not call.endpoint.counts:
                    self._ledger.add(lambda: self._passed(call, tap, rehearse=rehearse))

    def _passed(self, call: Call, tap: UsageTap, *, rehearse: bool) -> Passed:
        """Give the call for the ledger, without its keys."""
        return Passed(
            tenant=self._tenants.name(call.headers),
            headers=without_credentials(call.headers),
            wire_format=call.endpoint.wire_format,
            coding=coding(call.headers),
            raw=call.raw,
            usages=[tap.figures()],
            rehearse=rehearse,
        )


async def _relay(client: Client, answer: Answer, tap: UsageTap | None) -> None:
    await client.start(answer.status, as_received(answer.headers))
    async for chunk in answer.chunks():
        await client.write(chunk)
        if tap is not None:
            tap.feed(chunk)
    await client.end()
