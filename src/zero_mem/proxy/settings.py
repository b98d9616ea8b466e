"""How a proxy runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from zero_mem.errors import InvalidInput
from zero_mem.ledger.entries import Mode
from zero_mem.ledger.prices import DEFAULT_TABLE, PriceTable, price_table
from zero_mem.proxy.counting import Rates
from zero_mem.proxy.targets import Upstreams, upstreams
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


def read(
    *,
    upstream: Iterable[str],
    mode: str,
    share: float,
    prices: str | None,
    namespace: Path,
    one_user: bool,
    body_limit: int,
    timeout: float,
    page_token: str,
) -> Settings:
    """Check what a proxy is told in words, and give it as settings.

    Args:
        upstream: As `targets.upstreams` reads them.
        mode: observe or offload.
        share: Above 0, at most 1.
        prices: As `ledger.prices.price_table` reads it.
        namespace: See `Settings`.
        one_user: See `Settings`.
        body_limit: In bytes.
        timeout: Seconds that a provider may say nothing.
        page_token: See `Settings`.

    Raises:
        InvalidInput: Something can't be.
    """
    if mode not in ("observe", "offload"):
        raise InvalidInput(f"the proxy's mode is observe or offload, not {mode!r}")
    if not 0 < share <= 1:
        raise InvalidInput(f"the proxy's share is above 0 and at most 1, not {share}")
    table, model = price_table(prices)
    return Settings(
        upstreams=upstreams(upstream),
        mode="offload" if mode == "offload" else "observe",
        share=share,
        namespace=namespace,
        one_user=one_user,
        body_limit=body_limit,
        timeouts=Timeouts(read=timeout),
        prices=table,
        price_model=model,
        page_token=page_token,
    )
