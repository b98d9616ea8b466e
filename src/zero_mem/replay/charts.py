"""Inline SVG charts: plain functions from numbers to markup, coloured by the page's classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from zero_mem.replay.wording import percent

CHARACTER: Final = 7.2
"""Width of a label's character in the charts' units, on the wide side."""
BOLD: Final = 8.8
"""The same of a bold label: the page sets those of joined points so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line: one value per call, and whether the chart is about it."""

    key: str
    label: str
    values: Sequence[float]
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A strategy at one budget: `x` and `y` are shares; `joined` ones are one curve.

    `brief` names it where there is no room for its label, as a budget does on the curve.
    """

    key: str
    label: str
    x: float
    y: float
    joined: bool = False
    brief: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The plot's area in a drawing, and the values at its edges."""

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Place a value in the drawing."""
        across = (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1)
        up = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1)
        return (
            self.left + across * (self.width - self.left - self.right),
            self.height - self.bottom - up * (self.height - self.top - self.bottom),
        )


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Give round values that span a range: steps of 1, 2, 2.5 or 5 times a power of ten."""
    if high <= low:
        high = low + 1
    rough = (high - low) / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
    return [at * step for at in range(first, last + 1)]


def thinned(count: int, most: int = 400) -> list[int]:
    """Pick at most so many of the indexes below `count`, evenly, the first and last kept."""
    if count <= most:
        return list(range(count))
    return [round(at * (count - 1) / (most - 1)) for at in range(most)]


def line_chart(series: Sequence[Series], *, width: int, height: int, title: str) -> str:
    """Draw lines over call numbers; where there is room their names stand at the ends."""
    longest = max((len(each.values) for each in series), default=1)
    highest = max((max(each.values, default=0) for each in series), default=0)
    marks = ticks(0, highest)
    wide = width > 600
    names = max((len(each.label) for each in series), default=0) * CHARACTER
    frame = Frame(
        width=width,
        height=height,
        left=46,
        right=names + 18 if wide else 10,
        top=12,
        bottom=46,
        x=(1, max(longest, 2)),
        y=(0, marks[-1]),
    )
    lines = "".join(_line(frame, each) for each in sorted(series, key=lambda s: s.strong))
    ends = _ends(frame, series) if wide else ""
    body = _grid(frame, marks, _short) + _calls(frame, longest) + lines + ends
    return _svg(frame, title, body + _cursor(frame), kind="lines")


def scatter(points: Sequence[Point], *, width: int, height: int, title: str) -> str:
    """Draw points of coverage over tokens; joined ones are connected in order of x."""
    low = min((point.x for point in points), default=0.0)
    high = max((point.x for point in points), default=1.0)
    across = ticks(min(0.0, low), max(1.0, high), 5 if width > 600 else 4)
    frame = Frame(
        width=width,
        height=height,
        left=46,
        right=24,
        top=16,
        bottom=44,
        x=(across[0], across[-1]),
        y=(0, 1.04),
    )
    grid = _grid(frame, [0, 0.25, 0.5, 0.75, 1], _percent)
    axis = "".join(_below(frame, x, f"{x:g}") for x in across)
    name = _text(
        (frame.left + width - frame.right) / 2, height - 8, "memory's tokens ÷ tool results", "mid"
    )
    return _svg(frame, title, grid + axis + name + _curve(frame, points) + _points(frame, points))


def bars(values: Sequence[tuple[str, float]], *, width: int, height: int, title: str) -> str:
    """Draw one bar per run, sorted by the caller: up for saved, down for dearer, in dollars."""
    low = min((value for _, value in values), default=0.0)
    high = max((value for _, value in values), default=0.0)
    marks = ticks(min(0.0, low), max(0.0, high), 4)
    frame = Frame(
        width=width,
        height=height,
        left=60,
        right=10,
        top=12,
        bottom=12,
        x=(0, max(len(values), 1)),
        y=(marks[0], marks[-1]),
    )
    body = "".join(_bar(frame, at, name, value) for at, (name, value) in enumerate(values))
    return _svg(frame, title, _grid(frame, marks, _dollars) + body)


def _bar(frame: Frame, at: int, name: str, value: float) -> str:
    left, zero = frame.at(at, 0)
    right, end = frame.at(at + 1, value)
    gap = min(2.0, (right - left) * 0.2)
    side = "up" if value >= 0 else "down"
    return (
        f'<rect class="bar {side}" x="{left + gap / 2:.1f}" y="{min(zero, end):.1f}" '
        f'width="{max(0.5, right - left - gap):.1f}" height="{max(0.5, abs(end - zero)):.1f}">'
        f"<title>{plain_text(name)}: {_dollars(value)}</title></rect>"
    )


def _svg(frame: Frame, title: str, body: str, kind: str = "") -> str:
    size = f'viewBox="0 0 {frame.width} {frame.height}"'
    plot = f'data-left="{frame.left:.1f}" data-right="{frame.right:.1f}"'
    return (
        f'<svg class="chart {kind}" role="img" aria-label="{plain_text(title)}" {size} {plot}>'
        f"{body}</svg>"
    )


def _grid(frame: Frame, marks: Iterable[float], name: Callable[[float], str]) -> str:
    drawn = []
    for mark in marks:
        _, y = frame.at(frame.x[0], mark)
        kind = "zero" if mark == 0 else "grid"
        end = frame.width - frame.right
        drawn.append(
            f'<path class="{kind}" d="M{frame.left:.1f} {y:.1f}H{end:.1f}"/>'
            + _text(frame.left - 8, y + 4, name(mark), "end")
        )
    return "".join(drawn)


def _calls(frame: Frame, longest: int) -> str:
    step = max(1, round(ticks(0, longest, 8 if frame.width > 600 else 5)[1]))
    at = [1, *range(step if step > 1 else 2, longest + 1, step)]
    marks = "".join(_below(frame, call, str(call)) for call in at)
    middle = (frame.left + frame.width - frame.right) / 2
    return marks + _text(middle, frame.height - 6, "call", "mid")


def _below(frame: Frame, x: float, name: str) -> str:
    across, _ = frame.at(x, 0)
    return _text(across, frame.height - frame.bottom + 18, name, "mid")


def _line(frame: Frame, series: Series) -> str:
    shown = thinned(len(series.values))
    places = [frame.at(at + 1, series.values[at]) for at in shown]
    kind = "strong" if series.strong else "thin"
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dot = ""
    if len(places) == 1:
        dot = f'<circle cx="{places[0][0]:.1f}" cy="{places[0][1]:.1f}" r="3.5"/>'
    return (
        f'<g class="series s-{series.key} {kind}" data-key="{plain_text(series.key)}">'
        f'<path class="line" d="M{path}"/>{dot}</g>'
    )


def _ends(frame: Frame, series: Sequence[Series]) -> str:
    """Name the lines at their right ends, pushed apart so that no two names touch."""
    ended = [each for each in series if each.values]
    ends = [frame.at(len(each.values), each.values[-1])[1] for each in ended]
    places = sorted(zip(ends, ended, strict=True), key=lambda place: place[0])
    lowest = frame.height - frame.bottom
    names, previous = [], -math.inf
    room = lowest - 14 * len(places)
    for at, (y, each) in enumerate(places):
        y = max(min(y, room + 14 * at + 14), previous + 14)
        previous = y
        names.append(
            f'<text class="end-name s-{each.key}" data-key="{each.key}" '
            f'x="{frame.width - frame.right + 8:.1f}" y="{y + 4:.1f}">'
            f"{plain_text(each.label)}</text>"
        )
    return "".join(names)


def _cursor(frame: Frame) -> str:
    top, bottom = frame.top, frame.height - frame.bottom
    return f'<path class="cursor" d="M0 {top:.1f}V{bottom:.1f}"/>'


def _curve(frame: Frame, points: Sequence[Point]) -> str:
    joined = sorted((point for point in points if point.joined), key=lambda point: point.x)
    if len(joined) < 2:
        return ""
    path = "L".join("{:.1f} {:.1f}".format(*frame.at(p.x, p.y)) for p in joined)
    return f'<path class="curve s-{joined[0].key}" d="M{path}"/>'


def _points(frame: Frame, points: Sequence[Point]) -> str:
    taken = [_box(*frame.at(point.x, point.y), 0) for point in points]
    drawn = []
    for point in sorted(points, key=lambda p: (not p.joined, p.x)):
        x, y = frame.at(point.x, point.y)
        drawn.append(
            f'<circle class="point s-{point.key}" cx="{x:.1f}" cy="{y:.1f}" r="5">'
            f"<title>{plain_text(point.label)}: {percent(point.y)} at {point.x:.3f}</title>"
            f"</circle>{_label(frame, point, taken)}"
        )
    return "".join(drawn)


Box = tuple[float, float, float, float]


def _box(x: float, y: float, width: float) -> Box:
    return (x - 6, y - 7, x + 6 + width, y + 7)


def _label(frame: Frame, point: Point, taken: list[Box]) -> str:
    """Write a point's name beside it where it covers nothing, else its brief one, else none."""
    return _placed(frame, point, point.label, taken) or _placed(frame, point, point.brief, taken)


def _placed(frame: Frame, point: Point, name: str, taken: list[Box]) -> str:
    """Try right, left, below, above, and between; further off it would name another point."""
    x, y = frame.at(point.x, point.y)
    width = len(name) * (BOLD if point.joined else CHARACTER)
    for across, down in _PLACES if name else ():
        left = x + across if across > 0 else x + across - width if across < 0 else x - width / 2
        box = (left, y + down - 8, left + width, y + down + 6)
        if _inside(frame, box) and not any(_touch(box, other) for other in taken):
            taken.append(box)
            return (
                f'<text class="name s-{point.key}" x="{left:.1f}" y="{y + down + 4:.1f}">'
                f"{plain_text(name)}</text>"
            )
    return ""


def _inside(frame: Frame, box: Box) -> bool:
    left, top, right, bottom = box
    across = left >= frame.left and right <= frame.width
    return across and top >= 0 and bottom < frame.height - frame.bottom + 9


_PLACES: Final = (
    *((10, 0), (-10, 0), (0, 17), (0, -14)),
    *((10, 14), (10, -13), (-10, 14), (-10, -13)),
)


def _touch(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="tick {anchor}" x="{x:.1f}" y="{y:.1f}">{plain_text(text)}</text>'


def plain_text(text: str) -> str:
    """Escape a text for markup; what UTF-8 cannot hold becomes a replacement character."""
    sound = text.encode("utf-8", "replace").decode("utf-8")
    return escape("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in sound))


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _dollars(value: float) -> str:
    sign = "−" if value < 0 else ""
    return f"{sign}${abs(value):.4g}"
