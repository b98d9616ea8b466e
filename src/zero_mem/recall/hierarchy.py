"""The hierarchy view: a unit by its own words and those around it, then by whom and when.

What is around a unit are its window, its episode and its session; they count only where the
texts of a thread have something in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from zero_mem.recall.calendar_days import Span
from zero_mem.recall.configuration import Configuration
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.fuse import by_maximum, dense_scores
from zero_mem.recall.levels import Level
from zero_mem.recall.profile import Live, Question

FAINT = 0.01
"""What is so far from the question's time counts as having nothing to do with it."""


@dataclass(slots=True)
class View:
    """The scores of a view, and of each part what it gave to whom, for explanations.

    `raw` is the highest BM25 score of a unit's own words.
    """

    scores: list[float]
    raw: float = 0.0
    added: dict[str, list[float]] = field(default_factory=dict)
    factors: dict[str, Mapping[int, float]] = field(default_factory=dict)

    def add(self, part: str, values: list[float]) -> None:
        """Add a part's values to the scores."""
        self.added[part] = values
        self.scores = [score + value for score, value in zip(self.scores, values, strict=True)]

    def multiply(self, part: str, factors: Mapping[int, float]) -> None:
        """Multiply the scores of some units."""
        if not factors:
            return
        self.factors[part] = factors
        scores = self.scores
        for index, factor in factors.items():
            scores[index] *= factor


def hierarchy(
    corpus: Corpus,
    question: Question,
    config: Configuration,
    similarities: Mapping[int, float] | None = None,
) -> View:
    """Score every unit.

    Args:
        corpus: The units.
        question: The question's profile.
        config: The weights.
        similarities: Of the units that have a vector, their cosine with the question.
    """
    terms = _with_previous(corpus, question, config)
    raw = corpus.turns.scores(terms)
    own = by_maximum(raw)
    view = View(list(own), max(raw, default=0.0), {"own": own})
    if threaded(corpus, config):
        _add_levels(view, corpus, terms, config)
    if similarities and config.dense:
        _add_dense(view, corpus, similarities, config)
    _apply_names(view, corpus, question, config)
    _apply_dates(view, corpus, question, config)
    if question.live:
        _apply_live(view, corpus, question.live, config)
    return view


def threaded(corpus: Corpus, config: Configuration) -> bool:
    """Tell whether the parts of a thread say something of its units."""
    return bool(corpus.threads) and (not config.gate or corpus.coherent)


def _with_previous(
    corpus: Corpus, question: Question, config: Configuration
) -> Mapping[str, float]:
    """Add, more faintly, the words of the turns that the question follows."""
    if question.live is None or not config.previous:
        return question.terms
    said = {term for index in question.live.before for term in corpus.units[index].terms}
    faint = {term: config.previous * corpus.idf(term) for term in said}
    return {**faint, **question.terms}


def _add_levels(
    view: View, corpus: Corpus, terms: Mapping[str, float], config: Configuration
) -> None:
    if config.neighbours:
        windows = by_maximum(corpus.windows.scores(terms))
        share, short = config.neighbours, config.short
        view.add(
            "window",
            [
                (share if length <= short else share * short / length) * (window - own)
                for own, window, length in zip(view.scores, windows, corpus.lengths, strict=True)
            ],
        )
    levels = (
        ("episode", config.episode, "episodes", "episode_of"),
        ("session", config.session, "sessions", "session_of"),
    )
    for name, weight, level, members in levels:
        if weight:
            scores = _level_scores(getattr(corpus, level), terms)
            view.add(name, [weight * scores[number] for number in getattr(corpus, members)])


def _level_scores(level: Level, terms: Iterable[str]) -> list[float]:
    return by_maximum(level.scores({term: level.idf(term) for term in terms}))


def _add_dense(
    view: View, corpus: Corpus, similarities: Mapping[int, float], config: Configuration
) -> None:
    near = corpus.neighbours if threaded(corpus, config) else {}
    found = dense_scores(similarities, near)
    view.add("dense", [config.dense * found.get(index, 0.0) for index in range(corpus.count)])


def _apply_names(view: View, corpus: Corpus, question: Question, config: Configuration) -> None:
    said = {i: config.speaker for name in question.speakers for i in corpus.speakers[name]}
    view.multiply("speaker", said if config.speaker != 1 else {})
    exchanged = (i for name in question.counterparties for i in corpus.counterparties[name])
    factors = dict.fromkeys(exchanged, config.counterparty)
    view.multiply("counterparty", factors if config.counterparty != 1 else {})


def _apply_dates(view: View, corpus: Corpus, question: Question, config: Configuration) -> None:
    if not (question.spans and config.dates):
        return
    near = nearness(corpus, question.spans)
    if not any(view.scores):
        view.add("date", [near.get(index, 0.0) for index in range(corpus.count)])
        return
    view.multiply("date", {index: 1 + config.dates * near[index] for index in near})


def nearness(corpus: Corpus, asked: Iterable[Span]) -> Mapping[int, float]:
    """Tell how near units are in time to the spans of a question, 0 to 1.

    Source: exp(-gap / max(1.5, 0.15 * interval)), days; measured on the development sets.
    """
    slack = [(span, max(1.5, 0.15 * span.days)) for span in asked]
    found: dict[int, float] = {}
    for held, indices in corpus.dated.items():
        near = max(math.exp(-span.gap(held) / scale) for span, scale in slack)
        if near >= FAINT:
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
    if live.speaker and config.asker != 1:
        said = corpus.speakers.get(live.speaker, ())
        view.multiply("asker", dict.fromkeys(said, config.asker))
    if config.opening != 1:
        view.multiply("opening", dict.fromkeys(corpus.openings, config.opening))
