"""Bringing a store's vectors up to date, all of them, whatever time it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zero_mem.dense.index import DenseIndex
from zero_mem.dense.results import Progress, Reindexed
from zero_mem.dense.vectors import embed_missing
from zero_mem.storage.base import VectorModel
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.memory import Memory

BATCH = 128
"""Records embedded between two short writes."""

_ROUNDS = 3
"""Records that change while they are embedded are tried again this often."""


def reindex(
    memory: Memory, dense: DenseIndex, paths: list[Path], progress: Progress | None = None
) -> Reindexed:
    """Embed every record that lacks a vector, and remove the vectors of other models.

    Raises:
        EmbedderUnavailable: The embedder fails; what was done stays done.
    """
    model = dense.guard.model(patient=True)
    dropped = sum(_drop_others(memory, path, model) for path in paths)
    missing = {path: _missing(memory, path, model) for path in paths}
    total = sum(map(len, missing.values()))
    tell = progress or (lambda done, of: None)
    done = 0
    for _ in range(_ROUNDS):
        for path, positions in missing.items():
            for start in range(0, len(positions), BATCH):
                batch = positions[start : start + BATCH]
                done += embed_missing(memory, path, dense.guard, batch)
                tell(done, max(done, total))
        missing = {path: _missing(memory, path, model) for path in missing}
        if not any(missing.values()):
            break
    return Reindexed(
        model=dense.guard.name,
        dimension=model.dimension,
        embedded=done,
        dropped=dropped,
        behind=sum(map(len, missing.values())),
    )


def _missing(memory: Memory, path: Path, model: VectorModel) -> list[int]:
    """List the records to embed, in the order they were saved."""
    with memory.transaction() as transaction:
        row = transaction.namespace(path)
        return [] if row is None else transaction.without_vector(row, model, row.positions)[::-1]


def _drop_others(memory: Memory, path: Path, model: VectorModel) -> int:
    with memory.transaction(write=True, durable=False) as transaction:
        row = transaction.namespace(path)
        return 0 if row is None else transaction.drop_vectors(row, keep=model)
