"""What a prompt shows of the memories: fenced blocks that are final once they were sent.

A block is stored as references (memory, version, how it was shown), never as text; it is
rendered again from the journal, so that the same history gives the same bytes after a
restart. A changed memory is not rewritten in place: its new version is appended at the tail.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from zero_mem.errors import InvalidInput, NotFound, RequiredMemoryMissing
from zero_mem.policy.cost_review import Exposure
from zero_mem.policy.limits import limits_for
from zero_mem.policy.visibility import visibility_of
from zero_mem.space import Namespace
from zero_mem.text.compress import compress
from zero_mem.text.fence import fence, memory_line
from zero_mem.text.tokens import Tokenizer
from zero_mem.types import MemoryRecord

Reason: TypeAlias = Literal["pinned", "required", "summary"]
Chat: TypeAlias = Mapping[str, Any]


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
    """Memories that entered the prompt together, before the host's message number `anchor`.

    `number` counts the blocks of a conversation from 0.
    """

    number: int
    anchor: int
    shown: tuple[Shown, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A run of a prompt's text: the host's own, or a memory's with the reason it is there."""

    text: str
    reason: str
    tokens: int
    memory_id: str | None = None
    version: int | None = None


def blocks_of(space: Namespace, conversation: str) -> list[Block]:
    """Read the blocks of a conversation in the order they were sent."""
    stored = space.decisions(_scope(conversation))
    return [_block(int(number), value) for number, value in stored.items() if value is not None]


def _scope(conversation: str) -> str:
    return f"prompt:{conversation}"


def _block(number: int, value: str) -> Block:
    fields = json.loads(value)
    shown = tuple(Shown(**each) for each in fields["shown"])
    return Block(number=number, anchor=fields["anchor"], shown=shown)


def store_block(space: Namespace, conversation: str, block: Block) -> None:
    """Make a block final, and keep its memories from eviction."""
    names = Shown.__dataclass_fields__
    listed = [{name: getattr(shown, name) for name in names} for shown in block.shown]
    value = json.dumps({"anchor": block.anchor, "shown": listed})
    space.decide(_scope(conversation), str(block.number), value)
    for shown in block.shown:
        space.hold(f"conversation:{conversation}", shown.memory_id)


def choose(
    space: Namespace,
    earlier: Iterable[Block],
    require: Sequence[str],
    budget: int,
    tokenizer: Tokenizer,
) -> tuple[Shown, ...]:
    """Choose what a prompt must show that no earlier block shows in its current version.

    Pinned and required memories come whole, or the prompt is not built; summaries fill what
    the budget leaves.

    Raises:
        RequiredMemoryMissing: A required memory can't be read, or it or a pinned one does
            not fit the budget.
    """
    known = {shown.memory_id: shown for block in earlier for shown in block.shown}
    required = _required(space, require)
    visible = _by_visibility(space)
    left = budget
    chosen: list[Shown] = []
    for reason, record in [
        *(("pinned", record) for record in visible["pinned"]),
        *(("required", record) for record in required),
        *(("summary", record) for record in visible["summary"]),
    ]:
        if record.memory_id in {shown.memory_id for shown in chosen}:
            continue
        before = known.get(record.memory_id)
        if before is not None and _still_serves(before, record, reason):
            continue
        shown = _shown(space, record, reason, superseding=before is not None)  # type: ignore[arg-type]
        cost = tokenizer.count(_line(record, shown) + "\n")
        if cost <= left:
            chosen.append(shown)
            left -= cost
        elif reason != "summary":
            raise RequiredMemoryMissing(
                f"memory {record.memory_id} ({reason}) takes {cost} tokens and {left} are left "
                f"of the budget of {budget}; raise the budget, or read a part of it"
            )
    return tuple(chosen)


def _still_serves(before: Shown, record: MemoryRecord, reason: str) -> bool:
    """Tell whether an earlier block shows the current version, and enough of it."""
    whole = before.limit == 0
    return before.version == record.version and (whole or reason == "summary")


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


def _by_visibility(space: Namespace) -> dict[str, list[MemoryRecord]]:
    """List the records that a prompt shows without being asked, pinned ones first made first."""
    settings = space.settings()
    found: dict[str, list[MemoryRecord]] = {"pinned": [], "summary": []}
    for form in shown_forms(settings):
        for record in space.each({"form": form}):
            visibility = visibility_of(record, limits_for(settings, record.form, record.kind))
            if visibility in found:
                found[visibility].append(record)
    most = limits_for(settings, "semantic", "").max_recall_items
    found["summary"] = sorted(found["summary"], key=lambda r: r.updated_at, reverse=True)[:most]
    return found


def shown_forms(settings: str) -> list[str]:
    """Name the forms of which a prompt may show records without being asked."""
    if '"visibility"' in settings:
        return ["working", "episodic", "semantic", "procedural"]
    return ["procedural"]


def _shown(space: Namespace, record: MemoryRecord, reason: Reason, *, superseding: bool) -> Shown:
    limits = limits_for(space.settings(), record.form, record.kind)
    return Shown(
        memory_id=record.memory_id,
        version=record.version,
        reason=reason,
        limit=limits.compaction_threshold if reason == "summary" else 0,
        supersedes=superseding,
    )


def _line(record: MemoryRecord, shown: Shown) -> str:
    text = record.text
    if shown.limit:
        text = compress(record.content, limit=shown.limit).text
    line = memory_line(record.memory_id, record.kind, record.key, text)
    return f"{line} (supersedes [memo:{record.memory_id}])" if shown.supersedes else line


class _Versions:
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

    def lines(self, block: Block) -> list[tuple[str, Shown]]:
        """Write each line of a block as it was first sent; a purged memory leaves a mark."""
        return [(self._line(shown), shown) for shown in block.shown]

    def _line(self, shown: Shown) -> str:
        record = self.record(shown)
        return f"[memo:{shown.memory_id}] purged" if record is None else _line(record, shown)

    def text(self, block: Block) -> str:
        """Write a block in its fence."""
        return fence(line for line, _ in self.lines(block))


def exposures_of(
    space: Namespace, blocks: Iterable[Block], first_turns: Mapping[int, int]
) -> Iterator[Exposure]:
    """Give what blocks showed as a cost review takes it; `first_turns` is by block number."""
    versions = _Versions(space)
    for block in blocks:
        for shown in block.shown:
            record = versions.record(shown)
            if record is not None and block.number in first_turns:
                yield Exposure(
                    memory_id=record.memory_id,
                    kind=record.kind,
                    key=record.key,
                    visibility="summary" if shown.limit else "pinned",
                    body=record.content,
                    first_call=first_turns[block.number],
                )


def insert_blocks(
    messages: Sequence[Chat], blocks: Iterable[Block], space: Namespace
) -> list[dict[str, Any]]:
    """Put every block back at its place; those that the host has kept in its list stay."""
    prompt = [dict(message) for message in messages]
    places: dict[int, list[dict[str, Any]]] = {}
    versions = _Versions(space)
    for block in blocks:
        message = {"role": "user", "content": versions.text(block)}
        places.setdefault(block.anchor, []).append(message)
    # From the end, so that no place moves before its turn.
    for anchor in sorted(places, reverse=True):
        at, block_messages = min(anchor, len(prompt)), places[anchor]
        if prompt[at : at + len(block_messages)] != block_messages:
            prompt[at:at] = block_messages
    return prompt


def check_messages(messages: object) -> list[Chat]:
    """Accept a list of chat messages."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise InvalidInput("messages is a list of chat messages")
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or "role" not in message:
            raise InvalidInput(f"message {place} is not a mapping with a role")
    return list(messages)


def digest_of(messages: Sequence[Chat]) -> str:
    """Name a list of messages, to tell later whether it is the same."""
    text = json.dumps(list(messages), sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def spans_of(
    space: Namespace, prompt: Sequence[Chat], blocks: Iterable[Block], tokenizer: Tokenizer
) -> list[Span]:
    """Show a prompt message by message, each memory's tokens with their reason."""
    versions = _Versions(space)
    rendered = {versions.text(block): block for block in blocks}
    spans: list[Span] = []
    for message in prompt:
        content = message.get("content")
        block = rendered.get(content) if isinstance(content, str) else None
        if block is None:
            text = content if isinstance(content, str) else json.dumps(content, default=repr)
            reason = f"host: {message['role']}"
            spans.append(Span(text=text, reason=reason, tokens=tokenizer.count(text)))
        else:
            spans += _memory_spans(versions.lines(block), tokenizer)
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
