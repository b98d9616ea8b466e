"""The parts of a JSON value that are kept or left out, what each is worth, and its cost."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem.controller.compact import JsonPath, encode, flow
from zero_mem.controller.compact_table import ABSENT, Column
from zero_mem.controller.interest import scalars, shape
from zero_mem.controller.rows import Rows, row_use, table_of, table_rows

Steps = tuple[str, ...]

_PER_COST: Final = 0.65  # worth / cost ** this ranks the units
_NAMES_ROW: Final = 1.0  # the use of what was said in a row that is kept for it
_FIELD_NAME: Final = re.compile(r"[a-z][A-Za-z_]*[0-9]{0,2}")


@dataclass(slots=True)
class Unit:
    """A part that is kept or left out as a whole: a field, or one column of a table.

    `column` is None for a field. `worth` is expected use; `cost` is tokens, with a part of
    what surrounds the unit, and `own` without it.
    """

    path: JsonPath
    column: Steps | None
    worth: float
    cost: float
    what: str = ""
    own: int = 0

    @property
    def name(self) -> str:
        """The key of the field or column, else the nearest one above it."""
        if self.column:
            return self.column[-1]
        return next((step for step in reversed(self.path) if isinstance(step, str)), "")

    @property
    def merit(self) -> float:
        """The order in which units are kept."""
        return self.worth / math.pow(self.cost + 1, _PER_COST)


@dataclass(frozen=True, slots=True)
class Surveyor:
    """Cuts a value into units; `rows` says which rows of its tables are kept."""

    rows: Rows
    count: Callable[[str], int]

    def units(self, value: Any) -> list[Unit]:
        """List the units in the order of the value."""
        found: list[Unit] = []
        self._survey((), value, None, found)
        return found

    def _survey(self, path: JsonPath, value: Any, key: str | None, found: list[Unit]) -> None:
        table = table_of(value)
        if table is not None:
            self._share_out(path, value, list(self._columns(path, value, table)), found)
        elif isinstance(value, dict) and value:
            inner: list[Unit] = []
            for name, item in value.items():
                self._survey((*path, name), item, name, inner)
            self._share_out(path, value, inner, found)
        elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
            self._survey((*path, 0), value[0], key, found)
        else:
            found.append(self._field(path, value, key))

    def _share_out(self, path: JsonPath, value: Any, inner: list[Unit], found: list[Unit]) -> None:
        """Charge what surrounds units (names, brackets, line ends) to them by their worth."""
        found += inner
        if not path:
            return
        own = [unit for unit in inner if unit.path == path or unit.path[:-1] == path]
        name = next((step for step in reversed(path) if isinstance(step, str)), "")
        frame = self.count(f"{name}: {{}}")
        if own and own[0].column is not None:
            frame += len(self.rows.kept(path, table_rows(value)))
        worth = sum(unit.worth for unit in own) or 1.0
        for unit in own:
            unit.cost += frame * unit.worth / worth

    def _field(self, path: JsonPath, value: Any, key: str | None) -> Unit:
        found = list(scalars(value, key))
        worth = sum(self.rows.interest.expected_use(*scalar) for scalar in found)
        if isinstance(value, list) and value:
            worth *= row_use(len(value))
        if key is not None and _is_value(key):
            worth += self.rows.interest.expected_use(key, None)
        text = value if isinstance(value, str) else flow(value)
        what = shape(found[0][0]) if found else "mark"
        return Unit(path, None, worth, self.count(f"{key}: {text}\n"), what)

    def _columns(self, path: JsonPath, value: Any, table: Sequence[Column]) -> Iterator[Unit]:
        rows = table_rows(value)
        kept = self.rows.kept(path, rows)
        uses = self.rows.uses(path, rows)
        keys = list(value) if isinstance(value, dict) else None
        units = [
            self._column(path, leaf, steps, {at: uses[at] for at in kept}, keys)
            for column in table
            for leaf, steps in _leaves(column, ())
        ]
        if keys and not any(_is_key(column, keys) for column in table):
            self._add_keys(units, {keys[at]: uses[at] for at in kept})
        yield from units

    def _add_keys(self, units: Sequence[Unit], keys: Mapping[str, float]) -> None:
        """Count a map's keys, which come with any of its columns, for the best one."""
        best = max(units, key=lambda unit: unit.merit)
        best.worth += sum(
            use * self.rows.interest.expected_use(key, None) for key, use in keys.items()
        )
        best.cost += self.count(" ".join(keys))

    def _column(
        self,
        path: JsonPath,
        leaf: Column,
        steps: Steps,
        kept: Mapping[int, float],
        keys: list[str] | None,
    ) -> Unit:
        cells = {at: leaf.values[at] for at in kept if leaf.values[at] is not ABSENT}
        if leaf.constant:
            cells = dict(list(cells.items())[:1])
        distinct: dict[tuple[type, Any, str | None], float] = {}
        for at, cell in cells.items():
            for scalar, key in scalars(cell, leaf.name):
                use = 1.0 if leaf.constant else kept[at]
                typed = (type(scalar), scalar, key)
                distinct[typed] = max(use, distinct.get(typed, 0.0))
        worth = sum(
            use * self.rows.interest.expected_use(scalar, key, tells_rows=not leaf.constant)
            for (_, scalar, key), use in distinct.items()
        )
        if self.rows.singles_out(len(leaf.values)):
            said = (use for (_, text, _), use in distinct.items() if self._said(text))
            worth += _NAMES_ROW * sum(said)
        shown = " ".join(v if isinstance(v, str) else flow(v) for v in cells.values())
        name = f" {leaf.name}" if not _is_key(leaf, keys) else f" {leaf.name} {leaf.name}"
        what = shape(next(iter(distinct))[1]) if distinct else "mark"
        cost = self.count(f"{name} {shown}")
        return Unit(path, steps, worth, cost, what, cost)

    def _said(self, value: Any) -> bool:
        return isinstance(value, str) and len(value) > 2 and self.rows.interest.said(value)


def _is_value(key: str) -> bool:
    """Tell a key that is itself an id, a code or a date from one that names a field."""
    return shape(key) in ("id", "code", "date") and not _FIELD_NAME.fullmatch(key)


def _leaves(column: Column, steps: Steps) -> Iterator[tuple[Column, Steps]]:
    here = (*steps, column.name)
    if column.parts is None:
        yield column, here
    else:
        for part in column.parts:
            yield from _leaves(part, here)


def _is_key(column: Column, keys: list[str] | None) -> bool:
    return keys is not None and column.values == keys


# Writing what is kept


def write(value: Any, units: Sequence[Unit], rows: Rows) -> tuple[str, int]:
    """Write the kept part of a value in the compact form, and count its scalars."""
    kept: dict[JsonPath, set[Steps | None]] = defaultdict(set)
    for unit in units:
        kept[unit.path].add(unit.column)
    pruner = _Pruner(kept, rows)
    part = pruner.prune((), value)
    if part is ABSENT:
        return "", 0
    return encode(part, totals=pruner.totals), sum(1 for _ in scalars(part))


@dataclass(slots=True)
class _Pruner:
    kept: Mapping[JsonPath, set[Steps | None]]
    rows: Rows
    totals: dict[JsonPath, int] = field(default_factory=dict)

    def prune(self, path: JsonPath, value: Any) -> Any:
        """Give the kept part of a value, or `ABSENT`."""
        chosen = self.kept.get(path, set())
        if None in chosen:
            return value
        if table_of(value) is not None:
            return self._table_part(path, value, {steps for steps in chosen if steps})
        if isinstance(value, dict):
            parts = {name: self.prune((*path, name), item) for name, item in value.items()}
            return {name: part for name, part in parts.items() if part is not ABSENT} or ABSENT
        if isinstance(value, list) and len(value) == 1:
            part = self.prune((*path, 0), value[0])
            return ABSENT if part is ABSENT else [part]
        return ABSENT

    def _table_part(self, path: JsonPath, value: Any, chosen: set[Steps]) -> Any:
        if not chosen:
            return ABSENT
        rows = table_rows(value)
        kept = set(self.rows.kept(path, rows))
        if len(kept) < len(rows):
            self.totals[path] = len(rows)
        parts = [_row_part(row, chosen, ()) for row in rows]
        if isinstance(value, dict):
            named = zip(value, parts, strict=True)
            return {name: part for at, (name, part) in enumerate(named) if at in kept}
        if isinstance(value[0], list) and len(kept) == len(rows):
            left = iter(parts)
            return [[next(left) for _ in group] for group in value]
        return [part for at, part in enumerate(parts) if at in kept]


def _row_part(row: Mapping[str, Any], chosen: set[Steps], steps: Steps) -> dict[str, Any]:
    part: dict[str, Any] = {}
    for name, value in row.items():
        here = (*steps, name)
        if here in chosen:
            part[name] = value
        elif isinstance(value, dict):
            inner = _row_part(value, chosen, here)
            if inner:
                part[name] = inner
    return part
