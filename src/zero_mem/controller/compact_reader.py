"""Reading the compact form back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

from zero_mem.controller.compact_atoms import BARE_KEY, looks_typed, typed
from zero_mem.controller.compact_table import ABSENT
from zero_mem.errors import InvalidInput

_TABLE_HEAD: Final = re.compile(r"\[(\d+)(?:x(\d+)|((?:\+\d+)+))?\]\{", re.ASCII)
_STRINGS: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Head:
    """A column as a header names it; `name` is None for the bare key column `*`."""

    name: str | None
    parts: tuple[_Head, ...] | None = None
    constant: Any = ABSENT
    textual: bool = False
    is_key: bool = False
    same_as_key: bool = False

    def leaves(self) -> Iterator[_Head]:
        if self.parts is not None:
            for part in self.parts:
                yield from part.leaves()
        elif self.constant is ABSENT and not self.same_as_key:
            yield self


class Reader:
    """A recursive-descent reader of one compact form; `at` is its place in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def document(self) -> Any:
        """Read the whole text as one value."""
        value = self._root()
        if self.at != len(self.text):
            self._fail("the end of the text")
        return value

    def _root(self) -> Any:
        if _TABLE_HEAD.match(self.text):
            return self._table()
        if self.text[:1] in ("[", "{") or self._is_string():
            return self._flow("")
        if looks_typed(self.text):
            self.at = len(self.text)
            return typed(self.text)
        return self._block()

    def _is_string(self) -> bool:
        """Tell a text that is one string from an object whose first key is quoted."""
        return self._peek('"') and self._string()[1] == len(self.text)

    # Objects, line by line

    def _block(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            holder, name = self._place(found)
            if self._peek("["):
                holder[name] = self._table()
            else:
                self._expect(": ")
                holder[name] = self._line_value()
            if not self._skip("\n"):
                return found

    def _place(self, root: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Read a dotted key; give the object that it belongs into, and its last step."""
        name = self._key()
        while self._skip("."):
            root = root.setdefault(name, {})
            if not isinstance(root, dict):
                self._fail("a key that is not taken")
            name = self._key()
        return root, name

    def _line_value(self) -> Any:
        if self.text[self.at : self.at + 1] in ("[", "{", '"'):
            return self._flow("")
        return self._bare("")

    # Flow form

    def _flow(self, stops: str) -> Any:
        if self._peek('"'):
            value, self.at = self._string()
            return value
        if self._skip("["):
            return self._flow_list()
        if self._skip("{"):
            return self._flow_object()
        return self._bare(stops)

    def _flow_list(self) -> list[Any]:
        found: list[Any] = []
        while not self._skip("]"):
            if found:
                self._expect(", ")
            found.append(self._flow(",]}"))
        return found

    def _flow_object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._skip("}"):
            if found:
                self._expect(", ")
            name = self._key()
            self._expect(": ")
            found[name] = self._flow(",]}")
        return found

    def _bare(self, stops: str, *, textual: bool = False) -> Any:
        raw = self._until(stops + "\n")
        if not raw:
            self._fail("a value")
        return typed(raw) if not textual and looks_typed(raw) else raw

    # Tables

    def _table(self) -> Any:
        match = _TABLE_HEAD.match(self.text, self.at)
        if match is None:
            self._fail("a table of a whole value (an extract can't be decoded)")
        self.at = match.end()
        heads, separator = self._header()
        sizes = _sizes(match)
        rows = list(self._rows(heads, separator, sum(sizes) if sizes else int(match[1])))
        if heads[0].is_key:
            return {key: _assemble(heads[1:], cells, key) for key, *cells in rows}
        objects = [_assemble(heads, cells) for cells in rows]
        return _regroup(objects, sizes) if sizes else objects

    def _header(self) -> tuple[tuple[_Head, ...], str]:
        separators: set[str] = set()
        heads = self._heads(separators, self._map_key())
        if len(separators) > 1:
            self._fail("the same separator all through a header")
        return heads, separators.pop() if separators else ","

    def _map_key(self) -> _Head | None:
        """Read `name: ` at the head of a map's columns, if it is there."""
        start = self.at
        head = _Head(None, is_key=True)
        if not self._skip("*"):
            head = replace(head, name=self._key())
        head = replace(head, textual=self._skip("'"))
        if self._skip(": "):
            return head
        self.at = start
        return None

    def _heads(self, separators: set[str], key: _Head | None = None) -> tuple[_Head, ...]:
        heads = [key] if key else []
        while True:
            head = self._head(separators)
            if key and key.name is not None and head.name == key.name:
                head = replace(head, same_as_key=True)
            heads.append(head)
            if self._skip("}"):
                return tuple(heads)
            separators.add(self.text[self.at : self.at + 1])
            self.at += 1

    def _head(self, separators: set[str]) -> _Head:
        name = self._key()
        if self._skip("{"):
            return _Head(name, self._heads(separators))
        if self._skip("="):
            return _Head(name, constant=self._flow(" ,}"))
        return _Head(name, textual=self._skip("'"))

    def _rows(self, heads: Sequence[_Head], separator: str, count: int) -> Iterator[list[Any]]:
        leaves = [leaf for head in heads for leaf in head.leaves()]
        known: dict[str, list[Any]] = {}
        for _ in range(count):
            if not leaves:
                yield []
                continue
            self._expect("\n")
            if self._skip("^"):
                yield self._repeated(known)
                continue
            start = self.at
            cells = [self._cell(leaves[0], separator)]
            known[self.text[start : self.at]] = cells
            for leaf in leaves[1:]:
                self._expect(separator)
                cells.append(self._cell(leaf, separator))
            yield cells

    def _repeated(self, known: dict[str, list[Any]]) -> list[Any]:
        first = self._until("\n")
        if first not in known:
            self._fail("a row that stands above")
        return known[first]

    def _cell(self, leaf: _Head, separator: str) -> Any:
        ends = ("\n", separator, "")
        if separator == ",":
            if self.text[self.at : self.at + 1] in ends:
                return ABSENT
        elif self._peek("-") and self.text[self.at + 1 : self.at + 2] in ends:
            self.at += 1
            return ABSENT
        if self.text[self.at : self.at + 1] in ("[", "{", '"'):
            return self._flow(separator)
        return self._bare(separator, textual=leaf.textual)

    # The text

    def _peek(self, mark: str) -> bool:
        return self.text.startswith(mark, self.at)

    def _skip(self, mark: str) -> bool:
        found = self._peek(mark)
        self.at += len(mark) if found else 0
        return found

    def _expect(self, mark: str) -> None:
        if not self._skip(mark):
            self._fail(repr(mark))

    def _until(self, stops: str) -> str:
        end = self.at
        while end < len(self.text) and self.text[end] not in stops:
            end += 1
        raw, self.at = self.text[self.at : end], end
        return raw

    def _key(self) -> str:
        if self._peek('"'):
            name, self.at = self._string()
            return name
        match = BARE_KEY.match(self.text, self.at)
        if match is None:
            self._fail("a key")
        self.at = match.end()
        return match[0]

    def _string(self) -> tuple[str, int]:
        try:
            value, end = _STRINGS.raw_decode(self.text, self.at)
        except json.JSONDecodeError:
            self._fail("a JSON string")
        return str(value), end

    def _fail(self, wanted: str) -> NoReturn:
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - self.text.rfind("\n", 0, self.at)
        raise InvalidInput(f"not a compact form: line {line}, column {column} is not {wanted}")


def _sizes(match: re.Match[str]) -> list[int]:
    if match[2]:
        return [int(match[2])] * int(match[1])
    if match[3]:
        return [int(size) for size in (match[1] + match[3]).split("+")]
    return []


def _regroup(rows: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    left = iter(rows)
    return [[next(left) for _ in range(size)] for size in sizes]


def _assemble(heads: Sequence[_Head], cells: Sequence[Any], key: Any = None) -> dict[str, Any]:
    return _object(heads, iter(cells), key)


def _object(heads: Sequence[_Head], cells: Iterator[Any], key: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for head in heads:
        value: Any
        if head.parts is not None:
            value = _object(head.parts, cells, None) or ABSENT
        elif head.same_as_key:
            value = key
        else:
            value = next(cells) if head.constant is ABSENT else head.constant
        if value is not ABSENT:
            found[str(head.name)] = value
    return found
