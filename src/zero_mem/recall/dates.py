"""Time phrases of both languages as spans of days, by rules; no clock, no time zone.

A phrase without a year may mean any of the years at hand; a phrase that counts from a day
(`three weeks ago`, `上周五`) needs one and is passed over without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date

from zero_mem.recall.calendar_days import (
    HOLIDAYS,
    Span,
    day_span,
    month_span,
    part_of_month,
    season_span,
    shifted_month,
    week_span,
    year_span,
)
from zero_mem.recall.phrases import (
    CHINESE_PHRASES,
    CHINESE_WEEKDAYS,
    DAYS,
    DIGITS,
    ENGLISH_PHRASES,
    HALVES,
    MONTHS,
    NUMBER_WORDS,
    PARTS,
    SEASONS,
    UNITS,
    WEEKDAYS,
    YEARS,
    may_hold,
)

MOST_SPANS = 24
"""Of a text with more spans the first count: a table of dates says nothing about its own."""

_Found = Iterable[Span | None]
_Rule = Callable[["_Phrase"], _Found]


class _Phrase:
    """One phrase found, with the day it counts from and the years it may mean."""

    def __init__(self, match: re.Match[str], anchor: date | None, years: Sequence[int]) -> None:
        self.name = match.lastgroup or ""
        self.text = match.group()
        self._match = match
        self.anchor = anchor
        self._years = years

    def get(self, part: str) -> str:
        return (self._match[f"{self.name}_{part}"] or "") if part else self.text

    def years(self) -> Sequence[int]:
        """Give the years it may mean: those it names, else all at hand."""
        named = self._match.groupdict()
        if year := named.get(f"{self.name}_y"):
            return [int(year)]
        relative = named.get(f"{self.name}_r")
        if relative:
            return [self.anchor.year + YEARS[relative]] if self.anchor else []
        return self._years


def spans(text: str, *, anchor: date | None, years: Sequence[int]) -> list[Span]:
    """Find the time phrases of a text.

    Args:
        text: Any text.
        anchor: The day that relative phrases count from.
        years: The years that a phrase without one may mean.

    Returns:
        Spans in order of appearance, at most `MOST_SPANS`, without repeats.
    """
    found: dict[Span, None] = {}
    for match in _matches(text):
        phrase = _Phrase(match, anchor, years)
        for span in _RULES[phrase.name](phrase):
            if span is not None:
                found[span] = None
        if len(found) >= MOST_SPANS:
            break
    return list(found)[:MOST_SPANS]


def without_phrases(text: str) -> str:
    """Leave a text without its time phrases, which dates stand for."""
    for match in sorted(_matches(text), key=lambda match: -match.start()):
        text = text[: match.start()] + " " + text[match.end() :]
    return text


def _matches(text: str) -> Iterator[re.Match[str]]:
    if not text.isascii():
        yield from CHINESE_PHRASES.finditer(text)
    if may_hold(text):
        yield from ENGLISH_PHRASES.finditer(text)


def _number(text: str) -> int:
    """Read a number in digits, Chinese characters (below 100) or English words."""
    if text.isdecimal():
        return int(text)
    if "十" in text:
        tens, _, ones = text.partition("十")
        return 10 * (DIGITS.get(tens, 1) if tens else 1) + DIGITS.get(ones, 0)
    word = text.lower()
    return NUMBER_WORDS.get(word, DIGITS.get(word, 0))


def _month_number(name: str) -> int:
    return MONTHS[name.lower()]


def _iso(p: _Phrase) -> _Found:
    year, month, day = int(p.get("y")), int(p.get("m")), p.get("d")
    yield day_span(year, month, int(day)) if day else month_span(year, month)


def _us(p: _Phrase) -> _Found:
    yield day_span(int(p.get("y")), int(p.get("m")), int(p.get("d")))


def _chinese_month(p: _Phrase) -> _Found:
    month = _number(p.get("m"))
    for year in p.years():
        if day := p.get("d"):
            yield _chinese_days(p, year, month, _number(day))
        elif part := p.get("p"):
            yield part_of_month(year, month, *PARTS[part])
        elif last := p.get("m3"):
            yield _joined(month_span(year, month), month_span(year, _number(last)))
        else:
            yield month_span(year, month)


def _chinese_days(p: _Phrase, year: int, month: int, day: int) -> Span | None:
    first = day_span(year, month, day)
    if not p.get("d2"):
        return first
    month2 = _number(p.get("m2")) if p.get("m2") else month
    return _joined(first, day_span(year, month2, _number(p.get("d2"))))


def _joined(first: Span | None, last: Span | None) -> Span | None:
    if first is None or last is None or last.end < first.start:
        return first
    return Span(first.start, last.end)


def _chinese_year(p: _Phrase) -> _Found:
    for year in p.years():
        yield _part_of_year(year, p.get("h"), p.get("q"), p.get("s"))


def _part_of_year(year: int, half: str, quarter: str, season: str) -> Span | None:
    if half:
        first, last = HALVES[half]
        return _joined(month_span(year, first), month_span(year, last))
    if quarter:
        return season_span(year, 3 * _number(quarter) - 2)
    return season_span(year, SEASONS[season]) if season else year_span(year)


def _half(p: _Phrase) -> _Found:
    for year in p.years():
        yield _part_of_year(year, p.get("h"), p.get("q"), "")


def _quarter(p: _Phrase) -> _Found:
    for year in p.years():
        yield season_span(year, 3 * int(p.get("q")) - 2)


def _chinese_this_month(p: _Phrase) -> _Found:
    if p.anchor is None:
        return
    which = p.get("w")
    month = shifted_month(p.anchor, {"上": -1, "下": 1}.get(which[0], 0))
    if month is None:
        return
    first = date.fromordinal(month.start)
    if day := p.get("d"):
        yield day_span(first.year, first.month, _number(day))
    elif part := p.get("p"):
        yield part_of_month(first.year, first.month, *PARTS[part])
    else:
        yield month


def _chinese_weeks(word: str) -> int:
    sign = {"上": -1, "下": 1}.get(word[:1], 0)
    return sign * (2 if word[:1] * 2 == word[:2] else 1)


def _chinese_weekday(p: _Phrase) -> _Found:
    if p.anchor is None:
        return
    week, day = week_span(p.anchor, _chinese_weeks(p.get("w"))), p.get("d")
    if day == "末":
        yield Span(week.start + 5, week.end)
    else:
        yield Span(*(week.start + CHINESE_WEEKDAYS[day],) * 2)


def _chinese_week(p: _Phrase) -> _Found:
    if p.anchor is not None:
        yield week_span(p.anchor, _chinese_weeks(p.get("w")))


def _chinese_ago(p: _Phrase) -> _Found:
    unit, sign = p.get("u"), -1 if p.get("w") == "前" else 1
    half = p.get("n") == "半"
    number = 0.5 if half else _number(p.get("n")) + (0.5 if p.get("h") else 0)
    yield _counted(p.anchor, sign * number, {"月": "month", "年": "year"}.get(unit, unit))


def _ago(p: _Phrase) -> _Found:
    yield _counted(p.anchor, -_number(p.get("n")), p.get("u").lower())


def _counted(anchor: date | None, number: float, unit: str) -> Span | None:
    """Count from a day; the further away, the vaguer the day that is meant."""
    if anchor is None:
        return None
    if unit in ("month", "year"):
        days = number * (30.44 if unit == "month" else 365.25)
        slack = 15 if unit == "month" else 60
    else:
        days = number * UNITS[unit]
        slack = 0 if UNITS[unit] == 1 and abs(number) < 7 else 3
    middle = anchor.toordinal() + round(days)
    return Span(max(1, middle - slack), middle + slack) if middle > 0 else None


def _relative_day(p: _Phrase) -> _Found:
    if p.anchor is not None:
        yield Span(*(p.anchor.toordinal() + DAYS[p.text.lower()],) * 2)


def _holiday(p: _Phrase) -> _Found:
    rule = HOLIDAYS[p.get("n").lower()]
    for year in p.years():
        yield rule(year)


def _chinese_season(p: _Phrase) -> _Found:
    for year in p.years():
        yield season_span(year, SEASONS[p.get("s")])


def _named_day(p: _Phrase) -> _Found:
    for year in p.years():
        yield day_span(year, _month_number(p.get("m")), int(p.get("d")))


def _named_part(p: _Phrase) -> _Found:
    part = p.get("p").lower().removeprefix("the ").removesuffix(" of")
    for year in p.years():
        yield part_of_month(year, _month_number(p.get("m")), *PARTS[part])


def _named_month(p: _Phrase) -> _Found:
    for year in p.years():
        yield month_span(year, _month_number(p.get("m")))


def _month_by_word(p: _Phrase) -> _Found:
    word, month = p.get("w").lower(), _month_number(p.get("m"))
    if word in ("last", "this", "next") and p.anchor:
        year = p.anchor.year + (word == "next" and month <= p.anchor.month)
        yield month_span(year - (word == "last" and month >= p.anchor.month), month)
        return
    yield from _named_month(p)


def _week(p: _Phrase) -> _Found:
    if p.anchor is None:
        return
    word, unit = p.get("w").lower(), p.get("u").lower()
    step = {"this": 0, "next": 1}.get(word, -1)
    if unit == "month":
        yield shifted_month(p.anchor, step)
    elif unit == "year":
        yield year_span(p.anchor.year + step)
    else:
        week = week_span(p.anchor, step)
        yield Span(week.start + 5, week.end) if unit == "weekend" else week


def _weekday(p: _Phrase) -> _Found:
    """`last Friday` said on a Wednesday means the nearest one before it."""
    if p.anchor is None:
        return
    today, wanted = p.anchor.toordinal(), WEEKDAYS[p.get("d").lower()]
    back = (p.anchor.weekday() - wanted) % 7 or 7
    ahead = p.get("w").lower() in ("next", "coming", "this")
    yield Span(*(today + (7 - back % 7 if ahead else -back),) * 2)


def _season(p: _Phrase) -> _Found:
    word, first = p.get("w").lower(), SEASONS[p.get("s").lower()]
    if not (word or p.get("y")):
        return
    if word in ("last", "this", "next") and p.anchor and not p.get("y"):
        begun = p.anchor.month >= first
        step = {"last": -1 if not begun or first <= p.anchor.month < first + 3 else 0, "this": 0}
        yield season_span(p.anchor.year + step.get(word, 1 if begun else 0), first)
        return
    for year in p.years():
        yield season_span(year, first)


def _year(p: _Phrase) -> _Found:
    yield year_span(int(p.get("y")))


_RULES: dict[str, _Rule] = {
    "iso": _iso,
    "us": _us,
    "zh": _chinese_month,
    "zhyear": _chinese_year,
    "half": _half,
    "quarter": _quarter,
    "zhmonth": _chinese_this_month,
    "zhweek": _chinese_weekday,
    "zhweeks": _chinese_week,
    "zhago": _chinese_ago,
    "zhday": _relative_day,
    "zhholiday": _holiday,
    "zhseason": _chinese_season,
    "dmy": _named_day,
    "mdy": _named_day,
    "part": _named_part,
    "my": _named_month,
    "month": _month_by_word,
    "longmonth": _named_month,
    "ago": _ago,
    "week": _week,
    "weekday": _weekday,
    "season": _season,
    "day": _relative_day,
    "holiday": _holiday,
    "year": _year,
}


def years_of(days: Iterable[int]) -> list[int]:
    """Give the years that some ordinals fall in, in order."""
    return sorted({date.fromordinal(day).year for day in days})
