"""The hierarchy view: a unit by its own words and those around it, then by whom and when.

What is around a unit are its window, its episode and its session; they count only where the
texts of a thread have something in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from zero_mem.recall.arithmetic import Arithmetic, Graded, Vector, arithmetic
from zero_mem.recall.calendar_days import Span
from zero_mem.recall.configuration import Configuration
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.levels import Level
from zero_mem.recall.profile import Live, Question

FAINT = 0.01
"""What is so far from the question's time counts as having nothing to do with it."""


Part: TypeAlias = Callable[[int], float]
"""Gives what a part added to a unit's score, or multiplied it with."""


@dataclass(slots=True)
class View:
    """The scores of a view, and of each part what it gave to whom, for explanations.

    `by` is how scores are computed, `raw` the highest BM25 score of a unit's own words, and
    `own` a unit's share of it.
    """

    by: Arithmetic
    scores: Vector
    raw: float
    own: Part
    added: dict[str, Part] = field(default_factory=dict)
    factors: dict[str, Part] = field(default_factory=dict)

    def add(self, part: str, values: Mapping[int, float]) -> None:
        """Add a part's values to the scores of some units."""
        self.added[part] = lambda index: values.get(index, 0.0)
        self.by.add(self.scores, values)

    def multiply(self, part: str, factors: Mapping[int, float]) -> None:
        """Multiply the scores of some units."""
        if not factors:
            return
        self.factors[part] = lambda index: factors.get(index, 1.0)
        self.by.multiply(self.scores, factors)

    def multiply_all(self, part: str, indices: Collection[int], factor: float) -> None:
        """Multiply the scores of some units by the same factor."""
        if factor == 1 or not len(indices):
            return
        chosen = cache(lambda: frozenset(indices))  # only an explanation looks single ones up
        self.factors[part] = lambda index: factor if index in chosen() else 1.0
        self.by.multiply_all(self.scores, indices, factor)


def hierarchy(
    corpus: Corpus,
    question: Question,
    config: Configuration,
    similarities: Mapping[int, float] | None = None,
    *,
    by: Arithmetic | None = None,
) -> View:
    """Score every unit.

    Args:
        corpus: The units.
        question: The question's profile.
        config: The weights.
        similarities: Of the units that have a vector, their cosine with the question.
        by: How sums over all units are computed; by default as `arithmetic` chooses.
    """
    terms = _with_previous(corpus, question, config)
    dense = similarities if similarities and config.dense else None
    by = by or arithmetic(dense=dense is not None)
    own = by.graded(corpus.turns, terms)
    view = View(by, [], own.highest, own.share, {"own": own.share})
    view.scores = _with_levels(view, corpus, own, terms, config)
    if dense is not None:
        found = by.dense(corpus, dense, threaded=threaded(corpus, config))
        view.scores = by.sum(view.scores, found, config.dense)
        view.added["dense"] = lambda index: config.dense * float(found[index])
    _apply_names(view, corpus, question, config)
    _apply_dates(view, corpus, question, config)
    if question.live:
        _apply_live(view, corpus, question.live, config)
    return view


def threaded(corpus: Corpus, config: Configuration) -> bool:
    """Tell whether the parts of a thread say something of its units."""
    return corpus.threads.any and (not config.gate or corpus.coherent)


def _with_previous(
    corpus: Corpus, question: Question, config: Configuration
) -> Mapping[str, float]:
    """Add, more faintly, the words of the turns that the question follows."""
    if question.live is None or not config.previous:
        return question.terms
    said = (term for index in question.live.before for term in corpus.units[index].terms)
    faint = {term: config.previous * corpus.idf(term) for term in dict.fromkeys(said)}
    return {**faint, **question.terms}


def _with_levels(
    view: View,
    corpus: Corpus,
    own: Graded,
    terms: Mapping[str, float],
    config: Configuration,
) -> Vector:
    """Add to a unit's own score those of its window, its episode and its session."""
    by, weights = view.by, (config.neighbours, config.episode, config.session)
    if not (any(weights) and threaded(corpus, config)):
        return by.own(own)
    by.count(corpus, terms)
    window = by.graded(corpus.windows, terms) if config.neighbours else own
    episodes, sessions = (
        (weight, _graded(by, level, terms if weight else ()))
        for weight, level in ((config.episode, corpus.episodes), (config.session, corpus.sessions))
    )
    scores = by.blended(
        corpus, own, window, (episodes, sessions), share=config.neighbours, short=config.short
    )
    need, threads = corpus.need(config.short), corpus.threads
    share = config.neighbours
    view.added |= {
        "window": lambda i: share * need[i] * (window.share(i) - own.share(i)),
        "episode": lambda i: episodes[0] * episodes[1].share(threads.episode_of[i]),
        "session": lambda i: sessions[0] * sessions[1].share(threads.session_of[i]),
    }
    return scores


def _graded(by: Arithmetic, level: Level, terms: Iterable[str]) -> Graded:
    return by.graded(level, {term: level.idf(term) for term in terms})


def _apply_names(view: View, corpus: Corpus, question: Question, config: Configuration) -> None:
    for part, named, units, factor in (
        ("speaker", question.speakers, corpus.speakers, config.speaker),
        ("counterparty", question.counterparties, corpus.counterparties, config.counterparty),
    ):
        if named and factor != 1:
            lists = (units[name] for name in named)
            view.multiply_all(part, view.by.together(corpus, f"{part} {named}", lists), factor)


def _apply_dates(view: View, corpus: Corpus, question: Question, config: Configuration) -> None:
    if question.events:
        after = nearness(corpus, [event.span for event in question.events])
        view.multiply("event", {index: 1 + config.events * after[index] for index in after})
    if not (question.spans and config.dates):
        return
    near = nearness(corpus, question.spans)
    if not view.by.highest(view.scores):
        view.add("date", near)
        return
    view.multiply("date", {index: 1 + config.dates * near[index] for index in near})


def nearness(corpus: Corpus, asked: Iterable[Span]) -> Mapping[int, float]:
    """Tell how near units are in time to the spans of a question, 0 to 1.

    Source: exp(-gap / max(1.5, 0.15 * interval)), days; measured on the development sets.
    """
    found: dict[int, float] = {}
    for span in asked:
        scale = max(1.5, 0.15 * span.days)
        for held, indices in corpus.near(span, -scale * math.log(FAINT)):
            near = math.exp(-span.gap(held) / scale)
            for index in indices:
                if near > found.get(index, 0.0):
                    found[index] = near
    return found


def _apply_live(view: View, corpus: Corpus, live: Live, config: Configuration) -> None:
    """Prefer the recent, what the same speaker said, and how conversations began."""
    if config.recency and live.moment:
        today, half = live.moment.toordinal(), config.recency_days
        view.multiply(
            "recency",
            {
                index: 1 + config.recency / (1 + max(0, today - day) / half)
                for day, indices in corpus.days.items()
                for index in indices
            },
        )
    said = corpus.speakers.get(live.speaker)
    if said:
        name = f"speaker {(live.speaker,)}"
        view.multiply_all("asker", view.by.together(corpus, name, [said]), config.asker)
    openings = view.by.together(corpus, "openings", [tuple(corpus.openings)])
    view.multiply_all("opening", openings, config.opening)
