"""Simple charts as numbers for a template: no colour, no markup; the classes are the style's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 120
_EVERY: Final = 10
"""So many bars apart stand the labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar; lengths are in the units of the chart."""

    x: float
    y: float
    width: float
    height: float
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A row of bars above a line.

    Attributes:
        peak: The greatest value; `total` is their sum.
        labels: Texts under the line, as far apart as they fill it.
        rows: Each value with its label, for the table beside the chart.
    """

    width: int
    height: int
    bars: tuple[Bar, ...]
    labels: tuple[str, ...]
    rows: tuple[tuple[str, int], ...]
    peak: int
    total: int


def bars(values: Sequence[int], labels: Sequence[str], hints: Sequence[str]) -> Bars:
    """Draw values side by side, the highest as high as the chart."""
    step = WIDTH / max(1, len(values))
    peak = max(values, default=0)
    drawn = []
    for place, (value, hint) in enumerate(zip(values, hints, strict=True)):
        height = round(HEIGHT * value / peak, 1) if peak else 0.0
        height = max(height, 2.0) if value else 0.0
        x = round(place * step + 1, 1)
        drawn.append(
            Bar(x=x, y=HEIGHT - height, width=round(step - 2, 1), height=height, hint=hint)
        )
    return Bars(
        width=WIDTH,
        height=HEIGHT,
        bars=tuple(bar for bar in drawn if bar.height),
        labels=tuple(labels[::_EVERY]),
        rows=tuple(zip(labels, values, strict=True)),
        peak=peak,
        total=sum(values),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A part of a bar, from `x` on."""

    name: str
    value: int
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One bar of many parts, as long as the chart."""

    width: int
    slices: tuple[Slice, ...]
    total: int


def stack(values: Sequence[tuple[str, int]]) -> Stack:
    """Draw named values one after the other; every value that is not 0 can be seen."""
    total = sum(value for _, value in values)
    slices, x = [], 0.0
    for name, value in values:
        width = WIDTH * value / total if total else 0.0
        slices.append(Slice(name=name, value=value, x=round(x, 2), width=round(width, 2)))
        x += width
    return Stack(width=WIDTH, slices=tuple(slices), total=total)
