"""A deterministic embedder for tests and examples: a bag of words, hashed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from zero_mem.models.embedder import Rows
from zero_mem.text.segment import content_terms


class FakeEmbedder:
    """Embeds a text as the sum of its words, each a pseudo-random direction of its own.

    Args:
        dimension: The length of a vector.
        name: The model's name, for tests of a change of models.
        synonyms: Words that are embedded as another one, so that a test can tell dense
            recall from lexical.

    `embedded` keeps every text it was given, in order.
    """

    def __init__(
        self,
        dimension: int = 64,
        *,
        name: str = "fake",
        synonyms: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.embedded: list[str] = []
        self._synonyms = synonyms or {}

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        """Embed texts; see `Embedder.embed`."""
        self.embedded += texts
        return [self._row(text) for text in texts]

    def _row(self, text: str) -> list[float]:
        words = [self._synonyms.get(term, term) for term in content_terms(text)]
        directions = [self._direction(word) for word in words] or [self._direction("")]
        return [sum(column) for column in zip(*directions, strict=True)]

    def _direction(self, word: str) -> list[float]:
        bits = hashlib.shake_128(word.encode()).digest(self.dimension)
        return [bit / 127.5 - 1.0 for bit in bits]
