"""Times that count from something that happened: the memories say when that was."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from zero_mem import Memory
from zero_mem.errors import InvalidInput, MissingExtra
from zero_mem.models.date_parsers import date_parser_named
from zero_mem.recall.events import phrases
from zero_mem.space import Namespace

DAY = datetime(2024, 5, 1, 9, tzinfo=UTC)


@pytest.mark.req("recall:dual-view", "index:languages")
@pytest.mark.parametrize(
    ("text", "event", "days"),
    [
        ("What did Ann buy before the trip to Rome?", "the trip to Rome", (-7, 0)),
        ("Who came after Ann's wedding and why?", "Ann's wedding", (0, 7)),
        ("What changed since we moved to Delft?", "we moved to Delft", (0, 7)),
        ("Where did we eat the week before my birthday?", "my birthday", (-7, -1)),
        ("Who slept badly the night before the exam?", "the exam", (-1, -1)),
        ("How did he feel during the storm?", "the storm", (0, 0)),
        ("旅行之前我买了什么？", "旅行", (-7, 0)),
        ("旅行前我买了什么？", "旅行", (-7, 0)),
        ("婚礼以后谁来过？", "婚礼", (0, 7)),
        ("我们搬家那天是谁帮忙的？", "搬家", (0, 0)),
        ("我生日前一周吃了什么？", "生日", (-7, -1)),
    ],
)
def test_a_phrase_names_its_event_and_the_days_around(
    text: str, event: str, days: tuple[int, int]
) -> None:
    (found,) = phrases(text)
    assert (found.event, (found.first, found.last)) == (event, days)


@pytest.mark.req("recall:dual-view")
@pytest.mark.parametrize(
    "text",
    [
        "before May",
        "after 3 weeks",
        "What was it before?",
        "三天以前我说了什么",
        "以前",
        "during the week",
    ],
)
def test_what_names_no_event_is_no_such_phrase(text: str) -> None:
    assert list(phrases(text)) == []


def save(space: Namespace, *, purchases: str, event: str, told: int = 120) -> None:
    """Save the same purchase far from the event and right before it."""
    for name, text, day in (
        ("early", purchases, 0),
        ("right", purchases, 117),
        ("event", event, told),
        ("late", purchases, 300),
        ("other", "Nothing to see here, move along.", 200),
    ):
        space.save(text, memory_id=name, created_at=DAY + timedelta(days=day))


@pytest.mark.req("recall:dual-view", "recall:explicit", "index:languages")
@pytest.mark.parametrize(
    ("purchases", "event", "question"),
    [
        ("Ann bought new boots.", "The trip to Rome begins.", "What did Ann buy before the trip?"),
        ("李薇买了新靴子。", "今天开始去罗马旅行。", "旅行之前李薇买了什么？"),
    ],
)
def test_what_was_near_the_event_is_preferred_and_the_reason_names_it(
    space: Namespace, purchases: str, event: str, question: str
) -> None:
    save(space, purchases=purchases, event=event)
    recall = space.recall(question, explain=True)
    names = [item.memory_id for item in recall.items]
    assert {"early", "right", "late"} <= set(names)
    assert names.index("right") < min(names.index("early"), names.index("late"))
    best = recall.items[names.index("right")]
    assert "means 2024-08-22 to 2024-08-29, by memory event" in best.reason
    assert best.parts["x event"] > 1
    assert "x event" not in recall.items[names.index("early")].parts


@pytest.mark.req("recall:dual-view")
def test_the_day_that_a_memory_names_counts_more_than_when_it_was_told(space: Namespace) -> None:
    wedding = "My wedding was on 29 August 2024."
    save(space, purchases="Ann bought new boots.", event=wedding, told=290)
    recall = space.recall("What did Ann buy before my wedding?", explain=True)
    names = [item.memory_id for item in recall.items]
    assert names.index("right") < min(names.index("early"), names.index("late"))


@pytest.mark.req("recall:dual-view", "expire:hidden")
def test_a_hidden_memory_is_not_named_in_a_reason(space: Namespace) -> None:
    save(space, purchases="Ann bought new boots.", event="The trip to Rome begins.")
    space.delete("event")
    space.save("The trip to Rome.", memory_id="secret", kind="secret", created_at=DAY)
    space.configure(kind="secret", visibility="hidden")
    recall = space.recall("What did Ann buy before the trip?", explain=True)
    assert all("secret" not in item.reason for item in recall.items)


@pytest.mark.req("recall:dual-view")
def test_an_event_that_no_memory_tells_of_changes_nothing(space: Namespace) -> None:
    save(space, purchases="Ann bought new boots.", event="The trip to Rome begins.")
    recall = space.recall("What did Ann buy before the earthquake?", explain=True)
    assert recall.items
    assert all("x event" not in item.parts for item in recall.items)


# What the rules do not know, by another reader


class _Jubilee:
    """Knows one feast that no rule does."""

    name = "jubilee"

    def days(self, text: str, *, anchor: date) -> Iterator[tuple[date, date]]:
        if "jubilee" in text:
            yield date(anchor.year, 8, 24), date(anchor.year, 8, 26)


@pytest.mark.req("recall:dual-view")
def test_a_reader_of_ones_own_tells_the_days_of_a_phrase() -> None:
    with Memory.open("memory://", date_parser=_Jubilee()) as memory:
        space = memory.namespace("a")
        save(space, purchases="Ann bought new boots.", event="Rain.")
        recall = space.recall("What did Ann buy for the jubilee?", asked_at=DAY, explain=True)
        assert recall.items[0].memory_id == "right"
        assert recall.items[0].parts["x date"] > 2


@pytest.mark.req("recall:dual-view")
@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("What did Ann do a fortnight ago?", ["2024-05-06"]),
        ("Where was I 36 hours ago?", ["2024-05-19"]),
        ("Who may have called on Sat?", []),
        ("What is the second book of Mark, and who sat there?", []),
        ("What did the 42 say?", []),
    ],
)
def test_dateparser_reads_what_is_a_time_and_nothing_else(text: str, days: list[str]) -> None:
    pytest.importorskip("dateparser", reason="dateparser is not installed (the extra `dates`)")
    found = date_parser_named("dateparser").days(text, anchor=date(2024, 5, 20))
    assert [first.isoformat() for first, _ in found] == days


@pytest.mark.req("recall:dual-view")
def test_a_reader_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dateparser.search", None)
    with pytest.raises(MissingExtra, match=r"zero-mem\[dates\]"):
        Memory.open("memory://", date_parser="dateparser")
    with pytest.raises(InvalidInput, match="dateparser or your own"):
        Memory.open("memory://", date_parser="chrono")
