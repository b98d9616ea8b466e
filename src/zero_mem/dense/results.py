"""What dense recall and re-indexing tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], object]
"""Told how many of how many records are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What dense recall gives for one query.

    `scores` is the cosine, in [-1, 1], of each record that has a current vector, by position;
    in large namespaces of the best only. It is None where the embedder gave nothing, and
    `degraded` says why. `behind` counts the records without a current vector.
    """

    scores: Mapping[int, float] | None
    behind: int
    degraded: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexed:
    """What a re-index did.

    `model` and `dimension` are what the vectors are recorded under. `embedded` vectors were
    made, `dropped` of other models removed, and `behind` records changed too fast to be done.
    """

    model: str
    dimension: int
    embedded: int
    dropped: int
    behind: int
