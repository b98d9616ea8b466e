"""The proxy as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount

from zero_mem.memory import Memory
from zero_mem.proxy.counting import Counter, Counting
from zero_mem.proxy.forward import Forwarder
from zero_mem.proxy.ledger import Ledger
from zero_mem.proxy.live import ROOT, LivePage
from zero_mem.proxy.offload import Offloading
from zero_mem.proxy.settings import Settings
from zero_mem.proxy.tenants import Tenants
from zero_mem.proxy.upstream import Upstream


class Proxy:
    """A proxy over a store that is open; `app` serves it.

    Args:
        memory: The store; whoever opened it closes it, after the application's shutdown.
        settings: How to run.
        counter: Counts the calls for the ledger; in this process by default.
    """

    def __init__(
        self, memory: Memory, settings: Settings, *, counter: Counter | None = None
    ) -> None:
        self._settings = settings
        self._upstream = Upstream(settings.timeouts)
        self._ledger = Ledger(
            memory.namespace(*settings.namespace),
            counter or Counting(settings.rates),
            prices=settings.prices,
        )
        tenants = Tenants(memory, settings.namespace, one_user=settings.one_user)
        self._offloading = (
            Offloading(settings, self._upstream, tenants, self._ledger)
            if settings.mode == "offload"
            else None
        )
        forwarder = Forwarder(
            settings, self._upstream, tenants, self._ledger, self._offloading, own=ROOT
        )
        self._page = LivePage(self._ledger, mode=settings.mode, token=settings.page_token)
        self.app = Starlette(
            routes=[*self._page.routes(), Mount("/", forwarder)], lifespan=self._lifespan
        )

    def stop(self) -> None:
        """Let the server stop: ends what would never end by itself."""
        self._page.stop()

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        try:
            async with self._upstream:
                yield
        finally:
            if self._offloading is not None:
                await self._offloading.close()
            self._ledger.close()
