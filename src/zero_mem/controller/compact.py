"""A compact, lossless text form of JSON: keys once, one row a line, no needless quotes.

    {"user": "mia", "seats": {"front": 2, "back": 5},      user: mia
     "trips": [{"id": "A1", "to": "SEA", "paid": true},    seats: {front: 2, back: 5}
               {"id": "B2", "to": "SEA", "paid": false}]}  trips[2]{id to=SEA paid}
                                                           A1 true
                                                           B2 false

The form, from the outside in:

* An object is one line an entry, `key: value`. An object that holds a table is written
  with dotted keys (`page.items[2]{…}`), any other one in flow form `{key: value, …}`.
* An array of objects is a table: `key[rows]{columns}` and one line a row. A table of
  lists of objects says how the rows group (`[14x2]`, `[2+1+3]`). A map from keys to
  objects is a table whose first column ends in a colon; where its name comes again in
  the header, that field equals the key.
* A scalar that is the same in every row stands in the header, `name=value`. A column of
  objects is `name{…}`. A column `name'` holds text that looks like numbers.
* Columns are separated by a space or, where a cell has spaces, by a comma, in the header
  as in the rows. An absent field is `-` or, between commas, nothing.
* `^X` repeats the whole row above that begins with X.
* A string is bare where nothing can be mistaken, else a JSON string.

With `totals`, `encode` also writes part of a value, `key[3 of 28]{…}`: that is an extract,
and `decode` refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from zero_mem.controller import compact_atoms as atoms
from zero_mem.controller.compact_reader import Reader
from zero_mem.controller.compact_table import ABSENT, Column, columns, grouping
from zero_mem.errors import InvalidInput

JsonPath: TypeAlias = tuple[str | int, ...]

LONGEST_JSON: Final = 4_000_000  # characters; a longer result is handled as text
DEEPEST: Final = 100  # levels; deeper values are refused rather than risk the stack


def parse(text: str) -> Any:
    """Parse JSON text strictly, keeping the spelling of its numbers.

    Args:
        text: one JSON document.

    Returns:
        The value; floats are `ExactFloat`.

    Raises:
        ValueError: it is not JSON, has NaN, an infinity or a key twice in one object, or
            is nested too deeply: compacting it could lose something.
    """
    try:
        return json.loads(
            text, parse_float=_exact, parse_constant=_refuse, object_pairs_hook=_unique
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def as_json(text: str) -> Any:
    """Parse a result that is a JSON object or array, or give None."""
    if len(text) > LONGEST_JSON or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return parse(text)
    except ValueError:
        return None


def encode(value: Any, *, totals: Mapping[JsonPath, int] | None = None) -> str:
    """Write a JSON value in the compact form.

    Args:
        value: anything that `json.loads` can give, at most 100 levels deep.
        totals: for an extract, how many items the array or map at a path has in full.

    Returns:
        The text, without a newline at its end. It need not be shorter than the JSON text.

    Raises:
        InvalidInput: the value holds something that is not JSON, or is too deep.
    """
    _check_depth(value)
    return _Writer(totals or {}).document(value)


def decode(text: str) -> Any:
    """Give back the value that `encode` wrote.

    Args:
        text: a whole compact form.

    Returns:
        An equal value, each object in its order of keys, each number in its spelling.

    Raises:
        InvalidInput: the text is not a compact form, or is an extract.
    """
    return Reader(text).document()


def _exact(text: str) -> float:
    number = atoms.ExactFloat(text)
    return number if number - number == 0 else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a finite JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _children(outer)]
        if not level:
            return
    raise InvalidInput(f"the value is nested more than {DEEPEST} levels deep")


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


@dataclass(frozen=True, slots=True)
class _Writer:
    totals: Mapping[JsonPath, int]

    def document(self, value: Any) -> str:
        if isinstance(value, str):
            return atoms.quoted(value)
        table = self.table((), value)
        if table:
            return "\n".join(table)
        if isinstance(value, dict) and value:
            return "\n".join(self.block((), value))
        return self.share((), value) + flow(value)

    def block(self, path: JsonPath, value: Mapping[str, Any]) -> Iterator[str]:
        for key, item in value.items():
            yield from self.entry((*path, key), item)

    def entry(self, path: JsonPath, value: Any) -> Iterator[str]:
        name = ".".join(atoms.key(str(step)) for step in path)
        table = self.table(path, value)
        if table:
            yield name + table[0]
            yield from table[1:]
        elif isinstance(value, dict) and self.holds_table(path, value):
            yield from self.block(path, value)
        elif isinstance(value, str) and atoms.bare_in_line(value):
            yield f"{name}: {value}"
        else:
            yield f"{name}{self.share(path, value)}: {flow(value)}"

    def share(self, path: JsonPath, value: Any) -> str:
        total = self.totals.get(path)
        return "" if total is None else f"[{len(value)} of {total}]"

    def holds_table(self, path: JsonPath, value: Mapping[str, Any]) -> bool:
        """Tell whether an object has parts that need lines of their own."""
        return any(
            (*path, key) in self.totals
            or self.table((*path, key), item) is not None
            or (isinstance(item, dict) and self.holds_table((*path, key), item))
            for key, item in value.items()
        )

    def table(self, path: JsonPath, value: Any) -> list[str] | None:
        """Write rows as a table, or None where they are no table or flow is shorter."""
        total = self.totals.get(path)
        laid = _layout(value, least=1 if total else 2)
        if laid is None:
            return None
        count, laid_columns = laid
        lines = _lines(count if total is None else f"{count} of {total}", laid_columns)
        if total is not None:
            return lines
        return lines if sum(map(len, lines)) + len(lines) < len(flow(value)) + 2 else None


def flow(value: Any) -> str:
    """Write a value on one line: `{key: value, …}`, `[item, …]` or a scalar."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{atoms.key(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str):
        return value if atoms.bare_in_flow(value) else atoms.quoted(value)
    return atoms.scalar(value)


def _layout(value: Any, *, least: int) -> tuple[str, list[Column]] | None:
    """Give the count and the columns of an array or a map, or None if it is no table."""
    if not isinstance(value, (dict, list)) or len(value) < least:
        return None
    if isinstance(value, dict):
        return _map_layout(value)
    grouped = grouping(value) if isinstance(value[0], list) else (value, str(len(value)))
    if grouped is None:
        return None
    rows, count = grouped
    laid = columns(rows)
    return None if laid is None else (count, laid)


def _map_layout(value: Mapping[str, Any]) -> tuple[str, list[Column]] | None:
    laid = columns(list(value.values()))
    if laid is None:
        return None
    keys: list[Any] = list(value)
    twin = next((column for column in laid if column.values == keys), None)
    if twin is not None:
        twin.same_as_key = True
    key = Column(twin.name if twin else "*", keys, is_key=True)
    return str(len(value)), [key, *laid]


def _lines(count: str, laid: Sequence[Column]) -> list[str]:
    leaves = [leaf for column in laid for leaf in column.leaves()]
    separator = "," if _wants_commas(leaves) else " "
    head = f"[{count}]{{{_header(laid, separator)}}}"
    cells = [_cells(leaf, separator) for leaf in leaves]
    return [head, *_rows(list(zip(*cells, strict=True)), separator)]


def _wants_commas(leaves: Sequence[Column]) -> bool:
    strings = [value for leaf in leaves for value in leaf.present if isinstance(value, str)]
    return len(leaves) == 1 or any(" " in text and atoms.bare_in_commas(text) for text in strings)


def _header(laid: Sequence[Column], separator: str) -> str:
    if laid[0].is_key:
        key = laid[0]
        name = key.name if key.name == "*" else atoms.key(key.name)
        return f"{name}{_mark(key)}: {_header(laid[1:], separator)}"
    return separator.join(_title(column, separator) for column in laid)


def _mark(column: Column) -> str:
    return "'" if column.textual else ""


def _title(column: Column, separator: str) -> str:
    name = atoms.key(column.name)
    if column.parts is not None:
        return f"{name}{{{_header(column.parts, separator)}}}"
    if column.same_as_key:
        return name
    if column.constant:
        return f"{name}={_constant(column.values[0])}"
    return name + _mark(column)


def _constant(value: Any) -> str:
    if isinstance(value, str):
        return value if atoms.bare_in_header(value) else atoms.quoted(value)
    return atoms.scalar(value)


def _cells(column: Column, separator: str) -> list[str]:
    fits: Callable[[str], bool] = atoms.bare_in_commas if separator == "," else atoms.bare_in_spaces
    absent = "" if separator == "," else "-"
    textual = column.textual

    def cell(value: Any) -> str:
        if value is ABSENT:
            return absent
        if not isinstance(value, str):
            return flow(value)
        bare = fits(value) and (textual or not atoms.looks_typed(value))
        return value if bare else atoms.quoted(value)

    return [cell(value) for value in column.values]


def _rows(rows: Sequence[tuple[str, ...]], separator: str) -> Iterator[str]:
    """Write rows; a repeated one is `^` and its first cell, if that names one row only."""
    firsts: dict[str, int] = {}
    for row in set(rows):
        firsts[row[0]] = firsts.get(row[0], 0) + 1
    written: set[tuple[str, ...]] = set()
    for row in rows:
        if row in written and len(row) > 1 and row[0] not in ("", "-") and firsts[row[0]] == 1:
            yield "^" + row[0]
        else:
            written.add(row)
            yield separator.join(row)
