"""What a call cost, and what it would have cost the other way, at the same cache states.

The provider's discount on cached tokens is the provider's own: both sides get it alike, so
it is never counted as saved here. Memory's own rounds, definitions and reads are on the side
that was paid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from zero_mem.ledger.columns import CacheState, CallTokens, Usage, corrected
from zero_mem.ledger.prices import Cost, Price, cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Counted tokens of one prompt, and of its beginning that equals the prompt before.

    `unchanged` is None where nobody knows the prompt before.
    """

    tokens: CallTokens
    unchanged: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One way to make a call, or many calls added up.

    Attributes:
        tokens: By column.
        state: How the prompts are billed.
        cost: At the prices of the day it was entered; None where it was not priced.
    """

    tokens: CallTokens = field(default_factory=CallTokens)
    state: CacheState = field(default_factory=CacheState)
    cost: Cost | None = None

    def __add__(self, other: Side) -> Side:
        costs = [side.cost for side in (self, other) if side.cost is not None]
        return Side(
            tokens=self.tokens + other.tokens,
            state=self.state + other.state,
            cost=sum(costs, Cost()) if costs else None,
        )

    def priced(self, price: Price) -> Side:
        """Give this side of one call with its cost."""
        return replace(self, cost=cost(price, self.state, output=self.tokens.output))

    def as_dict(self) -> dict[str, Any]:
        """Give the figures by name; without a cost where it was not priced."""
        found: dict[str, Any] = {"tokens": self.tokens.as_dict(), "cache": asdict(self.state)}
        if self.cost is not None:
            found["cost"] = asdict(self.cost) | {"total": self.cost.total}
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """One call of the host as it was billed, and as it would have been the other way.

    The other way is without memory where the call was offloaded, and offloaded where it was
    only observed. `estimated` tells that the provider gave no usage for some of it, so that
    counts stand for it.
    """

    paid: Side
    other: Side
    estimated: bool


def billed(sent: Counted, other: Counted, rounds: Sequence[Usage | None]) -> Billed:
    """Set one call of the host against the same call made the other way.

    Args:
        sent: The first request as it went to the provider.
        other: The request as it would have been sent; without a token where the host would
            have made none.
        rounds: The provider's usage of each request that was made; None where it gave none.
    """
    known = [usage for usage in rounds if usage is not None]
    if not rounds or rounds[0] is None or not known:
        return Billed(paid=_fresh(sent), other=_fresh(other), estimated=True)
    first = known[0]
    state = sum((usage.state for usage in known), CacheState())
    total = Usage(prompt=state.prompt, output=sum(usage.output for usage in known))
    paid = Side(tokens=corrected(sent.tokens, total), state=state)
    return Billed(
        paid=paid,
        other=_other_side(first, sent, other, output=known[-1].output),
        estimated=len(known) < len(rounds),
    )


def _fresh(counted: Counted) -> Side:
    return Side(tokens=counted.tokens, state=CacheState(fresh=counted.tokens.prompt))


def _other_side(first: Usage, sent: Counted, other: Counted, *, output: int) -> Side:
    if not other.tokens.prompt:
        return Side()
    scale = first.prompt / sent.tokens.prompt if sent.tokens.prompt else 1.0
    prompt = round(other.tokens.prompt * scale)
    return Side(
        tokens=corrected(other.tokens, Usage(prompt=prompt, output=output)),
        state=_other_state(first, sent, other, prompt, scale),
    )


def _other_state(
    first: Usage, sent: Counted, other: Counted, prompt: int, scale: float
) -> CacheState:
    """Split the other prompt as the provider's cache treated the one that was sent.

    Of what a prompt shares with the one before it, the same part was read from the cache; what
    was read beyond that is a beginning shared with other conversations. The rest is written or
    fresh in the proportion of the call. Without the prompts before, the shares are the call's.
    """
    if sent.unchanged is None or other.unchanged is None:
        read = prompt * first.read // first.prompt if first.prompt else 0
    else:
        shared = sent.unchanged * scale
        share = min(1.0, first.read / shared) if shared else 0.0
        beyond = max(0.0, first.read - shared)
        read = min(prompt, round(other.unchanged * scale * share + beyond))
    rest = prompt - read
    fresh = first.state.fresh
    written = round(rest * first.write / (first.write + fresh)) if first.write else 0
    return CacheState(read=read, write=written, fresh=rest - written)
