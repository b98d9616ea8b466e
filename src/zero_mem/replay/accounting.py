"""Counting a run's prompts without counting any message twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from zero_mem.ledger.columns import CallTokens
from zero_mem.replay.prompt import Entry, Grown
from zero_mem.text.tokens import Tokenizer


class TokenCache:
    """A tokenizer that remembers; one per run, so that it holds no more than the run does."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.name = tokenizer.name
        self.exact = tokenizer.exact
        self._tokenizer = tokenizer
        self._known: dict[str, int] = {"": 0}

    def count(self, text: str) -> int:
        """Count a text, once."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._tokenizer.count(text)
        return known


class Weight(NamedTuple):
    """What one entry, or a prefix of entries, weighs: tokens by column, and bytes."""

    system: int = 0
    conversation: int = 0
    tool_control: int = 0
    tool_results: int = 0
    memory_receipts: int = 0
    size: int = 0

    @property
    def tokens(self) -> int:
        """All tokens of the messages, without definitions."""
        return sum(self[:5])

    @property
    def beside_results(self) -> int:
        """Tokens that the messages would have if tool results were empty."""
        return self.system + self.conversation + self.tool_control

    def plus(self, other: Weight) -> Weight:
        """Add column by column."""
        return Weight(*map(int.__add__, self, other))


NOTHING: Final = Weight()
_STRIDE: Final = 256  # entries that are compared at once, before one by one


def weigh(entry: Entry, cache: TokenCache) -> Weight:
    """Count one entry by column.

    Framing that a provider adds around messages is not counted: it is the provider's own and
    the same for every strategy. The receipt is counted alone and what is left of the text is
    the result's, so that the columns' sum is the text's exact count.
    """
    message = entry.message
    text = cache.count(message.text)
    control = cache.count(message.tool)
    size = _size(message.text) + _size(message.tool)
    for call in message.calls:
        control += cache.count(call.name) + cache.count(call.arguments)
        size += _size(call.name) + _size(call.arguments)
    if message.role == "system":
        return Weight(system=text, tool_control=control, size=size)
    if message.role != "tool":
        return Weight(conversation=text, tool_control=control, size=size)
    receipt = min(text, cache.count(entry.receipt))
    return Weight(
        tool_control=control, tool_results=text - receipt, memory_receipts=receipt, size=size
    )


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One prompt's weight, and that of its prefix which equals the previous prompt.

    `kept` counts the entries of that prefix; `before` is the previous prompt's weight.
    """

    weight: Weight
    unchanged: Weight
    before: Weight
    kept: int


class Meter:
    """Weighs one session's prompts, each by what differs from the one before it."""

    def __init__(self, cache: TokenCache) -> None:
        self._cache = cache
        self._entries: Sequence[Entry] = ()
        self._sums: list[Weight] = [NOTHING]
        self._weights: dict[int, tuple[Entry, Weight]] = {}

    def measure(self, entries: Sequence[Entry]) -> Measured:
        """Weigh the next prompt."""
        kept = unchanged_prefix(self._entries, entries)
        before = self._sums[-1]
        del self._sums[kept + 1 :]
        unchanged = self._sums[-1]
        for entry in entries[kept:]:
            self._sums.append(self._sums[-1].plus(self._weight(entry)))
        self._entries = entries
        return Measured(weight=self._sums[-1], unchanged=unchanged, before=before, kept=kept)

    def _weight(self, entry: Entry) -> Weight:
        """Weigh an entry once per object: a window re-sends the same ones at other places."""
        known = self._weights.get(id(entry))
        if known is None:
            known = self._weights[id(entry)] = (entry, weigh(entry, self._cache))
        return known[1]


def unchanged_prefix(before: Sequence[Entry], now: Sequence[Entry]) -> int:
    """Count the leading entries that two prompts share, message for message.

    A message that changed anywhere counts as changed from its start.
    """
    if isinstance(before, Grown) and before.same_list(now):
        return min(len(before), len(now))
    shared = min(len(before), len(now))
    for start in range(0, shared, _STRIDE):
        stop = min(start + _STRIDE, shared)
        old, new = before[start:stop], now[start:stop]
        if old != new and (same := _same_messages(old, new)) < stop - start:
            return start + same
    return shared


def _same_messages(before: Sequence[Entry], now: Sequence[Entry]) -> int:
    kept = 0
    for old, new in zip(before, now, strict=False):
        if old is not new and old.message != new.message:
            break
        kept += 1
    return kept


def call_tokens(weight: Weight, *, definitions: int, ours: int, output: int) -> CallTokens:
    """Lay a prompt's weight out by the ledger's columns.

    Args:
        weight: The messages of the prompt.
        definitions: Tokens of the run's own tool definitions.
        ours: Tokens of the read tool and the preamble, where the strategy needs them.
        output: Tokens of the message that answers.
    """
    return CallTokens(
        system=weight.system,
        tool_definitions=definitions,
        our_definitions=ours,
        conversation=weight.conversation,
        tool_control=weight.tool_control,
        tool_results=weight.tool_results,
        memory_receipts=weight.memory_receipts,
        output=output,
    )
