"""A request's tokens by the ledger's columns, counted on what the model reads."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from zero_mem import handles
from zero_mem.controller.definitions import MEMORY_TOOLS, PREAMBLE
from zero_mem.controller.wire.places import tool_name
from zero_mem.controller.wire.sites import Result, Step, Turn
from zero_mem.ledger.columns import CallTokens, Column
from zero_mem.text.tokens import Tokenizer

_REMEMBERED: Final = 50_000


class Counts:
    """A tokenizer that remembers the counts of recent texts, by their hashes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._known: OrderedDict[tuple[int, int], int] = OrderedDict()

    def count(self, text: str) -> int:
        """Count a text."""
        key = len(text), hash(text)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.tokenizer.count(text)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A run of text in a prompt: its column, its tokens, and a digest to compare it by."""

    column: Column
    tokens: int
    text: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A counted prompt, in order."""

    parts: Sequence[Part]

    @property
    def tokens(self) -> CallTokens:
        """The columns."""
        sums: dict[str, int] = {}
        for part in self.parts:
            sums[part.column] = sums.get(part.column, 0) + part.tokens
        return CallTokens(**sums)

    def unchanged(self, before: Prompt | None) -> int:
        """Count the tokens of the longest beginning that equals that of an earlier prompt."""
        if before is None:
            return 0
        pairs = zip(self.parts, before.parts, strict=False)
        return sum(one.tokens for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def count_prompt(tools: Any, history: Iterable[Step], counts: Counts) -> Prompt:
    """Count a request as it is sent.

    Images, signed thinking and the provider's own framing can't be counted here; the
    provider's usage corrects the total. Of a receipt the first line is the receipt and the
    rest, which quotes the result, is the result's.

    Args:
        tools: The request's field of that name.
        history: Its steps.
        counts: Counts each text.
    """
    parts: list[Part] = []
    for column, text in (*_definitions(tools), *(t for step in history for t in _texts(step))):
        if text:
            parts.append(Part(column=column, tokens=counts.count(text), text=hash(text)))
    return Prompt(parts=parts)


def _definitions(tools: Any) -> Iterator[tuple[Column, str]]:
    for tool in tools if isinstance(tools, list) else ():
        yield (
            "our_definitions" if tool_name(tool) in MEMORY_TOOLS else "tool_definitions",
            (json.dumps(tool)),
        )


def _texts(step: Step) -> Iterator[tuple[Column, str]]:
    if isinstance(step, Result):
        for site in step.parts:
            yield from _result_texts(step.tool, site.text)
    elif isinstance(step, Turn):
        message = step.message()
        yield "conversation", message.text
        for call in message.calls:
            yield "tool_control", f"{call.name}{call.arguments}"
    else:
        own, preamble, rest = step.text.partition(PREAMBLE)
        yield "system" if step.role == "system" else "conversation", own + rest
        yield "our_definitions", preamble


def _result_texts(tool: str, text: str) -> Iterator[tuple[Column, str]]:
    receipt = _receipt(tool, text)
    if tool in MEMORY_TOOLS:
        yield "memory_reads", text
    elif receipt:
        yield "memory_receipts", receipt
        yield "tool_results", text[len(receipt) + 1 :]
    else:
        yield "tool_results", text


def _receipt(tool: str, text: str) -> str:
    """Give the receipt that a result begins with; "" where it is no offloaded one."""
    head = text.partition("\n")[0]
    offloaded = tool not in MEMORY_TOOLS and text.startswith("[memo:") and handles.find(head)
    return head if offloaded else ""


def receipts(history: Iterable[Step]) -> list[str]:
    """List the receipts that stand in a request as it is sent, oldest first."""
    results = (step for step in history if isinstance(step, Result))
    found = (_receipt(step.tool, site.text) for step in results for site in step.parts)
    return list(dict.fromkeys(filter(None, found)))
