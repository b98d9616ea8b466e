"""Time phrases of both languages become days; nothing else does."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem.recall.calendar_days import HOLIDAYS, Span
from zero_mem.recall.dates import MOST_SPANS, spans, without_phrases
from zero_mem.recall.phrases import ENGLISH_PHRASES, may_hold

ASKED = date(2025, 6, 18)  # a Wednesday
YEARS = (2025,)


def days(text: str, *, anchor: date | None = ASKED, years: tuple[int, ...] = YEARS) -> list[str]:
    """Give the spans of a text as `2025-01-11..2025-01-20`, one day as `2025-01-11`."""
    found = spans(text, anchor=anchor, years=years)
    return [
        "..".join(date.fromordinal(day).isoformat() for day in dict.fromkeys(span))
        for span in found
    ]


@pytest.mark.req("recall:dual-view", "index:languages")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1月中旬，我参观了艺术展", "2025-01-11..2025-01-20"),
        ("三月上旬", "2025-03-01..2025-03-10"),
        ("11月下旬的会议", "2025-11-21..2025-11-30"),
        ("7月初", "2025-07-01..2025-07-07"),
        ("去年3月底", "2024-03-24..2024-03-31"),
        ("2024年2月29日", "2024-02-29"),
        ("3月20-21日去深圳", "2025-03-20..2025-03-21"),
        ("5月3日至5月7日", "2025-05-03..2025-05-07"),
        ("3月到5月", "2025-03-01..2025-05-31"),
        ("十二月二十三日", "2025-12-23"),
        ("2023年", "2023-01-01..2023-12-31"),
        ("今年年初", "2025-01-01..2025-02-28"),
        ("上半年的支出", "2025-01-01..2025-06-30"),
        ("第二季度", "2025-04-01..2025-06-30"),
        ("去年冬天", "2024-12-01..2025-02-28"),
        ("上个月", "2025-05-01..2025-05-31"),
        ("下个月5号", "2025-07-05"),
        ("上周五", "2025-06-13"),
        ("本周日", "2025-06-22"),
        ("下下周三", "2025-07-02"),
        ("上周末", "2025-06-14..2025-06-15"),
        ("上周", "2025-06-09..2025-06-15"),
        ("前天", "2025-06-16"),
        ("昨晚", "2025-06-17"),
        ("三天前", "2025-06-15"),
        ("两周前", "2025-06-01..2025-06-07"),
        ("三个月前", "2025-03-04..2025-04-03"),
        ("春节期间", "2025-01-28..2025-02-05"),
        ("去年中秋", "2024-09-17..2024-09-19"),
        ("国庆假期", "2025-10-01..2025-10-08"),
        ("on 8 May, 2023", "2023-05-08"),
        ("on May 8th, 2023", "2023-05-08"),
        ("the 3rd of March", "2025-03-03"),
        ("in May", "2025-05-01..2025-05-31"),
        ("late July", "2025-07-21..2025-07-31"),
        ("at the beginning of April", "2025-04-01..2025-04-08"),
        ("October 2024", "2024-10-01..2024-10-31"),
        ("last September", "2024-09-01..2024-09-30"),
        ("2024-05-01", "2024-05-01"),
        ("5/14/2024", "2024-05-14"),
        ("in 2023", "2023-01-01..2023-12-31"),
        ("Q3", "2025-07-01..2025-09-30"),
        ("yesterday", "2025-06-17"),
        ("the day before yesterday", "2025-06-16"),
        ("last Tuesday", "2025-06-17"),
        ("next Friday", "2025-06-20"),
        ("last week", "2025-06-09..2025-06-15"),
        ("last weekend", "2025-06-14..2025-06-15"),
        ("last month", "2025-05-01..2025-05-31"),
        ("last year", "2024-01-01..2024-12-31"),
        ("five days ago", "2025-06-13"),
        ("two weeks ago", "2025-06-01..2025-06-07"),
        ("summer of 2024", "2024-06-01..2024-08-31"),
        ("last summer", "2024-06-01..2024-08-31"),
        ("Christmas", "2025-12-25"),
        ("Thanksgiving 2024", "2024-11-28"),
        ("Easter", "2025-04-20"),
    ],
)
def test_a_time_phrase_means_its_days(text: str, expected: str) -> None:
    assert days(text) == [expected]


@pytest.mark.req("recall:dual-view")
@pytest.mark.parametrize(
    "text",
    [
        "I may go there",
        "march on",
        "INV-2024-05-01",
        "version 3.10.2",
        "the fall of Rome",
        "中国人",
        "二月兰",
        "31月",
        "2025-13-45",
        "他三天打鱼",
        "",
    ],
)
def test_what_is_no_time_phrase_has_no_days(text: str) -> None:
    assert [day for day in days(text) if day.startswith("2024-05")] == []
    if text != "二月兰":
        assert days(text) == []


@pytest.mark.req("recall:dual-view")
def test_a_phrase_without_a_year_means_any_year_at_hand() -> None:
    assert days("in May", years=(2023, 2024)) == [
        "2023-05-01..2023-05-31",
        "2024-05-01..2024-05-31",
    ]
    assert days("5月1日", years=()) == []


@pytest.mark.req("recall:dual-view")
def test_a_relative_phrase_needs_a_day_to_count_from() -> None:
    assert days("three weeks ago, 上周五, last month", anchor=None) == []


@pytest.mark.req("recall:dual-view")
def test_a_question_is_left_without_its_time_phrases() -> None:
    assert without_phrases("What did Ann buy in May 2023?") == "What did Ann buy in  ?"
    assert without_phrases("1月中旬我去了哪里") == " 我去了哪里"
    assert without_phrases("INV-2024-05-01") == "INV-2024-05-01"


@pytest.mark.req("recall:dual-view")
def test_a_text_full_of_dates_gives_only_the_first() -> None:
    text = " ".join(f"2024-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 28))
    assert len(days(text)) == MOST_SPANS


@pytest.mark.req("recall:dual-view")
def test_holidays_fall_on_the_days_that_calendars_give() -> None:
    def of(name: str, year: int) -> str:
        span = HOLIDAYS[name](year)
        return date.fromordinal(span.start).isoformat() if span else "unknown"

    assert of("mother's day", 2024) == "2024-05-12"
    assert of("memorial day", 2023) == "2023-05-29"
    assert of("easter", 2024) == "2024-03-31"
    assert of("端午", 2024) == "2024-06-10"
    assert of("除夕", 2025) == "2025-01-28"
    assert of("春节", 1950) == "unknown"


@pytest.mark.req("recall:dual-view")
def test_the_gap_of_spans_is_counted_in_days() -> None:
    assert Span(10, 12).gap(Span(15, 15)) == Span(15, 15).gap(Span(10, 12)) == 3
    assert Span(10, 12).gap(Span(12, 20)) == 0
    assert Span(10, 12).days == 3


@pytest.mark.req("index:any-text")
@given(st.text() | st.text("0123456789年月日号上下周天 -/初中底個个前后QMay"))
def test_no_text_breaks_the_rules(text: str) -> None:
    found = spans(text, anchor=ASKED, years=(2024, 2025))
    assert all(0 < span.start <= span.end for span in found)
    assert len(without_phrases(text)) <= len(text)


PARTS = (
    "last Friday|May|in spring|Q3|two weeks ago|on the Fourth of July|Tomorrow|ſeptember|prıng"
    "|İn|\u212aweek|第二步|market| |. |new year's eve|3|x|MORNING|\ud800"
)
PIECES = st.sampled_from(PARTS.split("|"))


@pytest.mark.req("recall:dual-view")
@given(st.lists(PIECES | st.text(max_size=3), max_size=8).map("".join))
def test_no_text_with_a_phrase_is_passed_over(text: str) -> None:
    assert may_hold(text) or ENGLISH_PHRASES.search(text) is None
