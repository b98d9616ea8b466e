"""The proxy's own errors, in the form that the vendor's clients understand."""

from __future__ import annotations

import json

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.failures import failure_body
from zero_mem.proxy.headers import Field


def error_body(wire_format: WireFormat, status: int, message: str) -> bytes:
    """Write an error; the message says that it is the proxy's own."""
    code, text = f"proxy_{status}", f"zero-mem proxy: {message}"
    return json.dumps(failure_body(wire_format, text, status=status, code=code)).encode()


def error_headers(body: bytes, *, retry: bool = True) -> list[Field]:
    """Give an error's fields; `retry` False tells the official clients not to try again."""
    fields = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    return fields if retry else [*fields, (b"x-should-retry", b"false")]
