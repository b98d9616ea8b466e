"""Conversations with a model, tied to a namespace: the controller and its clients."""

from __future__ import annotations

from zero_mem.controller.references import ReferencePolicy
from zero_mem.conversation.clients import with_memory
from zero_mem.conversation.controller import MemoryController
from zero_mem.conversation.ledger import ConversationLedger, LedgerCall, TokenCounts
from zero_mem.conversation.outputs import Absorbed
from zero_mem.conversation.streaming import Finished, StreamedExchange

__all__ = [
    "Absorbed",
    "ConversationLedger",
    "Finished",
    "LedgerCall",
    "MemoryController",
    "ReferencePolicy",
    "StreamedExchange",
    "TokenCounts",
    "with_memory",
]
