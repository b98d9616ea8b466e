"""The prompts of a conversation as they are kept: which blocks stood where, no text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from zero_mem.conversation.wording import Wording
from zero_mem.policy.cost_review import Exposure
from zero_mem.prompts import Block, Prompt
from zero_mem.space import Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One prompt that was built: of how many and which messages, with which blocks where."""

    messages: int
    digest: str
    blocks: tuple[tuple[int, int], ...]

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of its blocks."""
        return frozenset(number for number, _ in self.blocks)


class Turns:
    """The turns of one conversation, numbered from 0."""

    def __init__(self, space: Namespace, conversation: str) -> None:
        self._space = space
        self._scope = f"turn:{conversation}"

    def add(self, prompt: Prompt) -> None:
        """Keep a prompt as the next turn, whoever else adds one at the same time."""
        fields = {
            "messages": len(prompt.host),
            "digest": prompt.digests[len(prompt.host)],
            "blocks": [[placed.block.number, placed.place] for placed in prompt.placed],
        }
        number, value = len(self._space.decisions(self._scope)), json.dumps(fields)
        while not self._space.decide(self._scope, str(number), value, only_new=True):
            number += 1

    def find(self, number: int) -> Turn | None:
        """Give one turn, None where there is none of that number."""
        value = self._space.decision(self._scope, str(number))
        return None if value is None else _turn(value)

    def every(self) -> list[Turn]:
        """Give all turns in order."""
        stored = self._space.decisions(self._scope).values()
        return [_turn(value) for value in stored if value is not None]


def _turn(value: str) -> Turn:
    fields = json.loads(value)
    blocks = tuple((number, place) for number, place in fields.pop("blocks"))
    return Turn(blocks=blocks, **fields)


def beginnings(turns: Sequence[Turn]) -> list[int]:
    """Name the turns whose prompt lost a block: there the host's messages began anew."""
    lost = [turn for turn in range(1, len(turns)) if turns[turn - 1].numbers - turns[turn].numbers]
    return [0, *lost]


def exposures(
    wording: Wording, blocks: Iterable[Block], turns: Sequence[Turn]
) -> Iterator[Exposure]:
    """Give what the blocks of some turns showed, each from the first turn that had it."""
    first_turns: dict[int, int] = {}
    for at, turn in enumerate(turns):
        for number in turn.numbers:
            first_turns.setdefault(number, at)
    carried = [block for block in blocks if block.number in first_turns]
    for number, shown in ((block.number, shown) for block in carried for shown in block.shown):
        record = wording.record(shown)
        if record is not None:
            yield Exposure(
                memory_id=record.memory_id,
                kind=record.kind,
                key=record.key,
                visibility="summary" if shown.limit else "pinned",
                body=record.content,
                first_call=first_turns[number],
            )
