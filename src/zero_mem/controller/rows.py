"""Tables within a JSON value: which rows are kept, and how likely each is used."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from zero_mem.controller.compact import JsonPath
from zero_mem.controller.compact_table import Column, columns, grouping
from zero_mem.controller.interest import scalars

_PER_ROW: Final = 0.4  # of n rows n ** (1 - this) are expected to be used,
_MOST_USED: Final = 2.0  # and no more than these: the longer a table, the less each row
_SINGLED_OUT: Final = 0.6  # how likely the one row that was spoken of is used
_MOST_ROWS: Final = 2000  # of one table; more are never shown in an extract


class Expectation(Protocol):
    """What is known of the use of values; `Interest` is one."""

    def said(self, text: str) -> bool:
        """Tell whether the conversation itself has a text whole."""

    def expected_use(self, value: Any, key: str | None, *, tells_rows: bool = False) -> float:
        """Give a scalar's expected use, relative to a new id's."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Which rows of a table are kept, and how likely each is used.

    `tables` holds, for each table, the expected use of its rows: the same for all, save for
    those that have something rare which was said. Of a table with `long` rows or more those
    alone are kept.
    """

    interest: Expectation
    share: float
    tables: dict[JsonPath, list[float]]
    sampled: set[JsonPath] = field(default_factory=set)
    long: int = sys.maxsize

    def kept(self, path: JsonPath, rows: Sequence[Any]) -> list[int]:
        """Give the indexes of the kept rows, in order."""
        uses = self.uses(path, rows)
        if path in self.sampled:
            return [0]
        if self.singles_out(len(rows)):
            usual = min(uses)
            return [at for at, use in enumerate(uses) if use > usual][:_MOST_ROWS]
        ranked = sorted(range(len(rows)), key=lambda at: (-uses[at], at))
        most = min(_MOST_ROWS, max(1, math.ceil(len(rows) * self.share)))
        return sorted(ranked[:most])

    def singles_out(self, size: int) -> bool:
        """Tell whether of a table of a size those rows alone are kept that were spoken of."""
        return not self.share or size >= self.long

    def uses(self, path: JsonPath, rows: Sequence[Any]) -> list[float]:
        """Give the expected use of each row."""
        if path not in self.tables:
            self.tables[path] = self._uses(rows)
        return self.tables[path]

    def _uses(self, rows: Sequence[Any]) -> list[float]:
        said = [self._said(row) for row in rows]
        sharing = Counter(text for texts in said for text in texts)
        size = len(rows)
        uses = {text: _row_among(sharing[text], size) for text in sharing}
        usual = row_use(size)
        return [max(usual, *(uses[text] for text in texts), 0.0) for texts in said]

    def _said(self, row: Any) -> set[str]:
        texts = {scalar for scalar, _ in scalars(row) if isinstance(scalar, str)}
        return {text for text in texts if len(text) >= 3 and self.interest.said(text)}


def _row_among(sharing: int, size: int) -> float:
    """Give the expected use of a row that shares what was said with others of a table.

    It competes with those alone, as far as what they share tells them from all rows.
    """
    return _SINGLED_OUT * row_use(sharing) * math.log(size / sharing) / math.log(size)


def row_use(size: int) -> float:
    """Give the expected use of one row, or item, among `size` that compete."""
    return min(math.pow(size, 1 - _PER_ROW), _MOST_USED) / size


def table_of(value: Any) -> list[Column] | None:
    """Lay an array or map out as a table of two rows or more, or give None."""
    if not isinstance(value, (dict, list)) or len(value) < 2:
        return None
    if isinstance(value, dict):
        return columns(list(value.values()))
    if isinstance(value[0], list):
        grouped = grouping(value)
        return None if grouped is None else columns(grouped[0])
    return columns(value)


def table_rows(value: Any) -> list[Any]:
    """List the rows of what `table_of` lays out."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value[0], list):
        return [row for group in value for row in group]
    return list(value)
