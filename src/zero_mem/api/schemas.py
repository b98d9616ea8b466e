"""JSON Schemas of what operations take, as narrow as JSON Schema can say it."""

from __future__ import annotations

from typing import Any, Final, get_args

from zero_mem.policy.limits import Overflow, Visibility
from zero_mem.types import Form, Source, State

Schema = dict[str, Any]

_CONTROL: Final = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
_ANY: Final = rf"[^{_CONTROL}]"
_NAME: Final = rf"{_ANY}*[^\s{_CONTROL}]{_ANY}*"
_SEGMENT: Final = rf"[^/{_CONTROL}]*[^/\s{_CONTROL}][^/{_CONTROL}]*"
_FIRST: Final = rf"(?!\[){_SEGMENT}"
_QUOTED: Final = rf'"[^"\\{_CONTROL}]*[^"\\\s{_CONTROL}][^"\\{_CONTROL}]*"'

_PART: Final = rf"(?!\*\*/){_SEGMENT}"
_QUOTED_PART: Final = rf'(?!"\*\*",){_QUOTED}'
_PATTERN: Final = rf"((?!\[){_PART}(/{_PART}){{0,15}}|\[{_QUOTED_PART}(,{_QUOTED_PART}){{0,15}}\])"

TEXT: Final[Schema] = {"type": "string"}
WORDS: Final[Schema] = {"type": "string", "pattern": r"\S"}
NAME: Final[Schema] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 512,
    "pattern": f"^{_NAME}$",
}
NAMESPACE: Final[Schema] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 512,
    "pattern": rf"^({_FIRST}(/{_SEGMENT}){{0,15}}|\[{_QUOTED}(,{_QUOTED}){{0,15}}\])$",
}
IDENTITY: Final[Schema] = {
    "type": ["string", "integer"],
    "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$",
    "minimum": 0,
}
COUNT: Final[Schema] = {"type": "integer", "minimum": 1}
NUMBER: Final[Schema] = {"type": "integer", "minimum": 0}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}
DURATION: Final[Schema] = {"type": "number", "minimum": 0.000001, "maximum": 3_153_599_999}
TAG: Final[Schema] = {"type": "string", "pattern": r'^(W/)?"?[0-9]{1,18}"?$'}
"""What If-Match may be: an ETag as it was given; quotes may be missing."""

GRANT: Final[Schema] = {
    "type": "string",
    "pattern": rf"^(read|write|admin):{_PATTERN}$",
    "examples": ["write:acme/alice/**"],
}
"""A right over namespaces, as `Grant.parse` reads it."""

CONTENT: Final[Schema] = {
    "content": {"description": "A string; any value where content_type is json; Base64 of a blob."},
    "content_type": {"type": "string", "enum": ["text", "json", "blob"]},
    "media_type": NAME | {"description": "Of a blob."},
}
"""The three properties that a body has."""

CONTENT_SHAPES: Final[list[Schema]] = [
    {"properties": {"content": WORDS, "content_type": {"const": "text"}}},
    {"properties": {"content_type": {"const": "json"}}, "required": ["content_type"]},
    {
        "properties": {
            "content": {"type": ["array", "boolean", "null", "number", "object"]},
            "content_type": {"const": "json"},
        }
    },
    {
        "properties": {
            "content": {
                "type": "string",
                "pattern": "^([A-Za-z0-9+/]{4})+$",
                "contentEncoding": "base64",
            },
            "content_type": {"const": "blob"},
        },
        "required": ["content_type"],
    },
]
"""What the three can be together: text, JSON (said, or what is no string), a blob."""


def one_of(*words: str) -> Schema:
    """Describe a choice."""
    return {"type": "string", "enum": list(words)}


def list_of(schema: Schema) -> Schema:
    """Describe an array."""
    return {"type": "array", "items": schema}


_SCALAR: Final[Schema] = {"type": ["boolean", "null", "number", "string"]}
_ORDERED: Final[Schema] = {"type": ["number", "string"]}


def _conditions(value: Schema, *, ordered: Schema | None = None, contains: bool = False) -> Schema:
    """Describe what may be asked of a field: a value, or operators with values."""
    operators: Schema = {
        "eq": value,
        "ne": value,
        "in": list_of(value),
        "exists": {"type": "boolean"},
    }
    if ordered is not None:
        operators |= dict.fromkeys(("gt", "gte", "lt", "lte"), ordered)
    if contains:
        operators["contains"] = value
    asked = {
        "type": "object",
        "properties": operators,
        "additionalProperties": False,
        "minProperties": 1,
    }
    return {"anyOf": [value, asked]}


_FILTER: Final[Schema] = {"$ref": "#/components/schemas/Filter"}
_WORD: Final = _conditions(TEXT, ordered=TEXT)
_MOMENT: Final = _conditions(TIME, ordered=TIME)
_NUMBER: Final = _conditions({"type": "number"}, ordered={"type": "number"})
_LABELS: Final = _conditions(TEXT, contains=True)
_METADATA: Final = _conditions(_SCALAR, ordered=_ORDERED)
FILTER: Final[Schema] = {
    "type": "object",
    "description": "Conditions on fields, all of which must hold; see the documentation of recall.",
    "properties": {
        "and": list_of(_FILTER) | {"minItems": 1},
        "or": list_of(_FILTER) | {"minItems": 1},
        "not": _FILTER,
        "form": _conditions(one_of(*get_args(Form))),
        "state": _conditions(one_of(*get_args(State), "expired")),
        "source": _conditions(one_of(*get_args(Source))),
        "memory_id": _conditions(
            {"type": ["string", "integer"]}, ordered={"type": ["string", "integer"]}
        ),
        "tag": _LABELS,
        "tags": _LABELS,
        "text": _conditions({"type": "string", "minLength": 1}, contains=True),
        **dict.fromkeys(("kind", "key", "task", "session", "speaker"), _WORD),
        **dict.fromkeys(
            ("created_at", "recorded_at", "updated_at", "accessed_at", "expires_at"), _MOMENT
        ),
        **dict.fromkeys(("version", "access_count"), _NUMBER),
        "metadata": {
            "type": "object",
            "additionalProperties": _METADATA,
            "propertyNames": {"minLength": 1},
            "minProperties": 1,
        },
    },
    "patternProperties": {"^metadata[.].": _METADATA},
    "additionalProperties": False,
}
ROWS: Final[Schema] = {
    "type": "object",
    "additionalProperties": _conditions(_SCALAR, ordered=_ORDERED),
    "properties": {
        "and": list_of({"type": "object"}) | {"minItems": 1},
        "or": list_of({"type": "object"}) | {"minItems": 1},
        "not": {"type": "object"},
    },
}
"""A filter of rows, whose fields are the rows' own."""
SETTINGS: Final[Schema] = {
    "type": "object",
    "properties": {
        "max_memory_items": {"type": ["integer", "null"], "minimum": 1},
        "retention_days": {"type": ["number", "null"], "minimum": 0.001, "maximum": 999_999},
        "max_bytes": {"type": ["integer", "null"], "minimum": 1},
        "compaction_threshold": COUNT,
        "dedupe_key": {"type": ["string", "null"], "pattern": "^(content|metadata[.].+)$"},
        "max_recall_items": COUNT,
        "overflow": one_of(*get_args(Overflow)),
        "visibility": one_of(*get_args(Visibility)),
        "redact": {
            "type": ["object", "null"],
            "description": "See the documentation of redaction.",
        },
    },
    "additionalProperties": False,
}
"""The limits of a namespace, form or kind, and what is redacted in a namespace."""
