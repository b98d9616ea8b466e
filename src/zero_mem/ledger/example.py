"""The design's own arithmetic: a body in every prompt against receipts in every prompt."""

from __future__ import annotations

from dataclasses import dataclass

from zero_mem.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Tokens that memory takes over a whole run, kept in full or as receipts."""

    full: int
    receipts: int

    @property
    def saved(self) -> float:
        """The share that receipts save, at most 1; negative when they cost more."""
        return 1 - self.receipts / self.full if self.full else 0.0


def example(
    *,
    memory_tokens: int = 80_000,
    turns: int = 100,
    receipts: int = 3,
    receipt_tokens: int = 15,
) -> Example:
    """Work out the design's example; the defaults are its figures.

    It counts no reads, no definitions and no cache: it is an upper bound for what receipts
    can save, and a replay's figure of a real history belongs beside it.

    Args:
        memory_tokens: Tokens of memory that would stand in every prompt.
        turns: Calls of the run.
        receipts: Receipts in each prompt instead.
        receipt_tokens: Tokens of one receipt.

    Returns:
        8,000,000 tokens against 4,500 for the defaults: 99.94 % less.
    """
    if min(memory_tokens, turns, receipts, receipt_tokens) < 0:
        raise InvalidInput("the example's figures are counts: zero or more")
    return Example(full=memory_tokens * turns, receipts=receipts * receipt_tokens * turns)
