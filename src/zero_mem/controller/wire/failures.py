"""Errors of ours, in the form that the clients of a wire format understand."""

from __future__ import annotations

from typing import Any, Final

from zero_mem.controller.messages import WireFormat

_ANTHROPIC: Final = {
    400: "invalid_request_error",
    413: "request_too_large",
    503: "overloaded_error",
    504: "timeout_error",
}
_OPENAI: Final = {400: "invalid_request_error", 413: "invalid_request_error"}


def failure_body(
    wire_format: WireFormat, message: str, *, status: int = 500, code: str | None = None
) -> dict[str, Any]:
    """Write an error.

    Args:
        wire_format: Whose form it takes.
        message: What went wrong.
        status: Of the response, which tells the error's type.
        code: Names the error, where the form has a place for it.
    """
    if wire_format in ("openai_chat", "openai_responses"):
        kind = _OPENAI.get(status, "server_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}
    kind = _ANTHROPIC.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}
