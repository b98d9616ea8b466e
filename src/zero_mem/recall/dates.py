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

MOST_SPANS = 24
"""Of a text with more spans the first count: a table of dates says nothing about its own."""

_Found = Iterable[Span | None]
_Rule = Callable[["_Phrase"], _Found]

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun",
            "july jul", "august aug", "september sept sep", "october oct", "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_WEEKDAYS = {
    name: number
    for number, name in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    )
}
_CHINESE_WEEKDAYS = {name: number for number, name in enumerate("一二三四五六日")} | {"天": 6}
_NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
} | {"a": 1, "an": 1, "couple": 2, "a couple": 2, "a couple of": 2, "few": 3, "a few": 3,
     "several": 4}  # fmt: skip
_DIGITS = {digit: number for number, digit in enumerate("零一二三四五六七八九")} | {"两": 2}
_SEASONS = {
    "春": 3, "夏": 6, "秋": 9, "冬": 12,
    "spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12,
}  # fmt: skip
_PARTS = {
    "上旬": (1, 10), "中旬": (11, 20), "下旬": (21, 31), "月初": (1, 7), "初": (1, 7),
    "中": (10, 20), "底": (24, 31), "末": (24, 31), "early": (1, 10), "mid": (11, 20),
    "late": (21, 31), "beginning": (1, 8), "start": (1, 8), "middle": (10, 20), "end": (23, 31),
}  # fmt: skip
_YEARS = {"今": 0, "本": 0, "去": -1, "前": -2, "明": 1, "后": 2}
_DAYS = {
    "今天": 0, "今日": 0, "今早": 0, "今晚": 0, "今晨": 0, "今夜": 0, "昨天": -1, "昨日": -1,
    "昨晚": -1, "昨夜": -1, "前天": -2, "大前天": -3, "明天": 1, "明日": 1, "明早": 1,
    "明晚": 1, "后天": 2, "大后天": 3, "today": 0, "tonight": 0, "this morning": 0,
    "this afternoon": 0, "this evening": 0, "yesterday": -1, "last night": -1,
    "the day before yesterday": -2, "tomorrow": 1, "the day after tomorrow": 2,
}  # fmt: skip
_HALVES = {"初": (1, 2), "中": (6, 7), "底": (11, 12), "末": (11, 12), "上半年": (1, 6),
           "下半年": (7, 12), "尾": (11, 12)}  # fmt: skip
_UNITS = {"天": 1, "日": 1, "周": 7, "星期": 7, "礼拜": 7, "day": 1, "week": 7}

_NUMBER = r"(?:\d{1,3}|[零一二两三四五六七八九十]{1,3})"
_M = r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_D = r"(?:3[01]|[12]\d|0?[1-9]|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九])"
_MONTH = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?" \
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"  # fmt: skip
_WEEKDAY = "(?:" + "|".join(_WEEKDAYS) + ")"
_COUNT = r"(?:\d{1,3}|a couple(?: of)?|a few|an?|several|one|two|three|four|five|six|seven" \
    r"|eight|nine|ten|eleven|twelve)"  # fmt: skip
_ENGLISH_HOLIDAY = "|".join(
    re.escape(name) for name in sorted(HOLIDAYS, key=len, reverse=True) if name.isascii()
)
_CHINESE_HOLIDAY = "|".join(
    sorted((name for name in HOLIDAYS if not name.isascii()), key=len, reverse=True)
)
_ENGLISH_DAY = "|".join(sorted((n for n in _DAYS if n.isascii()), key=len, reverse=True))
_CHINESE_DAY = "|".join(sorted((n for n in _DAYS if not n.isascii()), key=len, reverse=True))

_PATTERNS = {
    "iso": r"(?<![\w.\-/])(?P<iso_y>(?:19|20)\d\d)[-/.](?P<iso_m>1[0-2]|0?[1-9])"
    r"(?:[-/.](?P<iso_d>3[01]|[12]\d|0?[1-9]))?(?![\d])",
    "us": r"(?<!\d)(?P<us_m>1[0-2]|0?[1-9])/(?P<us_d>3[01]|[12]\d|0?[1-9])"
    r"/(?P<us_y>(?:19|20)\d\d)(?!\d)",
    "zh": r"(?:(?P<zh_y>(?:19|20)\d\d)年|(?P<zh_r>[今本去前明后])年的?)?(?<![\d个])"
    rf"(?P<zh_m>{_M})月(?:份)?(?:(?P<zh_d>{_D})(?:[日号]|(?=[-—~至到]{_D}[日号]))"
    rf"(?:[-—~至到](?:(?P<zh_m2>{_M})月)?(?P<zh_d2>{_D})[日号])?"
    rf"|(?P<zh_p>上旬|中旬|下旬|初|底|末|中(?!国|央|心))|[-—~至到](?P<zh_m3>{_M})月)?",
    "zhyear": r"(?:(?<!\d)(?P<zhyear_y>(?:19|20)\d\d)年|(?P<zhyear_r>[今去前明])年|(?=年[初底末]))"
    r"(?:的)?(?:年?(?P<zhyear_h>上半年|下半年|初|中(?!国|央|心)|底|末|尾)"
    r"|第?(?P<zhyear_q>[一二三四1234])季度|(?P<zhyear_s>[春夏秋冬])(?:季|天)?)?",
    "half": r"(?P<half_h>上半年|下半年)|第?(?P<half_q>[一二三四])季度",
    "quarter": r"\bQ(?P<quarter_q>[1-4])\b(?:,? (?P<quarter_y>(?:19|20)\d\d))?",
    "zhmonth": r"(?P<zhmonth_w>本月|这个月|当月|上个?月|下个?月)(?P<zhmonth_p>上旬|中旬|下旬|初|底|末)?"
    rf"(?:(?P<zhmonth_d>{_D})[日号])?",
    "zhweek": r"(?P<zhweek_w>上上个?|上个?|下下个?|下个?|本|这个?|这一)?(?:周|星期|礼拜)"
    r"(?P<zhweek_d>[一二三四五六日天末])",
    "zhweeks": r"(?P<zhweeks_w>上上个?|上个?|下个?|本|这)(?:周|星期|礼拜)",
    "zhago": rf"(?P<zhago_n>{_NUMBER}|半)(?:个)?(?P<zhago_h>半)?(?P<zhago_u>天|日|周|星期|礼拜|月|年)"
    r"(?:之|以)?(?P<zhago_w>前|后)",
    "zhday": _CHINESE_DAY,
    "zhholiday": rf"(?:(?:(?P<zhholiday_y>(?:19|20)\d\d)|(?P<zhholiday_r>[今去前明]))年的?)?"
    rf"(?P<zhholiday_n>{_CHINESE_HOLIDAY})",
    "zhseason": r"(?P<zhseason_s>[春夏秋冬])(?:季|天)",
    "dmy": rf"(?P<dmy_d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)?,? (?P<dmy_m>{_MONTH})\b\.?"
    r"(?:,? (?P<dmy_y>(?:19|20)\d\d))?",
    "mdy": rf"\b(?P<mdy_m>{_MONTH})\.? (?P<mdy_d>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)"
    r"(?:,? (?P<mdy_y>(?:19|20)\d\d))?",
    "part": r"(?i:\b(?P<part_p>early|mid|late|(?:the )?(?:beginning|start|middle|end) of)[ -])"
    rf"(?P<part_m>{_MONTH})\b\.?(?:,? (?P<part_y>(?:19|20)\d\d))?",
    "my": rf"\b(?P<my_m>{_MONTH})\.?,? (?:of )?(?P<my_y>(?:19|20)\d\d)\b",
    "month": r"(?:(?i:\b(?P<month_w>in|during|since|by|until|of|from|last|this|next|around)) )"
    rf"(?P<month_m>{_MONTH})\b(?! \d)",
    "longmonth": r"\b(?P<longmonth_m>January|February|April|June|July|August|September|October"
    r"|November|December)\b",
    "ago": rf"(?i:\b(?P<ago_n>{_COUNT}) (?P<ago_u>day|week|month|year)s? (?P<ago_w>ago|earlier))",
    "week": r"(?i:\b(?P<week_w>last|this past|past|this|next) "
    r"(?P<week_u>week(?:end)?|month|year)\b)",
    "weekday": rf"(?i:\b(?:(?P<weekday_w>last|this past|past|this|next|on|coming) )"
    rf"(?P<weekday_d>{_WEEKDAY})\b)",
    "season": r"(?i:\b(?:(?P<season_w>last|this|next|in|during|of|over) (?:the )?)?"
    r"(?P<season_s>spring|summer|fall|autumn|winter)(?:,? (?:of )?(?P<season_y>(?:19|20)\d\d))?\b)",
    "day": rf"(?i:\b(?:{_ENGLISH_DAY})\b)",
    "holiday": rf"(?i:\b(?P<holiday_n>{_ENGLISH_HOLIDAY})(?: day)?\b"
    r"(?:,? (?:of )?(?P<holiday_y>(?:19|20)\d\d))?)",
    "year": r"(?i:\b(?:in|since|during|of|by|from|year) (?P<year_y>(?:19|20)\d\d)\b)(?![-/.]\d)",
}  # fmt: skip
_ENGLISH_NAMES = (
    "iso us quarter dmy mdy part my month longmonth ago week weekday season day holiday year".split()
)
_ENGLISH_STARTS = r"(?<![A-Za-z])(?=[0-9JFMASONDQabcdefhilmnopstvwyBCEHILPTUVWY])"
_CHINESE_STARTS = (
    r"(?=[0-9一二三四五六七八九十两半零今本去前明后年上下第这当周星礼元除大春过情妇清劳母儿端父教中国重双"
    r"平圣跨夏秋冬昨七])"
)


def _phrases(starts: str, names: Iterable[str]) -> re.Pattern[str]:
    """Join patterns; the class of first characters passes most places over at once."""
    joined = "|".join(f"(?P<{name}>{_PATTERNS[name]})" for name in names)
    return re.compile(f"{starts}(?:{joined})")


_CHINESE = _phrases(_CHINESE_STARTS, [n for n in _PATTERNS if n not in _ENGLISH_NAMES])
_ENGLISH = _phrases(_ENGLISH_STARTS, _ENGLISH_NAMES)
_MAY_HOLD = re.compile(
    r"[0-9]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|day|ago|night|week|month|year|season"
    r"|morning|evening|noon|spring|summer|fall|autumn|winter|halloween|easter|christmas|thanksgiving|valentine|tom|fourth|new |festival|q[1-4])"
)


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
            return [self.anchor.year + _YEARS[relative]] if self.anchor else []
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
        yield from _CHINESE.finditer(text)
    if _MAY_HOLD.search(text):
        yield from _ENGLISH.finditer(text)


def _number(text: str) -> int:
    """Read a number in digits, Chinese characters (below 100) or English words."""
    if text.isdecimal():
        return int(text)
    if "十" in text:
        tens, _, ones = text.partition("十")
        return 10 * (_DIGITS.get(tens, 1) if tens else 1) + _DIGITS.get(ones, 0)
    word = text.lower()
    return _NUMBER_WORDS.get(word, _DIGITS.get(word, 0))


def _month_number(name: str) -> int:
    return _MONTHS[name.lower()]


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
            yield part_of_month(year, month, *_PARTS[part])
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
        first, last = _HALVES[half]
        return _joined(month_span(year, first), month_span(year, last))
    if quarter:
        return season_span(year, 3 * _number(quarter) - 2)
    return season_span(year, _SEASONS[season]) if season else year_span(year)


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
        yield part_of_month(first.year, first.month, *_PARTS[part])
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
        yield Span(*(week.start + _CHINESE_WEEKDAYS[day],) * 2)


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
        days = number * _UNITS[unit]
        slack = 0 if _UNITS[unit] == 1 and abs(number) < 7 else 3
    middle = anchor.toordinal() + round(days)
    return Span(max(1, middle - slack), middle + slack) if middle > 0 else None


def _relative_day(p: _Phrase) -> _Found:
    if p.anchor is not None:
        yield Span(*(p.anchor.toordinal() + _DAYS[p.text.lower()],) * 2)


def _holiday(p: _Phrase) -> _Found:
    rule = HOLIDAYS[p.get("n").lower()]
    for year in p.years():
        yield rule(year)


def _chinese_season(p: _Phrase) -> _Found:
    for year in p.years():
        yield season_span(year, _SEASONS[p.get("s")])


def _named_day(p: _Phrase) -> _Found:
    for year in p.years():
        yield day_span(year, _month_number(p.get("m")), int(p.get("d")))


def _named_part(p: _Phrase) -> _Found:
    part = p.get("p").lower().removeprefix("the ").removesuffix(" of")
    for year in p.years():
        yield part_of_month(year, _month_number(p.get("m")), *_PARTS[part])


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
    today, wanted = p.anchor.toordinal(), _WEEKDAYS[p.get("d").lower()]
    back = (p.anchor.weekday() - wanted) % 7 or 7
    ahead = p.get("w").lower() in ("next", "coming", "this")
    yield Span(*(today + (7 - back % 7 if ahead else -back),) * 2)


def _season(p: _Phrase) -> _Found:
    word, first = p.get("w").lower(), _SEASONS[p.get("s").lower()]
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
