"""What a prompt shows of the memories: fenced blocks that are final once they were sent.

A block is stored as references (memory, version, how it was shown), never as text; it is
rendered again from the journal, so that the same history gives the same bytes after a
restart. A changed memory is not rewritten in place: its new version is appended at the tail.

A host's list is its own messages (or items, as OpenAI's Responses calls them) and, if it keeps
what it got, blocks among them. Blocks are told by what they say; places and digests count the
host's own messages alone, so it makes no difference which of the two a host does.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol, TypeAlias

from zero_mem.controller.wire.draft import string
from zero_mem.errors import InvalidInput
from zero_mem.space import Namespace
from zero_mem.text.fence import FENCE_CLOSING, FENCE_OPENING

Reason: TypeAlias = Literal["pinned", "required", "summary", "found"]
Chat: TypeAlias = Mapping[str, Any]

_CALLS: Final = frozenset({"function_call", "custom_tool_call"})
_RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One memory in a block; `limit` is the most characters of it (0: all of it).

    What was `found` is quoted as it matched then, so its line is kept beside the block.
    """

    memory_id: str
    version: int
    reason: Reason
    limit: int
    supersedes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Memories that entered the prompt together, after `anchor` of the host's own messages.

    `number` counts the blocks of a conversation from 0; `digest` names the messages before
    the anchor. Only a history that begins with those is the one that the block was sent in.
    """

    number: int
    anchor: int
    digest: str
    shown: tuple[Shown, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A block in a prompt after `place` of the host's messages; `kept` is the host's copy."""

    block: Block
    place: int
    kept: Chat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The host's own messages and the blocks among them, in order.

    `indices` are the places of the messages in the host's list, where kept blocks count too;
    `digests[n]` names the first `n` of the messages.
    """

    host: tuple[Chat, ...]
    indices: tuple[int, ...]
    digests: Digests
    placed: tuple[Placed, ...]

    def parts(self) -> Iterator[Chat | Placed]:
        """Give messages and blocks as the model reads them."""
        at = 0
        for placed in self.placed:
            yield from self.host[at : placed.place]
            yield placed
            at = placed.place
        yield from self.host[at:]

    def with_block(self, block: Block) -> Prompt:
        """Add a new block at its anchor."""
        placed = Placed(block=block, place=block.anchor)
        return replace(self, placed=_ordered([*self.placed, placed]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A run of a prompt's text: the host's own, or a memory's with the reason it is there."""

    text: str
    reason: str
    tokens: int
    memory_id: str | None = None
    version: int | None = None


def snapshot(value: Any) -> bytes | None:
    """Write a value of JSON's types, to know it again though its host changes it in place.

    Equal bytes are equal values; None where it has other types. Far cheaper than JSON.
    """
    try:
        return marshal.dumps(value, 2)  # of this version: later ones tell shared objects apart
    except ValueError:
        return None


class Digests:
    """Names the beginnings of a list of messages, as far as somebody asks.

    A beginning that a former list had, message for message, has its names from there.

    Args:
        host: The messages.
        before: What stands before them, such as the response that a provider goes on from.
        known: The digests of a former list.
    """

    def __init__(
        self, host: Sequence[Chat], *, before: str = "", known: Digests | None = None
    ) -> None:
        self._host = host
        self._names = [before]
        self._written: list[bytes | None] = []
        if known is not None and known._names[0] == before:
            for message, written in zip(host, known._written, strict=False):
                if written is None or snapshot(message) != written:
                    break
                self._written.append(written)
            self._names = known._names[: len(self._written) + 1]

    def __len__(self) -> int:
        return len(self._host) + 1

    def __getitem__(self, count: int) -> str:
        while len(self._names) <= count:
            message = self._host[len(self._names) - 1]
            self._names.append(_next_digest(self._names[-1], message))
            self._written.append(snapshot(message))
        return self._names[count]


# What is stored


def blocks_of(space: Namespace, conversation: str) -> list[Block]:
    """Read the blocks of a conversation in the order they were sent."""
    return parsed_blocks(space.decisions(blocks_scope(conversation)))


def parsed_blocks(stored: Mapping[str, str | None]) -> list[Block]:
    """Read blocks as they are stored, by number."""
    return [_block(int(number), value) for number, value in stored.items() if value is not None]


def blocks_scope(conversation: str) -> str:
    """Name the scope in which the blocks of a conversation are decided."""
    return f"prompt:{conversation}"


def _block(number: int, value: str) -> Block:
    fields = json.loads(value)
    shown = tuple(Shown(**each) for each in fields.pop("shown"))
    return Block(number=number, shown=shown, **fields)


def stored_block(block: Block) -> str:
    """Write a block as it is stored."""
    names = Shown.__dataclass_fields__
    listed = [{name: getattr(shown, name) for name in names} for shown in block.shown]
    return json.dumps({"anchor": block.anchor, "digest": block.digest, "shown": listed})


# A host's list


def check_messages(messages: object) -> list[Chat]:
    """Accept a list of chat messages."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise InvalidInput("messages is a list of chat messages")
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or "role" not in message:
            raise InvalidInput(f"message {place} is not a mapping with a role")
    return list(messages)


class Says(Protocol):
    """Knows what blocks say."""

    def says(self, block: Block, lines: Sequence[str]) -> bool:
        """Tell whether lines are those of a block, whatever they tell of what was purged."""
        ...


def arrange(
    messages: Iterable[Chat],
    blocks: Sequence[Block],
    says: Says,
    *,
    sent: Mapping[str, int],
    before: str = "",
    known: Digests | None = None,
) -> Prompt:
    """Tell a host's own messages from blocks, and find the place of each block.

    A block that the host has kept stays where it stands. Another comes back at its anchor if
    the messages before it are those it was sent with, and those after it were not sent before
    there was such a block; else it has no place in this history.

    Args:
        messages: The host's list.
        blocks: All blocks of the conversation.
        says: Tells a block by its lines.
        sent: How many blocks there were when a history was first sent, by its digest.
        before: As in `Digests`.
        known: As in `Digests`.
    """
    host: list[Chat] = []
    indices: list[int] = []
    kept: list[Placed] = []
    digests = Digests(host, before=before)
    for index, message in enumerate(messages):
        lines = _lines_of_block(message) if blocks else []
        block = _kept_block(lines, blocks, says, digests) if lines else None
        if block is None:
            host.append(message)
            indices.append(index)
        else:
            kept.append(Placed(block=block, place=len(host), kept=message))
    digests = Digests(host, before=before, known=known)
    there = {placed.block.number for placed in kept}
    returning = [
        Placed(block=block, place=block.anchor)
        for block in blocks
        if block.number not in there
        and block.anchor < len(digests)
        and block.digest == digests[block.anchor]
        and not _sent_without(block, digests, sent)
    ]
    return Prompt(
        host=tuple(host),
        indices=tuple(indices),
        digests=digests,
        placed=_ordered([*kept, *returning]),
    )


def _sent_without(block: Block, digests: Digests, sent: Mapping[str, int]) -> bool:
    """Tell whether a longer beginning of a history was sent before there was a block in it."""
    longer = range(block.anchor + 1, len(digests)) if sent else ()
    return any(sent.get(digests[count], block.number + 1) <= block.number for count in longer)


def _ordered(placed: Iterable[Placed]) -> tuple[Placed, ...]:
    return tuple(sorted(placed, key=lambda one: (one.place, one.block.number)))


def _kept_block(
    lines: Sequence[str], blocks: Iterable[Block], says: Says, digests: Digests
) -> Block | None:
    """Find the block that lines are; of several that read alike the one sent right here."""
    here = len(digests) - 1
    alike = [block for block in blocks if says.says(block, lines)]
    return max(
        alike,
        key=lambda block: block.anchor == here and block.digest == digests[here],
        default=None,
    )


def _lines_of_block(message: Chat) -> list[str]:
    """Take a message apart that may be a block; [] where it is none."""
    if message.get("role") != "user":
        return []
    return _fenced_lines(text_of(message) or "")


def _fenced_lines(text: str) -> list[str]:
    """Take the text of a block apart into the lines of its memories; [] where it is none."""
    opening, closing = f"{FENCE_OPENING}\n", f"\n{FENCE_CLOSING}"
    if not (text.startswith(opening) and text.endswith(closing)):
        return []
    # Every further line of a body is indented.
    return re.split(r"\n(?=\[memo:)", text[len(opening) : -len(closing)])


def text_of(message: Chat) -> str | None:
    """Give the text of a message that is nothing else, as a string or as one text part."""
    content = message.get("content")
    if isinstance(content, list) and len(content) == 1:
        part = content[0]
        if isinstance(part, Mapping) and part.keys() - {"cache_control"} == {"type", "text"}:
            content = part["text"]
    return content if isinstance(content, str) else None


def _next_digest(before: str, message: Chat) -> str:
    """Name a list of messages from the name of all but its last, to know it again later.

    Marks for a provider's cache move from message to message and change no prefix.
    """
    plain = _without_marks(message)
    text = text_of(message)
    if text is not None:
        plain["content"] = text
    written = before + json.dumps(plain, sort_keys=True, default=repr)
    return hashlib.blake2b(written.encode(), digest_size=16).hexdigest()


def _without_marks(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {str(key): each for key, each in value.items() if key != "cache_control"}
        return {key: _without_marks(each) for key, each in kept.items()}
    if isinstance(value, list | tuple):
        return [_without_marks(each) for each in value]
    return value


def end_of(prompt: Prompt, *, goes_on: bool = False) -> int:
    """Find the last place of a prompt that parts no call from its result.

    Args:
        prompt: The host's messages.
        goes_on: Whether the model is to go on with a last message of its own, as providers
            take it; then that one stays last.
    """
    end = _last_safe_place(prompt.host)
    whole = end == len(prompt.host)
    return end - 1 if goes_on and whole and prompt.host[-1].get("role") == "assistant" else end


def _last_safe_place(messages: Sequence[Chat]) -> int:
    """Find the end, or the start of the turn whose calls are not all answered yet."""
    opened = waiting = 0
    for place, message in enumerate(messages):
        results, calls = _results_in(message), _calls_in(message)
        if results:
            waiting = max(0, waiting - results)
        elif calls:
            opened = opened if waiting else place
            waiting += calls
        elif "role" in message:
            waiting = 0
    place = opened if waiting else len(messages)
    if place and (waiting or "role" not in messages[-1]):
        while place and _is_turn_of_items(messages[place - 1]):
            place -= 1
    return place


def _is_turn_of_items(message: Chat) -> bool:
    """Tell an item that a model produced before the item that follows, such as its reasoning."""
    kind, role = message.get("type"), message.get("role", "assistant")
    return isinstance(kind, str) and role == "assistant" and kind not in _RESULTS


def _calls_in(message: Chat) -> int:
    listed = message.get("tool_calls")
    made = len(listed) if isinstance(listed, list | tuple) else 0
    calls = made + bool(message.get("function_call")) + _parts_of(message, "tool_use")
    return calls + (string(message.get("type")) in _CALLS)


def _results_in(message: Chat) -> int:
    kind = string(message.get("type"))
    results = message.get("role") in ("tool", "function") or kind in _RESULTS
    return results + _parts_of(message, "tool_result")


def _parts_of(message: Chat, kind: str) -> int:
    """Count content parts of a type; a provider's own objects are read like mappings."""
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else ()
    types = (p.get("type") if isinstance(p, Mapping) else getattr(p, "type", None) for p in parts)
    return sum(each == kind for each in types)
