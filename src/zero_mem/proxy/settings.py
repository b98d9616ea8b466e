"""How a proxy runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from zero_mem.ledger.entries import Mode
from zero_mem.ledger.prices import DEFAULT_TABLE, PriceTable
from zero_mem.proxy.counting import Rates
from zero_mem.proxy.targets import Upstreams
from zero_mem.proxy.upstream import Timeouts
from zero_mem.types import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a proxy is told.

    `namespace` holds the accounts, and below it one namespace for each credential; with
    `one_user` all credentials are the same person's. `share` is as in `MemoryController`.
    `body_limit` is in bytes. `price_model` is a row of the table that holds for every model,
    "" to find each model's own. `page_token` opens the live page from elsewhere than this
    machine; without one it opens only here.
    """

    upstreams: Upstreams
    mode: Mode = "observe"
    share: float = 0.25
    namespace: Path = ("proxy",)
    one_user: bool = False
    rounds: int = 8
    body_limit: int = 64 << 20
    timeouts: Timeouts = field(default_factory=Timeouts)
    prices: PriceTable = DEFAULT_TABLE
    price_model: str = ""
    page_token: str = ""

    @property
    def rates(self) -> Rates:
        """How calls are counted and priced."""
        return Rates(
            prices=self.prices,
            model=self.price_model,
            share=self.share,
            limit=self.body_limit,
        )
