"""What the calls of one conversation cost, by column and by price (`ledger:columns`).

A call is counted from the request that was sent, message by message; a text that was counted
before is known by its digest. The provider's own usage then corrects the sum. The store keeps
numbers only, and prices are looked up when somebody asks, so that a new table prices old calls.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.draft import string
from zero_mem.conversation.counting import Prompt, TokenCounts, count_request, output_of
from zero_mem.ledger.columns import CacheState, CallTokens, Usage
from zero_mem.ledger.columns import usage as read_usage
from zero_mem.ledger.entries import Account, LedgerEntry, Mode
from zero_mem.ledger.prices import DEFAULT_TABLE, Cost, PriceTable
from zero_mem.ledger.reading import OF_ONE, entries_of
from zero_mem.ledger.sides import Counted, billed
from zero_mem.ledger.stored import written
from zero_mem.space import Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLedger:
    """The calls of a conversation, in order, and the table that prices them."""

    calls: tuple[LedgerEntry, ...]
    prices: PriceTable = DEFAULT_TABLE

    @property
    def total(self) -> Account:
        """All calls added up, each priced as a call of its own."""
        return sum((call.priced(self.prices).account for call in self.calls), Account())

    @property
    def columns(self) -> CallTokens:
        """The tokens of all calls by column."""
        return self.total.paid.tokens

    @property
    def state(self) -> CacheState:
        """The prompts' tokens by cache state."""
        return self.total.paid.state

    @property
    def cost(self) -> Cost:
        """What the calls cost whose model has a price."""
        return self.total.paid.cost or Cost()

    @property
    def saved(self) -> float:
        """US dollars that memory saved, less what it added; negative where it cost more.

        Of the calls whose host's own prompt was counted, each at its own cache states.
        """
        return self.total.saved

    @property
    def unpriced(self) -> Mapping[str, int]:
        """How many calls went to each model that the table has no row for."""
        return Counter(call.model for call in self.calls if call.cost(self.prices) is None)


class Ledger:
    """Keeps the calls of one conversation as numbers in the store.

    Args:
        space: Holds them.
        conversation: Names the conversation.
        mode: Whether its requests are edited.
        counts: Counts texts.
    """

    def __init__(
        self, space: Namespace, conversation: str, *, mode: Mode, counts: TokenCounts
    ) -> None:
        self._space = space
        self._conversation = conversation
        self._mode = mode
        self._counts = counts
        self._sent: Prompt | None = None
        self._alone: Prompt | None = None

    def account(
        self,
        sent: Mapping[str, Any],
        wire_format: WireFormat,
        *,
        response: Mapping[str, Any] | None,
        usage: Mapping[str, Any] | None,
        given: Mapping[str, Any] | None,
    ) -> LedgerEntry:
        """Enter a call, as `MemoryController.account` says; on power loss the last may be lost."""
        output = 0
        if usage is None and response is not None:
            output = output_of(response, wire_format, self._counts)
        prompt = count_request(sent, wire_format, self._counts, ours=self._mode == "offload")
        alone = self._counted_alone(given, sent, wire_format, prompt)
        by = None if usage is None else read_usage(usage)
        now = self._space.memory.now().timestamp()
        call = LedgerEntry(
            conversation=self._conversation,
            account=self._account(prompt, alone, by, output),
            model=string(sent.get("model")),
            mode=self._mode,
            began=now,
            last=now,
            wire_format=wire_format,
        )
        scope = f"{OF_ONE}{self._conversation}"
        item = {"scope": scope, "key": os.urandom(8).hex(), "value": written(call)}
        self._space.decide_many([item], durable=False)
        self._space.memory.metrics.called(call.columns.by_column())
        return call

    def _counted_alone(
        self,
        given: Mapping[str, Any] | None,
        sent: Mapping[str, Any],
        wire_format: WireFormat,
        prompt: Prompt,
    ) -> Prompt | None:
        """Count the host's own request; None where nobody knows it, or it is what was sent."""
        if given is None or self._mode == "observe":
            return None
        if not given:
            return Prompt()
        return (
            prompt if given is sent else count_request(given, wire_format, self._counts, ours=False)
        )

    def _account(
        self, sent: Prompt, alone: Prompt | None, usage: Usage | None, output: int
    ) -> Account:
        """Set a call against the host's own, each with the prompt before it in mind."""
        against = sent if alone is None else alone
        counted = _counted(sent, self._sent, output)
        call = billed(
            counted, _counted(against, self._alone, output if against.parts else 0), [usage]
        )
        self._sent = sent
        self._alone = against if against.parts else self._alone
        return Account(
            calls=1,
            requests=1,
            estimated=int(call.estimated),
            counted=counted.tokens.prompt,
            paid=call.paid,
            without=None if alone is None else call.other,
        )

    def read(self, prices: PriceTable) -> ConversationLedger:
        """Read all calls, in order."""
        calls = entries_of(self._space, self._conversation)
        return ConversationLedger(calls=tuple(calls), prices=prices)


def _counted(prompt: Prompt, before: Prompt | None, output: int) -> Counted:
    unchanged = None if before is None else prompt.unchanged(before)
    return Counted(tokens=prompt.tokens + CallTokens(output=output), unchanged=unchanged)
