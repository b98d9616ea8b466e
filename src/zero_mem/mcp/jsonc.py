"""Editing one member of a JSON text and leaving every other character as it is.

Comments and commas before a closing bracket are read where the file's program takes them. What
is inserted can be taken out again with the same text as before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem.errors import InvalidInput

_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_SPACE_AND_COMMENTS: Final = re.compile(
    # A possessive group would be shorter, and is wrong before Python 3.11.5 (gh-106052).
    r"(?:[ \t\r\n]|//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)*"
)
_SCALAR: Final = re.compile(
    r'"(?:[^"\\\x00-\x1f]|\\.)*+"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null'
)
_DEEPEST: Final = 100


@dataclass(slots=True)
class Node:
    """A value of the text: where it stands, and what is in it where it is an object."""

    start: int
    end: int
    value: Any
    members: dict[str, Member] = field(default_factory=dict)


@dataclass(slots=True)
class Member:
    """A member of an object; `comma` is where the comma after it ends, 0 where there is none."""

    start: int
    node: Node
    comma: int = 0


class Document:
    """A JSON text whose members can be put in and taken out.

    Args:
        text: The text; "" counts as an empty object.
        lenient: Whether comments and trailing commas are allowed.

    Raises:
        InvalidInput: It is no JSON object, or a name stands twice in an object of it.
    """

    def __init__(self, text: str, *, lenient: bool) -> None:
        self.text = text if text.strip() else "{}\n"
        parser = _Parser(self.text, lenient=lenient)
        self.root = parser.whole()
        self._lenient = lenient
        if not isinstance(self.root.value, dict):
            raise InvalidInput("it is no JSON object")

    @property
    def value(self) -> dict[str, Any]:
        """What the text means."""
        found: dict[str, Any] = self.root.value
        return found

    def has(self, path: Sequence[str]) -> bool:
        """Tell whether there is a member at a path of names."""
        node = self.root
        for name in path:
            if name not in node.members:
                return False
            node = node.members[name].node
        return True

    def put(self, path: Sequence[str], value: Any) -> str:
        """Give the text with a value at a path of names; what is missing on the way is made.

        Raises:
            InvalidInput: Something on the way is no object.
        """
        node = self.root
        for depth, name in enumerate(path):
            if not isinstance(node.value, dict):
                raise InvalidInput(f"{path[depth - 1]!r} is no object in it")
            if name not in node.members:
                return self._inserted(node, name, _nested(path[depth + 1 :], value))
            member, node = node.members[name], node.members[name].node
        written = self._written(value, self._indent_at(member.start))
        return self.text[: node.start] + written + self.text[node.end :]

    def without(self, path: Sequence[str]) -> str:
        """Give the text without the member at a path of names."""
        node = self.root
        for name in path[:-1]:
            node = node.members[name].node
        names = list(node.members)
        index = names.index(path[-1])
        member = node.members[path[-1]]
        if index == 0:
            return self._without_first(node, member)
        before = node.members[names[index - 1]]
        last = index == len(names) - 1
        if last and not member.comma:
            # The comma between the two goes with it.
            return self._joined(self.text[: before.comma - 1], before.comma, member)
        start = self._content_end(before.comma, member.start)
        return self.text[:start] + self.text[member.comma or member.node.end :]

    def _joined(self, head: str, comma: int, member: Member) -> str:
        kept = self._content_end(comma, member.start)
        return head + self.text[comma:kept] + self.text[member.node.end :]

    def _without_first(self, node: Node, member: Member) -> str:
        start = self._content_end(node.start + 1, member.start)
        end = member.comma or member.node.end
        if start == node.start + 1 and not self.text[end : node.end - 1].strip():
            end = node.end - 1  # nothing is left in the braces
        return self.text[:start] + self.text[end:]

    def _content_end(self, start: int, end: int) -> int:
        """Find where comments between two places end; the white space after them is not kept."""
        return start + len(self.text[start:end].rstrip(" \t\r\n"))

    def _inserted(self, node: Node, name: str, value: Any) -> str:
        inside = self.text[node.start + 1 : node.end - 1]
        at = node.start + 1 + len(inside.rstrip(" \t\r\n"))
        members = list(node.members.values())
        outer = self._indent_at(node.start)
        if members and "\n" not in inside:
            line, tail, indent = " ", "", outer
        else:
            known = self._indent_at(members[0].start) if members else outer + self._unit()
            line, indent = self._newline() + known, known
            tail = "" if "\n" in self.text[at : node.end - 1] else self._newline() + outer
        member = f"{line}{json.dumps(name, ensure_ascii=False)}: {self._written(value, indent)}"
        if members and not members[-1].comma:
            end = members[-1].node.end
            return self.text[:end] + "," + self.text[end:at] + member + tail + self.text[at:]
        comma = "," if members else ""
        return self.text[:at] + member + comma + tail + self.text[at:]

    def _written(self, value: Any, indent: str) -> str:
        text = json.dumps(value, indent=self._unit(), ensure_ascii=False)
        return text.replace("\n", self._newline() + indent)

    def _indent_at(self, place: int) -> str:
        """Give the white space before what stands first in the line of a place."""
        line = self.text[self.text.rfind("\n", 0, place) + 1 :]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _unit(self) -> str:
        found = re.search(r"\n([ \t]+)[\"}]", self.text)
        return found[1] if found else "  "

    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def placed(value: Mapping[str, Any], path: Sequence[str], new: Any) -> dict[str, Any]:
    """Give an object with a value at a path of names: what a text must mean after `put`."""
    head, *rest = path
    inner = value.get(head, {})
    return {**value, head: placed(inner, rest, new) if rest else new}


def removed(value: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Give an object without the member at a path of names."""
    head, *rest = path
    if rest:
        return {**value, head: removed(value[head], rest)}
    return {name: inner for name, inner in value.items() if name != head}


class _Parser:
    def __init__(self, text: str, *, lenient: bool) -> None:
        self._text = text
        self._at = 0
        self._gap = _SPACE_AND_COMMENTS if lenient else _SPACE
        self._lenient = lenient

    def whole(self) -> Node:
        self._skip()
        node = self._value(0)
        self._skip()
        if self._at != len(self._text):
            raise self._wrong()
        return node

    def _value(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise InvalidInput("it is nested too deeply")
        opening = self._text[self._at : self._at + 1]
        if opening == "{":
            return self._object(depth)
        if opening == "[":
            return self._array(depth)
        return self._scalar()

    def _scalar(self) -> Node:
        found = _SCALAR.match(self._text, self._at)
        if found is None:
            raise self._wrong()
        self._at = found.end()
        try:
            value = json.loads(found[0])
        except ValueError:
            raise self._wrong() from None
        return Node(found.start(), found.end(), value)

    def _object(self, depth: int) -> Node:
        node = Node(self._at, 0, {})
        self._at += 1
        while not self._closes("}", after_comma=bool(node.members)):
            start, name = self._at, self._scalar().value
            if not isinstance(name, str) or name in node.members:
                raise self._wrong()
            self._skip()
            self._take(":")
            self._skip()
            member = Member(start, self._value(depth + 1))
            node.members[name] = member
            node.value[name] = member.node.value
            member.comma = self._comma("}")
        node.end = self._at
        return node

    def _array(self, depth: int) -> Node:
        node = Node(self._at, 0, [])
        self._at += 1
        while not self._closes("]", after_comma=bool(node.value)):
            node.value.append(self._value(depth + 1).value)
            self._comma("]")
        node.end = self._at
        return node

    def _closes(self, closing: str, *, after_comma: bool) -> bool:
        self._skip()
        if self._text[self._at : self._at + 1] != closing:
            return False
        if after_comma and not self._lenient and self._text[: self._at].rstrip().endswith(","):
            raise self._wrong()
        self._at += 1
        return True

    def _comma(self, closing: str) -> int:
        """Pass the comma after an item, of which there is one or the closing bracket."""
        self._skip()
        if self._text[self._at : self._at + 1] == closing:
            return 0
        self._take(",")
        return self._at

    def _take(self, wanted: str) -> None:
        if self._text[self._at : self._at + 1] != wanted:
            raise self._wrong()
        self._at += 1

    def _skip(self) -> None:
        found = self._gap.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _wrong(self) -> InvalidInput:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - self._text.rfind("\n", 0, self._at)
        return InvalidInput(f"it is no JSON at line {line} column {column}")
