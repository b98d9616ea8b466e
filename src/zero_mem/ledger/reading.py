"""The ledgers of a namespace, read and summed up: in all, by conversation and by day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, Protocol, TypeVar

from zero_mem.ledger.entries import Account, LedgerEntry, Mode
from zero_mem.ledger.prices import DEFAULT_TABLE, PriceTable
from zero_mem.ledger.stored import read

_Key = TypeVar("_Key")

OF_ONE: Final = "ledger:"
"""Begins the scope of one conversation's entries, of a call each."""

OF_ALL: Final = "proxy.ledger"
"""The scope of a proxy's entries, many calls each; their keys begin with the conversation."""


class Ledgers(Protocol):
    """Where ledgers are kept: a namespace's view."""

    def scopes(self) -> list[str]:
        """List the scopes of what is kept."""

    def decisions(self, scope: str) -> dict[str, str | None]:
        """Read a scope by key, in the order of entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What conversations cost.

    Attributes:
        total: All calls.
        conversations: One entry each, the newest first.
        days: By day in UTC, such as "2026-11-29", in order; "" holds calls without a time.
        prices: The date of the table for what was not priced when it was entered.
    """

    total: Account
    conversations: tuple[LedgerEntry, ...]
    days: Mapping[str, Account]
    prices: str

    def as_dict(self, mode: Mode = "offload") -> dict[str, Any]:
        """Give the figures by name.

        Args:
            mode: From which the sums are seen: their `other` is the calls without memory, or,
                from "observe", with it.
        """
        return {
            "prices": self.prices,
            "total": self.total.as_dict(mode),
            "conversations": [entry.as_dict() for entry in self.conversations],
            "days": {day: account.as_dict(mode) for day, account in self.days.items()},
        }


def overview(space: Ledgers, *, prices: PriceTable = DEFAULT_TABLE) -> Overview:
    """Sum up the ledgers of a namespace.

    Args:
        space: The namespace; a proxy's is the one that it was given, `proxy` by default.
        prices: Prices what was not priced when it was entered.

    Returns:
        The sums. Of each account, `kept_out` is the tokens that memory kept out of prompts,
        `saved` the dollars, and `paid.tokens` has the columns.
    """
    return summed_up(entries(space), prices=prices)


def summed_up(entered: Iterable[LedgerEntry], *, prices: PriceTable = DEFAULT_TABLE) -> Overview:
    """Sum entries up, as `overview` does those of a namespace."""
    row = cache(prices.find)
    priced = (entry.priced_by(row(entry.model)) for entry in entered)
    groups: dict[tuple[str, str], LedgerEntry] = {}
    for entry in sorted(priced, key=lambda entry: entry.last):
        _join(groups, (entry.conversation, day(entry.last)), entry)
    by_conversation: dict[str, LedgerEntry] = {}
    by_day: dict[str, Account] = {}
    for (conversation, date), entry in groups.items():
        _join(by_conversation, conversation, entry)
        by_day[date] = by_day.get(date, Account()) + entry.account
    newest_first = sorted(by_conversation.values(), key=lambda entry: entry.last, reverse=True)
    return Overview(
        total=sum(by_day.values(), Account()),
        conversations=tuple(newest_first),
        days=by_day,
        prices=prices.date,
    )


def _join(found: dict[_Key, LedgerEntry], key: _Key, entry: LedgerEntry) -> None:
    before = found.get(key)
    found[key] = entry if before is None else before + entry


def entries(space: Ledgers) -> Iterator[LedgerEntry]:
    """Read every entry of a namespace as it was entered."""
    for scope in space.scopes():
        if scope == OF_ALL:
            for key, value in space.decisions(scope).items():
                if value is not None:
                    yield read(conversation_of(key), value)
        elif scope.startswith(OF_ONE):
            yield from entries_of(space, scope.removeprefix(OF_ONE))


def entries_of(space: Ledgers, conversation: str) -> Iterator[LedgerEntry]:
    """Read the calls of one conversation in order."""
    for value in space.decisions(f"{OF_ONE}{conversation}").values():
        if value is not None:
            yield read(conversation, value)


def key_of(conversation: str, process: str, moment: float) -> str:
    """Name a process's entry of a conversation and a day, among those of all conversations."""
    return f"{conversation}:{process}:{day(moment)}"


def conversation_of(key: str) -> str:
    """Read the conversation in such a name; an older one has no day."""
    return key.partition(":")[0]


def day(moment: float) -> str:
    """Name the day in UTC of a time in seconds since 1970; "" for 0."""
    return datetime.fromtimestamp(moment, UTC).date().isoformat() if moment else ""
