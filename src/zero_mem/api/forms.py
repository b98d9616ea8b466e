"""What results look like in JSON, made from their types: the schema, the writing, the reading."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from zero_mem.access.grants import Grant
from zero_mem.api.problems import SCHEMA as PROBLEM
from zero_mem.api.problems import error_from, problem_json
from zero_mem.api.schemas import CONTENT, FILTER, GRANT, Schema
from zero_mem.errors import ZeroMemError
from zero_mem.exchange import body_from, body_json, record_json
from zero_mem.types import Blob, Form, Json, MemoryReceipt, MemoryRecord, Page, Source, State

COMPONENTS: Final[dict[str, Schema]] = {"Problem": PROBLEM, "Filter": FILTER}
"""The named schemas of all forms made so far."""


@dataclass(frozen=True, slots=True)
class JsonForm:
    """How values of one type are described, written and read."""

    schema: Schema
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def reference(name: str) -> Schema:
    """Point to a named schema."""
    return {"$ref": f"#/components/schemas/{name}"}


@cache
def form_of(hint: Any) -> JsonForm:
    """Give the form of a type.

    Args:
        hint: As an annotation has it: a scalar, a frozen dataclass of the package, a union with
            None, a Literal, or a collection of these.
    """
    if hint in _KNOWN:
        return _KNOWN[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is Literal:
        return _same({"type": "string", "enum": list(arguments)})
    if origin is Page:
        return _page(form_of(arguments[0]))
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return _mapping(form_of(arguments[1]))
    if origin in _COLLECTIONS:
        return _collection(form_of(arguments[0]), _COLLECTIONS[origin])
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint, tuple(field.name for field in fields(hint)))
    if hasattr(hint, "_fields"):
        return _object(hint, hint._fields)
    raise TypeError(f"no JSON form is known for {hint!r}")


_COLLECTIONS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    tuple: tuple,
    list: list,
    frozenset: frozenset,
}


def _same(schema: Schema) -> JsonForm:
    return JsonForm(schema, lambda value: value, lambda value: value)


def _union(arguments: tuple[Any, ...]) -> JsonForm:
    kinds = set(arguments)
    if ZeroMemError in kinds:
        return _RESULT
    some = kinds - {types.NoneType}
    if some == {str, Json, Blob}:
        inner = _BODY
    elif len(some) == 1:
        inner = form_of(*some)
    else:
        raise TypeError(f"no JSON form is known for one of {arguments!r}")
    if types.NoneType not in kinds:
        return inner
    return JsonForm(
        _nullable(inner.schema),
        lambda value: None if value is None else inner.write(value),
        lambda value: None if value is None else inner.read(value),
    )


def _nullable(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return schema | {"type": [schema["type"], "null"]}
    return {"oneOf": [schema, {"type": "null"}]}


def _collection(inner: JsonForm, kind: Callable[[Any], Any]) -> JsonForm:
    def write(values: Any) -> list[Any]:
        listed = sorted(values) if isinstance(values, frozenset) else values
        return [inner.write(value) for value in listed]

    schema = {"type": "array", "items": inner.schema}
    return JsonForm(schema, write, lambda values: kind(inner.read(value) for value in values))


def _mapping(inner: JsonForm) -> JsonForm:
    return JsonForm(
        {"type": "object", "additionalProperties": inner.schema},
        lambda values: {name: inner.write(value) for name, value in values.items()},
        lambda values: {name: inner.read(value) for name, value in values.items()},
    )


def _page(inner: JsonForm) -> JsonForm:
    items = _collection(inner, tuple)
    COMPONENTS["RecordPage"] = {
        "type": "object",
        "properties": {"items": items.schema, "next_cursor": {"type": ["string", "null"]}},
        "required": ["items", "next_cursor"],
    }
    return JsonForm(
        reference("RecordPage"),
        lambda page: {"items": items.write(page.items), "next_cursor": page.next_cursor},
        lambda fields: Page(items=items.read(fields["items"]), next_cursor=fields["next_cursor"]),
    )


def _object(kind: type[Any], names: tuple[str, ...]) -> JsonForm:
    hints = get_type_hints(kind)
    forms = {name: form_of(hints[name]) for name in names}
    COMPONENTS[kind.__name__] = {
        "type": "object",
        "properties": {name: form.schema for name, form in forms.items()},
        "required": list(forms),
    }
    return JsonForm(
        reference(kind.__name__),
        lambda value: {name: form.write(getattr(value, name)) for name, form in forms.items()},
        lambda found: kind(**{name: form.read(found[name]) for name, form in forms.items()}),
    )


def _record_from(found: Mapping[str, Any]) -> MemoryRecord:
    times = {
        name: None if found[name] is None else datetime.fromisoformat(found[name])
        for name in ("created_at", "recorded_at", "updated_at", "accessed_at", "expires_at")
    }
    sequences = {name: tuple(found[name]) for name in ("namespace", "tags", "invalidated_by")}
    body = {"content", "content_type", "media_type"}
    rest = {name: value for name, value in found.items() if name not in body}
    return MemoryRecord(**(rest | times | sequences | {"content": body_from(found)}))


_TEXT: Final = {"type": "string"}
_NULLABLE_TEXT: Final = {"type": ["string", "null"]}
_TIME: Final = {"type": "string", "format": "date-time"}
_RECORD_PROPERTIES: Final[Schema] = {
    "uid": _TEXT,
    "memory_id": _TEXT,
    "namespace": {"type": "array", "items": _TEXT},
    "form": {"type": "string", "enum": list(get_args(Form))},
    "kind": _TEXT,
    "key": _NULLABLE_TEXT,
    "task": _NULLABLE_TEXT,
    "session": _NULLABLE_TEXT,
    "speaker": _NULLABLE_TEXT,
    "source": {"type": "string", "enum": list(get_args(Source))},
    **CONTENT,
    "metadata": {"type": "object"},
    "tags": {"type": "array", "items": _TEXT},
    "created_at": _TIME,
    "recorded_at": _TIME,
    "updated_at": _TIME,
    "accessed_at": _TIME,
    "expires_at": {"type": ["string", "null"], "format": "date-time"},
    "access_count": {"type": "integer"},
    "invalidated_by": {"type": "array", "items": _TEXT},
    "version": {"type": "integer"},
    "state": {"type": "string", "enum": list(get_args(State))},
}
COMPONENTS["MemoryRecord"] = {
    "type": "object",
    "properties": _RECORD_PROPERTIES,
    "required": [name for name in _RECORD_PROPERTIES if name != "media_type"],
}
COMPONENTS["Body"] = {
    "type": "object",
    "properties": CONTENT,
    "required": ["content", "content_type"],
}

_BODY: Final = JsonForm(reference("Body"), body_json, body_from)
_ERROR: Final = JsonForm(reference("Problem"), problem_json, error_from)
_KNOWN: Final[dict[Any, JsonForm]] = {
    str: _same(_TEXT),
    int: _same({"type": "integer"}),
    float: _same({"type": "number"}),
    bool: _same({"type": "boolean"}),
    Any: _same({}),
    datetime: JsonForm(_TIME, datetime.isoformat, datetime.fromisoformat),
    Grant: JsonForm(GRANT, str, Grant.parse),
    MemoryRecord: JsonForm(reference("MemoryRecord"), record_json, _record_from),
    ZeroMemError: _ERROR,
}
_RECEIPT: Final = form_of(MemoryReceipt)
_RESULT: Final = JsonForm(
    {"anyOf": [_RECEIPT.schema, _ERROR.schema]},
    lambda value: (_ERROR if isinstance(value, ZeroMemError) else _RECEIPT).write(value),
    lambda value: (_ERROR if "detail" in value else _RECEIPT).read(value),
)
