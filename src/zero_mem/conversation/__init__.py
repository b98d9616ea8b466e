"""Conversations with a model, tied to a namespace: the controller and its clients."""

from __future__ import annotations

from zero_mem.controller.references import ReferencePolicy
from zero_mem.conversation.clients import with_memory
from zero_mem.conversation.controller import MemoryController
from zero_mem.conversation.counting import TokenCounts
from zero_mem.conversation.ledger import ConversationLedger
from zero_mem.conversation.outputs import Absorbed
from zero_mem.conversation.streaming import Finished, StreamedExchange
from zero_mem.ledger.entries import LedgerEntry

__all__ = [
    "Absorbed",
    "ConversationLedger",
    "Finished",
    "LedgerEntry",
    "MemoryController",
    "ReferencePolicy",
    "StreamedExchange",
    "TokenCounts",
    "with_memory",
]
