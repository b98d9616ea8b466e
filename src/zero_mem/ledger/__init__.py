"""What a prompt costs: tokens by column, cache states, prices; and what was entered so far."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zero_mem.ledger.entries import Account, LedgerEntry
    from zero_mem.ledger.reading import Overview, overview

__all__ = ["Account", "LedgerEntry", "Overview", "overview"]

_LAZY = {
    "Account": "zero_mem.ledger.entries",
    "LedgerEntry": "zero_mem.ledger.entries",
    "Overview": "zero_mem.ledger.reading",
    "overview": "zero_mem.ledger.reading",
}


def __getattr__(name: str) -> Any:
    """Import on first use: every program counts columns, few read prices."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'zero_mem.ledger' has no attribute {name!r}")
