"""Why a recall chose what it chose: its scores as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from zero_mem.cli.printing import table
from zero_mem.cli.text import clean, short
from zero_mem.types import Recall, RecallItem

_MEANING: Final[Mapping[str, str]] = {
    "own": "BM25 of its own text; the best match counts 1",
    "window": "what its neighbours in the thread add",
    "episode": "what the exchange around it adds",
    "session": "what its whole session adds",
    "dense": "nearness in meaning, by the embedder",
    "hierarchy": "its score by thread and time",
    "graph": "what the names that it shares with others add",
    "bridge": "it leads on from one of the best by a rare name",
    "closure": "it is of the same days as one of the best, and like it",
    "date": "it is near a time that the question names",
    "x fit": "it holds the kind of value that is asked for",
    "x speaker": "the question names its speaker",
    "x counterparty": "the question names the other side",
    "x date": "it is near a time that the question names",
    "x recency": "it is recent",
    "x asker": "it is by the one who speaks now",
    "x opening": "it opened its session",
}
_NAMES: Final = {"own": "words"}


def explained(recall: Recall) -> str:
    """Write what each item's score is made of, and what just missed and why; "" without reasons.

    A score is the sum of the parts times the factors (`x …`), scaled below 1.
    """
    if not any(item.reason for item in (*recall.items, *recall.near_misses)):
        return ""
    every = (*recall.items, *recall.near_misses)
    parts = [name for name in _MEANING if any(name in item.parts for item in every)]
    parts += sorted({name for item in every for name in item.parts} - set(_MEANING))
    rows = [_row(item, "in", parts) for item in recall.items]
    rows += [_row(item, _outcome(item), parts) for item in recall.near_misses]
    heads = ("id", "score", *(_NAMES.get(name, name) for name in parts), "outcome", "text")
    meant = [f"  {_NAMES.get(p, p)}: {_MEANING[p]}" for p in parts if p in _MEANING]
    score = "  score: the parts added up, times the factors (x), scaled to stay below 1"
    return "\n".join(["Why, best first:", table(heads, rows), score, *meant])


def _row(item: RecallItem, outcome: str, parts: Sequence[str]) -> tuple[str, ...]:
    newer = f", superseded by {item.superseded_by}" if item.superseded_by else ""
    cells = (f"{item.parts[name]:.2f}" if name in item.parts else "" for name in parts)
    return (item.memory_id, f"{item.score:.3f}", *cells, outcome + newer, short(clean(item.text)))


def _outcome(item: RecallItem) -> str:
    """Give why an item is out: the last of its reasons."""
    return "out: over the budget" if "over the budget" in item.reason else "out: over the limit"
