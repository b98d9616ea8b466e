"""Phrases that count from something that happened: `before the trip`, `搬家那天`.

Such a phrase means a time that only the memories know: that of the unit which speaks of the
event most. Without such a unit the phrase means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from zero_mem.recall.calendar_days import Span
from zero_mem.recall.corpus import Corpus
from zero_mem.text.segment import query_terms

NEAR = 7
"""Days that `before` and `after` reach, the event's own too; beyond, the preference fades."""

LONGEST_EVENT = 6
"""Words of the longest name of an event."""

COVERED = 0.8
"""So much of an event's words, by rarity, a unit has to hold to tell when it was."""

_AROUND: dict[str, tuple[int, int]] = {
    "before": (-NEAR, 0), "until": (-NEAR, 0), "prior to": (-NEAR, 0),
    "after": (0, NEAR), "since": (0, NEAR), "following": (0, NEAR),
    "during": (0, 0), "at the time of": (0, 0), "when": (0, 0),
    "day before": (-1, -1), "night before": (-1, -1), "evening before": (-1, -1),
    "morning before": (-1, -1), "week before": (-7, -1), "month before": (-30, -1),
    "day after": (1, 1), "night after": (0, 1), "evening after": (0, 1),
    "morning after": (1, 1), "week after": (1, 7), "month after": (1, 30),
    "day of": (0, 0), "night of": (0, 0), "evening of": (0, 0), "morning of": (0, 0),
    "week of": (-3, 3), "month of": (-15, 15),
    "之前": (-NEAR, 0), "以前": (-NEAR, 0), "前": (-NEAR, 0),
    "之后": (0, NEAR), "以后": (0, NEAR), "后": (0, NEAR), "以来": (0, NEAR),
    "前一天": (-1, -1), "前一晚": (-1, -1), "前一周": (-7, -1), "前一个月": (-30, -1),
    "后一天": (1, 1), "第二天": (1, 1), "后一周": (1, 7), "后一个月": (1, 30),
    "那天": (0, 0), "当天": (0, 0), "那晚": (0, 0), "当晚": (0, 0), "期间": (0, 0),
    "的时候": (0, 0), "那次": (0, 0), "那周": (-3, 3), "那个月": (-15, 15),
}  # fmt: skip
"""The days that a word means, from the event's first day and from its last."""

_OWNER = r"(?:the|my|our|his|her|their|your|its|that|this|[A-Z]\w+['’]s)"
_ENGLISH = re.compile(
    r"\b(?P<how>(?:(?:the|on the) )?(?:day|night|evening|morning|week|month) (?:before|after|of)"
    r"|before|after|since|until|during|following|prior to|at the time of) "
    rf"(?P<what>{_OWNER}\b[^,.;:?!\n]*|(?:we|I|you|he|she|they|[A-Z]\w+) [a-z]\w+[^,.;:?!\n]*)"
)
_ENDING = (
    "did do does was were is are has have had who what where when which why how and or but that "
    "before after since until during"
)
_ENDS = frozenset(_ENDING.split())
_CHINESE = re.compile(
    r"(?P<what>[\u4e00-\u9fff]{2,8}?)(?:的)?(?P<how>前一个月|后一个月|前一[天晚周]|后一[天周]|第二天"
    r"|[之以][前后]|[前后](?=[我你他她它们，,。？?！!\s]|$)|以来|那[天晚次周]|那个月|当[天晚]|期间|的时候)"
)
_CHINESE_LEADS = re.compile(
    r"^(?:.*[我你他她它们谁]|.*(?:在|从|自|是|于|等|到))(?=.{2})|^(?:这次|那次|上次|去)(?=.{2})"
)
_CHINESE_TIMES = re.compile(
    r"^[0-9一二三四五六七八九十两几半]|(?:年|月|周|星期|[今昨明前后]天|小时|分钟|时间|春|夏|秋|冬)$"
)
_TIME_WORDS = (
    "day days night week weeks weekend month months year years morning evening afternoon time "
    "spring summer fall autumn winter season holiday holidays moment"
)
_TIMES = frozenset(_TIME_WORDS.split())


class Phrase(NamedTuple):
    """A phrase as it is written: the event, and the days meant, counted from it."""

    text: str
    event: str
    first: int
    last: int


class Event(NamedTuple):
    """A phrase with the unit that tells when its event was, and the days that are meant."""

    phrase: str
    unit: int
    span: Span


def phrases(text: str) -> Iterator[Phrase]:
    """Find the phrases of a text that count from an event, in order of appearance."""
    for match in _ENGLISH.finditer(text):
        event = _named(match["what"])
        if event:
            how = match["how"].lower().removeprefix("on ").removeprefix("the ")
            yield Phrase(f"{match['how']} {event}", event, *_AROUND[how])
    if text.isascii():
        return
    for match in _CHINESE.finditer(text):
        event = _CHINESE_LEADS.sub("", match["what"])
        if len(event) > 1 and not _CHINESE_TIMES.search(event):
            yield Phrase(event + match["how"], event, *_AROUND[match["how"]])


def _named(what: str) -> str:
    """Cut the name of an event at a word that begins something else; "" for a time."""
    words = what.split()
    kept = next((n for n, word in enumerate(words) if n and word.lower() in _ENDS), len(words))
    named = words[: min(kept, LONGEST_EVENT)]
    return "" if _TIMES.issuperset(word.lower() for word in named[1:]) else " ".join(named)


def resolved(
    corpus: Corpus, text: str, allowed: Callable[[int], bool] | None = None
) -> tuple[Event, ...]:
    """Tell the days that a text's phrases mean.

    Args:
        corpus: The units that speak of the events.
        text: The question.
        allowed: Tells which units may be used.
    """
    found: list[Event] = []
    for phrase in phrases(text):
        unit = _telling(corpus, phrase.event, allowed)
        day = None if unit is None else corpus.calendar.day_of(unit)
        if unit is not None and day is not None:
            found.append(Event(phrase.text, unit, _around(day, phrase)))
    return tuple(found)


def _around(day: Span, phrase: Phrase) -> Span:
    """Count from the event's first day what comes before it, and from its last what follows."""
    if phrase.last < 0:
        return Span(day.start + phrase.first, day.start + phrase.last)
    if phrase.first > 0:
        return Span(day.end + phrase.first, day.end + phrase.last)
    return Span(day.start + phrase.first, day.end + phrase.last)


def _telling(corpus: Corpus, event: str, allowed: Callable[[int], bool] | None) -> int | None:
    """Find the unit that speaks of an event most, the first among equals."""
    weights = {term: corpus.idf(term) for term in query_terms(event)}
    held: dict[int, float] = {}
    for term, weight in weights.items():
        for unit in corpus.occurrences.get(term, ((), ()))[0]:
            held[unit] = held.get(unit, 0.0) + weight
    least = COVERED * sum(weights.values())
    among = [unit for unit, weight in held.items() if weight >= least]
    if allowed is not None:
        among = [unit for unit in among if allowed(unit)]
    if not among:
        return None
    scores = corpus.turns.scores(weights)
    return max(among, key=lambda unit: (scores[unit], -unit))
