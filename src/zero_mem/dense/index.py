"""The dense index of a store as recall sees it: cosines by position, and what they lack."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zero_mem.dense.guard import Guard
from zero_mem.dense.results import Found
from zero_mem.dense.vectors import embed_missing
from zero_mem.errors import EmbedderUnavailable, StoreUnavailable
from zero_mem.index.nearest import Matrix, Nearest, decode
from zero_mem.index.vectors import REACH
from zero_mem.models.embedder import Embedder
from zero_mem.storage.base import NamespaceRow, Transaction, VectorModel
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.memory import Memory

PATIENCE = 5.0
"""Seconds that a read waits for the embedder."""

CATCH_UP = 16
"""How many records a read embeds at most: what a conversation saves between two reads."""

CATCH_UP_SECONDS = 0.5
"""When they are over, a read embeds no more records; the next one goes on."""

CACHED_ROWS = 250_000
"""How many vectors of all namespaces stay in memory (400 MB at 384 dimensions)."""

_FOLLOWED = 1000
"""How many journal entries are followed; beyond, the vectors are read anew."""


@dataclass(slots=True)
class _Loaded:
    """The vectors of a namespace, valid for one journal position."""

    nearest: Nearest
    sequence: int = 0
    number: int = 0


class DenseIndex:
    """Vectors for the namespaces of one store, by one embedder; safe to share between threads.

    Args:
        memory: The store.
        embedder: What makes the vectors.
        patience: Seconds that a read waits for the embedder.
    """

    def __init__(self, memory: Memory, embedder: Embedder, *, patience: float = PATIENCE) -> None:
        self.guard = Guard(embedder, patience)
        self._memory = memory
        self._loaded: OrderedDict[Path, _Loaded] = OrderedDict()
        self._lock = threading.Lock()

    def look_up(self, path: Path, query: str) -> Found:
        """Score a namespace's records for a query, after embedding up to `CATCH_UP` new ones.

        Call it outside any transaction: it may wait for the embedder.

        Raises:
            StoreUnavailable: The store can't be read.
        """
        try:
            vector = self.guard.query(query)
            model = self.guard.model()
        except EmbedderUnavailable as error:
            return Found(scores=None, behind=self.behind(path), degraded=str(error))
        found = self._search(path, model, vector)
        if found.behind:
            # What can't be embedded or written now stays behind.
            with suppress(EmbedderUnavailable, StoreUnavailable):
                self._catch_up(path, model, min(found.behind, CATCH_UP))
            found = self._search(path, model, vector)
        return found

    def _search(self, path: Path, model: VectorModel, vector: Matrix) -> Found:
        with self._lock, self._memory.transaction() as transaction:
            row = transaction.namespace(path)
            if row is None:
                return Found(scores={}, behind=0)
            nearest = self._current(transaction, row, model)
            return Found(scores=nearest.best(vector), behind=row.documents - len(nearest))

    def behind(self, path: Path) -> int:
        """Count the records of a namespace without a current vector; asks no embedder."""
        with self._memory.transaction() as transaction:
            row = transaction.namespace(path)
            if row is None:
                return 0
            counts = transaction.vector_counts(row)
        # A model that can't be loaded is known by its name.
        named = self.guard.recorded_name
        return row.documents - sum(n for model, n in counts.items() if model.name == named)

    def forget(self) -> None:
        """Forget every vector that is in memory; the store's come back when they are asked for."""
        with self._lock:
            self._loaded.clear()
        self.guard.forget()

    def _catch_up(self, path: Path, model: VectorModel, count: int) -> None:
        with self._memory.transaction() as transaction:
            row = transaction.namespace(path)
            missing = [] if row is None else transaction.without_vector(row, model, count)
        embed_missing(self._memory, path, self.guard, missing, seconds=CATCH_UP_SECONDS)

    def _current(self, transaction: Transaction, row: NamespaceRow, model: VectorModel) -> Nearest:
        """Give the vectors of a namespace as they are in this transaction."""
        loaded = self._loaded.get(row.path)
        if loaded is None or row.sequence - loaded.sequence > _FOLLOWED:
            loaded = self._loaded[row.path] = _Loaded(Nearest(model.dimension))
        elif row.sequence != loaded.sequence:
            _drop_changed(transaction, row, model, loaded)
        loaded.sequence = row.sequence
        _put_new(transaction, row, model, loaded)
        self._evict(row.path)
        return loaded.nearest

    def _evict(self, used: Path) -> None:
        """Forget the vectors of the namespaces that were not used for longest."""
        self._loaded.move_to_end(used)
        rows = sum(len(loaded.nearest) for loaded in self._loaded.values())
        while rows > CACHED_ROWS and len(self._loaded) > 1:
            rows -= len(self._loaded.popitem(last=False)[1].nearest)


def _drop_changed(
    transaction: Transaction, row: NamespaceRow, model: VectorModel, loaded: _Loaded
) -> None:
    """Drop what the journal may have taken away, and is not in the store any more."""
    entries = transaction.journal(row, after=loaded.sequence)
    changed = transaction.by_ids(row, {entry.memory_id for entry in entries})
    reached = {
        place
        for stored in changed.values()
        for place in range(stored.position, stored.position + REACH + 1)
        if place in loaded.nearest
    }
    if reached:
        kept = transaction.vectors(row, model, positions=reached)
        loaded.nearest.drop(reached - {vector.position for vector in kept})


def _put_new(
    transaction: Transaction, row: NamespaceRow, model: VectorModel, loaded: _Loaded
) -> None:
    new = transaction.vectors(row, model, after=loaded.number)
    if new:
        rows = decode([vector.data for vector in new], model.dimension)
        loaded.nearest.put([vector.position for vector in new], rows)
        loaded.number = max(vector.number for vector in new)
