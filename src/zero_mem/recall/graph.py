"""The graph view: names of the question, what they lead to, and what that leads to."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from zero_mem.index.entities import EntityIndex
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.profile import Question

SEEDS = 30
"""How many of the best units make the question's neighbourhood."""

STEPS = 6
"""Iterations; what is left after them is below gamma ** 6."""

COMMON = 20
"""A name in more units than this (or than 1 in 20) leads only to the unit whose title it is."""

TITLE_WEIGHT = 4.0
"""How much stronger a name leads to the unit that it is the title of."""

A = TypeVar("A")

Edges = Mapping[int, Sequence[tuple[str, float]]]
BackEdges = Mapping[str, Sequence[tuple[int, float]]]
Allowed = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The part of the graph that a question concerns, with weighted edges both ways."""

    of_unit: Edges
    of_name: BackEdges


def neighbourhood(
    corpus: Corpus, seeds: Iterable[int], names: Iterable[str], allowed: Allowed | None
) -> Neighbourhood:
    """Take the seeds, their names, and every unit that one of these names leads to."""
    index = corpus.entities
    reached = set(names).union(*(index.of_unit[seed] for seed in seeds))
    of_name = {name: edges for name in reached if (edges := _led(corpus, index, name, allowed))}
    units = {unit for edges in of_name.values() for unit, _ in edges}.union(seeds)
    rarity = {name: math.log(1 + corpus.alive / (1 + len(of_name[name]))) for name in of_name}
    of_unit = {
        unit: [(name, rarity[name]) for name in index.of_unit[unit] if name in of_name]
        for unit in units
    }
    return Neighbourhood(of_unit, of_name)


def _led(
    corpus: Corpus, index: EntityIndex, name: str, allowed: Allowed | None
) -> list[tuple[int, float]]:
    titled = set(index.titled.get(name, ()))
    held = index.holding(name, common(corpus))
    return [
        (i, TITLE_WEIGHT if i in titled else 1.0)
        for i in sorted(held)
        if allowed is None or allowed(i)
    ]


def common(corpus: Corpus) -> int:
    """Give in how many units a name may be to lead anywhere."""
    return max(COMMON, corpus.alive // 20)


def aligned(corpus: Corpus, question: Question) -> list[str]:
    """Give the question's names that the graph has; a longer one may stand for several."""
    index = corpus.entities
    return sorted(n for n in question.names if n in index.units or n in index.titled)


def activation(
    graph: Neighbourhood, names: Sequence[str], prior: Mapping[int, float], steps: int
) -> Mapping[str, float]:
    """Spread activation from the question's names to those that share a unit with them.

    Source: arXiv:2607.29377: eta(t+1)(e') = sum over e of eta(t)(e) times the sum over the
    contexts that hold both of their similarity to the question.
    """
    eta = dict.fromkeys(names, 1.0)
    for _ in range(steps):
        following: dict[str, float] = defaultdict(float)
        for name, active in eta.items():
            for unit, _weight in graph.of_name.get(name, ()):
                for other, _rarity in graph.of_unit.get(unit, ()):
                    following[other] += active * prior.get(unit, 0.0)
        highest = max(following.values(), default=0.0)
        if highest <= 0:
            break
        spread = {name: max(eta.get(name, 0.0), v / highest) for name, v in following.items()}
        eta = {**spread, **dict.fromkeys(names, 1.0)}
    return eta


def pagerank(
    graph: Neighbourhood, units: Mapping[int, float], names: Mapping[str, float], gamma: float
) -> Mapping[int, float]:
    """Give personalised PageRank over units and names: pi = (1 - gamma) r + gamma P^T pi.

    Args:
        graph: The question's neighbourhood.
        units: The prior of units; together with that of names it is the reset vector r.
        names: The prior of names.
        gamma: The share that flows on, 0 to 1.
    """
    total = (sum(units.values()) + sum(names.values())) or 1.0
    unit_at = {unit: place for place, unit in enumerate(graph.of_unit)}
    name_at = {name: place for place, name in enumerate(graph.of_name)}
    from_units = [_flows(edges, name_at, gamma) for edges in graph.of_unit.values()]
    from_names = [_flows(edges, unit_at, gamma) for edges in graph.of_name.values()]
    reset_units = [units.get(unit, 0.0) / total for unit in graph.of_unit]
    reset_names = [names.get(name, 0.0) / total for name in graph.of_name]
    on_units, on_names = reset_units, reset_names
    for _ in range(STEPS):
        next_units = [(1 - gamma) * value for value in reset_units]
        next_names = [(1 - gamma) * value for value in reset_names]
        _flow(on_units, from_units, next_names, next_units, gamma)
        _flow(on_names, from_names, next_units, next_names, gamma)
        on_units, on_names = next_units, next_names
    return dict(zip(graph.of_unit, on_units, strict=True))


def _flows(
    edges: Sequence[tuple[A, float]], places: Mapping[A, int], gamma: float
) -> list[tuple[int, float]]:
    """Give where a node's share flows, and how much of it."""
    total = sum([weight for _, weight in edges])
    return [(places[other], gamma * weight / total) for other, weight in edges] if total else []


def _flow(
    values: Sequence[float],
    flows: Sequence[Sequence[tuple[int, float]]],
    into: list[float],
    staying: list[float],
    gamma: float,
) -> None:
    """Let each node's share flow along its edges; what has none keeps it."""
    for place, (value, edges) in enumerate(zip(values, flows, strict=True)):
        if not edges:
            staying[place] += gamma * value
        elif value:
            for other, share in edges:
                into[other] += value * share


def ranked_by_graph(
    corpus: Corpus,
    question: Question,
    prior: Mapping[int, float],
    gamma: float,
    *,
    steps: int = 0,
    allowed: Allowed | None = None,
) -> Mapping[int, float]:
    """Rank the units near a question by the graph.

    Args:
        corpus: The units.
        question: Its names are where activation starts.
        prior: The best units by their words, with their scores (at most `SEEDS` count).
        gamma: See `pagerank`.
        steps: How far activation spreads from the question's names.
        allowed: Tells which units may be used.

    Returns:
        Scores of the neighbourhood's units; the prior counts squared, so that the best lead.
    """
    seeds = heapq.nlargest(SEEDS, prior, key=lambda index: (prior[index], index))
    names = aligned(corpus, question)
    if not seeds:
        return {}
    graph = neighbourhood(corpus, seeds, names, allowed)
    active = activation(graph, names, prior, steps)
    weights = {seed: prior[seed] ** 2 for seed in seeds}
    sum_weights = sum(weights.values()) or 1.0
    sum_active = sum(active.values()) or 1.0
    reset = {name: value * sum_weights / sum_active for name, value in active.items()}
    return pagerank(graph, weights, reset, gamma)


def exact(corpus: Corpus, question: Question, scores: Mapping[int, float]) -> dict[int, float]:
    """Refine the scores of units that hold the question's own names: up to twice for all.

    Source: arXiv:2607.29377, exact and phrase matches refine context scores.
    """
    if not question.names:
        return dict(scores)
    held = corpus.entities.of_unit
    count = len(question.names)
    return {
        index: score * (1 + sum(name in held[index] for name in question.names) / count)
        for index, score in scores.items()
    }


BRIDGE_SEEDS = 3
BRIDGE_BASE = 0.3
"""What a shared name counts by itself, beside what the linked unit adds to the question."""

BRIDGE_TITLE = 1.5


def bridges(
    corpus: Corpus,
    question: Question,
    scores: Mapping[int, float],
    allowed: Allowed | None = None,
) -> Mapping[int, float]:
    """Score units that share a name with a best one and answer what that one leaves open.

    Args:
        corpus: The units.
        question: Its words that a best unit lacks are what a linked unit should have.
        scores: Of the candidates, at most 1.
        allowed: Tells which units may be used.
    """
    found: dict[int, float] = {}
    for seed in heapq.nlargest(BRIDGE_SEEDS, scores, key=lambda i: (scores[i], i)):
        own = set(corpus.units[seed].terms)
        left = {term: idf for term, idf in question.terms.items() if term not in own}
        open_share = sum(left.values()) / (sum(question.terms.values()) or 1.0)
        if open_share <= 0:
            continue
        for unit, link in _linked(corpus, question, seed, allowed).items():
            held = set(corpus.units[unit].terms)
            answered = sum(idf for term, idf in left.items() if term in held) / sum(left.values())
            gain = scores[seed] * open_share * link * (BRIDGE_BASE + answered)
            found[unit] = max(found.get(unit, 0.0), gain)
    return found


def _linked(
    corpus: Corpus, question: Question, seed: int, allowed: Allowed | None
) -> Mapping[int, float]:
    """Give the units that share a name with a seed, by the rarity of the name."""
    index, most = corpus.entities, common(corpus)
    highest = math.log(1 + corpus.alive)
    found: dict[int, float] = {}
    for name in index.of_unit[seed]:
        held = () if name in question.names else index.holding(name, most)
        titled = set(index.titled.get(name, ()))
        for unit in held:
            if unit != seed and (allowed is None or allowed(unit)):
                rarity = math.log(1 + corpus.alive / len(held)) / highest
                link = rarity * (BRIDGE_TITLE if unit in titled else 1.0)
                found[unit] = max(found.get(unit, 0.0), link)
    return found
