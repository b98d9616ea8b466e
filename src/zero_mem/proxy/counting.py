"""Counting and pricing the calls that passed: no store, no network, so it can run anywhere.

The traffic must not wait for it, so the server gives it a process of its own.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from zero_mem.controller.definitions import memory_definitions
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.draft import string
from zero_mem.controller.wire.sites import Step, steps
from zero_mem.controller.wire.splices import read_json
from zero_mem.ledger.columns import Usage, usage
from zero_mem.ledger.prices import DEFAULT_TABLE, Price, PriceTable
from zero_mem.proxy.accounts import Account, entry, price_of
from zero_mem.proxy.codings import Unreadable, decoded
from zero_mem.proxy.columns import Counts, Prompt, count_prompt, receipts
from zero_mem.proxy.groups import Groups
from zero_mem.proxy.headers import Headers
from zero_mem.proxy.identity import Asked, digest
from zero_mem.proxy.reach import can_offload
from zero_mem.proxy.rehearsal import Rehearsal
from zero_mem.proxy.saving import Counted, billed
from zero_mem.text.tokens import tokenizer

Mode: TypeAlias = Literal["observe", "offload"]

_FOLLOWED: Final = 1_000
"""Conversations whose last prompt is remembered, to tell what of the next one is unchanged."""


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
class Entry:
    """One call in numbers, and the conversation that it belongs to."""

    conversation: str
    said: Mapping[str, Any]
    account: Account


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

    def count(self, call: Passed) -> Entry | None:
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
        self._counts = Counts(tokenizer(rates.tokens))
        self._groups = Groups()
        self._followed: OrderedDict[str, _Followed] = OrderedDict()

    def count(self, call: Passed) -> Entry | None:
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
        counted = Counted(tokens=sent.tokens, unchanged=sent.unchanged(followed.sent))
        against = Counted(tokens=other.tokens, unchanged=other.unchanged(followed.other))
        followed.sent, followed.other = sent, other
        rounds: list[Usage | None] = [usage(figures) for figures in call.usages]
        model = string(request.get("model"))
        return Entry(
            conversation=conversation,
            said={
                "origin": origin,
                "mode": "observe" if call.sent is None else "offload",
                "wire_format": call.wire_format,
                "model": model,
                "receipts": [] if went is None else receipts(went[1])[-_RECEIPTS:],
            },
            account=entry(billed(counted, against, rounds), self._price(model), len(rounds)),
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

    def _price(self, model: str) -> Price | None:
        rates = self._rates
        return rates.prices.price(rates.model) if rates.model else price_of(rates.prices, model)


class CountingProcess:
    """Counts calls in a process of its own, so that the traffic never waits for it.

    Args:
        rates: How.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._pool = self._started()

    def _started(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(self._rates,),
        )

    def count(self, call: Passed) -> Entry | None:
        """Count one call; None where it can't be read, or the process died of it."""
        try:
            return self._pool.submit(_count, call).result()
        except BrokenProcessPool:
            self._pool.shutdown(wait=False)
            self._pool = self._started()
            return None

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown()


_here: list[Counting] = []


def _begin(rates: Rates) -> None:
    # Whoever stops the server by a signal to all its processes wants the last calls counted.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _here.append(Counting(rates))


def _count(call: Passed) -> Entry | None:
    return _here[0].count(call)
