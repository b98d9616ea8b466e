"""A conversation prompt by prompt: what memory put into each, why, and what became of it.

The store keeps references and decisions, not the host's own messages, so this shows memory's
part of every prompt. `MemoryController.inspect` and `ZeroMemRuntime.inspect` show a whole prompt
to the host that has its messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, TypeAlias

from zero_mem.controller.rounds import Answered, Hidden
from zero_mem.conversation.audit import passed_of
from zero_mem.conversation.injection import Injections
from zero_mem.conversation.persisted import Inserted, Persisted
from zero_mem.conversation.sequence import Sending, prompts_of
from zero_mem.conversation.wording import PURGED
from zero_mem.errors import NotFound
from zero_mem.handles import render
from zero_mem.prompts import Block, Span
from zero_mem.space import Namespace
from zero_mem.types import MemoryRecord, Path

Place: TypeAlias = Literal["block", "result"]
Event: TypeAlias = Literal["read", "answer", "passed", "refused", "claim"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A run of text that memory put into a prompt.

    Attributes:
        span: The text, its tokens, its reason, and the memory it is from.
        supersedes: Whether it says what an earlier line of that memory said before it changed.
        superseded_by: The number of the prompt in which a newer version took its place.
        purged: Whether its memory was erased, so that only a mark is left of it.
    """

    span: Span
    supersedes: bool = False
    superseded_by: int | None = None
    purged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What entered a prompt in one place, and stands there for good.

    Attributes:
        place: A "block" of memories, or what stands for a tool's "result".
        after: How many of the host's messages stand before a block.
        memory_id: The memory that holds a result; "" where the store had no room for it.
        tool: The tool whose result it is.
        whole: Tokens of the result as the tool gave it.
        folds: Whether the result stood in full for the first call that read it.
        lines: What it says; a block's first and last are its fence.
    """

    place: Place
    after: int | None = None
    memory_id: str = ""
    tool: str = ""
    whole: int = 0
    folds: bool = False
    lines: tuple[Line, ...]

    @property
    def tokens(self) -> int:
        """What it takes of every prompt that carries it."""
        return sum(line.span.tokens for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model's reply to a prompt had to do with memory.

    Attributes:
        event: A body was "read" by a tool; a memory call was answered in a round that the host
            does not see; values were "passed" by reference; a call with an open handle was
            "refused"; something was claimed of a memory that was not read.
        memory_ids: The memories concerned.
        tool: The tool that got values; "" for text to the user.
        written: As the model wrote it, or what it was told.
        executed: With the values put in.
        tokens: Of an answer.
    """

    event: Event
    memory_ids: tuple[str, ...] = ()
    tool: str = ""
    written: str = ""
    executed: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPrompt:
    """Memory's part of one prompt.

    Attributes:
        number: From 0.
        at: When it was sent first; None in stores that were written before that was noted.
        messages: How many messages of the host's own it has, where a runtime built it.
        entries: What is new in it.
        carried: Tokens of what earlier prompts brought and this one still has. Where a
            controller prepared it, everything earlier is taken to be still there.
        replies: What the reply to it did.
    """

    number: int
    at: datetime | None
    messages: int | None
    entries: tuple[Entry, ...]
    carried: int
    replies: tuple[Reply, ...]

    @property
    def new(self) -> int:
        """Tokens of what is new in it."""
        return sum(entry.tokens for entry in self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The prompts of a conversation, in order; `earlier` came before the first of them."""

    namespace: Path
    conversation: str
    prompts: tuple[SentPrompt, ...]
    earlier: tuple[Reply, ...] = ()

    @property
    def by_reason(self) -> dict[str, int]:
        """Tokens of what entered the prompts, each counted once, the largest reason first."""
        sums: dict[str, int] = {}
        for prompt in self.prompts:
            for entry in prompt.entries:
                for line in entry.lines:
                    sums[line.span.reason] = sums.get(line.span.reason, 0) + line.span.tokens
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    @property
    def phantoms(self) -> int:
        """How often something was claimed of a memory that was not read."""
        every = (reply for prompt in self.prompts for reply in prompt.replies)
        return sum(reply.event == "claim" for reply in (*self.earlier, *every))


def timeline(space: Namespace, conversation: str) -> Timeline:
    """Read a conversation prompt by prompt; nothing is written.

    Args:
        space: Its namespace.
        conversation: Its name, as its controller or runtime was given it.

    Raises:
        NotFound: Nothing was decided for such a conversation.
    """
    return _Reader(space, conversation).timeline()


class _Reader:
    def __init__(self, space: Namespace, conversation: str) -> None:
        self._space = space
        self._name = conversation
        self._persisted = Persisted(space, conversation)
        self._earlier, self._sent = prompts_of(space, self._persisted)
        self._wording = Injections(space, self._persisted).wording
        if not (self._sent or self._earlier):
            raise NotFound(f"no conversation {conversation!r} in {'/'.join(space.path)}")

    def timeline(self) -> Timeline:
        prompts = list(self._prompts(self._sent))
        return Timeline(
            namespace=self._space.path,
            conversation=self._name,
            prompts=tuple(_with_successors(prompts)),
            earlier=tuple(self._replies(self._earlier, self._sent[0].new if self._sent else ())),
        )

    def _prompts(self, sent: Sequence[Sending]) -> Iterator[SentPrompt]:
        of_results, of_blocks = 0, dict[int, int]()
        for number, one in enumerate(sent):
            following = sent[number + 1].new if number + 1 < len(sent) else ()
            results = list(self._results(one.history.inserts))
            blocks = [self._block(block) for block in one.new]
            carried = sum(tokens for name, tokens in of_blocks.items() if name in one.blocks)
            yield SentPrompt(
                number=number,
                at=one.at,
                messages=one.turn.messages if one.turn else None,
                entries=(*results, *blocks),
                carried=of_results + carried,
                replies=tuple(self._replies(one.history.replies, following)),
            )
            of_results += sum(entry.tokens for entry in results)
            shown = zip(one.new, blocks, strict=True)
            of_blocks.update({block.number: entry.tokens for block, entry in shown})

    # What entered

    def _block(self, block: Block) -> Entry:
        purged = set(self._wording.purged(block))
        opening, *said, closing = self._wording.spans(block, self._tokenizer)
        lines = [
            Line(span=span, supersedes=shown.supersedes, purged=shown.memory_id in purged)
            for span, shown in zip(said, block.shown, strict=True)
        ]
        fenced = (Line(span=opening), *lines, Line(span=closing))
        return Entry(place="block", after=block.anchor, lines=fenced)

    def _results(self, keys: Iterable[str]) -> Iterator[Entry]:
        known = self._persisted.insertions()
        for key in dict.fromkeys(named.partition(":")[0] for named in keys):
            yield self._result(known[key])

    def _result(self, inserted: Inserted) -> Entry:
        memory_id = inserted.memory_id
        if inserted.purged:
            span = self._span(f"{render(memory_id)} {PURGED}", PURGED, memory_id)
            return Entry(place="result", memory_id=memory_id, lines=(Line(span=span, purged=True),))
        record = self._records.get(memory_id)
        own = "" if record is None else record.text
        text = own if inserted.text is None else inserted.text
        tool = "" if record is None else record.metadata.get("tool", "")
        return Entry(
            place="result",
            memory_id=memory_id,
            tool=tool if isinstance(tool, str) else "",
            whole=self._tokenizer.count(own or text),
            folds=inserted.folds,
            lines=tuple(
                Line(span=self._span(text[start:end], reason, memory_id))
                for start, end, reason in inserted.spans or ((0, len(text), "the whole result"),)
            ),
        )

    def _span(self, text: str, reason: str, memory_id: str) -> Span:
        tokens = self._tokenizer.count(text)
        return Span(text=text, reason=reason, tokens=tokens, memory_id=memory_id or None)

    @cached_property
    def _records(self) -> dict[str, MemoryRecord]:
        """The results as they were saved, though they may have ended or changed since."""
        named = {one.memory_id for one in self._persisted.insertions().values() if one.memory_id}
        found = self._space.get_many(named)
        unchanged = {one.memory_id: one for one in found if one is not None and one.version == 1}
        others = {name: self._first_version(name) for name in named - unchanged.keys()}
        return unchanged | {name: record for name, record in others.items() if record is not None}

    def _first_version(self, memory_id: str) -> MemoryRecord | None:
        try:
            entries = self._space.history(memory_id)
        except NotFound:
            return None
        return next((entry.record for entry in entries if entry.record is not None), None)

    @property
    def _tokenizer(self) -> Any:
        return self._space.memory.tokenizer

    # What the reply did

    def _replies(self, keys: Iterable[tuple[str, str]], following: Sequence[Block]) -> list[Reply]:
        # A block's memories count as read, too; that is decided when it enters the next prompt.
        shown = {shown.memory_id for block in following for shown in block.shown}
        replies = [reply for what, key in keys for reply in self._reply(what, key, shown)]
        # Hidden rounds and refusals are kept under several keys; each claim counts.
        counted = (n if reply.event == "claim" else 0 for n, reply in enumerate(replies))
        return [reply for reply, _ in dict.fromkeys(zip(replies, counted, strict=True))]

    def _reply(self, what: str, key: str, shown: Collection[str]) -> Iterator[Reply]:
        if what == "read" and key not in shown:
            yield Reply(event="read", memory_ids=(key,))
        elif what == "hidden":
            yield from self._answers(self._hidden.get(key))
        elif what == "audit":
            yield self._passed(key)
        elif what == "refused":
            yield Reply(event="refused", written=self._persisted.refusals().get(key, ""))
        elif what == "claim":
            yield Reply(event="claim", memory_ids=(self._claims[key]["memory_id"],))

    @cached_property
    def _hidden(self) -> Mapping[str, Hidden]:
        return self._persisted.hidden()

    @cached_property
    def _claims(self) -> Mapping[str, dict[str, Any]]:
        return self._persisted.entries("claim")

    @cached_property
    def _audited(self) -> Mapping[str, dict[str, Any]]:
        return self._persisted.entries("audit")

    def _answers(self, hidden: Hidden | None) -> Iterator[Reply]:
        if hidden is None:
            return
        rounds: list[Answered] = [*hidden.before, *([hidden.cut] if hidden.cut else [])]
        for answered in rounds:
            for call_id, text in answered.answers.items():
                named = [piece.memory_id for piece in answered.pieces[call_id]]
                yield Reply(
                    event="answer",
                    memory_ids=tuple(dict.fromkeys(filter(None, named))),
                    written=text,
                    tokens=self._tokenizer.count(text),
                )

    def _passed(self, key: str) -> Reply:
        passed = passed_of(self._space, self._audited[key])
        return Reply(
            event="passed",
            memory_ids=passed.memory_ids,
            tool=passed.tool,
            written=passed.written,
            executed=passed.executed,
        )


def _with_successors(prompts: Sequence[SentPrompt]) -> list[SentPrompt]:
    """Mark the lines of blocks that a later prompt superseded."""
    later: dict[str, int] = {}
    found: list[SentPrompt] = []
    for prompt in reversed(prompts):
        entries = tuple(
            replace(entry, lines=tuple(_marked(line, later) for line in entry.lines))
            if entry.place == "block"
            else entry
            for entry in prompt.entries
        )
        for line in (line for entry in entries for line in entry.lines if line.supersedes):
            later[line.span.memory_id or ""] = prompt.number
        found.append(replace(prompt, entries=entries))
    return found[::-1]


def _marked(line: Line, later: Mapping[str, int]) -> Line:
    successor = later.get(line.span.memory_id or "")
    return line if successor is None else replace(line, superseded_by=successor)
