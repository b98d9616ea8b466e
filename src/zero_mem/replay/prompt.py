"""A prompt as a strategy would send it: messages, and why memory's text stands in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, TypeAlias, overload

from zero_mem.controller.messages import Message, WireFormat
from zero_mem.replay.figures import ValueSeen

SpanColumn: TypeAlias = Literal["memory_receipts", "tool_results", "conversation"]

INJECTED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of a message's text that memory put there, with its reason in a few words.

    `origin` is the index of the transcript's message that it quotes, where that is another
    one than its entry stands for.
    """

    start: int
    end: int
    column: SpanColumn
    reason: str
    origin: int = INJECTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One message of a prompt.

    `origin` is the index of the transcript's message that it stands for, `INJECTED` where it
    stands for none. `receipt` is the part of the text that is a receipt. `changed` says in a
    few words how the text differs from the original, empty where it does not.
    """

    message: Message
    origin: int
    receipt: str = ""
    changed: str = ""
    spans: tuple[Span, ...] = ()


class Grown(Sequence[Entry]):
    """The entries so far of a list that only ever grows, without copying them.

    Two of one list differ by what was appended in between, which nobody has to search for.
    """

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._size = len(entries)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self._entries[at] for at in range(*index.indices(self._size))]
        return self._entries[range(self._size)[index]]

    def __iter__(self) -> Iterator[Entry]:
        return islice(self._entries, self._size)

    def same_list(self, other: Sequence[Entry]) -> bool:
        """Tell whether the other one is of the same list, sooner or later."""
        return isinstance(other, Grown) and other._entries is self._entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What one strategy sends for one call.

    `run` numbers the runs from 0, since two may bear one name. `kept` is how many leading
    entries are as in the previous prompt. `answer` is the message that the call led to,
    `index` its place in the transcript, `values` what its calls took from memory. `tokens`
    counts all of the prompt, with its definitions and the `charged` tokens of reads. `tools`
    is the run's own definitions; where the strategy `uses_handles`, the read tool and the
    preamble are sent beside them.
    """

    run: int
    trajectory: str
    call: int
    strategy: str
    budget: float | None
    entries: Sequence[Entry]
    kept: int
    tokens: int
    index: int
    answer: Message
    charged: int = 0
    tools: Sequence[Mapping[str, Any]] = ()
    wire_format: WireFormat = "openai_chat"
    uses_handles: bool = False
    values: tuple[ValueSeen, ...] = ()


def openai_chat(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Write messages in the shape of OpenAI chat completions, whatever they came from."""
    return [_openai_chat(message) for message in messages]


def _openai_chat(message: Message) -> dict[str, Any]:
    shaped: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        shaped["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    if message.role == "tool":
        shaped |= {"tool_call_id": message.call_id, "name": message.tool}
    return shaped
