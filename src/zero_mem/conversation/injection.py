"""Memories that enter a prompt without being asked, in blocks at its end, final once sent.

One implementation for both: the prompts that `ZeroMemRuntime` builds, and the requests that a
`MemoryController` prepares.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from zero_mem import prompts
from zero_mem.controller.messages import Message, WireFormat
from zero_mem.controller.rounds import content_key
from zero_mem.controller.wire.sites import Step, items_of
from zero_mem.conversation.candidates import Candidate, by_visibility, found_for, required
from zero_mem.conversation.persisted import Persisted
from zero_mem.conversation.sent import Sent
from zero_mem.conversation.wording import Wording, line_of, superseding
from zero_mem.errors import RequiredMemoryMissing
from zero_mem.prompts import Block, Chat, Digests, Placed, Prompt, Shown, Span
from zero_mem.recall.render import DEFAULT_BUDGET
from zero_mem.space import Namespace
from zero_mem.text.fence import FENCE_OPENING, fence

MOST_FOUND: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a prompt is to show beside what is pinned.

    Attributes:
        require: Memories that must be there whole.
        budget: Most tokens of what is pinned, required or summarised.
        question: What the user said last; memories are searched for it once.
        asked: Names that message in its conversation.
        found: Most tokens of what is found for it; 0 searches nothing.
    """

    require: Sequence[str] = ()
    budget: int = DEFAULT_BUDGET
    question: str = ""
    asked: str = ""
    found: int = 0


class Injections:
    """Puts memories into the prompts of one conversation.

    Args:
        space: The namespace.
        persisted: The conversation's decisions; refreshed by whoever asks for a prompt.
    """

    def __init__(self, space: Namespace, persisted: Persisted) -> None:
        self._space = space
        self._persisted = persisted
        self._digests: Digests | None = None
        self._visible: tuple[tuple[int, str], Mapping[str, list[Candidate]]] | None = None
        self._wording = Wording(space)
        self._worded = -1

    @property
    def wording(self) -> Wording:
        """What the blocks say, as of the last refresh."""
        if self._worded != self._persisted.generation:
            self._wording.update(self._persisted.lines(), self._persisted.gone())
            self._worded = self._persisted.generation
        return self._wording

    def blocks(self) -> list[Block]:
        """Give all blocks of the conversation."""
        return prompts.parsed_blocks(self._persisted.blocks)

    def arranged(self, items: Iterable[Chat], *, before: str = "") -> Prompt:
        """Find the places of the blocks in a host's list; nothing new is decided."""
        prompt = prompts.arrange(
            items,
            self.blocks(),
            self.wording,
            sent=self._persisted.sent(),
            before=before,
            known=self._digests,
        )
        self._digests = prompt.digests
        return prompt

    def settled(
        self, items: Sequence[Chat], wanted: Wanted, *, before: str = "", goes_on: bool = False
    ) -> Prompt:
        """Append what is missing; where another appended meanwhile, look again.

        Args:
            items: The host's list.
            wanted: What is to be shown.
            before: Names what the provider keeps before the list; every block of the
                conversation is taken to stand there.
            goes_on: As in `prompts.end_of`.

        Raises:
            RequiredMemoryMissing: A required memory can't be read, or it or a pinned one does
                not fit the budget.
        """
        while True:
            prompt = self.arranged(items, before=before)
            blocks = self.blocks()
            earlier = blocks if before else [placed.block for placed in prompt.placed]
            chosen = list(self._chosen(earlier, wanted))
            end = prompts.end_of(prompt, goes_on=goes_on)
            digest = prompt.digests[end]
            if not chosen:
                self._persisted.note_sent(Sent(digest, len(blocks), wanted.asked))
                return prompt
            shown = tuple(one for one, _ in chosen)
            block = Block(number=len(blocks), anchor=end, digest=digest, shown=shown)
            sent = Sent(digest, len(blocks) + 1, wanted.asked)
            if self._persisted.store_block(block, [line for _, line in chosen], sent):
                self._space.mark_used([one.memory_id for one in shown])
                return prompt.with_block(block)

    # In a request

    def arranged_in(self, request: Mapping[str, Any], wire_format: WireFormat) -> Prompt | None:
        """Find the places of the blocks in a request; None where it has no list of items."""
        items = _readable_items(request, wire_format)
        return self.arranged(items, before=_on_server(request)) if items else None

    def settled_in(
        self,
        request: Mapping[str, Any],
        wire_format: WireFormat,
        history: Sequence[Step],
        wanted: Wanted,
    ) -> Prompt | None:
        """Append to a request what is missing; None where it has no list of items.

        Args:
            request: Its turns are as the provider produced them.
            wire_format: Its format.
            history: Its steps, of which the last message of the user is searched for.
            wanted: What else is to be shown.

        Raises:
            RequiredMemoryMissing: As in `settled`, or the request can't be read.
        """
        items = _readable_items(request, wire_format)
        if not items:
            if wanted.require:
                raise RequiredMemoryMissing("the request has no messages that it could join")
            return None
        before = _on_server(request)
        if wanted.found:
            said = _last_said(history)
            asked = content_key("asked", before, *said) if said else ""
            wanted = replace(wanted, question=said[1] if said else "", asked=asked)
        return self.settled(items, wanted, before=before, goes_on=True)

    def _chosen(self, earlier: Iterable[Block], wanted: Wanted) -> Iterator[tuple[Shown, str]]:
        """Choose what no block shows as it is now, each with its line.

        Pinned and required memories come whole, or the prompt is not built; summaries fill
        what the budget leaves, and what is found has a budget of its own.
        """
        known = {shown.memory_id: shown for block in earlier for shown in block.shown}
        count = self._space.memory.tokenizer.count
        left = {False: wanted.budget - count(fence([""])), True: wanted.found}
        taken: set[str] = set()
        for candidate in self._candidates(known, wanted):
            memory_id, reason = candidate.record.memory_id, candidate.reason
            before = known.get(memory_id)
            if memory_id in taken or (before and self._serves(before, candidate)):
                continue
            shown = candidate.shown(self._persisted.settings, superseding=before is not None)
            line = superseding(candidate.line, shown) if candidate.line else ""
            line = line or line_of(candidate.record, shown)
            cost = count(line + "\n")
            if cost <= left[reason == "found"]:
                left[reason == "found"] -= cost
                taken.add(memory_id)
                yield shown, line
            elif reason in ("pinned", "required"):
                raise RequiredMemoryMissing(
                    f"memory {memory_id} ({reason}) takes {cost} tokens and {left[False]} are "
                    f"left of the budget of {wanted.budget}; raise the budget, or read a part of it"
                )

    def _serves(self, before: Shown, candidate: Candidate) -> bool:
        return self.wording.serves(before, candidate.record, candidate.reason)

    def _candidates(self, known: Mapping[str, Shown], wanted: Wanted) -> Iterator[Candidate]:
        """Give what a prompt is to show, the most important first; a memory may come twice."""
        must = required(self._space, wanted.require)
        visible = self._by_visibility()
        yield from visible["pinned"]
        yield from must
        yield from visible["summary"]
        if wanted.found and wanted.question and not self._persisted.was_asked(wanted.asked):
            yield from self._found(known, wanted)

    def _by_visibility(self) -> Mapping[str, list[Candidate]]:
        """Read what is visible, once for each position of the journal; expiry is looked at anew."""
        key = (self._persisted.position, self._persisted.settings)
        if self._visible is None or self._visible[0] != key:
            self._visible = (key, by_visibility(self._space, self._persisted.settings))
        now = self._space.memory.now()
        return {
            name: [one for one in listed if not one.record.expired(now)]
            for name, listed in self._visible[1].items()
        }

    def _found(self, known: Mapping[str, Shown], wanted: Wanted) -> Iterator[Candidate]:
        """Search for what the conversation has not been shown, in a block or by a tool."""
        seen = self._persisted.shown_by_tools()
        found = found_for(
            self._space,
            wanted.question,
            session=self._persisted.name,
            budget=wanted.found,
            most=MOST_FOUND,
        )
        for one in found:
            memory_id = one.record.memory_id
            if memory_id in known or memory_id not in seen:
                yield one

    # Writing

    def messages(self, prompt: Prompt) -> list[dict[str, Any]]:
        """Write a prompt as messages; what the host has kept changes only after a purge."""
        return list(self.woven(prompt, [dict(message) for message in prompt.host]))

    def woven(self, prompt: Prompt, host: Sequence[Any]) -> Iterator[Any]:
        """Put the blocks between the host's own items.

        Args:
            prompt: Where they belong.
            host: What stands for each of `prompt.host`.
        """
        at = 0
        for placed in prompt.placed:
            yield from host[at : placed.place]
            yield self._item(placed)
            at = placed.place
        yield from host[at:]

    def _item(self, placed: Placed) -> dict[str, Any]:
        text = self.wording.text(placed.block)
        if placed.kept is not None and prompts.text_of(placed.kept) == text:
            return dict(placed.kept)
        return {"role": "user", "content": text}

    def spans(self, prompt: Prompt) -> list[Span]:
        """Show a prompt message by message, each memory's tokens with their reason."""
        tokenizer = self._space.memory.tokenizer
        spans: list[Span] = []
        for part in prompt.parts():
            if isinstance(part, Placed):
                spans += self.wording.spans(part.block, tokenizer)
            else:
                content = part.get("content")
                text = content if isinstance(content, str) else json.dumps(content, default=repr)
                reason = f"host: {part['role']}"
                spans.append(Span(text=text, reason=reason, tokens=tokenizer.count(text)))
        return spans


def _readable_items(request: Mapping[str, Any], wire_format: WireFormat) -> list[Chat]:
    """List the items of a request; none where a provider could not read them all."""
    items = items_of(request, wire_format)
    return items if all(isinstance(item, Mapping) for item in items) else []


def _on_server(request: Mapping[str, Any]) -> str:
    """Name what a provider keeps before the request's own items; "" where it keeps nothing."""
    kept = request.get("previous_response_id") or request.get("conversation")
    return content_key("before", kept) if kept else ""


def _last_said(history: Sequence[Step]) -> tuple[int, str] | None:
    """Give the last message of the user, with its number; a block is none."""
    said = [step.text for step in history if isinstance(step, Message) and step.role == "user"]
    own = [text for text in said if not text.startswith(FENCE_OPENING)]
    return (len(own), own[-1]) if own else None
