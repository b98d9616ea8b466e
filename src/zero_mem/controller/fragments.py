"""Handles expanded in texts that arrive in fragments, cut anywhere.

What is given out at once and what is held back depend on the text alone: from the first
character of what may become a handle to the end of the doubt. The outputs of all fragments,
joined, are the same however the text was cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from zero_mem import handles
from zero_mem.controller.references import Expansion, member, wants_text
from zero_mem.controller.wire.draft import json_text

_SYNTAX = re.compile(r'[^"{}\[\],]+|.', re.DOTALL)
_PLAIN = re.compile(r'[^"\\]+')
_HEX = "[0-9A-Fa-f]"
_HIGH = rf"\\u[dD][89abAB]{_HEX}{{2}}"
_PAIR = re.compile(rf"{_HIGH}\\u[dD][c-fC-F]{_HEX}{{2}}")
_ESCAPE = re.compile(rf"\\u{_HEX}{{4}}|\\[^u]", re.DOTALL)
_ESCAPE_BEGUN = re.compile(
    rf"\\(?:u{_HEX}{{0,3}})?|{_HIGH}(?:\\(?:u(?:[dD](?:[c-fC-F]{_HEX}?)?)?)?)?"
)
# What a bad escape stands for: no part of a handle.
_BAD = "\ufffd"


class Fragments(Protocol):
    """A text on its way through."""

    def feed(self, fragment: str) -> str:
        """Take a fragment; give what is settled with it."""

    def close(self) -> str:
        """Give what is held back, as it is."""

    @property
    def held(self) -> str:
        """What is held back."""


class TextFragments:
    """A text that the user, or a tool of free text, gets."""

    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion
        self.held = ""

    def feed(self, fragment: str) -> str:
        """Take a fragment; give what is settled with it."""
        self.held = text = self.held + fragment
        cut = handles.undecided(text)
        out = self._expansion.text(text[:cut])
        self.held = text[cut:]
        return out

    def close(self) -> str:
        """Give what is held back, as it is."""
        held, self.held = self.held, ""
        return held


@dataclass(slots=True)
class _Level:
    """An object or array that is open; the schema is that of the value which comes next."""

    shape: Any
    is_object: bool
    at_key: bool
    schema: Any


class JsonFragments:
    """The JSON text of a call's arguments; everything but expanded strings passes as it is.

    A string that is one handle becomes a JSON value, so its opening quote is held back until
    the text inside decides. What is no JSON passes too.

    Args:
        expansion: Expands the handles.
        schema: The JSON Schema of the arguments, as far as it is known.
    """

    def __init__(self, expansion: Expansion, schema: Any = None) -> None:
        self._expansion = expansion
        self._levels = [_Level(shape=schema, is_object=False, at_key=False, schema=schema)]
        self._string: _String | None = None
        self._rest = ""

    def feed(self, fragment: str) -> str:
        """Take a fragment; give what is settled with it."""
        text, self._rest = self._rest + fragment, ""
        out: list[str] = []
        at = 0
        while at < len(text):
            at = self._inside(text, at, out) if self._string else self._outside(text, at, out)
        if self._string is not None:
            out.append(self._string.settled())
        return "".join(out)

    def close(self) -> str:
        """Give what is held back, as it is."""
        held = self.held
        self._string, self._rest = None, ""
        return held

    @property
    def held(self) -> str:
        """What is held back, as it is written."""
        return (self._string.raw() if self._string else "") + self._rest

    def _outside(self, text: str, at: int, out: list[str]) -> int:
        found = _SYNTAX.match(text, at)
        assert found is not None
        token = found.group()
        level = self._levels[-1]
        if token == '"':
            as_text = wants_text(level.schema)
            self._string = _String(self._expansion, is_key=level.at_key, as_text=as_text)
            return found.end()
        out.append(token)
        if token in "{[":
            self._open(level.schema, token)
        elif token in "}]" and len(self._levels) > 1:
            self._levels.pop()
        elif token == ",":
            level.at_key = level.is_object
        return found.end()

    def _open(self, schema: Any, token: str) -> None:
        is_object = token == "{"
        inside = None if is_object else member(schema)
        self._levels.append(
            _Level(shape=schema, is_object=is_object, at_key=is_object, schema=inside)
        )

    def _inside(self, text: str, at: int, out: list[str]) -> int:
        string = self._string
        assert string is not None
        if text[at] == '"':
            self._close_string(string, out)
            return at + 1
        if plain := _PLAIN.match(text, at):
            string.add_plain(plain.group())
            return plain.end()
        if _ESCAPE_BEGUN.fullmatch(text, at):
            self._rest = text[at:]
            return len(text)
        escape = _PAIR.match(text, at) or _ESCAPE.match(text, at)
        written = text[at] if escape is None else escape.group()
        string.add_escape(written)
        return at + len(written)

    def _close_string(self, string: _String, out: list[str]) -> None:
        level = self._levels[-1]
        out.append(string.closed())
        if string.is_key:
            level.schema = member(level.shape, string.name)
            level.at_key = False
        self._string = None


class _String:
    """A string of which the closing quote is still to come."""

    def __init__(self, expansion: Expansion, *, is_key: bool, as_text: bool) -> None:
        self._expansion = expansion
        self.is_key = is_key
        self.name = ""
        self._may_be_whole = not (is_key or as_text)
        self._opened = False
        # Of each character that is held back: how it is written, and what it is.
        self._written: list[str] = []
        self._meant: list[str] = []

    def add_plain(self, text: str) -> None:
        """Take characters that stand for themselves."""
        self._written += text
        self._meant += text

    def add_escape(self, written: str) -> None:
        """Take one character that is written as an escape."""
        self._written.append(written)
        self._meant.append(_meaning(written))

    def raw(self) -> str:
        """What is held back, as written."""
        return ("" if self._opened else '"') + "".join(self._written)

    def settled(self) -> str:
        """Give what no more text can change."""
        text = "".join(self._meant)
        if self._may_be_whole and _may_be_whole(text):
            return ""
        self._may_be_whole = False
        return self._released(len(text) if self.is_key else handles.undecided(text))

    def closed(self) -> str:
        """Give the rest, with the closing quote."""
        text = "".join(self._meant)
        if self._may_be_whole and handles.parse_whole(text.strip()) is not None:
            value = self._expansion.string(text, as_text=False)
            return f'{self.raw()}"' if value == text else json_text(value)
        return f'{self._released(len(text))}"'

    def _released(self, cut: int) -> str:
        """Expand what is held back, up to a character, and let go of it."""
        out = ["" if self._opened else '"']
        text = "".join(self._meant[:cut])
        if self.is_key:
            self.name += text
            out += self._written[:cut]
        else:
            out += self._expanded(text)
        self._opened = True
        del self._written[:cut], self._meant[:cut]
        return "".join(out)

    def _expanded(self, text: str) -> Iterator[str]:
        at = 0
        for handle in handles.find(text):
            yield from self._literal(text, at, handle.start)
            shown = self._expansion.shown(text, handle)
            at = handle.end
            if shown == text[handle.start : at]:
                yield from self._written[handle.start : at]
            else:
                yield json.dumps(shown, ensure_ascii=False)[1:-1]
        yield from self._literal(text, at, len(text))

    def _literal(self, text: str, start: int, stop: int) -> Iterator[str]:
        """Give characters as they are written, less what had been escaped at insertion."""
        taken_out = {start + at for at in handles.unescaped_at(text[start:stop])}
        return (self._written[at] for at in range(start, stop) if at not in taken_out)


def _may_be_whole(text: str) -> bool:
    """Tell whether a string that begins so can be a handle with nothing but blanks around."""
    inside = text.lstrip()
    if not inside or handles.undecided(inside) == 0:
        return True
    return handles.parse_whole(inside.rstrip()) is not None


def _meaning(written: str) -> str:
    try:
        meant = json.loads(f'"{written}"')
    except ValueError:
        return _BAD
    return meant if isinstance(meant, str) and len(meant) == 1 else _BAD


def expand_json(text: str, expansion: Expansion, schema: Any = None) -> str:
    """Expand the JSON text of a call's arguments at once."""
    fragments = JsonFragments(expansion, schema)
    return fragments.feed(text) + fragments.close()
