"""Two stores exchange their journals, each change once, and nothing is lost (`op:sync`).

`sync` drives two stores at hand. `changes`, `receive` and `cursor` are its halves as plain
messages, for whoever carries them from one machine to another.
"""

from __future__ import annotations

from zero_mem.sync.both import sync
from zero_mem.sync.receiving import cursor, receive
from zero_mem.sync.reports import Displaced, Received, SyncConflict, SyncReport
from zero_mem.sync.sending import changes

__all__ = [
    "Displaced",
    "Received",
    "SyncConflict",
    "SyncReport",
    "changes",
    "cursor",
    "receive",
    "sync",
]
