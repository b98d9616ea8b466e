"""Counting and pricing the calls that passed: no store, no network, so it can run anywhere.

The traffic must not wait for it, so the server gives it a process of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any, Final, Protocol

from zero_mem.controller.definitions import memory_definitions
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.draft import string
from zero_mem.controller.wire.sites import Step, steps
from zero_mem.controller.wire.splices import read_json
from zero_mem.conversation.counting import Prompt, TokenCounts, count_prompt, receipts
from zero_mem.ledger.columns import Usage, usage
from zero_mem.ledger.entries import Account, LedgerEntry
from zero_mem.ledger.prices import DEFAULT_TABLE, PriceTable
from zero_mem.ledger.sides import Counted, billed
from zero_mem.proxy.codings import Unreadable, decoded
from zero_mem.proxy.groups import Groups
from zero_mem.proxy.headers import Headers
from zero_mem.proxy.identity import Asked, digest
from zero_mem.proxy.reach import can_offload
from zero_mem.proxy.rehearsal import Rehearsal
from zero_mem.text.tokens import tokenizer

_FOLLOWED: Final = 1_000
"""Conversations whose last prompt is remembered, to tell what of the next one is unchanged."""

_POLITE: Final = 10
"""How far the traffic goes before counting where both want the processor."""

_RECEIPTS: Final = 3
"""Receipts of a conversation that are shown, the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One call of a host that is over.

    `raw` is the host's body in its coding, `sent` the body that went to the provider instead
    of it, None where that is the same. `usages` has the provider's figures of each request
    that was made. `thread` and `origin` are empty where the conversation is to be told from
    the call itself.
    """

    tenant: str
    headers: Headers
    wire_format: WireFormat
    coding: str
    raw: bytes = field(repr=False)
    sent: bytes | None = field(default=None, repr=False)
    usages: Sequence[Mapping[str, Any]] = ()
    thread: str = ""
    origin: str = ""
    rehearse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How to count and price; `model` is a row for every model, "" for each model's own.

    `share` is as in `Offloader`, for what observing rehearses. `limit` bounds a body in bytes.
    """

    tokens: str = "o200k"
    prices: PriceTable = DEFAULT_TABLE
    model: str = ""
    share: float = 0.25
    limit: int = 64 << 20


@dataclass(slots=True)
class _Followed:
    """The last prompts of a conversation, both ways."""

    sent: Prompt | None = None
    other: Prompt | None = None
    rehearsal: Rehearsal | None = None


class Counter(Protocol):
    """Counts calls, wherever it does so."""

    def count(self, call: Passed) -> LedgerEntry | None:
        """Count one call; None where it can't be read."""

    def close(self) -> None:
        """Give all resources back."""


class Counting:
    """Counts calls here, in the order they are given.

    Args:
        rates: How.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._counts = TokenCounts(tokenizer(rates.tokens))
        self._groups = Groups()
        self._followed: OrderedDict[str, _Followed] = OrderedDict()

    def count(self, call: Passed) -> LedgerEntry | None:
        """Count one call; None where its body can't be read."""
        try:
            request = read_json(decoded(call.coding, call.raw, self._rates.limit))
        except (Unreadable, ValueError):
            return None
        if not isinstance(request, dict):
            return None
        asked = Asked(headers=call.headers, request=request, wire_format=call.wire_format)
        thread, origin = call.thread, call.origin
        if not thread:
            thread, origin = self._groups.name(call.tenant, asked)
        conversation = digest(call.tenant, thread)
        rehearse = call.rehearse and self._groups.began_here(call.tenant, thread, asked)
        followed = self._follow(conversation)
        went = self._sent(call)
        sent, other = self._both(went, asked, followed, rehearse=rehearse)
        counted = Counted(tokens=sent.tokens, unchanged=_unchanged(sent, followed.sent))
        against = Counted(tokens=other.tokens, unchanged=_unchanged(other, followed.other))
        followed.sent, followed.other = sent, other
        rounds: list[Usage | None] = [usage(figures) for figures in call.usages]
        way = billed(counted, against, rounds)
        account = Account(
            calls=1,
            requests=len(rounds),
            estimated=int(way.estimated),
            counted=counted.tokens.prompt,
            paid=way.paid,
            without=None if went is None else way.other,
            offloaded=way.other if went is None else None,
        )
        model = string(request.get("model"))
        return LedgerEntry(
            conversation=conversation,
            account=self._priced(account, model),
            model=model,
            mode="observe" if went is None else "offload",
            origin=origin,
            wire_format=call.wire_format,
            receipts=() if went is None else tuple(receipts(went[1])[-_RECEIPTS:]),
        )

    def close(self) -> None:
        """Do nothing; there is nothing to give back."""

    @staticmethod
    def _sent(call: Passed) -> tuple[Any, list[Step]] | None:
        """Read the tools and steps of what was sent instead of the host's request."""
        if call.sent is None:
            return None
        request: Any = read_json(call.sent)
        return request.get("tools"), steps(request, call.wire_format)

    def _both(
        self,
        went: tuple[Any, list[Step]] | None,
        asked: Asked,
        followed: _Followed,
        *,
        rehearse: bool,
    ) -> tuple[Prompt, Prompt]:
        """Count the prompt that was sent, and the one of the other way."""
        own = count_prompt(asked.request.get("tools"), asked.history, self._counts)
        if went is not None:
            return count_prompt(*went, self._counts), own
        if not rehearse or not can_offload(asked.request, asked.wire_format):
            return own, own
        rehearsed = self._rehearsed(asked.history, followed)
        ours = [*asked.request["tools"], *memory_definitions(asked.wire_format)]
        return own, count_prompt(ours, rehearsed, self._counts)

    def _rehearsed(self, history: Sequence[Step], followed: _Followed) -> list[Step]:
        if followed.rehearsal is None:
            followed.rehearsal = Rehearsal(
                share=self._rates.share, tokenizer=self._counts.tokenizer
            )
        return followed.rehearsal.history(history)

    def _follow(self, conversation: str) -> _Followed:
        followed = self._followed.setdefault(conversation, _Followed())
        self._followed.move_to_end(conversation)
        if len(self._followed) > _FOLLOWED:
            self._followed.popitem(last=False)
        return followed

    def _priced(self, account: Account, model: str) -> Account:
        rates = self._rates
        price = rates.prices.price(rates.model) if rates.model else rates.prices.find(model)
        return replace(account, unpriced=1) if price is None else account.priced(price)


def _unchanged(prompt: Prompt, before: Prompt | None) -> int:
    """Count what a prompt shares with the one before; a conversation's first one has none."""
    return 0 if before is None else prompt.unchanged(before)


class CountingProcess:
    """Counts calls in a process of its own, so that the traffic never waits for it.

    It is for one thread, which talks to the process over a pipe of its own.

    Args:
        rates: How.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._rates), daemon=True)
        self._process.start()
        theirs.close()

    def count(self, call: Passed) -> LedgerEntry | None:
        """Count one call; None where it can't be read, or the process died of it."""
        try:
            self._pipe.send(call)
            entry: LedgerEntry | None = self._pipe.recv()
        except (EOFError, OSError):
            self.close()
            self._start()
            return None
        return entry

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, rates: Rates) -> None:
    """Count what comes through a pipe until it is closed."""
    # Whoever stops the server by a signal to all its processes wants the last calls counted.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(_POLITE)
    counting = Counting(rates)
    with pipe, suppress(EOFError):
        while True:
            pipe.send(counting.count(pipe.recv()))
