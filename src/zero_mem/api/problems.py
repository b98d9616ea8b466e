"""Errors as problem details (RFC 9457) and back: one table for the server and the client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from zero_mem import errors
from zero_mem.errors import ZeroMemError

_URN: Final = "urn:zero-mem:"


@dataclass(frozen=True, slots=True)
class Problem:
    """A way to fail: its name in `type`, its status and title, and the error that it is."""

    name: str
    status: int
    title: str
    kind: type[ZeroMemError]


PROBLEMS: Final = (
    Problem("not-found", 404, "There is nothing to read or change here.", errors.NotFound),
    Problem("conflict", 409, "Another write came first, or a name is taken.", errors.Conflict),
    Problem("limit-reached", 409, "A limit of the namespace is reached.", errors.LimitReached),
    Problem("not-allowed", 403, "A right, a state or a policy forbids it.", errors.NotAllowed),
    Problem("required-missing", 409, "A required memory is missing.", errors.RequiredMemoryMissing),
    Problem("invalid-input", 400, "The request is wrong.", errors.InvalidInput),
    Problem("store-corrupt", 500, "The store is damaged.", errors.StoreCorrupt),
    Problem("store-unavailable", 503, "The store can't be used now.", errors.StoreUnavailable),
    Problem("newer-format", 422, "A newer version wrote this.", errors.MigrationNeeded),
    Problem("embedder-unavailable", 503, "The embedder fails.", errors.EmbedderUnavailable),
    Problem("endpoint-unavailable", 502, "A model can't be reached.", errors.EndpointUnavailable),
    Problem("missing-extra", 501, "The server lacks an optional package.", errors.MissingExtra),
    # What the protocol refuses before an operation begins.
    Problem("version-differs", 412, "The record is at another version.", errors.Conflict),
    Problem("no-credential", 401, "No valid credential was given.", errors.NotAllowed),
    Problem("wrong-host", 421, "This server does not go by that name.", errors.NotAllowed),
    Problem("no-such-path", 404, "There is no such path.", errors.InvalidInput),
    Problem("wrong-method", 405, "The path does not take this method.", errors.InvalidInput),
    Problem("too-slow", 408, "The request did not arrive in time.", errors.InvalidInput),
    Problem("too-large", 413, "The request is too large.", errors.InvalidInput),
    Problem("wrong-type", 415, "The body is not of a type that is taken.", errors.InvalidInput),
    Problem("too-many", 429, "Too many requests with this credential.", errors.LimitReached),
    Problem("busy", 503, "Too many requests wait already.", errors.StoreUnavailable),
)
_BY_NAME: Final = {problem.name: problem for problem in PROBLEMS}
_UNNAMED: Final = Problem("failed", 500, "The operation failed.", ZeroMemError)


class Refusal(ZeroMemError):
    """A request that the protocol refuses, before any operation; `name` is its problem's."""

    def __init__(self, name: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.name = name
        self.headers = dict(headers or {})


def problem_of(error: ZeroMemError) -> Problem:
    """Give the row of the table for an error."""
    if isinstance(error, Refusal):
        return _BY_NAME[error.name]
    return next((row for row in PROBLEMS if isinstance(error, row.kind)), _UNNAMED)


def problem_json(error: ZeroMemError, problem: Problem | None = None) -> dict[str, Any]:
    """Write an error as problem details."""
    row = problem or problem_of(error)
    return {
        "type": f"{_URN}{row.name}",
        "title": row.title,
        "status": row.status,
        "detail": str(error),
    }


def error_from(fields: Mapping[str, Any]) -> ZeroMemError:
    """Read problem details as the error that they were; an unknown type is a `ZeroMemError`."""
    name = str(fields.get("type", "")).removeprefix(_URN)
    detail = str(fields.get("detail") or fields.get("title") or "the server gave no reason")
    kind = _BY_NAME[name].kind if name in _BY_NAME else ZeroMemError
    if kind is errors.MissingExtra:
        kind = errors.StoreUnavailable  # it is the server's to install
    return kind(detail)


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": [f"{_URN}{row.name}" for row in (*PROBLEMS, _UNNAMED)]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
    "additionalProperties": False,
}
"""The JSON Schema of problem details here."""
