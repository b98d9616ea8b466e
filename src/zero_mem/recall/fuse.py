"""Bringing scores of different kinds together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def min_max(scores: Mapping[int, float]) -> dict[int, float]:
    """Stretch to 0 to 1; where all are equal, each is 1. What is absent counts 0."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if high == low:
        return dict.fromkeys(scores, 1.0)
    return {index: (score - low) / (high - low) for index, score in scores.items()}


def routed(
    primary: Mapping[int, float], secondary: Mapping[int, float], rho: float
) -> dict[int, float]:
    """Fuse two views: S = rho * primary + (1 - rho) * secondary, each min–max first.

    Source: arXiv:2607.29377, evidence fusion.
    """
    first, second = min_max(primary), min_max(secondary)
    return {
        index: rho * first.get(index, 0.0) + (1 - rho) * second.get(index, 0.0)
        for index in first.keys() | second.keys()
    }


def dense_scores(
    similarities: Mapping[int, float], neighbours: Mapping[int, Sequence[int]]
) -> dict[int, float]:
    """Give each unit half its own similarity and half its neighbours' mean, then scale.

    The median becomes 0, as does what is below it, and the highest 1: unlike the lowest of
    all, the median says what being near to nothing in particular looks like (measured: one
    to two points on every set).

    Args:
        similarities: Of the units that have a vector, their cosine with the query.
        neighbours: Of each unit of a thread its neighbours; a unit without any has its own.
    """
    mixed: dict[int, float] = {}
    for index, own in similarities.items():
        near = [similarities[n] for n in neighbours.get(index, ()) if n in similarities]
        mixed[index] = 0.5 * own + 0.5 * (sum(near) / len(near)) if near else own
    if not mixed:
        return {}
    ordered = sorted(mixed.values())
    middle, highest = ordered[len(ordered) // 2], ordered[-1]
    if middle == highest:
        return min_max(mixed)
    return {i: max(0.0, value - middle) / (highest - middle) for i, value in mixed.items()}
