"""What calls took, as it is entered, added up and stored: figures only, never a body."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from zero_mem.ledger.columns import CacheState, CallTokens
from zero_mem.ledger.prices import DEFAULT_TABLE, Cost, Price, PriceTable
from zero_mem.ledger.sides import Side

Mode: TypeAlias = Literal["observe", "offload"]

COUNTS: Final = ("calls", "requests", "estimated", "unpriced", "counted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What one call of a host took, or many added up.

    Attributes:
        calls: Calls of the host.
        requests: Requests that were made for them, memory rounds included.
        estimated: Calls of which the provider gave no usage, so that counts stand for it.
        unpriced: Calls to a model without a price; they are in no cost.
        counted: The prompts' tokens before they were brought to the provider's totals.
        paid: What was billed.
        without: The same calls without memory; None where that was not counted, as where
            memory left them alone.
        offloaded: The same calls with memory, as a rehearsal tells it; None where it was not
            rehearsed, as where memory was in them.
    """

    calls: int = 0
    requests: int = 0
    estimated: int = 0
    unpriced: int = 0
    counted: int = 0
    paid: Side = field(default_factory=Side)
    without: Side | None = None
    offloaded: Side | None = None

    def __add__(self, other: Account) -> Account:
        """Add two up; a way that one of them did not count is taken to be what it paid."""
        return Account(
            **{name: getattr(self, name) + getattr(other, name) for name in COUNTS},
            paid=self.paid + other.paid,
            without=_either(self, self.without, other, other.without),
            offloaded=_either(self, self.offloaded, other, other.offloaded),
        )

    @property
    def kept_out(self) -> int:
        """Prompt tokens that memory kept out, less those that it added."""
        return (self.without or self.paid).tokens.prompt - self.paid.tokens.prompt

    @property
    def saved(self) -> float:
        """US dollars that memory saved, less what it added; negative where it cost more."""
        return _total(self.without or self.paid) - _total(self.paid)

    def other_way(self, mode: Mode) -> Side:
        """Give the calls as the other mode would have made them, as far as it was counted."""
        return (self.without if mode == "offload" else self.offloaded) or self.paid

    def priced(self, price: Price) -> Account:
        """Give the account of one call with its costs."""
        return replace(
            self,
            paid=self.paid.priced(price),
            without=self.without and self.without.priced(price),
            offloaded=self.offloaded and self.offloaded.priced(price),
        )

    def as_dict(self, mode: Mode) -> dict[str, Any]:
        """Give the figures by name, with the other way as it is seen from a mode."""
        figures = {name: getattr(self, name) for name in COUNTS}
        return {
            **figures,
            "paid": self.paid.as_dict(),
            "other": self.other_way(mode).as_dict(),
            "kept_out": self.kept_out,
            "saved": self.saved,
        }


def _either(one: Account, ones: Side | None, two: Account, twos: Side | None) -> Side | None:
    return None if ones is None and twos is None else (ones or one.paid) + (twos or two.paid)


def _total(side: Side) -> float:
    return 0.0 if side.cost is None else side.cost.total


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """An account as it is entered: whose it is, and what is known of the calls.

    Attributes:
        conversation: Names it.
        account: The figures.
        model: As the newest request named it.
        mode: Whether memory edits the conversation's requests.
        began: The first call's time in seconds since 1970, 0 where it was not kept.
        last: The newest call's time.
        origin: By what a proxy told the conversation.
        wire_format: The newest request's.
        receipts: Some of the receipts that stand in the newest request.
    """

    conversation: str
    account: Account
    model: str = ""
    mode: Mode = "offload"
    began: float = 0.0
    last: float = 0.0
    origin: str = ""
    wire_format: str = ""
    receipts: tuple[str, ...] = ()

    @property
    def columns(self) -> CallTokens:
        """The tokens by column, corrected to the provider's total where it gave one."""
        return self.account.paid.tokens

    @property
    def counted(self) -> int:
        """The prompt's tokens before that correction."""
        return self.account.counted

    @property
    def state(self) -> CacheState:
        """How the prompt was billed; all of it fresh where nobody said."""
        return self.account.paid.state

    @property
    def billed(self) -> bool:
        """Whether the figures are the provider's own."""
        return not self.account.estimated

    @property
    def without(self) -> int | None:
        """Prompt tokens that the host alone would have sent: what was sent, where observed.

        It is 0 for a round that the host would not have made, None where nobody counted it.
        """
        if self.mode == "observe":
            return self.columns.prompt
        alone = self.account.without
        return None if alone is None else alone.tokens.prompt

    def cost(self, prices: PriceTable = DEFAULT_TABLE) -> Cost | None:
        """Price what was paid; None where the table has no row for the model."""
        return self.priced(prices).account.paid.cost

    def priced(self, prices: PriceTable) -> LedgerEntry:
        """Give the entry with its costs by the row of its model; see `priced_by`."""
        return self.priced_by(prices.find(self.model))

    def priced_by(self, price: Price | None) -> LedgerEntry:
        """Give the entry with its costs, or as unpriced where there is no price.

        One that was priced when it was entered keeps its costs: many calls added up can't be
        priced again, since a model's tiers go by each call's prompt.
        """
        if self.account.unpriced or self.account.paid.cost is not None:
            return self
        if price is None:
            return replace(self, account=replace(self.account, unpriced=self.account.calls))
        return replace(self, account=self.account.priced(price))

    def __add__(self, later: LedgerEntry) -> LedgerEntry:
        """Join a later entry of the conversation to this one."""
        began = min(filter(None, (self.began, later.began)), default=0.0)
        return replace(later, account=self.account + later.account, began=began)

    def as_dict(self) -> dict[str, Any]:
        """Give the figures, and what is known of the calls, by name."""
        return {"conversation": self.conversation, **self.account.as_dict(self.mode), **told(self)}


def told(entry: LedgerEntry) -> dict[str, Any]:
    """Give what is known of the calls beside the figures."""
    return {
        "model": entry.model,
        "mode": entry.mode,
        "began": entry.began,
        "last": entry.last,
        "origin": entry.origin,
        "wire_format": entry.wire_format,
        "receipts": list(entry.receipts),
    }
