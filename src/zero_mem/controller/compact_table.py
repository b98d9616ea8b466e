"""Rows as columns: how the compact form lays out objects that are alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.controller.compact_atoms import looks_typed, same

REGULAR: Final = 0.6  # least mean share of a table's columns that a row fills
ABSENT: Final = object()


@dataclass(slots=True)
class Column:
    """One column: a leaf, or (with `parts`) a group of columns under one name.

    `values` has one item a row, `ABSENT` where the row lacks the field.
    """

    name: str
    values: list[Any]
    parts: list[Column] | None = None
    is_key: bool = False
    same_as_key: bool = False

    @property
    def present(self) -> list[Any]:
        """The values of the rows that have the field."""
        return [value for value in self.values if value is not ABSENT]

    @property
    def constant(self) -> bool:
        """True where one scalar stands in every row, so that the header can say it."""
        first = self.values[0]
        return (
            not self.is_key
            and len(self.values) > 1
            and first is not ABSENT
            and not isinstance(first, (dict, list))
            and all(same(value, first) for value in self.values)
        )

    @property
    def textual(self) -> bool:
        """True where every value is a string and one of them looks like a number."""
        found = self.present
        return all(isinstance(value, str) for value in found) and any(map(looks_typed, found))

    def leaves(self) -> Iterator[Column]:
        """Give the columns that have a cell in each row, in order."""
        if self.parts is not None:
            for part in self.parts:
                yield from part.leaves()
        elif not self.same_as_key and not self.constant:
            yield self


def columns(rows: Sequence[Any]) -> list[Column] | None:
    """Lay rows out as columns, in an order that each row's keys follow.

    Args:
        rows: objects, or `ABSENT` for a row that lacks this nested object.

    Returns:
        The columns, or None where the rows are too unlike, or one is empty.
    """
    present = [row for row in rows if row is not ABSENT]
    if not present or not all(isinstance(row, dict) and row for row in present):
        return None
    width = len({key for row in present for key in row})
    if sum(map(len, present)) < REGULAR * width * len(present):
        return None
    order = _merged_order(present)
    return None if order is None else [_column(name, rows) for name in order]


def _column(name: str, rows: Sequence[Any]) -> Column:
    values = [ABSENT if row is ABSENT else row.get(name, ABSENT) for row in rows]
    nested = any(isinstance(value, dict) for value in values)
    return Column(name, values, columns(values) if nested else None)


def _merged_order(rows: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """Give one order of keys that every row's own order follows, or None."""
    order: list[str] = []
    orders = dict.fromkeys(tuple(row) for row in rows)
    for keys in orders:
        at = 0
        for name in keys:
            if name in order:
                at = order.index(name) + 1
            else:
                order.insert(at, name)
                at += 1
    ranks = {name: rank for rank, name in enumerate(order)}
    followed = all(list(keys) == sorted(keys, key=ranks.__getitem__) for keys in orders)
    return order if followed else None


def grouping(value: Sequence[Any]) -> tuple[list[Any], str] | None:
    """Flatten lists of rows and say how they group: `14x2`, or `2+1+3`."""
    if not all(isinstance(group, list) and group for group in value):
        return None
    rows = [row for group in value for row in group]
    sizes = [len(group) for group in value]
    if len(set(sizes)) == 1:
        return rows, f"{len(sizes)}x{sizes[0]}"
    return rows, "+".join(map(str, sizes))
