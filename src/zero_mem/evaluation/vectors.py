"""The cosines of a question with the units of its space, as a store would compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from zero_mem.errors import EmbedderUnavailable
from zero_mem.evaluation.sets import Asked, Space
from zero_mem.memory import Memory
from zero_mem.models.embedder import Embedder

NAMESPACE: Final = ("bench",)
_PATIENCE: Final = 600.0
"""Seconds; here nobody waits for a read, and one without vectors would falsify the figures."""


class Progress(Protocol):
    """Shows how far something is: entered with what is done and how much there is of it."""

    def __call__(self, what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """Give what is told the amount done so far."""


class Vectors:
    """The vectors of the spaces of one set after the other, in stores in memory.

    Args:
        embedder: What makes them.
        progress: Shows the embedding.
    """

    def __init__(self, embedder: Embedder, progress: Progress) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._progress = progress
        self._memories: dict[str, Memory] = {}
        self._scores: dict[tuple[str, str], Mapping[int, float]] = {}

    def scores(self, question: Asked) -> Mapping[int, float]:
        """Give the cosine of each unit with a question, by place; computed once.

        Raises:
            EmbedderUnavailable: The embedder gave no vector.
        """
        key = (question.space.name, question.text)
        if key not in self._scores:
            self._scores[key] = self._look_up(question)
        return self._scores[key]

    def forget(self) -> None:
        """Forget the vectors of a set that is done."""
        for memory in self._memories.values():
            memory.close()
        self._memories.clear()
        self._scores.clear()

    def _look_up(self, question: Asked) -> Mapping[int, float]:
        space = question.space
        memory = self._memories.get(space.name)
        if memory is None:
            memory = self._memories[space.name] = self._filled(space)
        assert memory.dense is not None
        found = memory.dense.look_up(NAMESPACE, question.text)
        if found.scores is None or found.behind:
            raise EmbedderUnavailable(found.degraded or f"{found.behind} records have no vector")
        with memory.transaction() as transaction:
            row = transaction.namespace(NAMESPACE)
        assert row is not None
        first, places = row.position(1), _saved(space)
        return {places[position - first]: value for position, value in found.scores.items()}

    def _filled(self, space: Space) -> Memory:
        memory = Memory.open("memory://", embedder=self._embedder, patience=_PATIENCE)
        memory.namespace(*NAMESPACE).save_many(_record(space, place) for place in _saved(space))
        with self._progress(f"embedding {space.name}", len(space.texts)) as step:
            memory.reindex(progress=lambda done, _: step(done))
        return memory


def _saved(space: Space) -> list[int]:
    """Give the places of the units that a store takes: those that say something."""
    return [place for place, text in enumerate(space.texts) if text.strip()]


def _record(space: Space, place: int) -> dict[str, Any]:
    unit = space.corpus.units[place]
    record = {
        "content": space.texts[place],
        "kind": unit.kind,
        "session": unit.session or None,
        "speaker": unit.speaker or None,
    }
    return {**record, "created_at": unit.stamp} if unit.stamp else record
