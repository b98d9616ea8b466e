"""What an embedder is to Zero-Mem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

Rows: TypeAlias = Sequence[Sequence[float]]
"""One vector a text, in order; a numpy array of two dimensions is welcome too."""


class Embedder(Protocol):
    """Turns texts into vectors whose cosine tells how near their meanings are.

    It is called from one thread at a time, and may block or fail: a save never waits for it,
    and a search goes on without it.
    """

    @property
    def name(self) -> str:
        """Names the model; another name means vectors that can't be compared."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        """Embed texts.

        Args:
            texts: At least one; none holds a NUL or a lone surrogate.
            query: True for questions, False for what is searched.

        Returns:
            As many vectors as texts, of any length but zero.
        """
