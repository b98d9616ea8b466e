"""The proxy's own errors, in the form that the vendor's clients understand."""

from __future__ import annotations

import json
from typing import Any, Final

from zero_mem.proxy.headers import Field
from zero_mem.proxy.targets import Vendor

_ANTHROPIC: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    413: "request_too_large",
    421: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_OPENAI: Final = {
    **dict.fromkeys((400, 401, 403, 413, 421), "invalid_request_error"),
    429: "rate_limit_exceeded",
}


def error_body(vendor: Vendor, status: int, message: str) -> bytes:
    """Write an error; the message says that it is the proxy's own."""
    text = f"zero-mem proxy: {message}"
    body: dict[str, Any]
    if vendor == "anthropic":
        kind = _ANTHROPIC.get(status, "api_error")
        body = {"type": "error", "error": {"type": kind, "message": text}}
    else:
        kind = _OPENAI.get(status, "server_error")
        body = {"error": {"message": text, "type": kind, "param": None, "code": f"proxy_{status}"}}
    return json.dumps(body).encode()


def error_headers(body: bytes, *, retry: bool = True) -> list[Field]:
    """Give an error's fields; `retry` False tells the official clients not to try again."""
    fields = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    return fields if retry else [*fields, (b"x-should-retry", b"false")]
