"""A verbatim part of a JSON result: the fields and rows most likely to be needed.

The value is cut into units (a field, a column of a table) with what each is worth and what
it costs in tokens. Units above a threshold of worth for cost are kept, best first, as far
as a limit goes; the kept part is written in the compact form, under its own keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.controller.compact import JsonPath
from zero_mem.controller.interest import Interest, scalars
from zero_mem.controller.rows import Rows
from zero_mem.controller.units import Surveyor, Unit, write

_SAMPLED: Final = 40  # rows; of a table so long a sample shows how to filter it
_SAMPLE_COST: Final = 12  # tokens of a cell that a sample shows
_ROW_SHARES: Final = (1.0, 0.0, 0.5, 0.25, 0.12, 0.06, 0.03)  # 0: those spoken of


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
    best = _best(value, interest, count, threshold, limit)
    if not best.text:
        return JsonExtract(text="", shown=0, left_out=total, reason="")
    kinds = ", ".join(sorted({unit.what for unit in best.units}))
    return JsonExtract(
        text=best.text,
        shown=best.shown,
        left_out=total - best.shown,
        reason=f"likely to be needed: {kinds}",
    )


def _best(
    value: Any, interest: Interest, count: Callable[[str], int], threshold: float, limit: int
) -> _Choice:
    best = _Choice()
    tables: dict[JsonPath, list[float]] = {}
    for share in _ROW_SHARES:
        rows = Rows(interest, share, tables)
        chosen = _choose(value, rows, count, threshold, limit)
        if chosen.worth > best.worth:
            best = chosen
        if (chosen.fits and chosen.units) or not tables:
            break
    return _sampled(value, best, Rows(interest, best.share, tables), count, limit)


def _sampled(
    value: Any, best: _Choice, rows: Rows, count: Callable[[str], int], limit: int
) -> _Choice:
    """Add a first row of each long table of which nothing is kept, to show its fields."""
    kept = {unit.path for unit in best.units}
    rows.sampled.update(
        path for path, uses in rows.tables.items() if len(uses) >= _SAMPLED and path not in kept
    )
    if not rows.sampled:
        return best
    units = [
        unit
        for unit in Surveyor(rows, count).units(value)
        if unit.path in rows.sampled and unit.column is not None and unit.own <= _SAMPLE_COST
    ]
    text, shown = write(value, [*best.units, *units], rows)
    if not units or count(text) > limit:
        return best
    return _Choice([*best.units, *units], text, shown)


@dataclass(slots=True)
class _Choice:
    """One choice of units, and whether all that were worth it fitted."""

    units: Sequence[Unit] = ()
    text: str = ""
    shown: int = 0
    share: float = 1.0
    fits: bool = False

    @property
    def worth(self) -> float:
        return sum(unit.worth for unit in self.units)


def _choose(
    value: Any, rows: Rows, count: Callable[[str], int], threshold: float, limit: int
) -> _Choice:
    units = Surveyor(rows, count).units(value)
    units = [unit for unit in units if unit.merit > threshold]
    units.sort(key=lambda unit: -unit.merit)
    low, high, best = 0, len(units), _Choice()
    while low < high:
        middle = (low + high + 1) // 2
        text, shown = write(value, units[:middle], rows)
        if count(text) <= limit:
            low, best = middle, _Choice(units[:middle], text, shown, rows.share)
        else:
            high = middle - 1
    best.fits = low == len(units)
    return best
