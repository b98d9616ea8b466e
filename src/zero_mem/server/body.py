"""Taking in a request's body: bounded in size and in time, and whole before anything is done."""

from __future__ import annotations

import asyncio
from tempfile import SpooledTemporaryFile
from typing import Final

from starlette.requests import Request

from zero_mem.api.problems import Refusal

_IN_MEMORY: Final = 1_048_576
"""Bytes of an import that are kept in memory; more go into a file that has no name."""


async def whole(request: Request, *, most: int, seconds: float) -> bytes:
    """Give a body.

    Raises:
        Refusal: It is too large, or did not arrive in time.
    """
    parts: list[bytes] = []
    size = 0
    _check_announced(request, most)
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                _check_size(size, most)
                parts.append(part)
    except TimeoutError:
        raise _too_slow(seconds) from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def spooled(request: Request, *, most: int, seconds: float) -> SpooledTemporaryFile[bytes]:
    """Put a body aside to be read from its beginning; the time is for each part of it.

    Raises:
        Refusal: It is too large, or a part did not arrive in time.
    """
    _check_announced(request, most)
    kept = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - the caller closes it
    size = 0
    stream = request.stream()
    try:
        while True:
            async with asyncio.timeout(seconds):
                part = await anext(stream, None)
            if part is None:
                break
            size += len(part)
            _check_size(size, most)
            kept.write(part)
    except TimeoutError:
        kept.close()
        raise _too_slow(seconds) from None
    except BaseException:
        kept.close()
        raise
    kept.seek(0)
    return kept


def _check_announced(request: Request, most: int) -> None:
    announced = request.headers.get("content-length", "")
    if announced.isdecimal():
        _check_size(int(announced), most)


def _check_size(size: int, most: int) -> None:
    if size > most:
        # What is still under way is not read, so the connection can't be used on.
        detail = f"a body has at most {most} bytes here; send it in parts"
        raise Refusal("too-large", detail, {"Connection": "close"})


def _too_slow(seconds: float) -> Refusal:
    detail = f"the body did not arrive within {seconds:g} seconds"
    return Refusal("too-slow", detail, {"Connection": "close"})
