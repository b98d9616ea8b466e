"""Days that a calendar knows: months, seasons and holidays as spans of ordinals, pure."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import NamedTuple


class Span(NamedTuple):
    """Days from `start` to `end`, both in it, as proleptic ordinals (`date.toordinal`)."""

    start: int
    end: int

    @property
    def days(self) -> int:
        """How many days it has."""
        return self.end - self.start + 1

    def gap(self, other: Span) -> int:
        """Give the days between two spans; 0 where they touch or overlap."""
        return max(0, self.start - other.end, other.start - self.end)


def between(first: date, last: date) -> Span:
    """Make a span of two dates."""
    return Span(first.toordinal(), last.toordinal())


def day_span(year: int, month: int, day: int) -> Span | None:
    """Make a span of one day, None where the calendar has no such day."""
    try:
        ordinal = date(year, month, day).toordinal()
    except ValueError:
        return None
    return Span(ordinal, ordinal)


def month_span(year: int, month: int) -> Span | None:
    """Make a span of a month."""
    if not (1 <= month <= 12 and 1 <= year <= 9998):
        return None
    return between(date(year, month, 1), date(year, month, monthrange(year, month)[1]))


def year_span(year: int) -> Span | None:
    """Make a span of a year."""
    return between(date(year, 1, 1), date(year, 12, 31)) if 1 <= year <= 9998 else None


def part_of_month(year: int, month: int, first: int, last: int) -> Span | None:
    """Make a span of some days of a month; `last` may lie beyond its end."""
    whole = month_span(year, month)
    if whole is None:
        return None
    return Span(whole.start + first - 1, min(whole.start + last - 1, whole.end))


def season_span(year: int, first_month: int) -> Span | None:
    """Make a span of three months; a winter goes on into the next year."""
    first = month_span(year, first_month)
    last_month = first_month + 2
    last = month_span(year + (last_month > 12), (last_month - 1) % 12 + 1)
    return Span(first.start, last.end) if first and last else None


def shifted_month(day: date, months: int) -> Span | None:
    """Make a span of the month that lies `months` after that of `day`."""
    count = day.year * 12 + day.month - 1 + months
    return month_span(count // 12, count % 12 + 1)


def week_span(day: date, weeks: int = 0) -> Span:
    """Make a span of the week (from Monday) that lies `weeks` after that of `day`."""
    monday = day.toordinal() - day.weekday() + 7 * weeks
    return Span(monday, monday + 6)


def _nth_weekday(year: int, month: int, weekday: int, nth: int) -> date:
    first = date(year, month, 1)
    return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (nth - 1))


def _last_weekday(year: int, month: int, weekday: int) -> date:
    last = date(year, month, monthrange(year, month)[1])
    return last - timedelta(days=(last.weekday() - weekday) % 7)


def _easter(year: int) -> date:
    """Source: the anonymous Gregorian algorithm (Meeus, Astronomical Algorithms, ch. 8)."""
    a, b, c = year % 19, year // 100, year % 100
    d, e = b // 4, b % 4
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = c // 4, c % 4
    corrected = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 22 * corrected) // 451
    month, day = divmod(h + corrected - 7 * m + 114, 31)
    return date(year, month, day + 1)


# New moons are not computed: the lunar feasts of these years, as published.
_SPRING = {
    2015: (2, 19), 2016: (2, 8), 2017: (1, 28), 2018: (2, 16), 2019: (2, 5), 2020: (1, 25),
    2021: (2, 12), 2022: (2, 1), 2023: (1, 22), 2024: (2, 10), 2025: (1, 29), 2026: (2, 17),
    2027: (2, 6), 2028: (1, 26), 2029: (2, 13), 2030: (2, 3), 2031: (1, 23), 2032: (2, 11),
    2033: (1, 31), 2034: (2, 19), 2035: (2, 8),
}  # fmt: skip
_DRAGON = {
    2015: (6, 20), 2016: (6, 9), 2017: (5, 30), 2018: (6, 18), 2019: (6, 7), 2020: (6, 25),
    2021: (6, 14), 2022: (6, 3), 2023: (6, 22), 2024: (6, 10), 2025: (5, 31), 2026: (6, 19),
    2027: (6, 9), 2028: (5, 28), 2029: (6, 16), 2030: (6, 5), 2031: (6, 24), 2032: (6, 12),
    2033: (6, 1), 2034: (6, 20), 2035: (6, 10),
}  # fmt: skip
_MOON = {
    2015: (9, 27), 2016: (9, 15), 2017: (10, 4), 2018: (9, 24), 2019: (9, 13), 2020: (10, 1),
    2021: (9, 21), 2022: (9, 10), 2023: (9, 29), 2024: (9, 17), 2025: (10, 6), 2026: (9, 25),
    2027: (9, 15), 2028: (10, 3), 2029: (9, 22), 2030: (9, 12), 2031: (10, 1), 2032: (9, 19),
    2033: (9, 8), 2034: (9, 27), 2035: (9, 16),
}  # fmt: skip

_Table = Mapping[int, tuple[int, int]]
Holiday = Callable[[int], Span | None]
"""Gives the days of a holiday in a year, None where they are not known."""


def _fixed(month: int, day: int, days: int = 1) -> Holiday:
    return lambda year: _from(date(year, month, day), days)


def _lunar(table: _Table, after: int = 0, days: int = 1) -> Holiday:
    def span(year: int) -> Span | None:
        known = table.get(year)
        return _from(date(year, *known) + timedelta(days=after), days) if known else None

    return span


def _from(first: date, days: int) -> Span:
    return Span(first.toordinal(), first.toordinal() + days - 1)


def _counted(month: int, weekday: int, nth: int) -> Holiday:
    return lambda year: _from(_nth_weekday(year, month, weekday, nth), 1)


HOLIDAYS: Mapping[str, Holiday] = {
    "元旦": _fixed(1, 1),
    "除夕": _lunar(_SPRING, -1),
    "大年三十": _lunar(_SPRING, -1),
    "大年初一": _lunar(_SPRING),
    "春节": _lunar(_SPRING, -1, 9),
    "过年": _lunar(_SPRING, -3, 11),
    "元宵": _lunar(_SPRING, 14),
    "情人节": _fixed(2, 14),
    "妇女节": _fixed(3, 8),
    "清明": _fixed(4, 4, 3),
    "五一": _fixed(5, 1, 5),
    "劳动节": _fixed(5, 1, 5),
    "母亲节": _counted(5, 6, 2),
    "儿童节": _fixed(6, 1),
    "六一": _fixed(6, 1),
    "端午": _lunar(_DRAGON, 0, 3),
    "父亲节": _counted(6, 6, 3),
    "七夕": _lunar(_MOON, -38),
    "教师节": _fixed(9, 10),
    "中秋": _lunar(_MOON, 0, 3),
    "国庆": _fixed(10, 1, 8),
    "重阳": _lunar(_MOON, 24),
    "双十一": _fixed(11, 11),
    "双11": _fixed(11, 11),
    "平安夜": _fixed(12, 24),
    "圣诞": _fixed(12, 25),
    "跨年": _fixed(12, 31, 2),
    "new year's eve": _fixed(12, 31),
    "new years eve": _fixed(12, 31),
    "new year's day": _fixed(1, 1),
    "new year's": _fixed(1, 1),
    "chinese new year": _lunar(_SPRING, -1, 9),
    "lunar new year": _lunar(_SPRING, -1, 9),
    "spring festival": _lunar(_SPRING, -1, 9),
    "valentine's day": _fixed(2, 14),
    "valentine's": _fixed(2, 14),
    "st. patrick's day": _fixed(3, 17),
    "easter": lambda year: _from(_easter(year), 1),
    "mother's day": _counted(5, 6, 2),
    "memorial day": lambda year: _from(_last_weekday(year, 5, 0), 1),
    "father's day": _counted(6, 6, 3),
    "independence day": _fixed(7, 4),
    "4th of july": _fixed(7, 4),
    "fourth of july": _fixed(7, 4),
    "labor day": _counted(9, 0, 1),
    "mid-autumn festival": _lunar(_MOON, 0, 3),
    "dragon boat festival": _lunar(_DRAGON, 0, 3),
    "halloween": _fixed(10, 31),
    "veterans day": _fixed(11, 11),
    "thanksgiving": _counted(11, 3, 4),
    "black friday": lambda year: _from(_nth_weekday(year, 11, 3, 4) + timedelta(days=1), 1),
    "christmas eve": _fixed(12, 24),
    "christmas": _fixed(12, 25),
}
