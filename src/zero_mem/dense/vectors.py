"""Making the vectors that are missing: read, embed outside any transaction, write if unchanged."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from zero_mem.dense.guard import Guard
from zero_mem.index.vectors import REACH, context_of, embedded_text, encode
from zero_mem.storage.base import NamespaceRow, Transaction, Vector, VectorModel
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.memory import Memory


AT_ONCE = 1000
"""Characters of one call of the embedder while somebody waits for a read."""


class _Text(NamedTuple):
    """What is embedded for the record at a position."""

    position: int
    context: int
    text: str


def embed_missing(
    memory: Memory, path: Path, guard: Guard, positions: Sequence[int], *, seconds: float = math.inf
) -> int:
    """Make the vectors of some records, and tell how many were written.

    A record that changes meanwhile is left out: it is still missing, and comes again.

    Args:
        memory: The store.
        path: The namespace.
        guard: The embedder.
        positions: The records, in the order in which they are done.
        seconds: When they are over nothing more is begun; without them the embedder may
            take as long as it needs.

    Raises:
        EmbedderUnavailable: The embedder fails or takes too long; what was made is written.
        StoreUnavailable: The store can't be read or written.
    """
    patient = math.isinf(seconds)
    model = guard.model(patient=patient)
    with memory.transaction() as transaction:
        texts = _texts(transaction, transaction.namespace(path), positions)
    made: dict[_Text, list[float]] = {}
    until = time.monotonic() + seconds
    try:
        for few in _few(texts, math.inf if patient else AT_ONCE):
            if made and time.monotonic() > until:
                break
            rows = guard.texts([one.text for one in few], patient=patient)
            made.update(zip(few, rows.tolist(), strict=True))
    finally:
        written = _write(memory, path, model, made)
    return written


def _few(texts: Sequence[_Text], most: float) -> Iterator[list[_Text]]:
    """Split texts so that no call of the embedder has many more characters than `most`."""
    few: list[_Text] = []
    size = 0
    for one in texts:
        if few and size + len(one.text) > most:
            yield few
            few, size = [], 0
        few.append(one)
        size += len(one.text)
    if few:
        yield few


def _write(memory: Memory, path: Path, model: VectorModel, made: dict[_Text, list[float]]) -> int:
    """Write the vectors of the records that still are as they were embedded."""
    if not made:
        return 0
    # Losing vectors on power loss costs only making them again.
    with memory.transaction(write=True, durable=False) as transaction:
        row = transaction.namespace(path)
        if row is None:
            return 0
        now = _texts(transaction, row, [one.position for one in made])
        vectors = [
            Vector(one.position, one.context, encode(made[one])) for one in now if one in made
        ]
        transaction.put_vectors(row, model, vectors)
    return len(vectors)


def _texts(
    transaction: Transaction, row: NamespaceRow | None, positions: Sequence[int]
) -> list[_Text]:
    if row is None:
        return []
    near = {place for one in positions for place in range(one - REACH, one + 1)}
    found = transaction.by_positions(row, near)
    records = {position: stored.record for position, stored in found.items()}
    texts: list[_Text] = []
    for position in positions:
        record = records.get(position)
        if record is None or record.state != "active":
            continue
        context = context_of(record, position, records)
        text = embedded_text(record, None if context is None else records[context])
        texts.append(_Text(position, context or 0, text))
    return texts
