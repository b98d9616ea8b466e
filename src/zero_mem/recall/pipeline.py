"""The query path, pure: profile, route, two views, fusion, closure; the store comes after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from zero_mem.recall import close, graph
from zero_mem.recall.arithmetic import Allowed, Lists, Vector
from zero_mem.recall.calibrate import fits
from zero_mem.recall.configuration import DEFAULT, Configuration
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.fuse import min_max, routed
from zero_mem.recall.hierarchy import View, hierarchy, threaded
from zero_mem.recall.levels import K1
from zero_mem.recall.profile import Live, Question, read_question
from zero_mem.recall.route import Route, route
from zero_mem.recall.supersede import reordered, replaced

HEAD = 30
"""How many of the best are compared with one another: as seeds, and as versions of a fact."""

CANDIDATES = 200
"""How many of the best the paper's two views exchange."""

LEAST = 0.25
"""A smaller share of the units that could gain by the graph is not worth its noise."""

PAPER_SUPPORT = 0.5
"""Of its score an evidence unit gives its neighbours, in the paper's closure."""


@dataclass(slots=True)
class Ranking:
    """The outcome of a query over a corpus.

    `highest` is the largest share of what the question's words could give that a unit has,
    `head` the best units, at most `HEAD`, and `peak` the highest score of all.
    """

    corpus: Corpus
    question: Question
    route: Route
    view: View
    allowed: Allowed | None
    highest: float
    head: list[int]
    peak: float = 0.0

    @property
    def scores(self) -> Vector:
        """The score of each unit."""
        return self.view.scores

    @property
    def top(self) -> float:
        """The highest score of a unit that may be found, 1 where none has any."""
        return float(self.scores[self.head[0]]) if self.head else 1.0

    def order(self) -> Iterator[int]:
        """Give the units that have a score, best first, newer ones first among equals."""
        yield from self.head
        count = len(self.head)
        while count >= HEAD:
            # Almost nobody asks for more than the head; who does, pays a little at a time.
            found = self.best(4 * count)
            yield from found[count:]
            count = len(found) if len(found) == 4 * count else 0

    def best(self, count: int) -> list[int]:
        """Give the best units that may be found, newer ones first among equals."""
        return self.view.by.best(self.scores, count, self.allowed)

    def score(self, index: int) -> float:
        """Give a unit's score, above 0 and below 1, comparable within a namespace."""
        return float(self.highest * self.scores[index] / self.peak)

    def parts(self, index: int) -> Mapping[str, float]:
        """Give what each part added to a unit's score, or multiplied it with (`x part`)."""
        added = {part: values(index) for part, values in self.view.added.items()}
        factors = {f"x {part}": by(index) for part, by in self.view.factors.items()}
        return {part: value for part, value in added.items() if abs(value) > 1e-9} | {
            part: factor for part, factor in factors.items() if factor != 1
        }

    def seeds(self, count: int) -> dict[int, float]:
        """Give the best units with their scores, the highest being 1."""
        found = self.head[:count] if count <= HEAD else self.best(count)
        return {index: float(self.scores[index]) / self.top for index in found}

    def add(self, part: str, values: Mapping[int, float]) -> None:
        """Add a part's values, none below 0, to the scores of some units."""
        self.view.add(part, values)
        self.rise(values)

    def rise(self, indices: Iterable[int]) -> None:
        """Find the head anew, knowing that only these scores may have risen."""
        allowed, scores = self.allowed, self.scores
        new = set(indices).difference(self.head)
        least = min(scores[index] for index in self.head) if len(self.head) == HEAD else 0.0
        high = [index for index in new if scores[index] >= least and scores[index] > 0]
        found = [index for index in high if allowed is None or allowed(index)]
        among = [(scores[index], index) for index in (*self.head, *found)]
        self.head = [index for _, index in sorted(among, reverse=True)[:HEAD]]


def rank(
    corpus: Corpus,
    text: str,
    *,
    config: Configuration = DEFAULT,
    asked_at: datetime | None = None,
    live: Live | None = None,
    similarities: Mapping[int, float] | None = None,
    allowed: Allowed | None = None,
) -> Ranking:
    """Rank the units of a corpus for a question.

    Args:
        corpus: The units.
        text: The question.
        config: The weights of the parts.
        asked_at: When it is asked; relative times count from there.
        live: The running conversation that it continues, if it does.
        similarities: Of the units that have a vector, their cosine with the question.
        allowed: Tells which units may be found.
    """
    phrases = config.phrases if config.dates else 1.0
    question = read_question(
        corpus,
        text,
        asked_at=asked_at,
        live=live,
        phrases=phrases,
        events=config.events > 0,
        allowed=allowed,
    )
    view = hierarchy(corpus, question, config, similarities)
    ranking = Ranking(
        corpus=corpus,
        question=question,
        route=route(question),
        view=view,
        allowed=allowed,
        highest=_best(corpus, question, view.raw),
        head=view.by.best(view.scores, HEAD, allowed),
    )
    if config.routed:
        _fuse_views(ranking, config)
    else:
        _add_graph(ranking, config)
        _add_closure(ranking, config)
    _calibrate(ranking, config)
    ranking.peak = _highest(ranking) or 1.0
    return ranking


def _highest(ranking: Ranking) -> float:
    """Give the highest score, that of units that may not be found too."""
    if ranking.allowed is None and ranking.head:
        return ranking.top
    return ranking.view.by.highest(ranking.scores)


def _best(corpus: Corpus, question: Question, raw: float) -> float:
    """Tell the highest share of the most that the words could give, between 0 and 1."""
    if not question.terms:
        return 0.5
    absent = question.absent * corpus.idf("")
    most = (sum(question.terms.values()) + absent) * (K1 + 1)
    return min(max(raw / most, 0.01), 0.99) if most else 0.5


def _add_graph(ranking: Ranking, config: Configuration) -> None:
    """Add what the graph finds, as far as units form no threads and stand for themselves.

    It takes units that connect names: a fact about one name leads only to others about it.
    """
    corpus = ranking.corpus
    if not (config.graph or config.bridges):
        return
    loose = 1.0
    if threaded(corpus, config):
        loose -= len(corpus.neighbours) / max(corpus.alive, 1)
    if loose < LEAST or (config.gate and corpus.entities.connecting < LEAST):
        return
    _scale(ranking)
    if config.graph:
        prior = ranking.seeds(graph.SEEDS)
        found = graph.ranked_by_graph(
            corpus,
            ranking.question,
            prior,
            config.gamma,
            steps=config.activation,
            allowed=ranking.allowed,
        )
        highest = max(found.values(), default=0.0) or 1.0
        weight = loose * config.graph / highest
        ranking.add("graph", {index: weight * value for index, value in found.items()})
    if config.bridges:
        best = ranking.seeds(graph.BRIDGE_SEEDS)
        linked = graph.bridges(corpus, ranking.question, best, ranking.allowed)
        weight = loose * config.bridges * _highest(ranking)
        ranking.add("bridge", {index: weight * value for index, value in linked.items()})


def _scale(ranking: Ranking) -> None:
    """Bring the highest score to 1, so that what is added weighs the same for every question."""
    highest = _highest(ranking)
    if highest > 0:
        ranking.view.scores = ranking.view.by.shares(ranking.scores, highest)


def _add_closure(ranking: Ranking, config: Configuration) -> None:
    corpus = ranking.corpus
    if not config.closure or ranking.question.live or not threaded(corpus, config):
        return
    seeds = ranking.seeds(config.closure_seeds)
    found = close.same_days(corpus, list(seeds), seeds)
    weight = config.closure * ranking.top
    ranking.add("closure", {index: weight * value for index, value in found.items()})


def _fuse_views(ranking: Ranking, config: Configuration) -> None:
    """Fuse the views as the paper does: rho for the routed one, then bounded support."""
    corpus, question = ranking.corpus, ranking.question
    prior = ranking.seeds(CANDIDATES)
    by_graph = graph.exact(
        corpus,
        question,
        graph.ranked_by_graph(
            corpus,
            question,
            prior,
            config.gamma,
            steps=config.activation,
            allowed=ranking.allowed,
        ),
    )
    first, second = (by_graph, prior) if ranking.route == "relational" else (prior, by_graph)
    fused = routed(first, second, config.rho)
    scores = [0.0] * corpus.count
    for index, value in fused.items():
        scores[index] = value
    by_hierarchy, by_names = min_max(prior), min_max(by_graph)
    ranking.view.factors.clear()
    ranking.view.added = {
        "own": ranking.view.own,
        "hierarchy": lambda index: by_hierarchy.get(index, 0.0),
        "graph": lambda index: by_names.get(index, 0.0),
    }
    ranking.view.by, ranking.view.scores = Lists(), scores
    ranking.head = ranking.best(HEAD)
    if config.closure:
        _support(ranking, config)


def _support(ranking: Ranking, config: Configuration) -> None:
    """Let the main evidence's bridges and neighbours rise, below the evidence itself."""
    evidence = ranking.seeds(config.items or config.closure_seeds)
    near = close.neighbouring(ranking.corpus, list(evidence), evidence, PAPER_SUPPORT)
    linked = graph.bridges(ranking.corpus, ranking.question, evidence, ranking.allowed)
    for index in near.keys() | linked.keys():
        support = max(near.get(index, 0.0), PAPER_SUPPORT * min(1.0, linked.get(index, 0.0)))
        if index not in evidence and (ranking.allowed is None or ranking.allowed(index)):
            ranking.view.scores[index] = max(ranking.view.scores[index], support)
    ranking.rise(near.keys() | linked.keys())


def _calibrate(ranking: Ranking, config: Configuration) -> None:
    """Prefer, a little, evidence that holds the kind of value that the question wants."""
    answer, units = ranking.question.answer, ranking.corpus.units
    if config.calibration:
        fitting = (i for i in ranking.seeds(HEAD) if fits(answer, units[i].text))
        ranking.view.multiply("fit", dict.fromkeys(fitting, 1 + config.calibration))
        ranking.rise(())


def newest_first(
    corpus: Corpus, order: Sequence[int], config: Configuration = DEFAULT
) -> tuple[list[int], dict[int, int]]:
    """Put newer versions of a fact above older ones among the first `HEAD` of an order.

    Returns:
        The order, and of each replaced unit the one that replaces it.
    """
    head = list(order[:HEAD])
    if not config.supersede:
        return list(order), {}
    older = replaced([corpus.units[index] for index in head])
    places = reordered(range(len(head)), older)
    replacing = {head[old]: head[new] for old, new in older.items()}
    return [*(head[place] for place in places), *order[HEAD:]], replacing
