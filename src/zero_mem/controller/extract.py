"""A verbatim part of a JSON result: the fields and rows most likely to be needed.

The value is cut into units (a field, a column of a table) with what each is worth and what
it costs in tokens. Units above a threshold of worth for cost are kept, best first, as far
as a limit goes; the kept part is written in the compact form, under its own keys.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem.controller.compact import JsonPath, encode, flow
from zero_mem.controller.compact_table import ABSENT, Column, columns, grouping
from zero_mem.controller.interest import Interest, scalars, shape

Steps = tuple[str, ...]

_PER_COST: Final = 0.65  # worth / cost ** this ranks the units
_PER_ROW: Final = 0.5  # the worth of a column grows with rows ** (1 - this)
_ROW_SHARES: Final = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
_FIELD_NAME: Final = re.compile(r"[a-z][A-Za-z_]*[0-9]{0,2}")
_MOST_ROWS: Final = 2000  # of one table; more are never shown in an extract


@dataclass(slots=True)
class Unit:
    """A part that is kept or left out as a whole: a field, or one column of a table.

    `column` is None for a field. `worth` is expected use; `cost` is tokens.
    """

    path: JsonPath
    column: Steps | None
    worth: float
    cost: float
    what: str = ""

    @property
    def merit(self) -> float:
        """The order in which units are kept."""
        return self.worth / math.pow(self.cost + 1, _PER_COST)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonExtract:
    """The kept part as text, how many scalars it shows and leaves out, and why it is kept."""

    text: str
    shown: int
    left_out: int
    reason: str


def extract(
    value: Any,
    interest: Interest,
    *,
    count: Callable[[str], int],
    threshold: float,
    limit: int,
) -> JsonExtract:
    """Choose and write the part of a JSON value that is most likely to be needed.

    Args:
        value: a JSON object or array.
        interest: what the conversation says.
        count: counts tokens.
        threshold: the least merit of what is kept; 0 keeps all that fits.
        limit: the most tokens of the text.
    """
    total = sum(1 for _ in scalars(value))
    best = _Choice()
    ranks: dict[JsonPath, list[int]] = {}
    for share in _ROW_SHARES:
        chosen = _choose(value, _Rows(interest, share, ranks), count, threshold, limit)
        if chosen.worth > best.worth:
            best = chosen
        if chosen.fits or not ranks:
            break
    if not best.text:
        return JsonExtract(text="", shown=0, left_out=total, reason="")
    kinds = ", ".join(sorted({unit.what for unit in best.units}))
    return JsonExtract(
        text=best.text,
        shown=best.shown,
        left_out=total - best.shown,
        reason=f"likely to be needed: {kinds}",
    )


@dataclass(slots=True)
class _Choice:
    """One choice of units, and whether all that were worth it fitted."""

    units: Sequence[Unit] = ()
    text: str = ""
    shown: int = 0
    fits: bool = False

    @property
    def worth(self) -> float:
        return sum(unit.worth for unit in self.units)


def _choose(
    value: Any, rows: _Rows, count: Callable[[str], int], threshold: float, limit: int
) -> _Choice:
    units = _Surveyor(rows, count).units(value)
    units = [unit for unit in units if unit.merit > threshold]
    units.sort(key=lambda unit: -unit.merit)
    low, high, best = 0, len(units), _Choice()
    while low < high:
        middle = (low + high + 1) // 2
        text, shown = _write(value, units[:middle], rows)
        if count(text) <= limit:
            low, best = middle, _Choice(units[:middle], text, shown)
        else:
            high = middle - 1
    best.fits = low == len(units)
    return best


def _write(value: Any, units: Sequence[Unit], rows: _Rows) -> tuple[str, int]:
    kept: dict[JsonPath, set[Steps | None]] = defaultdict(set)
    for unit in units:
        kept[unit.path].add(unit.column)
    pruner = _Pruner(kept, rows)
    part = pruner.prune((), value)
    if part is ABSENT:
        return "", 0
    return encode(part, totals=pruner.totals), sum(1 for _ in scalars(part))


# Rows


@dataclass(frozen=True, slots=True)
class _Rows:
    """Which rows of a table are kept: those that speak of what was said, then the first."""

    interest: Interest
    share: float
    ranks: dict[JsonPath, list[int]]

    def kept(self, path: JsonPath, rows: Sequence[Any]) -> list[int]:
        if path not in self.ranks:
            self.ranks[path] = sorted(range(len(rows)), key=lambda at: (-self._said(rows[at]), at))
        most = min(_MOST_ROWS, max(1, math.ceil(len(rows) * self.share)))
        return sorted(self.ranks[path][:most])

    def _said(self, row: Any) -> int:
        texts = (scalar for scalar, _ in scalars(row) if isinstance(scalar, str))
        return sum(1 for text in texts if len(text) >= 3 and self.interest.said(text))


def _table(value: Any) -> list[Column] | None:
    """Lay an array or map out as a table of two rows or more, or give None."""
    if not isinstance(value, (dict, list)) or len(value) < 2:
        return None
    if isinstance(value, dict):
        return columns(list(value.values()))
    if isinstance(value[0], list):
        grouped = grouping(value)
        return None if grouped is None else columns(grouped[0])
    return columns(value)


def _table_rows(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value[0], list):
        return [row for group in value for row in group]
    return list(value)


# Units


@dataclass(frozen=True, slots=True)
class _Surveyor:
    rows: _Rows
    count: Callable[[str], int]

    def units(self, value: Any) -> list[Unit]:
        found: list[Unit] = []
        self._survey((), value, None, found)
        return found

    def _survey(self, path: JsonPath, value: Any, key: str | None, found: list[Unit]) -> None:
        table = _table(value)
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
            frame += len(self.rows.kept(path, _table_rows(value)))
        worth = sum(unit.worth for unit in own) or 1.0
        for unit in own:
            unit.cost += frame * unit.worth / worth

    def _field(self, path: JsonPath, value: Any, key: str | None) -> Unit:
        found = list(scalars(value, key))
        worth = sum(self.rows.interest.expected_use(*scalar) for scalar in found)
        if isinstance(value, list) and value:
            worth *= len(value) ** -_PER_ROW
        if key is not None and _is_value(key):
            worth += self.rows.interest.expected_use(key, None)
        text = value if isinstance(value, str) else flow(value)
        what = shape(found[0][0]) if found else "mark"
        return Unit(path, None, worth, self.count(f"{key}: {text}\n"), what)

    def _columns(self, path: JsonPath, value: Any, table: Sequence[Column]) -> Iterator[Unit]:
        kept = self.rows.kept(path, _table_rows(value))
        keys = list(value) if isinstance(value, dict) else None
        units = [
            self._column(path, leaf, steps, kept, keys)
            for column in table
            for leaf, steps in _leaves(column, ())
        ]
        if keys and not any(_is_key(column, keys) for column in table):
            self._add_keys(units, [keys[at] for at in kept])
        yield from units

    def _add_keys(self, units: Sequence[Unit], keys: Sequence[str]) -> None:
        """Count a map's keys, which come with any of its columns, for the best one."""
        best = max(units, key=lambda unit: unit.merit)
        use = sum(self.rows.interest.expected_use(key, None) for key in keys)
        best.worth += use * len(keys) ** -_PER_ROW
        best.cost += self.count(" ".join(keys))

    def _column(
        self,
        path: JsonPath,
        leaf: Column,
        steps: Steps,
        kept: Sequence[int],
        keys: list[str] | None,
    ) -> Unit:
        values = [leaf.values[at] for at in kept if leaf.values[at] is not ABSENT]
        if leaf.constant:
            values = values[:1]
        distinct = dict.fromkeys(
            (type(scalar), scalar, key)
            for value in values
            for scalar, key in scalars(value, leaf.name)
        )
        worth = sum(
            self.rows.interest.expected_use(scalar, key, tells_rows=len(distinct) > 1)
            for _, scalar, key in distinct
        )
        if not leaf.constant:
            worth *= len(kept) ** -_PER_ROW
        cells = " ".join(v if isinstance(v, str) else flow(v) for v in values)
        name = f" {leaf.name}" if not _is_key(leaf, keys) else f" {leaf.name} {leaf.name}"
        what = shape(next(iter(distinct))[1]) if distinct else "mark"
        return Unit(path, steps, worth, self.count(f"{name} {cells}"), what)


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


# Pruning


@dataclass(slots=True)
class _Pruner:
    kept: Mapping[JsonPath, set[Steps | None]]
    rows: _Rows
    totals: dict[JsonPath, int] = field(default_factory=dict)

    def prune(self, path: JsonPath, value: Any) -> Any:
        """Give the kept part of a value, or `ABSENT`."""
        chosen = self.kept.get(path, set())
        if None in chosen:
            return value
        if _table(value) is not None:
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
        rows = _table_rows(value)
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
