"""A request's tokens by the ledger's columns, counted on what the model reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from zero_mem import handles
from zero_mem.controller.definitions import MEMORY_TOOLS, PREAMBLE
from zero_mem.controller.messages import Message, WireFormat
from zero_mem.controller.wire.draft import arguments
from zero_mem.controller.wire.places import tool_name
from zero_mem.controller.wire.sites import Result, Step, Turn, response_turns, steps
from zero_mem.ledger.columns import CallTokens, Column
from zero_mem.text.fence import FENCE_CLOSING, FENCE_OPENING, HANDLE_OPENING
from zero_mem.text.tokens import Tokenizer

_SHORT: Final = 64  # characters; a text up to here is its own key
_MOST: Final = 50_000  # texts whose counts are kept


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A run of text in a prompt: its column, its tokens, and a digest to compare it by."""

    column: Column
    tokens: int
    text: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A counted prompt, in order."""

    parts: Sequence[Part] = ()

    @property
    def tokens(self) -> CallTokens:
        """The columns."""
        sums: dict[str, int] = {}
        for part in self.parts:
            sums[part.column] = sums.get(part.column, 0) + part.tokens
        return CallTokens(**sums)

    def unchanged(self, before: Prompt) -> int:
        """Count the tokens of the longest beginning that equals that of an earlier prompt."""
        pairs = zip(self.parts, before.parts, strict=False)
        return sum(one.tokens for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def count_request(
    request: Mapping[str, Any], wire_format: WireFormat, counts: TokenCounts, *, ours: bool = True
) -> Prompt:
    """Count a request; the arguments are as in `count_prompt`."""
    return count_prompt(request.get("tools"), steps(request, wire_format), counts, ours=ours)


def count_prompt(
    tools: Any, history: Iterable[Step], counts: TokenCounts, *, ours: bool = True
) -> Prompt:
    """Count a request as it is sent.

    Images, signed thinking and the provider's own framing can't be counted here; a correction
    by the provider's usage spreads them over the columns. Of a receipt the first line is the
    receipt and the rest, which quotes the result, is the result's.

    Args:
        tools: The request's field of that name.
        history: Its steps.
        counts: Counts each text.
        ours: False where nothing of it can be memory's.
    """
    parts: list[Part] = []
    texts = _memory_apart if ours else _texts
    for column, text in (*_definitions(tools, ours), *(t for step in history for t in texts(step))):
        if text:
            parts.append(Part(column=column, tokens=counts.count(text), text=hash(text)))
    return Prompt(parts=parts)


def _definitions(tools: Any, ours: bool) -> Iterator[tuple[Column, str]]:
    for tool in tools if isinstance(tools, list | tuple) else ():
        mine = ours and tool_name(tool) in MEMORY_TOOLS
        text = json.dumps(tool, ensure_ascii=False, default=repr)
        yield "our_definitions" if mine else "tool_definitions", text


def _texts(step: Step) -> Iterator[tuple[Column, str]]:
    if isinstance(step, Result):
        yield from (("tool_results", site.text) for site in step.parts)
    elif isinstance(step, Turn):
        yield from (("conversation", site.text) for site in step.texts)
        for call in step.calls:
            yield "tool_control", call.tool
            yield "tool_control", arguments(call.arguments)
    else:
        yield "system" if step.role == "system" else "conversation", step.text


def _memory_apart(step: Step) -> Iterator[tuple[Column, str]]:
    if isinstance(step, Result):
        for site in step.parts:
            yield from _result_texts(step.tool, site.text)
    elif isinstance(step, Message):
        yield from _said_texts(step)
    else:
        yield from _texts(step)


def _result_texts(tool: str, text: str) -> Iterator[tuple[Column, str]]:
    receipt = _receipt(tool, text)
    if tool in MEMORY_TOOLS:
        yield "memory_reads", text
    elif receipt:
        yield "memory_receipts", receipt
        yield "tool_results", text[len(receipt) + 1 :]
    else:
        yield "tool_results", text


def _said_texts(message: Message) -> Iterator[tuple[Column, str]]:
    if message.text.startswith(FENCE_OPENING) and message.text.endswith(FENCE_CLOSING):
        yield "memory_reads", message.text
    elif message.role != "system":
        yield "conversation", message.text
    else:
        before, preamble, after = message.text.partition(PREAMBLE)
        yield "system", before + after
        yield "our_definitions", preamble


def _receipt(tool: str, text: str) -> str:
    """Give the receipt that a result begins with; "" where it is no offloaded one."""
    head = text.partition("\n")[0]
    offloaded = tool not in MEMORY_TOOLS and text.startswith(HANDLE_OPENING) and handles.find(head)
    return head if offloaded else ""


def receipts(history: Iterable[Step]) -> list[str]:
    """List the receipts that stand in a request as it is sent, oldest first."""
    results = (step for step in history if isinstance(step, Result))
    found = (_receipt(step.tool, site.text) for step in results for site in step.parts)
    return list(dict.fromkeys(filter(None, found)))


def output_of(response: Mapping[str, Any], wire_format: WireFormat, counts: TokenCounts) -> int:
    """Count what a model wrote, as far as it is text."""
    turns = response_turns(response, wire_format)
    return sum(counts.count(text) for turn in turns for _, text in _texts(turn))
