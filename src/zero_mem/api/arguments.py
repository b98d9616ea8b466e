"""What operations take, by the argument's name: the schema, the reading, the writing.

An argument's name means the same in every operation, so that one row here serves them all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, get_args

from zero_mem.access.grants import Grant
from zero_mem.api import schemas
from zero_mem.api.schemas import CONTENT, Schema
from zero_mem.api.text import parse
from zero_mem.errors import InvalidInput, ZeroMemError
from zero_mem.exchange import body_from, body_json
from zero_mem.handles import check_memory_id
from zero_mem.operations.batch import BatchResult, OnError
from zero_mem.operations.requests import (
    check_body,
    check_json,
    check_metadata,
    check_moment,
    check_name,
)
from zero_mem.operations.sweep import Ending
from zero_mem.types import Form, MemoryReceipt, Source, Unset


@dataclass(frozen=True, slots=True)
class Argument:
    """How one argument is described, read by the server and written by the client."""

    schema: Schema
    read: Callable[[Any, str], Any]
    write: Callable[[Any], Any] = lambda value: value

    def from_text(self, text: str, name: str) -> Any:
        """Read it from a query string, where all but strings are JSON.

        Raises:
            InvalidInput: It is not of the argument's type.
        """
        if "string" in _types(self.schema):
            return self.read(text, name)
        return self.read(parse(text, name), name)


def _types(schema: Schema) -> Sequence[str]:
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else kinds


def plain(schema: Schema) -> Argument:
    """Make an argument whose JSON type is checked and which the operation checks further."""
    kinds = [_PYTHON[kind] for kind in _types(schema)]
    expected = " or ".join(_types(schema))
    least = schema.get("minimum", -math.inf)

    def read(value: Any, name: str) -> Any:
        if "integer" in _types(schema):
            value = _whole(value)
        if any(type(value) in kind for kind in kinds):
            if type(value) in (int, float) and value < least:
                raise InvalidInput(f"{name} is at least {least}, not {value}")
            return value
        raise InvalidInput(f"{name} is of type {expected}, not {_json_type(value)}")

    return Argument(schema, read)


def _whole(value: Any) -> Any:
    """Give 10.0 as 10: in JSON it is an integer."""
    return int(value) if type(value) is float and value.is_integer() else value


_PYTHON: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def _json_type(value: object) -> str:
    return next((name for name, kinds in _PYTHON.items() if type(value) in kinds), "unknown")


def _choice(*words: str) -> Argument:
    def read(value: Any, name: str) -> Any:
        if value in words:
            return value
        raise InvalidInput(f"{name} is one of {', '.join(words)}, not {str(value)[:80]!r}")

    return Argument(schemas.one_of(*words), read)


def _read_ids(value: Any, name: str) -> list[Any]:
    """Read ids; whether each is one is for the operation to say, which may skip it."""
    listed = _read_list(value, name)
    return [_whole(each) for each in listed]


def _read_settings(value: Any, name: str) -> dict[str, Any]:
    return {key: _whole(each) for key, each in _read_object(value, name).items()}


def _read_checked(value: Any, name: str) -> list[str]:
    return [check_memory_id(each) for each in _read_ids(value, name)]


def _optional(argument: Argument) -> Argument:
    """Let null stand for "none given"."""
    return Argument(
        {"anyOf": [argument.schema, {"type": "null"}]},
        lambda value, name: None if value is None else argument.read(value, name),
        lambda value: None if value is None else argument.write(value),
    )


def _read_moment(value: Any, name: str) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} is a time such as 2026-11-29T12:00:00+00:00") from None


def _write_moment(value: Any) -> str:
    return check_moment(value, "a time").isoformat()


def _write_duration(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


def _write_filter(where: Any) -> Any:
    """Write a filter; where it has a time in Python's form, in the API's."""
    if isinstance(where, datetime):
        return _write_moment(where)
    if isinstance(where, Mapping):
        return {_key(name): _write_filter(value) for name, value in where.items()}
    if isinstance(where, Sequence | set | frozenset) and not isinstance(where, str):
        return [_write_filter(value) for value in where]
    return where


def _key(name: Any) -> str:
    if isinstance(name, str):
        return name
    raise InvalidInput(f"a filter's fields are strings, not {name!r}")


def _write_tags(tags: Any) -> Any:
    return sorted(tags) if isinstance(tags, set | frozenset) else _listed(tags)


def _listed(values: Any) -> Any:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        return values
    return list(values)


def _write_id(value: Any) -> Any:
    return value if value == "" else check_memory_id(value)  # an empty one is none given


def _write_ids(values: Any) -> Any:
    listed = _listed(values)
    return [check_memory_id(value) for value in listed] if isinstance(listed, list) else listed


def _read_grants(value: Any, name: str) -> list[Grant]:
    return [_read_grant(each, name) for each in _read_list(value, name)]


def _read_grant(value: Any, name: str) -> Grant:
    if isinstance(value, str):
        return Grant.parse(value)
    raise InvalidInput(f"{name} are strings such as read:acme/**, not {_json_type(value)}")


def _write_grants(grants: Any) -> Any:
    return [str(grant) if isinstance(grant, Grant) else grant for grant in _listed(grants)]


def _read_lines(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value):
        return value[0], value[1]
    raise InvalidInput(f'{name} is a range of lines such as "3-9" or [3, 9]')


_read_list: Final = plain({"type": "array"}).read
_read_object: Final = plain({"type": "object"}).read
_read_id: Final = plain(schemas.IDENTITY).read

_MOMENT: Final = Argument(schemas.TIME, _read_moment, _write_moment)
_DURATION: Final = Argument(schemas.DURATION, plain({"type": "number"}).read, _write_duration)
_METADATA: Final = Argument({"type": "object"}, _read_object, check_metadata)
_NAMES: Final = Argument(schemas.list_of(schemas.NAME), _read_list, _write_tags)
_FILTER: Final = Argument({"$ref": "#/components/schemas/Filter"}, _read_object, _write_filter)
_IDS: Final = Argument(schemas.list_of(schemas.IDENTITY), _read_ids, _write_ids)
_TEXT: Final = plain(schemas.TEXT)
_WORDS: Final = plain(schemas.WORDS)
_FLAG: Final = plain({"type": "boolean"})
_COUNT: Final = plain(schemas.COUNT)
_NUMBER: Final = plain(schemas.NUMBER)
_LABEL: Final = Argument(schemas.NAME, check_name)
_IDENTITY: Final = Argument(
    schemas.IDENTITY, lambda value, name: check_memory_id(_read_id(value, name)), _write_id
)

ARGUMENTS: Final[Mapping[str, Argument]] = {
    "action": _choice(*get_args(Ending)),
    "after": _NUMBER,
    "asked_at": _MOMENT,
    "budget": _COUNT,
    "created_at": _MOMENT,
    "cursor": _TEXT,
    "dry_run": _FLAG,
    "durable": _FLAG,
    "event": _LABEL,
    "everything": _FLAG,
    "expires_at": _optional(_MOMENT),
    "expires_in": _optional(_DURATION),
    "explain": _FLAG,
    "form": _choice(*get_args(Form)),
    "hold": _LABEL,
    "grants": Argument(
        schemas.list_of(schemas.GRANT) | {"minItems": 1}, _read_grants, _write_grants
    ),
    "idempotency_key": _LABEL,
    "identities": Argument(_IDS.schema, _read_checked, _write_ids),
    "if_version": _NUMBER,
    "invalidated_by": _NAMES,
    "key": _LABEL,
    "key_id": _LABEL,
    "kind": _LABEL,
    "lease": _DURATION,
    "limit": _COUNT,
    "lines": Argument({"type": ["string", "array"]}, _read_lines, _listed),
    "match": _METADATA,
    "memory_id": _IDENTITY,
    "memory_ids": _IDS,
    "merge": _FLAG,
    "metadata": _optional(_METADATA),
    "mode": _choice("sync", "queued"),
    "name": _LABEL,
    "on_error": _choice(*get_args(OnError)),
    "only_new": _FLAG,
    "operation": plain({"type": "integer"}),
    "owner": _LABEL,
    "pattern": _WORDS,
    "pointer": _TEXT,
    "profile": _choice("default", "paper", "bm25"),
    "query": _WORDS,
    "rows": Argument(schemas.ROWS, _read_object, _write_filter),
    "scope": _LABEL,
    "scopes": _NAMES,
    "session": _LABEL,
    "settings": Argument(schemas.SETTINGS, _read_settings),
    "source": _choice(*get_args(Source)),
    "speaker": _LABEL,
    "tags": _optional(_NAMES),
    "task": _LABEL,
    "to_moment": _MOMENT,
    "to_version": _NUMBER,
    "value": _TEXT,
    "where": _FILTER,
}
"""Every argument but `content`, which is three properties, and `items`."""


_OF_OPERATION: Final[Mapping[tuple[str, str], Argument]] = {
    ("decide", "key"): _TEXT,
    ("decision", "key"): _TEXT,
    ("list", "cursor"): plain({"type": "string", "pattern": "^(p[0-9]{1,18})?$"}),
    ("subtree_list", "cursor"): plain(
        {"type": "string", "pattern": "^(s[0-9]{1,18}[.][0-9]{1,18})?$"}
    ),
}
"""Where one operation means something else by a name."""


def argument(name: str, operation: str = "") -> Argument:
    """Give the row for an argument; an item's fields are arguments too."""
    return _OF_OPERATION.get((operation, name)) or ARGUMENTS[name]


def read_content(fields: dict[str, Any]) -> None:
    """Put the body in the place of its three properties.

    Raises:
        InvalidInput: They contradict each other.
    """
    body = {name: fields.pop(name) for name in CONTENT if name in fields}
    for name in body.keys() - {"content"}:
        check_name(body[name], name)
    if "content" in body:
        fields["content"] = body_from(body)
    elif body:
        raise InvalidInput(f"{', '.join(body)} goes with content")


def write_content(content: Any) -> dict[str, Any]:
    """Give a body as its properties.

    Raises:
        InvalidInput: It is no body.
    """
    written = body_json(check_body(content))
    if written["content_type"] == "text":
        del written["content_type"]
    return written


def read_fields(
    given: Mapping[str, Any], known: Iterable[str], operation: str = ""
) -> dict[str, Any]:
    """Read the fields of a body, or of an item in it.

    Raises:
        InvalidInput: A field is unknown or of another type.
    """
    names = set(known)
    if "content" in names:
        names |= CONTENT.keys()
    unknown = sorted(given.keys() - names)
    if unknown:
        fields = ", ".join(sorted(names)) or "none"
        raise InvalidInput(f"there is no field {unknown[0][:80]!r} here; there are {fields}")
    found = dict(given)
    read_content(found)
    return {
        name: value if name == "content" else argument(name, operation).read(value, name)
        for name, value in found.items()
    }


def write_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Write the fields of a body, or of an item in it; what is unset is left out.

    Raises:
        InvalidInput: A value can't be written.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, Unset):
            continue
        if name == "content":
            found |= write_content(value)
        else:
            row = ARGUMENTS.get(name)
            # What is not known is for the server to refuse.
            found[name] = check_json(value, name) if row is None else row.write(value)
    return found


class Items:
    """The items of a batch, each read or written by itself.

    With "skip", one that can't be takes its place among the results as its error.
    """

    def __init__(self, items: Iterable[Any], step: Callable[[Any], Any], on_error: str) -> None:
        self.good: list[Any] = []
        self._errors: dict[int, ZeroMemError] = {}
        for place, item in enumerate(items):
            try:
                self.good.append(step(item))
            except InvalidInput as error:
                if on_error != "skip":
                    raise InvalidInput(f"item {place}: {error}") from None
                self._errors[place] = error

    def woven(self, batch: BatchResult) -> BatchResult:
        """Put the errors back at their places."""
        if not self._errors:
            return batch
        rest = iter(batch.results)
        results: list[MemoryReceipt | ZeroMemError] = []
        for place in range(len(batch.results) + len(self._errors)):
            error = self._errors.get(place)
            results.append(next(rest) if error is None else error)
        return BatchResult(results=tuple(results))


def item_read(known: Iterable[str], needed: str, operation: str) -> Callable[[Any], dict[str, Any]]:
    """Make the reading of an item with these fields, one of them needed."""
    names = tuple(known)

    def read(item: Any) -> dict[str, Any]:
        if not isinstance(item, dict) or needed not in item:
            raise InvalidInput(f'an item is an object with "{needed}"')
        return read_fields(item, names, operation)

    return read


def item_written(item: Any) -> Any:
    """Write an item of a batch; what is none is for the server to refuse."""
    if not isinstance(item, Mapping):
        return check_json(item, "an item")
    return write_fields({_key(name): value for name, value in item.items()})


def namespace_text(path: Sequence[str]) -> str:
    """Write a namespace as `a/b`, or as a JSON list where that would read as another."""
    text = "/".join(path)
    if any("/" in segment for segment in path) or text.startswith("["):
        return json.dumps(list(path), ensure_ascii=False)
    return text


def namespace_path(text: str, what: str = "namespace") -> tuple[str, ...]:
    """Read a namespace that `namespace_text` wrote.

    Raises:
        InvalidInput: It begins with [ and is no JSON list of strings.
    """
    if not text.startswith("["):
        return tuple(text.split("/"))
    segments = parse(text, what)
    if isinstance(segments, list) and all(isinstance(segment, str) for segment in segments):
        return tuple(segments)
    raise InvalidInput(f"{what} begins with [ and is no JSON list of strings")
