"""One request as a call of the library, and its result as an answer; this does no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from zero_mem.api.arguments import argument, namespace_path
from zero_mem.api.problems import PROBLEMS, Problem, problem_json, problem_of
from zero_mem.api.routes import (
    HEADERS,
    PLACES,
    Route,
    check_needed,
    items_of,
    read_arguments,
)
from zero_mem.api.text import dump, parse
from zero_mem.errors import Conflict, InvalidInput, StoreUnavailable, ZeroMemError
from zero_mem.memory import Memory
from zero_mem.operations.batch import BatchResult
from zero_mem.operations.requests import check_name
from zero_mem.types import MemoryReceipt, MemoryRecord

JSON: Final = "application/json"
PROBLEM_JSON: Final = "application/problem+json"
_TAG: Final = re.compile(r'(?:W/)?"?([0-9]{1,18})"?')
_VERSION_DIFFERS: Final = next(row for row in PROBLEMS if row.name == "version-differs")


class Asked(NamedTuple):
    """A request as far as an operation needs it; the body is None where there is none."""

    route: Route
    in_path: Mapping[str, str]
    query: Iterable[tuple[str, str]]
    headers: Mapping[str, str]
    body: bytes | None


class Answer(NamedTuple):
    """What goes back."""

    status: int
    media_type: str
    body: bytes
    headers: Mapping[str, str] = {}


def perform(memory: Memory, asked: Asked, *, most: int) -> Answer:
    """Do what was asked.

    Args:
        memory: The view of who asks.
        asked: The request.
        most: Most records or hits of one answer.

    Raises:
        ZeroMemError: The request is wrong, or the operation refuses.
    """
    route = asked.route
    place, arguments = _arguments(asked)
    items = items_of(route, arguments)
    if items is not None:
        arguments["items"] = items.good
    limit = arguments.get("limit", route.limit)
    if limit is not None:
        arguments["limit"] = min(limit, most)
    found = route.perform(_target(memory, route, place), arguments)
    if items is not None and isinstance(found, BatchResult):
        found = items.woven(found)
    return _answer(route, found)


def _arguments(asked: Asked) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read where the operation works and its arguments, from wherever they stand."""
    route = asked.route
    place, rest = query_of(route, asked.query)
    found: dict[str, Any] = {}
    if route.has_body:
        if rest:
            raise InvalidInput(f"{next(iter(rest))} goes into the body, not into the query")
        found = read_arguments(route, _object(asked.body))
    else:
        known = [name for name in route.parameters if name not in route.in_path]
        for name, text in rest.items():
            if name not in known:
                raise _unknown(name, [*PLACES[route.target], *known])
            found[name] = argument(name, route.name).from_text(text, name)
    found |= {name: argument(name).read(text, name) for name, text in asked.in_path.items()}
    _add_headers(asked, found)
    check_needed(route, found)
    return place, found


def query_of(
    route: Route, query: Iterable[tuple[str, str]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Cut a query into what says where an operation works, and the rest.

    Raises:
        InvalidInput: Something is named twice, or missing.
    """
    rest: dict[str, str] = {}
    for name, text in query:
        if name in rest:
            raise InvalidInput(f"{name[:80]} is given twice in the query")
        rest[name] = text
    place = {name: rest.pop(name) for name in PLACES[route.target] if name in rest}
    for name in PLACES[route.target]:
        if name in ("namespace", "moment") and name not in place:
            raise InvalidInput(f"{name} is missing in the query, such as ?namespace=acme/alice")
    return place, rest


def _unknown(name: str, known: Iterable[str]) -> InvalidInput:
    there = ", ".join(sorted(known)) or "none"
    return InvalidInput(f"there is no query parameter {name[:80]!r} here; there are {there}")


def _object(body: bytes | None) -> dict[str, Any]:
    if not body:
        return {}
    found = parse(body)
    if isinstance(found, dict):
        return found
    raise InvalidInput("the body is a JSON object")


def _add_headers(asked: Asked, found: dict[str, Any]) -> None:
    for name, header in HEADERS.items():
        text = asked.headers.get(header.lower())
        if text is None:
            continue
        if name not in asked.route.parameters:
            raise InvalidInput(f"this operation takes no {header}")
        # A header goes before the field.
        found[name] = _version(text) if name == "if_version" else check_name(text, header)


def _version(text: str) -> int:
    found = _TAG.fullmatch(text.strip())
    if found is None:
        raise InvalidInput('If-Match is one ETag that this server gave, such as "3"')
    return int(found[1])


def _target(memory: Memory, route: Route, place: Mapping[str, Any]) -> Any:
    if route.target == "store":
        return memory
    if route.target == "keyring":
        return memory.keyring
    if route.target == "subtree":
        below = place.get("below")
        return memory.subtree(*(() if below is None else namespace_path(below, "below")))
    actor = check_name(place["actor"], "actor") if "actor" in place else None
    path = namespace_path(place["namespace"])
    space = memory.namespace(*path, actor=None if actor is None else _writer(memory.actor, actor))
    if route.target == "past":
        return space.as_of(argument("to_moment").read(place["moment"], "moment"))
    return space


def _writer(holder: str, actor: str) -> str:
    """Name who writes; the name of a key goes before what its holder says."""
    return f"{holder} ({actor})" if holder.startswith("key:") else actor


def _answer(route: Route, found: Any) -> Answer:
    if route.result is None:
        return Answer(204, "", b"")
    written = route.result.write(found)
    headers = {}
    if isinstance(found, MemoryRecord | MemoryReceipt) and found.version:
        headers["ETag"] = f'"{found.version}"'
    body = dump({"result": written} if route.is_wrapped else written)
    return Answer(200, JSON, body, headers)


def refused(error: ZeroMemError, *, if_match: bool = False) -> Answer:
    """Give the answer for an error; a conflict with a version that If-Match named is a 412."""
    row: Problem = problem_of(error)
    if if_match and row.kind is Conflict:
        row = _VERSION_DIFFERS
    headers = dict(getattr(error, "headers", {}))
    if row.kind is StoreUnavailable:
        headers.setdefault("Retry-After", "1")
    return Answer(row.status, PROBLEM_JSON, dump(problem_json(error, row)), headers)
