"""The OpenAPI 3.1 document, written from the table of routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from zero_mem.api import schemas
from zero_mem.api.arguments import argument
from zero_mem.api.forms import COMPONENTS, reference
from zero_mem.api.problems import PROBLEMS, Problem
from zero_mem.api.routes import HEADERS, NEEDED, PLACES, ROUTES, Parameter, Route
from zero_mem.api.schemas import CONTENT, CONTENT_SHAPES, Schema

VERSION: Final = "1"
"""Version of the API; it rises when a request that worked would not any more."""

_PLACE_TEXTS: Final = {
    "namespace": "Segments with / between; a JSON list of them where one has a slash.",
    "actor": "Who writes, for the journal; with a key, its name goes before.",
    "moment": "The moment to read as of.",
    "below": "The namespaces at and below this one; all without it.",
}
_PLACE_EXAMPLES: Final = {
    "namespace": "acme/alice",
    "moment": "2026-11-29T12:00:00+00:00",
    "below": "acme",
}
_PLACE_SCHEMAS: Final = {
    "namespace": schemas.NAMESPACE,
    "actor": schemas.NAME,
    "moment": schemas.TIME,
    "below": schemas.NAMESPACE,
}
_INTRODUCTION: Final = (
    "Memory for LLM agents. Errors are problem details (RFC 9457) whose `type` names one of a few "
    "kinds; nothing of a request that failed was done."
)
_EVERYWHERE: Final = (400, 401, 403, 408, 413, 415, 421, 429, 500, 503)
_OPEN: Final = frozenset({"alive", "ready", "document"})


@cache
def document() -> dict[str, Any]:
    """Give the whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Zero-Mem",
            "version": VERSION,
            "description": _INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}, {}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(COMPONENTS.items())),
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key made by `zero-mem key create`.",
                }
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    texts = _texts(route)
    found: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary or texts[""],
        "tags": [route.target],
        "parameters": [*_places(route), *_arguments(route, texts), *_headers(route)],
        "responses": _responses(route),
    }
    if route.target == "server" and route.call in _OPEN:
        found["security"] = []
    if route.call == "import":
        found["requestBody"] = {
            "required": True,
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        }
    elif route.has_body:
        found["requestBody"] = _body(route, texts)
    return found


def _places(route: Route) -> Iterator[dict[str, Any]]:
    for name in PLACES[route.target]:
        schema = _PLACE_SCHEMAS[name]
        yield _parameter(
            name, "query", name in NEEDED, schema, _PLACE_TEXTS[name], _PLACE_EXAMPLES.get(name)
        )
    for name, needed in route.query.items():
        text = _PLACE_TEXTS.get(name, "")
        yield _parameter(
            name, "query", needed, _server_schema(name), text, _PLACE_EXAMPLES.get(name)
        )


def _server_schema(name: str) -> Schema:
    if name == "on_conflict":
        return schemas.one_of("refuse", "skip", "renumber")
    return schemas.NAMESPACE if name == "namespace" else argument(name).schema


def _arguments(route: Route, texts: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for name in route.in_path:
        yield _parameter(name, "path", True, argument(name).schema, texts.get(name, ""), "1")
    if not route.has_body:
        for each in _outside_path(route):
            example = route.example.get(each.name)
            schema, text = argument(each.name, route.name).schema, texts.get(each.name, "")
            yield _parameter(each.name, "query", each.needed, schema, text, example)


def _outside_path(route: Route) -> list[Parameter]:
    return [each for each in route.parameters.values() if each.name not in route.in_path]


def _parameter(
    name: str, place: str, needed: bool, schema: Schema, text: str, example: Any
) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "in": place, "required": needed}
    if "$ref" in schema:
        # An object in a query is its JSON.
        found["content"] = {"application/json": {"schema": schema}}
    else:
        found["schema"] = schema
        if example is not None:
            found["example"] = example
    if text:
        found["description"] = text
    return found


def _headers(route: Route) -> Iterator[dict[str, Any]]:
    for name, header in HEADERS.items():
        if name in route.parameters:
            schema = schemas.TAG if name == "if_version" else argument(name).schema
            text = f"The same as {name}, and goes before it."
            yield _parameter(header, "header", False, schema, text, None)
    if route.call == "follow":
        text = "The id of the last event seen; goes before `after`."
        schema = {"type": "string", "pattern": "^[0-9]{1,18}$"}
        yield _parameter("Last-Event-ID", "header", False, schema, text, None)


def _body(route: Route, texts: Mapping[str, str]) -> dict[str, Any]:
    schema = _object(route, texts, [each.name for each in _outside_path(route)])
    media: dict[str, Any] = {"schema": schema}
    if route.example:
        media["example"] = dict(route.example)
    needed = bool(schema.get("required")) or route.call in ("rollback", "delete_many")
    return {"required": needed, "content": {"application/json": media}}


def _object(route: Route, texts: Mapping[str, str], names: list[str]) -> Schema:
    properties: Schema = {}
    for name in names:
        text = {"description": texts[name]} if name in texts else {}
        if name == "content":
            properties |= CONTENT
        elif name == "items" and route.item is not None:
            item = [each for each in route.item.parameters if each not in ("mode", "only_new")]
            items = _object(route.item, _texts(route.item), item)
            properties["items"] = {"type": "array", "items": items} | text
        else:
            properties[name] = argument(name, route.name).schema | text
    needed = [name for name in names if route.parameters[name].needed]
    found: Schema = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    if "content" in names:
        found |= {
            "anyOf": CONTENT_SHAPES,
            "dependentRequired": {name: ["content"] for name in ("content_type", "media_type")},
        }
    if {"expires_in", "expires_at"} <= set(names):
        found["not"] = {
            "required": ["expires_in", "expires_at"],
            "properties": {"expires_at": {"type": "string"}},
        }
    return found | _RULES.get(route.call, {}) | ({"required": needed} if needed else {})


def _exactly(*names: str) -> Schema:
    """Describe that of the arguments of a rollback just these are there."""
    others = {"memory_id", "task", "operation", "to_version", "to_moment"} - set(names)
    return {"required": list(names), "properties": dict.fromkeys(sorted(others), False)}


_RULES: Final[Mapping[str, Schema]] = {
    "configure": {
        "anyOf": [
            {"properties": {"settings": {"properties": {"redact": False, "max_bytes": False}}}},
            {"properties": {"form": False, "kind": False}},
        ]
    },
    "rollback": {
        "oneOf": [
            _exactly("operation"),
            _exactly("memory_id", "to_version"),
            _exactly("memory_id", "to_moment"),
            _exactly("task", "to_moment"),
            _exactly("to_moment"),
        ]
    },
    "delete_many": {
        "anyOf": [
            {"required": ["where"], "properties": {"where": {"minProperties": 1}}},
            {"required": ["everything"], "properties": {"everything": {"const": True}}},
        ]
    },
}
"""What operations say of their arguments together."""


def _responses(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if route.target == "server":
        media = route.media_type or "application/json"
        schema: Schema = {
            "type": "string" if media.startswith(("text/plain", "application/x")) else "object"
        }
        found["200"] = {"description": "Done.", "content": {media: {"schema": schema}}}
    elif route.result is None:
        found["204"] = {"description": "Done."}
    else:
        schema = route.result.schema
        if route.is_wrapped:
            schema = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
        found["200"] = {"description": "Done.", "content": {"application/json": {"schema": schema}}}
    for status, rows in _by_status().items():
        names_one = route.target in ("space", "past") or (status == 404 and route.in_path)
        if status in _EVERYWHERE or names_one:
            found[str(status)] = _failure(rows)
    return found


@cache
def _by_status() -> dict[int, list[Problem]]:
    found: dict[int, list[Problem]] = {}
    for row in sorted(PROBLEMS, key=lambda row: row.status):
        found.setdefault(row.status, []).append(row)
    return found


def _failure(rows: list[Problem]) -> dict[str, Any]:
    return {
        "description": " / ".join(f"`{row.name}`: {row.title}" for row in rows),
        "content": {"application/problem+json": {"schema": reference("Problem")}},
    }


def _texts(route: Route) -> dict[str, str]:
    """Read a docstring: its first sentence under "", and what it says of each argument."""
    if route.target == "server":
        return {"": route.summary}
    text = inspect.getdoc(route.function) or ""
    first, _, rest = text.partition("\n")
    found = {"": first}
    _, _, listed = rest.partition("Args:\n")
    name = ""
    for line in listed.split("\n\n")[0].splitlines():
        begun = re.match(r" {4}(\w+): (.*)", line)
        if begun:
            name = begun[1]
            found[name] = begun[2].strip()
        elif name:
            found[name] += " " + line.strip()
    return found
