"""What a prompt shows of the memories: fenced blocks that are final once they were sent.

A block is stored as references (memory, version, how it was shown), never as text; it is
rendered again from the journal, so that the same history gives the same bytes after a
restart. A changed memory is not rewritten in place: its new version is appended at the tail.

A host's list is its own messages and, if it keeps what it got, blocks among them. Blocks are
told by what they say; places and digests count the host's own messages alone, so it makes no
difference which of the two a host does.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from zero_mem.errors import InvalidInput, NotAllowed, NotFound, RequiredMemoryMissing
from zero_mem.policy.limits import FORMS, limits_for
from zero_mem.policy.visibility import visibility_of
from zero_mem.space import Namespace
from zero_mem.text.compress import compress
from zero_mem.text.fence import FENCE_CLOSING, FENCE_OPENING, HANDLE_OPENING, fence, memory_line
from zero_mem.text.tokens import Tokenizer
from zero_mem.types import MemoryRecord

Reason: TypeAlias = Literal["pinned", "required", "summary"]
Chat: TypeAlias = Mapping[str, Any]

_SHOWN: Final = frozenset({"pinned", "summary"})
# No record can have a kind with a control character: this stands for all that no rule names.
_UNNAMED_KIND: Final = "\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One memory in a block; `limit` is the most characters of it (0: all of it)."""

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

    `digests[n]` names the first `n` of the messages.
    """

    host: tuple[Chat, ...]
    digests: tuple[str, ...]
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


# What is stored


def blocks_of(space: Namespace, conversation: str) -> list[Block]:
    """Read the blocks of a conversation in the order they were sent."""
    stored = space.decisions(blocks_scope(conversation))
    return [_block(int(number), value) for number, value in stored.items() if value is not None]


def blocks_scope(conversation: str) -> str:
    """Name the scope in which the blocks of a conversation are decided."""
    return f"prompt:{conversation}"


def _block(number: int, value: str) -> Block:
    fields = json.loads(value)
    shown = tuple(Shown(**each) for each in fields.pop("shown"))
    return Block(number=number, shown=shown, **fields)


def store_block(space: Namespace, conversation: str, block: Block) -> bool:
    """Make a block final, and keep its memories from eviction.

    Returns:
        Whether it was stored: False where another runtime took its number first.
    """
    names = Shown.__dataclass_fields__
    listed = [{name: getattr(shown, name) for name in names} for shown in block.shown]
    value = json.dumps({"anchor": block.anchor, "digest": block.digest, "shown": listed})
    if not space.decide(blocks_scope(conversation), str(block.number), value, only_new=True):
        return False
    for shown in block.shown:
        # One that has ended since it was chosen needs no hold; its line can still be written.
        with suppress(NotFound, NotAllowed):
            space.hold(f"conversation:{conversation}", shown.memory_id)
    return True


# A host's list


def check_messages(messages: object) -> list[Chat]:
    """Accept a list of chat messages."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise InvalidInput("messages is a list of chat messages")
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or "role" not in message:
            raise InvalidInput(f"message {place} is not a mapping with a role")
    return list(messages)


def arrange(space: Namespace, messages: Iterable[Chat], blocks: Sequence[Block]) -> Prompt:
    """Tell a host's own messages from blocks, and find the place of each block.

    A block that the host has kept stays where it stands. Another comes back at its anchor if
    the messages before it are those it was sent with, else it has no place in this history.
    """
    versions = Versions(space)
    host: list[Chat] = []
    digests = [""]
    kept: list[Placed] = []
    for message in messages:
        block = _kept_block(message, blocks, versions, (len(host), digests[-1]))
        if block is None:
            host.append(message)
            digests.append(_next_digest(digests[-1], message))
        else:
            kept.append(Placed(block=block, place=len(host), kept=message))
    there = {placed.block.number for placed in kept}
    returning = [
        Placed(block=block, place=block.anchor)
        for block in blocks
        if block.number not in there
        and block.anchor < len(digests)
        and block.digest == digests[block.anchor]
    ]
    return Prompt(host=tuple(host), digests=tuple(digests), placed=_ordered([*kept, *returning]))


def _ordered(placed: Iterable[Placed]) -> tuple[Placed, ...]:
    return tuple(sorted(placed, key=lambda one: (one.place, one.block.number)))


def _kept_block(
    message: Chat, blocks: Iterable[Block], versions: Versions, here: tuple[int, str]
) -> Block | None:
    """Find the block that a message is; of several that read alike the one sent right here."""
    lines = _fenced_lines(_text_of(message) or "") if message["role"] == "user" else []
    if not lines:
        return None
    alike = [block for block in blocks if versions.says(block, lines)]
    return max(alike, key=lambda block: (block.anchor, block.digest) == here, default=None)


def _fenced_lines(text: str) -> list[str]:
    """Take the text of a block apart into the lines of its memories; [] where it is none."""
    opening, closing = f"{FENCE_OPENING}\n", f"\n{FENCE_CLOSING}"
    if not (text.startswith(opening) and text.endswith(closing)):
        return []
    # Every further line of a body is indented.
    return re.split(r"\n(?=\[memo:)", text[len(opening) : -len(closing)])


def _text_of(message: Chat) -> str | None:
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
    text = _text_of(message)
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


def next_block(prompt: Prompt, blocks: Sequence[Block], shown: tuple[Shown, ...]) -> Block:
    """Give a new block its number, and the last place that parts no call from its result."""
    anchor = _last_safe_place(prompt.host)
    number = blocks[-1].number + 1 if blocks else 0
    return Block(number=number, anchor=anchor, digest=prompt.digests[anchor], shown=shown)


def _last_safe_place(messages: Sequence[Chat]) -> int:
    """Find the end, or the assistant's message whose calls are not all answered yet."""
    opened = waiting = 0
    for place, message in enumerate(messages):
        results, calls = _results_in(message), _calls_in(message)
        if results:
            waiting = max(0, waiting - results)
        elif calls:
            opened = opened if waiting else place
            waiting += calls
        else:
            waiting = 0
    return opened if waiting else len(messages)


def _calls_in(message: Chat) -> int:
    listed = message.get("tool_calls") or ()
    return len(listed) + bool(message.get("function_call")) + _parts_of(message, "tool_use")


def _results_in(message: Chat) -> int:
    return (message["role"] in ("tool", "function")) + _parts_of(message, "tool_result")


def _parts_of(message: Chat, kind: str) -> int:
    """Count content parts of a type; a provider's own objects are read like mappings."""
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else ()
    types = (p.get("type") if isinstance(p, Mapping) else getattr(p, "type", None) for p in parts)
    return sum(each == kind for each in types)


# What is new


def choose(
    space: Namespace,
    earlier: Iterable[Placed],
    require: Sequence[str],
    budget: int,
    tokenizer: Tokenizer,
) -> tuple[Shown, ...]:
    """Choose what a prompt must show that no block in it shows as it is now.

    Pinned and required memories come whole, or the prompt is not built; summaries fill what
    the budget leaves.

    Raises:
        RequiredMemoryMissing: A required memory can't be read, or it or a pinned one does
            not fit the budget.
    """
    known = {shown.memory_id: shown for placed in earlier for shown in placed.block.shown}
    settings, versions = space.settings(), Versions(space)
    left = budget
    chosen: dict[str, Shown] = {}
    for reason, record in _candidates(space, settings, require):
        before = known.get(record.memory_id)
        if record.memory_id in chosen or (before and versions.serves(before, record, reason)):
            continue
        shown = _shown(settings, record, reason, superseding=before is not None)
        cost = tokenizer.count(_line(record, shown) + "\n")
        if cost <= left:
            chosen[record.memory_id] = shown
            left -= cost
        elif reason != "summary":
            raise RequiredMemoryMissing(
                f"memory {record.memory_id} ({reason}) takes {cost} tokens and {left} are left "
                f"of the budget of {budget}; raise the budget, or read a part of it"
            )
    return tuple(chosen.values())


def _candidates(
    space: Namespace, settings: str, require: Sequence[str]
) -> Iterator[tuple[Reason, MemoryRecord]]:
    """Give what a prompt is to show, the most important first; a memory may come twice."""
    required = _required(space, require)
    visible = _by_visibility(space, settings)
    yield from (("pinned", record) for record in visible["pinned"])
    yield from (("required", record) for record in required)
    yield from (("summary", record) for record in visible["summary"])


def _required(space: Namespace, require: Sequence[str]) -> list[MemoryRecord]:
    found = []
    for memory_id in require:
        try:
            record = space.get(memory_id)
        except NotFound as error:
            raise RequiredMemoryMissing(f"the prompt must hold it, but {error}") from error
        if record.state != "active":
            raise RequiredMemoryMissing(f"memory {memory_id} is archived; restore it first")
        found.append(record)
    return found


def _by_visibility(space: Namespace, settings: str) -> dict[str, list[MemoryRecord]]:
    """List the records that a prompt shows without being asked, the newest summaries first."""
    found: dict[str, list[MemoryRecord]] = {"pinned": [], "summary": []}
    for where in shown_filters(settings):
        for record in space.each(where):
            visibility = visibility_of(record, limits_for(settings, record.form, record.kind))
            if visibility in found:
                found[visibility].append(record)
    most = limits_for(settings, "semantic", "").max_recall_items
    found["summary"] = sorted(found["summary"], key=lambda r: r.updated_at, reverse=True)[:most]
    return found


def shown_filters(settings: str) -> list[dict[str, Any]]:
    """Give filters for the records that a prompt may show without being asked.

    They name no more than the rules do: a form, or some kinds of one.
    """
    rules = json.loads(settings) if settings else []
    kinds = sorted({rule["kind"] for rule in rules if rule["kind"] is not None})
    filters: list[dict[str, Any]] = []
    for form in FORMS:
        shown = [kind for kind in kinds if limits_for(settings, form, kind).visibility in _SHOWN]
        if limits_for(settings, form, _UNNAMED_KIND).visibility in _SHOWN:
            filters.append({"form": form})
        elif shown:
            filters.append({"form": form, "kind": {"in": shown}})
    return filters


def _shown(settings: str, record: MemoryRecord, reason: Reason, *, superseding: bool) -> Shown:
    limits = limits_for(settings, record.form, record.kind)
    return Shown(
        memory_id=record.memory_id,
        version=record.version,
        reason=reason,
        limit=limits.compaction_threshold if reason == "summary" else 0,
        supersedes=superseding,
    )


# What a prompt says


def _line(record: MemoryRecord, shown: Shown) -> str:
    text = record.text
    if shown.limit:
        text = compress(record.content, limit=shown.limit).text
    line = memory_line(record.memory_id, record.kind, record.key, text)
    return f"{line} (supersedes [memo:{record.memory_id}])" if shown.supersedes else line


class Versions:
    """The versions that blocks show; each memory's history is read once for all of them."""

    def __init__(self, space: Namespace) -> None:
        self._space = space
        self._known: dict[str, dict[int, MemoryRecord]] = {}

    def record(self, shown: Shown) -> MemoryRecord | None:
        """Give the version that was shown, None once it was purged."""
        if shown.memory_id not in self._known:
            entries = self._space.history(shown.memory_id)
            # A touch has the version of the change before it, which is what was shown.
            records = {e.version: e.record for e in reversed(entries) if e.record is not None}
            self._known[shown.memory_id] = records
        return self._known[shown.memory_id].get(shown.version)

    def serves(self, before: Shown, record: MemoryRecord, reason: Reason) -> bool:
        """Tell whether what was shown still says of a record all that a prompt must."""
        if before.limit and reason != "summary":
            return False
        if before.version == record.version:
            return True
        shown = self.record(before)
        return shown is not None and _line(shown, before) == _line(record, before)

    def lines(self, block: Block) -> list[tuple[str, Shown]]:
        """Write each line of a block as it was first sent; a purged memory leaves a mark."""
        return [(self._line(shown), shown) for shown in block.shown]

    def _line(self, shown: Shown) -> str:
        record = self.record(shown)
        if record is None:
            return f"{HANDLE_OPENING}{shown.memory_id}] purged"
        return _line(record, shown)

    def text(self, block: Block) -> str:
        """Write a block in its fence."""
        return fence(line for line, _ in self.lines(block))

    def says(self, block: Block, lines: Sequence[str]) -> bool:
        """Tell whether lines are those of a block, whatever they tell of what was purged."""
        heads = [f"{HANDLE_OPENING}{shown.memory_id}] " for shown in block.shown]
        if len(lines) != len(heads) or not all(map(str.startswith, lines, heads)):
            return False
        return all(
            self.record(shown) is None or line == self._line(shown)
            for line, shown in zip(lines, block.shown, strict=True)
        )


def messages_of(space: Namespace, prompt: Prompt) -> list[dict[str, Any]]:
    """Write a prompt as chat messages; what the host has kept changes only after a purge."""
    versions = Versions(space)
    return [
        _message(part, versions) if isinstance(part, Placed) else dict(part)
        for part in prompt.parts()
    ]


def _message(placed: Placed, versions: Versions) -> dict[str, Any]:
    text = versions.text(placed.block)
    if placed.kept is not None and _text_of(placed.kept) == text:
        return dict(placed.kept)
    return {"role": "user", "content": text}


def spans_of(space: Namespace, prompt: Prompt, tokenizer: Tokenizer) -> list[Span]:
    """Show a prompt message by message, each memory's tokens with their reason."""
    versions = Versions(space)
    spans: list[Span] = []
    for part in prompt.parts():
        if isinstance(part, Placed):
            spans += _memory_spans(versions.lines(part.block), tokenizer)
        else:
            content = part.get("content")
            text = content if isinstance(content, str) else json.dumps(content, default=repr)
            reason = f"host: {part['role']}"
            spans.append(Span(text=text, reason=reason, tokens=tokenizer.count(text)))
    return spans


def _memory_spans(lines: Sequence[tuple[str, Shown]], tokenizer: Tokenizer) -> list[Span]:
    opening, *_, closing = fence(line for line, _ in lines).split("\n")
    return [
        Span(text=opening, reason="fence", tokens=tokenizer.count(opening)),
        *(
            Span(
                text=line,
                reason=shown.reason,
                tokens=tokenizer.count(line),
                memory_id=shown.memory_id,
                version=shown.version,
            )
            for line, shown in lines
        ),
        Span(text=closing, reason="fence", tokens=tokenizer.count(closing)),
    ]
