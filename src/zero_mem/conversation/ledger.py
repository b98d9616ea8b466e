"""What the calls of one conversation cost, by column and by price (`ledger:columns`).

A call is counted from the request that was sent, message by message; a text that was counted
before is known by its digest. The provider's own usage then corrects the sum. The store keeps
numbers only, and prices are looked up when somebody asks, so that a new table prices old calls.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.controller.definitions import MEMORY_TOOLS, PREAMBLE
from zero_mem.controller.messages import Message, WireFormat
from zero_mem.controller.wire.draft import arguments, string
from zero_mem.controller.wire.places import tool_name
from zero_mem.controller.wire.sites import Result, Step, Turn, response_turns, steps
from zero_mem.errors import InvalidInput
from zero_mem.ledger.columns import (
    PROMPT_COLUMNS,
    CacheState,
    CallTokens,
    Column,
    Usage,
    corrected,
)
from zero_mem.ledger.columns import usage as usage_of
from zero_mem.ledger.prices import DEFAULT_TABLE, Cost, PriceTable, cost
from zero_mem.space import Namespace
from zero_mem.text.fence import FENCE_CLOSING, FENCE_OPENING, HANDLE_OPENING
from zero_mem.text.tokens import Tokenizer

_SHORT: Final = 64  # characters; a text up to here is its own key
_MOST: Final = 50_000  # texts whose counts are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCall:
    """One call.

    Attributes:
        model: As the request named it.
        columns: The tokens, corrected to the provider's total where it gave one.
        counted: The prompt's tokens before that correction.
        state: How the prompt was billed; all of it fresh where nobody said.
        billed: Whether the provider's usage is in these figures.
        without: Tokens of the prompt that the host alone would have sent, corrected alike; 0
            for a round that it would not have made, None where it was not counted.
    """

    model: str
    columns: CallTokens
    counted: int
    state: CacheState
    billed: bool
    without: int | None = None

    def cost(self, prices: PriceTable = DEFAULT_TABLE) -> Cost | None:
        """Price the call, None where the table has no row for its model."""
        try:
            price = prices.price(self.model)
        except InvalidInput:
            return None
        return cost(price, self.state, output=self.columns.output)

    def cost_without(self, prices: PriceTable = DEFAULT_TABLE) -> Cost | None:
        """Price the prompt that the host alone would have sent, at this call's cache state.

        The same shares are read, written and fresh, so the provider's own discount is on both
        sides and never counts as saved.
        """
        prompt = self.columns.prompt
        if self.without is None or not prompt:
            return None
        if not self.without:
            return Cost()
        read, write = (
            part * self.without // prompt for part in (self.state.read, self.state.write)
        )
        scaled = CacheState(read=read, write=write, fresh=self.without - read - write)
        alone = LedgerCall(
            model=self.model,
            columns=CallTokens(output=self.columns.output),
            counted=self.without,
            state=scaled,
            billed=self.billed,
        )
        return alone.cost(prices)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLedger:
    """The calls of a conversation, in order, and the table that prices them."""

    calls: tuple[LedgerCall, ...]
    prices: PriceTable = DEFAULT_TABLE

    @property
    def columns(self) -> CallTokens:
        """The tokens of all calls by column."""
        return sum((call.columns for call in self.calls), CallTokens())

    @property
    def state(self) -> CacheState:
        """The prompts' tokens by cache state."""
        return sum((call.state for call in self.calls), CacheState())

    @property
    def cost(self) -> Cost:
        """What the calls cost whose model has a price."""
        return sum(filter(None, (call.cost(self.prices) for call in self.calls)), Cost())

    @property
    def saved(self) -> float:
        """US dollars that memory saved, less what it added; negative where it cost more.

        Of the calls whose host's own prompt was counted, each at its own cache state.
        """
        both = ((call.cost_without(self.prices), call.cost(self.prices)) for call in self.calls)
        return sum(alone.total - paid.total for alone, paid in both if alone and paid)

    @property
    def unpriced(self) -> Mapping[str, int]:
        """How many calls went to each model that the table has no row for."""
        return Counter(call.model for call in self.calls if call.cost(self.prices) is None)


class TokenCounts:
    """Counts texts, and knows by its digest each that was counted before; holds no text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._known: dict[str | bytes, int] = {"": 0}

    def count(self, text: str) -> int:
        """Count a text."""
        key = text if len(text) <= _SHORT else _digest(text)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
            known = self._known[key] = self.tokenizer.count(text)
        return known


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def columns_of(
    request: Mapping[str, Any], wire_format: WireFormat, counts: TokenCounts, *, ours: bool = True
) -> CallTokens:
    """Count a request by column.

    Framing, images and other parts that are no text are the provider's to count; a correction
    by its usage spreads them over the columns.

    Args:
        request: The body as it was sent.
        wire_format: Its format.
        counts: Counts the texts.
        ours: False where nothing of it can be memory's (observe mode).
    """
    found: Counter[str] = Counter()
    for tool in request.get("tools") or ():
        mine = ours and tool_name(tool) in MEMORY_TOOLS
        written = json.dumps(tool, ensure_ascii=False, default=repr)
        found["our_definitions" if mine else "tool_definitions"] += counts.count(written)
    for step in steps(request, wire_format):
        for column, text in _parts(step, ours):
            found[column] += counts.count(text)
    return CallTokens(**found)


def _parts(step: Step, ours: bool) -> Iterator[tuple[Column, str]]:
    if isinstance(step, Result):
        yield from _result_parts(step, ours)
    elif isinstance(step, Turn):
        yield from (("conversation", site.text) for site in step.texts)
        for call in step.calls:
            yield "tool_control", call.tool
            yield "tool_control", arguments(call.arguments)
    else:
        yield from _said_parts(step, ours)


def _result_parts(result: Result, ours: bool) -> Iterator[tuple[Column, str]]:
    for site in result.parts:
        if ours and result.tool in MEMORY_TOOLS:
            yield "memory_reads", site.text
        elif ours and site.text.startswith(HANDLE_OPENING):  # else it would be escaped
            receipt, _, rest = site.text.partition("\n")
            yield "memory_receipts", receipt
            yield "tool_results", rest
        else:
            yield "tool_results", site.text


def _said_parts(message: Message, ours: bool) -> Iterator[tuple[Column, str]]:
    column: Column = "system" if message.role == "system" else "conversation"
    if ours and message.role == "system" and PREAMBLE in message.text:
        before, _, after = message.text.partition(PREAMBLE)
        yield "our_definitions", PREAMBLE
        yield column, before + after
    elif ours and _is_block(message.text):
        yield "memory_reads", message.text
    else:
        yield column, message.text


def _is_block(text: str) -> bool:
    return text.startswith(FENCE_OPENING) and text.endswith(FENCE_CLOSING)


def output_of(response: Mapping[str, Any], wire_format: WireFormat, counts: TokenCounts) -> int:
    """Count what a model wrote, as far as it is text."""
    texts = [
        text
        for turn in response_turns(response, wire_format)
        for text in (
            *(site.text for site in turn.texts),
            *(part for call in turn.calls for part in (call.tool, arguments(call.arguments))),
        )
    ]
    return sum(map(counts.count, texts))


def call_of(
    model: str, counted: CallTokens, usage: Mapping[str, Any] | None, *, without: int | None = None
) -> LedgerCall:
    """Make the entry of a call from what was counted and what the provider said.

    Args:
        model: As the request named it.
        counted: The columns; their output is used where the provider gives none.
        usage: The provider's usage object, in any of the formats.
        without: Counted tokens of the prompt that the host alone would have sent, None where
            nobody counted them.
    """
    billed = None if usage is None else usage_of(usage)
    by = billed or Usage(prompt=counted.prompt, output=counted.output)
    columns = corrected(counted, by)
    scale = columns.prompt / counted.prompt if counted.prompt else 1.0
    return LedgerCall(
        model=model,
        columns=columns,
        counted=counted.prompt,
        state=by.state,
        billed=billed is not None,
        without=None if without is None else round(without * scale),
    )


class Ledger:
    """Keeps the calls of one conversation as numbers in the store."""

    def __init__(self, space: Namespace, conversation: str) -> None:
        self._space = space
        self._scope = f"ledger:{conversation}"

    def add(self, call: LedgerCall) -> None:
        """Keep a call; on power loss the last ones may be lost."""
        numbers = [getattr(call.columns, name) for name in (*PROMPT_COLUMNS, "output")]
        state = call.state
        value = [call.model, numbers, call.counted, [state.read, state.write, state.fresh]]
        written = json.dumps([*value, call.billed, call.without])
        item = {"scope": self._scope, "key": os.urandom(8).hex(), "value": written}
        self._space.decide_many([item], durable=False)
        self._space.memory.metrics.called(call.columns)

    def read(self, prices: PriceTable) -> ConversationLedger:
        """Read all calls, in order."""
        stored = self._space.decisions(self._scope).values()
        return ConversationLedger(calls=tuple(_calls(filter(None, stored))), prices=prices)


def _calls(stored: Iterable[str]) -> Iterator[LedgerCall]:
    for value in stored:
        model, numbers, counted, (read, write, fresh), billed, without = json.loads(value)
        yield LedgerCall(
            model=model,
            columns=CallTokens(**dict(zip((*PROMPT_COLUMNS, "output"), numbers, strict=True))),
            counted=counted,
            state=CacheState(read=read, write=write, fresh=fresh),
            billed=billed,
            without=without,
        )


def model_of(request: Mapping[str, Any]) -> str:
    """Read the model that a request names."""
    return string(request.get("model"))
