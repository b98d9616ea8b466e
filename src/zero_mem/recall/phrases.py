"""The forms of time phrases in both languages: their words, and patterns with named parts.

Every pattern's name is a rule in `recall.dates`, its parts are named `NAME_PART`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from zero_mem.recall.calendar_days import HOLIDAYS

MONTHS = {
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
WEEKDAYS = {
    name: number
    for number, name in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    )
}
CHINESE_WEEKDAYS = {name: number for number, name in enumerate("一二三四五六日")} | {"天": 6}
NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        (
            "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
            "eleven", "twelve",
        )
    )
} | {"a": 1, "an": 1, "couple": 2, "a couple": 2, "a couple of": 2, "few": 3, "a few": 3,
     "several": 4}  # fmt: skip
DIGITS = {digit: number for number, digit in enumerate("零一二三四五六七八九")} | {"两": 2}
SEASONS = {
    "春": 3, "夏": 6, "秋": 9, "冬": 12,
    "spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12,
}  # fmt: skip
PARTS = {
    "上旬": (1, 10), "中旬": (11, 20), "下旬": (21, 31), "月初": (1, 7), "初": (1, 7),
    "中": (10, 20), "底": (24, 31), "末": (24, 31), "early": (1, 10), "mid": (11, 20),
    "late": (21, 31), "beginning": (1, 8), "start": (1, 8), "middle": (10, 20), "end": (23, 31),
}  # fmt: skip
YEARS = {"今": 0, "本": 0, "去": -1, "前": -2, "明": 1, "后": 2}
DAYS = {
    "今天": 0, "今日": 0, "今早": 0, "今晚": 0, "今晨": 0, "今夜": 0, "昨天": -1, "昨日": -1,
    "昨晚": -1, "昨夜": -1, "前天": -2, "大前天": -3, "明天": 1, "明日": 1, "明早": 1,
    "明晚": 1, "后天": 2, "大后天": 3, "today": 0, "tonight": 0, "this morning": 0,
    "this afternoon": 0, "this evening": 0, "yesterday": -1, "last night": -1,
    "the day before yesterday": -2, "tomorrow": 1, "the day after tomorrow": 2,
}  # fmt: skip
HALVES = {"初": (1, 2), "中": (6, 7), "底": (11, 12), "末": (11, 12), "上半年": (1, 6),
           "下半年": (7, 12), "尾": (11, 12)}  # fmt: skip
UNITS = {"天": 1, "日": 1, "周": 7, "星期": 7, "礼拜": 7, "day": 1, "week": 7}

_NUMBER = r"(?:\d{1,3}|[零一二两三四五六七八九十]{1,3})"
_M = r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_D = r"(?:3[01]|[12]\d|0?[1-9]|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九])"
_MONTH = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?" \
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"  # fmt: skip
_WEEKDAY = "(?:" + "|".join(WEEKDAYS) + ")"
_COUNT = r"(?:\d{1,3}|a couple(?: of)?|a few|an?|several|one|two|three|four|five|six|seven" \
    r"|eight|nine|ten|eleven|twelve)"  # fmt: skip
_ENGLISH_HOLIDAY = "|".join(
    re.escape(name) for name in sorted(HOLIDAYS, key=len, reverse=True) if name.isascii()
)
_CHINESE_HOLIDAY = "|".join(
    sorted((name for name in HOLIDAYS if not name.isascii()), key=len, reverse=True)
)
_ENGLISH_DAY = "|".join(sorted((n for n in DAYS if n.isascii()), key=len, reverse=True))
_CHINESE_DAY = "|".join(sorted((n for n in DAYS if not n.isascii()), key=len, reverse=True))

_PATTERNS = {
    "iso": r"(?<![\w.\-/])(?P<iso_y>(?:19|20)\d\d)[-/.](?P<iso_m>1[0-2]|0?[1-9])"
    r"(?:[-/.](?P<iso_d>3[01]|[12]\d|0?[1-9]))?(?![\d])",
    "us": r"(?<!\d)(?P<us_m>1[0-2]|0?[1-9])/(?P<us_d>3[01]|[12]\d|0?[1-9])"
    r"/(?P<us_y>(?:19|20)\d\d)(?!\d)",
    "zh": r"(?:(?P<zh_y>(?:19|20)\d\d)年|(?P<zh_r>[今本去前明后])年的?)?(?<![\d个])"
    rf"(?P<zh_m>{_M})月(?:份)?(?:(?P<zh_d>{_D})(?:[日号]|(?=[-—~至到]{_D}[日号]))"
    rf"(?:[-—~至到](?:(?P<zh_m2>{_M})月)?(?P<zh_d2>{_D})[日号])?"
    rf"|(?P<zh_p>上旬|中旬|下旬|初|底|末|中(?![国央心秋]))|[-—~至到](?P<zh_m3>{_M})月)?",
    "zhholiday": rf"(?:(?:(?P<zhholiday_y>(?:19|20)\d\d)|(?P<zhholiday_r>[今去前明]))年的?)?"
    rf"(?P<zhholiday_n>{_CHINESE_HOLIDAY})",
    "zhyear": r"(?:(?<!\d)(?P<zhyear_y>(?:19|20)\d\d)年|(?P<zhyear_r>[今去前明])年|(?=年[初底末]))"
    r"(?:的)?(?:年?(?P<zhyear_h>上半年|下半年|初|中(?![国央心秋])|底|末|尾)"
    r"|第?(?P<zhyear_q>[一二三四1234])季度|(?P<zhyear_s>[春夏秋冬])(?:季|天)?)?",
    "half": r"(?P<half_h>上半年|下半年)|第?(?P<half_q>[一二三四])季度",
    "quarter": r"\bQ(?P<quarter_q>[1-4])\b(?:,? (?P<quarter_y>(?:19|20)\d\d))?",
    "zhmonth": r"(?P<zhmonth_w>本月|这个月|当月|上个?月|下个?月)"
    r"(?P<zhmonth_p>上旬|中旬|下旬|初|底|末)?"
    rf"(?:(?P<zhmonth_d>{_D})[日号])?",
    "zhweek": r"(?P<zhweek_w>上上个?|上个?|下下个?|下个?|本|这个?|这一)?(?:周|星期|礼拜)"
    r"(?P<zhweek_d>[一二三四五六日天末])",
    "zhweeks": r"(?P<zhweeks_w>上上个?|上个?|下个?|本|这)(?:周|星期|礼拜)",
    "zhago": rf"(?P<zhago_n>{_NUMBER}|半)(?:个)?(?P<zhago_h>半)?"
    r"(?P<zhago_u>天|日|周|星期|礼拜|月|年)"
    r"(?:之|以)?(?P<zhago_w>前|后)",
    "zhday": _CHINESE_DAY,
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
    "iso", "us", "quarter", "dmy", "mdy", "part", "my", "month", "longmonth", "ago", "week",
    "weekday", "season", "day", "holiday", "year",
)  # fmt: skip
_ENGLISH_STARTS = r"(?<![A-Za-z])(?=[0-9JFMASONDQabcdefhilmnopstvwyBCEHILPTUVWY])"
_CHINESE_STARTS = (
    r"(?=[0-9一二三四五六七八九十两半零今本去前明后年上下第这当周星礼元除大春过情妇清劳母儿端父教中国重双"
    r"平圣跨夏秋冬昨七])"
)


def _phrases(starts: str, names: Iterable[str]) -> re.Pattern[str]:
    """Join patterns; the class of first characters passes most places over at once."""
    joined = "|".join(f"(?P<{name}>{_PATTERNS[name]})" for name in names)
    return re.compile(f"{starts}(?:{joined})")


CHINESE_PHRASES = _phrases(_CHINESE_STARTS, [n for n in _PATTERNS if n not in _ENGLISH_NAMES])
ENGLISH_PHRASES = _phrases(_ENGLISH_STARTS, _ENGLISH_NAMES)
_SIGNS = tuple(
    b"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|day|ago|night|week|month|year|season|morning"
    b"|evening|noon|spring|summer|fall|autumn|winter|halloween|easter|christmas|thanksgiving"
    b"|valentine|tom|fourth|new |festival".split(b"|")
)
_DIGIT = re.compile(rb"[0-9]")
_FOLDING = frozenset("\u0130\u0131\u017f\u212a")
"""The letters beyond ASCII that a pattern takes for one of it, whatever their case."""


def may_hold(text: str) -> bool:
    """Tell whether English phrases can be in a text, in a small part of the time they take."""
    if not text.isascii() and not _FOLDING.isdisjoint(text):
        return True
    folded = text.encode("ascii", "ignore").lower()
    return _DIGIT.search(folded) is not None or any(sign in folded for sign in _SIGNS)
