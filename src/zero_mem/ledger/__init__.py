"""What a prompt costs: tokens by column, cache states, prices; and what was entered so far."""

from __future__ import annotations

from zero_mem.ledger.entries import Account, LedgerEntry
from zero_mem.ledger.reading import Overview, overview

__all__ = ["Account", "LedgerEntry", "Overview", "overview"]
