"""How many bytes the active bodies of a namespace have, for those with a cap on them."""

from __future__ import annotations

import threading

from zero_mem.storage.base import NamespaceRow, Stored, Transaction
from zero_mem.storage.codec import encode_body
from zero_mem.types import Path


class Sizes:
    """What was counted, for as long as nobody else has written to the namespace."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[int, int]] = {}

    def count(self, transaction: Transaction, row: NamespaceRow, sequence: int) -> int:
        """Count the bytes of the active bodies as of a journal position, reading all if need be."""
        with self._lock:
            known = self._known.get(row.path)
        if known is not None and known[0] == sequence:
            return known[1]
        return sum(map(size, transaction.scan(row, {"state": ("active",)})))

    def keep(self, path: Path, sequence: int, total: int) -> None:
        """Note what a write has left; only once it is written."""
        with self._lock:
            self._known[path] = (sequence, total)


def size(stored: Stored | None) -> int:
    """Give the bytes that a record counts for: of its body while it is active."""
    if stored is None or stored.record.state != "active":
        return 0
    return len(encode_body(stored.record.content)[1])
