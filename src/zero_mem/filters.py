"""The `where` language: what a caller may ask of records, and the one evaluator of it.

    {"kind": "task_state"}                                  a literal is {"eq": literal}
    {"access_count": {"gte": 3, "lt": 9}}                   several operators: all of them
    {"task": "t-1", "tag": "urgent"}                        several fields: all of them
    {"or": [{"speaker": "Ann"}, {"not": {"key": "tz"}}]}    and / or take lists, not a mapping
    {"metadata.order.id": {"in": [57, 58]}}                 or {"metadata": {"order.id": 57}}
    {"text": {"contains": "退款"}}                          a folded substring of the body

Operators: eq ne gt gte lt lte in exists, and contains for `text` and `tags`. Values are
literal: `*`, `%` and quotes mean themselves. Logic is SQL's, with three values: a condition
on a field that a record lacks is unknown, `not` leaves it unknown, and only records for
which the whole is true match; `exists` alone asks for absence. Numbers compare by value,
a bool is not a number, and values of two types are unequal and in no order (unknown).
A record without tags has the empty set of them, so its tags are never unknown.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, TypeAlias, get_args

from zero_mem.errors import InvalidInput
from zero_mem.text.segment import fold
from zero_mem.types import Blob, Form, MemoryRecord, Source, State

DEEPEST = 32
_METADATA = "metadata"
_EQUALITY = ("eq", "ne", "in", "exists")
_ORDER = ("gt", "gte", "lt", "lte")
_COMBINATORS = ("and", "or", "not")
_PUSHABLE = frozenset(
    ("form", "kind", "key", "task", "session", "source", "memory_id", "state", "speaker")
)

Truth: TypeAlias = bool | None
"""True, False, or None for unknown."""
Reader: TypeAlias = Callable[[str], Any]
Where: TypeAlias = Mapping[str, Any]


class _Missing:
    __slots__ = ()


MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True)
class _Leaf:
    field: str
    operator: str
    value: Any

    def truth(self, read: Reader) -> Truth:
        found = read(self.field)
        if self.operator == "exists":
            return (found is not MISSING) is self.value
        return None if found is MISSING else _TESTS[self.operator](found, self.value)


@dataclass(frozen=True, slots=True)
class _All:
    children: tuple[_Node, ...] = ()

    def truth(self, read: Reader) -> Truth:
        result: Truth = True
        for child in self.children:
            truth = child.truth(read)
            if truth is False:
                return False
            result = result and truth
        return result


@dataclass(frozen=True, slots=True)
class _Some:
    children: tuple[_Node, ...]

    def truth(self, read: Reader) -> Truth:
        unknown = False
        for child in self.children:
            truth = child.truth(read)
            if truth:
                return True
            unknown = unknown or truth is None
        return None if unknown else False


@dataclass(frozen=True, slots=True)
class _Not:
    child: _Node

    def truth(self, read: Reader) -> Truth:
        truth = self.child.truth(read)
        return None if truth is None else not truth


_Node: TypeAlias = _Leaf | _All | _Some | _Not


@dataclass(frozen=True, slots=True)
class Filter:
    """A parsed `where` over records; build it with `parse`.

    It adds nothing of its own: hiding archived and expired records where `names_state` is
    false is the caller's part.
    """

    root: _Node

    def matches(self, record: MemoryRecord, now: datetime) -> bool:
        """Tell whether the filter is true of a record at the instant `now` (aware)."""
        return self.root.truth(lambda field: _read(record, field, now)) is True

    @property
    def names_state(self) -> bool:
        """True where a condition anywhere in the filter is about the state."""
        return any(leaf.field == "state" for leaf in _leaves(self.root))

    def equalities(self) -> Mapping[str, tuple[str, ...]]:
        """Give what every matching record must have, for a store to narrow down by.

        Returns:
            For some of the plain text fields the values of which a match has one. An empty
            tuple: nothing matches. `expired` records are stored as `active`, so that is
            what `state` says here; `matches` still has to decide.
        """
        found: dict[str, tuple[str, ...]] = {}
        for leaf in _conjuncts(self.root):
            if leaf.field in _PUSHABLE and leaf.operator in ("eq", "in"):
                values = leaf.value if leaf.operator == "in" else (leaf.value,)
                if leaf.field == "state":
                    values = tuple("active" if each == "expired" else each for each in values)
                known = found.get(leaf.field, values)
                found[leaf.field] = tuple(dict.fromkeys(v for v in known if v in values))
        return MappingProxyType(found)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A parsed `where` over the rows of a JSON body; build it with `parse_rows`."""

    root: _Node

    def matches(self, row: Any) -> bool:
        """Tell whether the filter is true of one row; a row that is no object never is."""
        if not isinstance(row, Mapping):
            return False
        return self.root.truth(lambda field: lookup(row, field)) is True

    def unknown_fields(self, rows: Iterable[Any]) -> list[str]:
        """Give the fields asked about, `exists` apart, that not one of the rows has."""
        unknown = {leaf.field: None for leaf in _leaves(self.root) if leaf.operator != "exists"}
        for row in rows:
            if not unknown:
                break
            for field in [each for each in unknown if lookup(row, each) is not MISSING]:
                del unknown[field]
        return list(unknown)


def parse(where: Where | None) -> Filter:
    """Parse a `where` over records.

    Args:
        where: The mapping described above; None and {} match every record.

    Raises:
        InvalidInput: An unknown field or operator, a value of the wrong type, a time
            without its zone; the message says where.
    """
    return Filter(_parse({} if where is None else where, "where", _record_field, 0))


def parse_rows(where: Where) -> RowFilter:
    """Parse a `where` over JSON rows: every field is a dotted path into the row.

    Args:
        where: As for records; `contains` looks into strings (folded) and into arrays.

    Raises:
        InvalidInput: An unknown operator, or a value that is not a JSON scalar.
    """
    return RowFilter(_parse(where, "rows", lambda name, at: (name, _ROW_FIELD), 0))


def lookup(value: Any, path: str) -> Any:
    """Follow a dotted path through nested mappings.

    A key that is the whole rest of the path comes before the part up to the first dot, so
    keys that hold dots can be named. Gives `MISSING` where the path leads nowhere.
    """
    while isinstance(value, Mapping):
        if path in value:
            return value[path]
        head, dot, path = path.partition(".")
        if not dot or head not in value:
            return MISSING
        value = value[head]
    return MISSING


# ---- evaluation


def _read(record: MemoryRecord, field: str, now: datetime) -> Any:
    if field.startswith(f"{_METADATA}."):
        return lookup(record.metadata, field[len(_METADATA) + 1 :])
    if field == "state":
        return "expired" if record.state == "active" and record.expired(now) else record.state
    if field == "text":
        return MISSING if isinstance(record.content, Blob) else record.text
    value = getattr(record, field)
    return MISSING if value is None else value


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    for name, types in _TYPES:
        if isinstance(value, types):
            return name
    return "other"


_TYPES: tuple[tuple[str, Any], ...] = (
    ("bool", bool),
    ("number", (int, float)),
    ("text", str),
    ("time", datetime),
)


def _equal(found: Any, value: Any) -> bool:
    return _type_of(found) == _type_of(value) and bool(found == value)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Truth]:
    def test(found: Any, value: Any) -> Truth:
        return compare(found, value) if _type_of(found) == _type_of(value) else None

    return test


def _contains(found: Any, value: Any) -> Truth:
    if isinstance(found, str):
        return isinstance(value, str) and fold(value) in fold(found)
    if isinstance(found, Sequence):
        return any(_equal(each, value) for each in found)
    return None


_TESTS: dict[str, Callable[[Any, Any], Truth]] = {
    "eq": _equal,
    "ne": lambda found, value: not _equal(found, value),
    "in": lambda found, value: any(_equal(found, each) for each in value),
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "contains": _contains,
    "tagged": lambda found, value: not frozenset(value).isdisjoint(found),
    "any": lambda found, value: bool(found) == value,
}


def _leaves(node: _Node) -> Iterator[_Leaf]:
    if isinstance(node, _Leaf):
        yield node
        return
    for child in (node.child,) if isinstance(node, _Not) else node.children:
        yield from _leaves(child)


def _conjuncts(node: _Node) -> Iterator[_Leaf]:
    if isinstance(node, _Leaf):
        yield node
    elif isinstance(node, _All):
        for child in node.children:
            yield from _conjuncts(child)


# ---- parsing


@dataclass(frozen=True, slots=True)
class _Field:
    """What may be asked of a field: its operators, and how a value of it is read."""

    operators: tuple[str, ...]
    value: Callable[[Any, str], Any]


_Resolver: TypeAlias = Callable[[str, str], tuple[str, _Field]]


def _parse(where: Any, at: str, resolve: _Resolver, depth: int) -> _Node:
    if not isinstance(where, Mapping):
        raise InvalidInput(f"{at}: must be a mapping of fields, not {type(where).__name__}")
    if depth > DEEPEST:
        raise InvalidInput(f"{at}: nested deeper than {DEEPEST}")
    nodes: list[_Node] = []
    for name, condition in where.items():
        if not isinstance(name, str):
            raise InvalidInput(f"{at}: a field is a string, not {type(name).__name__}")
        if name in _COMBINATORS:
            nodes.append(_combine(name, condition, f"{at}.{name}", resolve, depth + 1))
        elif name == _METADATA and resolve is _record_field:
            nodes.append(_parse_metadata(condition, f"{at}.{name}"))
        else:
            nodes.append(_conditions(*resolve(name, at), condition, f"{at}.{name}"))
    return nodes[0] if len(nodes) == 1 else _All(tuple(nodes))


def _combine(name: str, condition: Any, at: str, resolve: _Resolver, depth: int) -> _Node:
    if name == "not":
        return _Not(_parse(condition, at, resolve, depth))
    if not isinstance(condition, (list, tuple)) or not condition:
        raise InvalidInput(f"{at}: must be a list of at least one filter")
    parsed = (
        _parse(each, f"{at}[{index}]", resolve, depth) for index, each in enumerate(condition)
    )
    return _All(tuple(parsed)) if name == "and" else _Some(tuple(parsed))


def _parse_metadata(condition: Any, at: str) -> _Node:
    if not isinstance(condition, Mapping) or not condition:
        raise InvalidInput(f"{at}: must map paths to conditions, such as {{'order.id': 57}}")
    return _All(
        tuple(
            _conditions(*_record_field(f"{_METADATA}.{path}", at), each, f"{at}.{path}")
            for path, each in condition.items()
        )
    )


def _conditions(name: str, field: _Field, condition: Any, at: str) -> _Node:
    if not isinstance(condition, Mapping):
        return _leaf(name, field, "eq", condition, at)
    if not condition:
        raise InvalidInput(f"{at}: no operator; use one of {', '.join(field.operators)}")
    leaves = [_leaf(name, field, each, value, f"{at}.{each}") for each, value in condition.items()]
    return leaves[0] if len(leaves) == 1 else _All(tuple(leaves))


def _leaf(name: str, field: _Field, asked: Any, value: Any, at: str) -> _Node:
    if asked not in field.operators:
        raise InvalidInput(f"{at}: no such operator here; use one of {', '.join(field.operators)}")
    if asked == "exists":
        if not isinstance(value, bool):
            raise InvalidInput(f"{at}: must be True or False")
        return _Leaf(name, "any" if name == "tags" else "exists", value)
    if asked == "in":
        value = _listed(field, value, at)
    else:
        value = field.value(value, at)
        if asked in _ORDER and _type_of(value) in ("bool", "null"):
            raise InvalidInput(f"{at}: needs a number, a string or a time")
    return _tag_leaf(asked, value) if name == "tags" else _Leaf(name, asked, value)


def _listed(field: _Field, values: Any, at: str) -> tuple[Any, ...]:
    if not isinstance(values, (list, tuple, set, frozenset)):
        raise InvalidInput(f"{at}: must be a list of values, not {type(values).__name__}")
    return tuple(field.value(each, f"{at}[{index}]") for index, each in enumerate(values))


def _tag_leaf(asked: str, value: Any) -> _Node:
    leaf = _Leaf("tags", "tagged", value if asked == "in" else (value,))
    return _Not(leaf) if asked == "ne" else leaf


def _record_field(name: str, at: str) -> tuple[str, _Field]:
    path = name.removeprefix(f"{_METADATA}.")
    if path != name and path:
        return name, _METADATA_FIELD
    name = "tags" if name == "tag" else name
    if name not in _FIELDS:
        known = ", ".join([*sorted(_FIELDS), "metadata.<path>"])
        raise InvalidInput(f"{at}.{name}: no such field; fields are {known}")
    return name, _FIELDS[name]


def _text(value: Any, at: str) -> str:
    if not isinstance(value, str):
        hint = "; absence is {'exists': False}" if value is None else ""
        raise InvalidInput(f"{at}: must be a string, not {type(value).__name__}{hint}")
    return value


def _sought(value: Any, at: str) -> str:
    if not _text(value, at):
        raise InvalidInput(f"{at}: must not be empty")
    return str(value)


def _memory_id(value: Any, at: str) -> str:
    number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if number else _text(value, at)


def _number(value: Any, at: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"{at}: must be a number, not {type(value).__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"{at}: must be a finite number")
    return value


def _scalar(value: Any, at: str) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return _number(value, at)
    raise InvalidInput(
        f"{at}: must be a string, a number, a bool or None, not {type(value).__name__}"
    )


def _time(value: Any, at: str) -> datetime:
    if isinstance(value, str):
        value = _iso_time(value, at)
    if not isinstance(value, datetime):
        raise InvalidInput(
            f"{at}: must be a datetime or an ISO 8601 string, not {type(value).__name__}"
        )
    if value.tzinfo is None:
        raise InvalidInput(f"{at}: a time needs its zone, such as +00:00")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(f"{at}: a time outside the years 1 to 9999") from error


def _iso_time(value: str, at: str) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except ValueError as error:
        raise InvalidInput(f"{at}: not an ISO 8601 time") from error


def _one_of(*accepted: str) -> Callable[[Any, str], str]:
    def read(value: Any, at: str) -> str:
        if value not in accepted:
            raise InvalidInput(f"{at}: must be one of {', '.join(accepted)}")
        return str(value)

    return read


_ROW_FIELD = _Field((*_EQUALITY, *_ORDER, "contains"), _scalar)
_METADATA_FIELD = _Field((*_EQUALITY, *_ORDER), _scalar)
_WORD = _Field((*_EQUALITY, *_ORDER), _text)
_MOMENT = _Field((*_EQUALITY, *_ORDER), _time)
_COUNT = _Field((*_EQUALITY, *_ORDER), _number)
_FIELDS: dict[str, _Field] = {
    "memory_id": _Field((*_EQUALITY, *_ORDER), _memory_id),
    "form": _Field(_EQUALITY, _one_of(*get_args(Form))),
    "state": _Field(_EQUALITY, _one_of(*get_args(State), "expired")),
    "source": _Field(_EQUALITY, _one_of(*get_args(Source))),
    "tags": _Field((*_EQUALITY, "contains"), _text),
    "text": _Field((*_EQUALITY, "contains"), _sought),
    **dict.fromkeys(("kind", "key", "task", "session", "speaker"), _WORD),
    **dict.fromkeys(
        ("created_at", "recorded_at", "updated_at", "accessed_at", "expires_at"), _MOMENT
    ),
    **dict.fromkeys(("version", "access_count"), _COUNT),
}
