"""HTTP fields on their way through a proxy (RFC 9110, section 7.6.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

Field: TypeAlias = tuple[bytes, bytes]
Headers: TypeAlias = Sequence[Field]

CONVERSATION: Final = b"x-zero-mem-conversation"
_OURS: Final = b"x-zero-mem-"
_HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# The client of the upstream writes its own; `expect` is answered by our server.
_PER_CONNECTION: Final = frozenset({b"host", b"content-length", b"expect"})


def first(headers: Headers, name: bytes) -> bytes | None:
    """Read the first field of a name, None where there is none."""
    return next((value for key, value in headers if key.lower() == name), None)


def end_to_end(headers: Headers) -> Iterator[Field]:
    """Drop what concerns one connection only: the known fields, and those `connection` names."""
    named = b",".join(value for key, value in headers if key.lower() == b"connection")
    dropped = _HOP_BY_HOP | {name.strip().lower() for name in named.split(b",")}
    return (field for field in headers if field[0].lower() not in dropped)


def for_upstream(headers: Headers) -> list[Field]:
    """Give a request's fields as they go on: in order, repeated ones too, without our own."""
    return [
        field
        for field in end_to_end(headers)
        if field[0].lower() not in _PER_CONNECTION and not field[0].lower().startswith(_OURS)
    ]


def without(headers: Iterable[Field], names: Collection[bytes]) -> list[Field]:
    """Drop the fields of some names."""
    return [field for field in headers if field[0].lower() not in names]
