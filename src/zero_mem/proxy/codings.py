"""Content codings: understood where this Python can, passed on untouched where it can't."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any, Final, Protocol

from zero_mem.proxy.headers import Headers


class Unreadable(ValueError):
    """The body's coding is unknown here, or the body is not in it, or longer than allowed."""


class Decoder(Protocol):
    """Decodes a body piece by piece."""

    def __call__(self, data: bytes, /) -> bytes:
        """Decode the next piece."""


def coding(headers: Headers) -> str:
    """Read the coding of a body; "" for none."""
    values = [value for name, value in headers if name.lower() == b"content-encoding"]
    names = [part.strip().lower() for part in b",".join(values).split(b",")]
    return ",".join(name.decode("latin-1") for name in names if name not in (b"", b"identity"))


def decoder(name: str) -> Decoder | None:
    """Give what decodes a coding, None where nothing here can."""
    if not name:
        return bytes
    make = _DECODERS.get(name)
    return None if make is None else make()


def decoded(name: str, body: bytes, limit: int) -> bytes:
    """Decode a whole body.

    Raises:
        Unreadable: It can't be read, or would be longer than `limit` bytes.
    """
    decode = decoder(name)
    if decode is None:
        raise Unreadable(f"the coding {name} is not known here")
    parts: list[bytes] = []
    size = 0
    for start in range(0, len(body), _PIECE):
        try:
            parts.append(decode(body[start : start + _PIECE]))
        except _FAULTS as error:
            raise Unreadable(f"the body is not in {name}") from error
        size += len(parts[-1])
        if size > limit:
            raise Unreadable(f"the body is longer than {limit} bytes")
    return b"".join(parts)


_PIECE: Final = 1 << 14
_FAULTS: Final = (zlib.error, EOFError, OSError, ValueError)


def _gzip() -> Decoder:
    return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress


def _deflate() -> Decoder:
    """Read zlib's form, and the bare one that some senders mean by the name."""
    state: list[Any] = []

    def decode(data: bytes, /) -> bytes:
        if not state:
            state.append(zlib.decompressobj())
            try:
                return bytes(state[0].decompress(data))
            except zlib.error:
                state[0] = zlib.decompressobj(-zlib.MAX_WBITS)
        return bytes(state[0].decompress(data))

    return decode


def _zstd() -> Decoder | None:
    try:
        zstd: Any = importlib.import_module("compression.zstd")
    except ImportError:  # before Python 3.14
        return None
    decode: Decoder = zstd.ZstdDecompressor().decompress
    return decode


_DECODERS: Final[dict[str, Callable[[], Decoder | None]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}
