"""What a question asks for, read by rules: words, names, time, whom it speaks of, its form."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, TypeAlias

from zero_mem.recall.calendar_days import Span
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.dates import spans, without_phrases
from zero_mem.recall.events import Event, resolved
from zero_mem.text.segment import query_terms

Answer: TypeAlias = Literal["time", "number", "person", "place", "list", "yes-no", "other"]

MAX_TERMS = 64
"""Of a longer question the rarest terms count."""

MOST_OCCURRENCES = 8000
"""And of these, the rarest first, as many as occur so often in all: the common ones decide
little and cost most."""

READ_CHARACTERS = 4000
"""Of a longer question so much is read for names and dates."""

LONGEST_SPAN = 400
"""A question about more days than these has no time."""

_ROLES = frozenset(
    ("user", "assistant", "system", "tool", "human", "ai", "bot", "agent", "model", "speaker")
)

_ANSWER_FORMS: Mapping[Answer, str] = {
    "time": r"\b(?:when|what (?:day|date|month|year|time))\b"
    r"|什么时候|何时|哪一?[天年月日]|几[月号点]",
    "number": r"\bhow (?:many|much|long|often|old|far)\b|多少|几[个次位天年张本]|多久|多长",
    "person": r"\b(?:who|whom|whose)\b|谁|哪位",
    "place": r"\b(?:where|which (?:city|country|place|town))\b|哪里|哪儿|在哪|什么地方",
    "list": r"\b(?:what|which) (?:\w+ )?\w+s (?:are|were|do|does|did|has|have)\b|哪些|有什么",
    "yes-no": r"^\s*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b"
    r"|是否|有没有|吗[？?]?\s*$",
}
_ANSWERS = {answer: re.compile(form, re.I) for answer, form in _ANSWER_FORMS.items()}

_RELATION = re.compile(
    r"\b(?:of|whose|who|which|that|both|between|same|than|also|and)\b|的.{1,12}的|之间|同一|分别|都"
)
_AGGREGATE = re.compile(
    r"\b(?:how many|how often|all|every|both|compare|total|list)\b|多少|几次|哪些|所有|一共|总共",
    re.I,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A question that is the next turn of a running conversation.

    `before` are the indices of the turns before it in that conversation, oldest first.
    """

    speaker: str = ""
    before: tuple[int, ...] = ()
    moment: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question's profile.

    `terms` are its words with their idf, without its time phrases where other words remain;
    `absent` counts those that no unit has; `events` are its phrases that count from something
    that happened, where it names no days; `names` are those that the graph may know;
    `relational` tells that it asks about relations between things.
    """

    text: str
    terms: Mapping[str, float]
    absent: int
    spans: tuple[Span, ...] = ()
    events: tuple[Event, ...] = ()
    names: frozenset[str] = frozenset()
    speakers: tuple[str, ...] = ()
    counterparties: tuple[str, ...] = ()
    answer: Answer = "other"
    relational: bool = False
    aggregate: bool = False
    live: Live | None = None


def read_question(
    corpus: Corpus,
    text: str,
    *,
    asked_at: datetime | None = None,
    live: Live | None = None,
    phrases: float = 1.0,
    events: bool = True,
    allowed: Callable[[int], bool] | None = None,
) -> Question:
    """Read a question.

    Args:
        corpus: The units that it is asked of.
        text: The question as it was put.
        asked_at: When it was asked; relative times count from there.
        live: The conversation that it continues.
        phrases: The weight of the words of time phrases.
        events: Where it names no days, find out when the events were that it counts from.
        allowed: Tells which units may say that.
    """
    read = text[:READ_CHARACTERS]
    anchor = asked_at.date() if asked_at else None
    days = [s for s in _days(corpus, read, anchor) if s.days <= LONGEST_SPAN]
    words = query_terms(text)
    terms = _weighed(corpus, words)
    if days and phrases != 1:
        kept = frozenset(query_terms(without_phrases(read) + text[READ_CHARACTERS:]))
        terms = {t: idf if t in kept else phrases * idf for t, idf in terms.items()}
    return Question(
        text=text,
        terms=terms,
        absent=sum(term not in corpus.occurrences for term in words[:MAX_TERMS]),
        spans=tuple(days),
        events=resolved(corpus, read, allowed) if events and not (days or live) else (),
        names=frozenset(entity.name for entity in corpus.extractor.entities(read)),
        speakers=tuple(_named(read, (n for n in corpus.speakers if n.lower() not in _ROLES))),
        counterparties=tuple(_named(read, corpus.counterparties)),
        answer=answer_type(text),
        relational=bool(_RELATION.search(read)),
        aggregate=bool(_AGGREGATE.search(read)),
        live=live,
    )


def _days(corpus: Corpus, text: str, anchor: date | None) -> Iterator[Span]:
    """Find the days that a question names: by rules, and what they leave by another reader."""
    yield from spans(text, anchor=anchor, years=corpus.years)
    if corpus.date_parser is not None and anchor is not None:
        for first, last in corpus.date_parser.days(without_phrases(text), anchor=anchor):
            yield Span(first.toordinal(), last.toordinal())


def answer_type(text: str) -> Answer:
    """Tell what kind of answer a question wants."""
    read = text[:READ_CHARACTERS]
    return next((answer for answer, pattern in _ANSWERS.items() if pattern.search(read)), "other")


def _weighed(corpus: Corpus, words: Collection[str]) -> Mapping[str, float]:
    """Give the rarest words with their idf, as many as may be read."""
    held = {word: len(corpus.occurrences[word][0]) for word in words if word in corpus.occurrences}
    chosen: dict[str, float] = {}
    read = 0
    for word in sorted(held, key=lambda word: (held[word], word))[:MAX_TERMS]:
        read += held[word]
        if read > MOST_OCCURRENCES and len(chosen) > 1:
            break
        chosen[word] = corpus.idf(word)
    return chosen


def _named(text: str, names: Iterable[str]) -> Iterator[str]:
    """Find the names that a text holds, whole; a first name stands for a full one."""
    folded = text.lower()
    holds: Callable[[str], bool] = folded.__contains__
    for name in names:
        low = name.lower()
        if len(low) < 2:
            continue
        if not low.isascii():
            if holds(low):
                yield name
        elif any(holds(part) and _stands_alone(part, folded) for part in {low, _first(low)}):
            yield name


def _first(name: str) -> str:
    first = name.split(" ", 1)[0]
    return first if len(first) > 2 else name


def _stands_alone(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
