"""Making the vectors that are missing: read, embed outside any transaction, write if unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from zero_mem.dense.guard import Guard
from zero_mem.index.vectors import REACH, context_of, embedded_text, encode
from zero_mem.storage.base import NamespaceRow, Transaction, Vector
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.memory import Memory


class _Text(NamedTuple):
    """What is embedded for the record at a position."""

    position: int
    context: int
    text: str


def embed_missing(
    memory: Memory, path: Path, guard: Guard, positions: Sequence[int], *, patient: bool
) -> int:
    """Make the vectors of some records, and tell how many were written.

    A record that changes meanwhile is left out: it is still missing, and comes again.

    Raises:
        EmbedderUnavailable: The embedder fails or takes too long.
        StoreUnavailable: The store can't be read or written.
    """
    model = guard.model(patient=patient)
    with memory.transaction() as transaction:
        texts = _texts(transaction, transaction.namespace(path), positions)
    if not texts:
        return 0
    rows = guard.texts([one.text for one in texts], patient=patient)
    made = dict(zip(texts, rows.tolist(), strict=True))
    # Losing vectors on power loss costs only making them again.
    with memory.transaction(write=True, durable=False) as transaction:
        row = transaction.create_namespace(path)
        unchanged = [one for one in _texts(transaction, row, positions) if one in made]
        vectors = [Vector(one.position, one.context, encode(made[one])) for one in unchanged]
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
