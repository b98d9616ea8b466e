"""Secrets that the name of their column gives away: in tables, CSV and SQL."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final

from zero_mem.redaction.checks import is_odd
from zero_mem.redaction.engine import Found
from zero_mem.redaction.fields import names_secret
from zero_mem.redaction.rules import Rule

_SEPARATORS: Final = "|\t,;"
_HEADING: Final = re.compile(r"[ \t]*[\"'`*]*[^\W\d][\w .-]{0,40}[\"'`*]*[ \t]*|[ \t]*")
_ITEM: Final = re.compile(r"\s*(?:'(?P<text>(?:[^']|'')*)'|\"[^\"]*\"|[^,'\"]*)\s*(?:,|$)")
_INSERT: Final = re.compile(
    r"(?i)insert\s+into\s+[^\s(]{1,100}\s*\((?P<names>[^()]{1,2000})\)\s*values\s*"
    # Two quotes are the end of one string and the beginning of the next: read in one way only.
    r"\((?P<value>(?:[^()']|'[^']*')*)\)"
)
_LIST: Final = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase|code)s|secrets)[\"']?[ ]?[:=][ ]?"
    r"[\[(](?P<value>[^\[\](){}]{1,2000})[\])]"
)
_STRING: Final = re.compile(r"[\"'](?P<text>[^\"'\n]{4,100})[\"']")
_LONGEST_LINE: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRule(Rule):
    """Finds what stands below the name of a secret, in a table whose first line has names."""

    def at(self, text: str, folded: str | bytes, hint: str | bytes) -> Iterator[Found]:
        """Find the secrets of tables with a hint in their first line."""
        place = folded.find(hint)  # type: ignore[arg-type]
        while place >= 0:
            start = text.rfind("\n", 0, place) + 1
            end = text.find("\n", place)
            if end < 0:
                return
            after = end
            if end - start < _LONGEST_LINE and (
                not start or text[start - 2 : start] == "\n\n" or text[start] == "|"
            ):
                after = yield from self._table(text, start, end)
            place = folded.find(hint, after)  # type: ignore[arg-type]

    def _table(self, text: str, start: int, end: int) -> Generator[Found, None, int]:
        """Find the secrets of one table, if it is one, and tell where it ends."""
        heading = text[start:end]
        separator = next((each for each in _SEPARATORS if each in heading), "")
        names = heading.split(separator) if separator else []
        columns = [n for n, name in enumerate(names) if names_secret(name.strip(" \t\r\"'`*"))]
        after = end
        if not columns or not all(map(_HEADING.fullmatch, names)):
            return after
        for place, line in _lines(text, end + 1):
            cells = line.split(separator)
            if len(cells) != len(names):
                return after
            for n in columns:
                yield from self._cell(cells[n], place + sum(len(c) + 1 for c in cells[:n]))
            after = place + len(line)
        return after

    def _cell(self, cell: str, place: int) -> Iterator[Found]:
        value = cell.strip(" \t\r\"'`")
        if is_odd(value):
            start = place + cell.index(value)
            yield Found(start, start + len(value), self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertRule(Rule):
    """Finds what SQL inserts into a column with the name of a secret."""

    def found(self, match: re.Match[str]) -> Iterator[Found]:
        """Give the items that stand in such a column."""
        names = [name.strip(" \t\r\n\"'`[]") for name in match["names"].split(",")]
        for name, item in zip(names, _ITEM.finditer(match["value"]), strict=False):
            if names_secret(name) and item["text"] and is_odd(item["text"]):
                begin = match.start("value")
                yield Found(begin + item.start("text"), begin + item.end("text"), self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRule(Rule):
    """Finds the strings of a list of secrets."""

    def found(self, match: re.Match[str]) -> Iterator[Found]:
        """Give the items of a list."""
        for item in _STRING.finditer(match["value"]):
            if is_odd(item["text"]):
                begin = match.start("value")
                yield Found(begin + item.start("text"), begin + item.end("text"), self.kind)


def _lines(text: str, place: int) -> Iterator[tuple[int, str]]:
    while place < len(text):
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        yield place, text[place:end]
        place = end + 1


COLUMNS: Final[tuple[Rule, ...]] = (
    TableRule(
        kind="password",
        pattern=re.compile("(?!)"),
        hints=("pass", "pw", "secret", "密码", "口令"),
        needs="\n",
    ),
    ListRule(kind="password", pattern=_LIST, hints=("pass", "secret"), needs="0"),
    InsertRule(kind="password", pattern=_INSERT, hints=("insert into",), needs="("),
)
