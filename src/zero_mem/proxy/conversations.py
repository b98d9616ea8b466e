"""The controllers of the conversations that passed last, each with what it has worked out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from zero_mem.conversation.controller import MemoryController
from zero_mem.proxy.tenants import Tenants
from zero_mem.proxy.threads import Thread

_KEPT: Final = 256


class Conversations:
    """Gives each thread its controller; an old one is made again from the store.

    Args:
        tenants: Gives the namespaces.
        share: As in `MemoryController`.
    """

    def __init__(self, tenants: Tenants, *, share: float) -> None:
        self._tenants = tenants
        self._share = share
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, bool], MemoryController] = OrderedDict()

    def controller(self, tenant: str, thread: Thread, *, reachable: bool) -> MemoryController:
        """Give a thread's controller.

        Args:
            tenant: Whose it is.
            thread: The thread.
            reachable: Whether the model could read its memory.
        """
        key = (tenant, thread.name, reachable)
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is None:
                kept = self._made(tenant, thread, reachable=reachable)
            self._kept[key] = kept
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return kept

    def _made(self, tenant: str, thread: Thread, *, reachable: bool) -> MemoryController:
        return MemoryController(
            self._tenants.memories(tenant, thread.memories),
            conversation=thread.name,
            share=self._share,
            recall_reachable=reachable,
            # What a conversation's prompts hold is what its host put there, and receipts.
            inject=0,
        )
