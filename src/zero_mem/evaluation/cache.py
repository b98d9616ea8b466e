"""Vectors kept on disk by content, so that a set is embedded once for many measurements."""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

from zero_mem.errors import InvalidInput
from zero_mem.models.embedder import Embedder, Rows

_AT_ONCE = 64
"""So many texts are embedded between two commits: what an interrupted run loses at most."""


class CachedEmbedder:
    """Asks an embedder only for what it has not embedded before.

    Vectors are found by the model's name, the text, and whether it is a question. Used from one
    thread at a time, as every embedder is; several processes may share a file.

    Args:
        embedder: The embedder.
        path: The file; it is made where it is not there.

    Raises:
        InvalidInput: The file can't be opened, or is no such file.
    """

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self.name = embedder.name
        self.dimension = embedder.dimension
        try:
            self._file = sqlite3.connect(
                path, timeout=60, isolation_level=None, check_same_thread=False
            )
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, row BLOB) WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            raise InvalidInput(f"{path}: can't keep vectors: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        """Embed texts; see `Embedder.embed`."""
        keys = [self._key(text, query) for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if self._no(key)}
        for some in _batches(list(missing)):
            rows = self._embedder.embed([missing[key] for key in some], query=query)
            self._keep(some, rows)
        return [self._row(key) for key in keys]

    def _key(self, text: str, query: bool) -> bytes:
        named = f"{self.name}\0{'question' if query else 'text'}\0{text}"
        return hashlib.blake2b(named.encode(), digest_size=16).digest()

    def _no(self, key: bytes) -> bool:
        found = self._file.execute("SELECT 1 FROM vectors WHERE key = ?", (key,)).fetchone()
        return found is None

    def _row(self, key: bytes) -> Sequence[float]:
        (row,) = self._file.execute("SELECT row FROM vectors WHERE key = ?", (key,)).fetchone()
        return array("f", row)

    def _keep(self, keys: Sequence[bytes], rows: Rows) -> None:
        written = (array("f", map(float, row)).tobytes() for row in rows)
        with self._file:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)", zip(keys, written, strict=True)
            )


def _batches(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    yield from (keys[start : start + _AT_ONCE] for start in range(0, len(keys), _AT_ONCE))
