"""The running account of one conversation: numbers only, that add up across processes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final, TypeAlias

from zero_mem.ledger.prices import Price, PriceTable
from zero_mem.proxy.saving import Billed, Side, side_cost

Account: TypeAlias = Mapping[str, Any]
"""Numbers by name, nested; what two accounts do not both hold as numbers is the later one's."""

_PART: Final = re.compile(r"[a-z]+|[0-9]+")


def entry(call: Billed, price: Price | None, requests: int) -> dict[str, Any]:
    """Write one call of the host as an account.

    Args:
        call: What it took.
        price: The model's row; None leaves the call out of all costs, and says so.
        requests: How many requests were made for it, memory rounds included.
    """
    return {
        "calls": 1,
        "requests": requests,
        "estimated": int(call.estimated),
        "unpriced": int(price is None),
        "paid": _side(call.paid, price),
        "other": _side(call.other, price),
    }


def _side(side: Side, price: Price | None) -> dict[str, Any]:
    columns = side.tokens.as_dict()
    found: dict[str, Any] = {"tokens": columns, "cache": asdict(side.state)}
    if price is not None:
        cost = side_cost(price, side)
        found["cost"] = asdict(cost) | {"total": cost.total}
    return found


def added(one: Account, other: Account) -> dict[str, Any]:
    """Add two accounts up, figure by figure."""
    return {name: _sum(one.get(name), other.get(name)) for name in {**one, **other}}


def total(accounts: Iterable[Account]) -> dict[str, Any]:
    """Add accounts up; of what is no figure the last one's stands."""
    found: dict[str, Any] = {}
    for account in accounts:
        found = added(found, account)
    return found


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return added(one, other)
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one + other
    return one if other is None else other


def price_of(table: PriceTable, model: str) -> Price | None:
    """Find the row of a model by the id that its API takes, such as claude-sonnet-5-5-20261001.

    The words and numbers of a row's name must stand in the id, in order and together; of
    several rows the longest name wins.
    """
    parts = _PART.findall(model.casefold())
    named = {name: _PART.findall(name.casefold()) for name in table.rows}
    fitting = [name for name, wanted in named.items() if _contains(parts, wanted)]
    best = max(fitting, key=lambda name: len(named[name]), default=None)
    return None if best is None else table.rows[best]


def _contains(parts: list[str], wanted: list[str]) -> bool:
    size = len(wanted)
    return any(parts[at : at + size] == wanted for at in range(len(parts) - size + 1))
