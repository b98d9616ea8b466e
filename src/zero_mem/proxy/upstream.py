"""The client of the upstream: bytes and fields as they are, streamed, over kept connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.errors import MissingExtra
from zero_mem.proxy.headers import Field, Headers

_AT_ONCE: Final = 1 << 20
"""Bytes of a body that are handed over in one piece."""

_FIELDS: Final = 1 << 16
"""The longest line of a response's head that is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds to wait for a connection, and for the next byte of an answer."""

    connect: float = 30.0
    read: float = 600.0


class Unreachable(Exception):
    """The upstream gave no answer; `status` is the one that says so to the client."""

    def __init__(self, why: str, status: int = 502) -> None:
        super().__init__(why)
        self.status = status


class Dropped(Exception):
    """The upstream went away in the middle of an answer."""


class Answer:
    """An upstream's answer: its head, and its body as it comes in."""

    def __init__(self, response: Any) -> None:
        self.status: int = response.status
        self.headers: list[Field] = list(response.raw_headers)
        self._response = response

    async def chunks(self) -> AsyncIterator[bytes]:
        """Give the body as it arrives, still in its coding.

        Raises:
            Dropped: It ended too early, or nothing came for too long.
        """
        import aiohttp

        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Dropped(type(error).__name__) from error

    async def read(self) -> bytes:
        """Give the whole body.

        Raises:
            Dropped: It ended too early.
        """
        return b"".join([chunk async for chunk in self.chunks()])


class Upstream:
    """Sends requests on, byte for byte; use it as an asynchronous context manager.

    Cookies, redirects and retries are the client's own business, so nothing is done about
    them here.
    """

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._session: Any = None

    async def __aenter__(self) -> Upstream:
        try:
            import aiohttp
        except ImportError as error:
            raise MissingExtra("the proxy", "proxy") from error
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_connect=self._timeouts.connect,
                sock_read=self._timeouts.read,
            ),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            auto_decompress=False,
            trust_env=True,
            max_line_size=_FIELDS,
            max_field_size=_FIELDS,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    @asynccontextmanager
    async def send(
        self, method: str, url: str, headers: Headers, body: bytes | AsyncIterator[bytes] | None
    ) -> AsyncIterator[Answer]:
        """Send a request and give the answer as soon as its head is there.

        Args:
            method: Any method.
            url: Where to, encoded as it is to be sent.
            headers: The fields in order; those that name the host and length are added.
            body: All of it, a stream of it, or None.

        Raises:
            Unreachable: No answer came.
        """
        import aiohttp
        from yarl import URL

        fields = [(_text(name), _text(value)) for name, value in headers]
        if isinstance(body, bytes) and len(body) > _AT_ONCE:
            fields.append(("content-length", str(len(body))))
            body = _pieces(body)
        try:
            response = await self._session.request(
                method,
                URL(url, encoded=True),
                headers=fields,
                data=body,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(error) from error
        try:
            yield Answer(response)
        finally:
            # One that was read to its end goes back to the pool, any other is closed.
            response.close()


def _unreachable(error: BaseException) -> Unreachable:
    if isinstance(error, TimeoutError):
        return Unreachable("the upstream did not answer in time", 504)
    return Unreachable(f"the upstream cannot be reached ({type(error).__name__})")


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _AT_ONCE):
        yield body[start : start + _AT_ONCE]
        await asyncio.sleep(0)
