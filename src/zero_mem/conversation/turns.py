"""The prompts of a conversation that a runtime built, as it noted them: references, no text."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from zero_mem.conversation.wording import Wording
from zero_mem.errors import NotFound
from zero_mem.policy.cost_review import Call, Exposure, Run
from zero_mem.prompts import Block, Prompt, Reason
from zero_mem.space import Namespace
from zero_mem.storage.times import from_micros, to_micros

SCOPE: Final = "turn:"
"""Begins the scope of a conversation's turns."""

REASONS: Final[tuple[Reason, ...]] = ("pinned", "required", "summary", "found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One prompt that was built: of how many and which messages, with which blocks where.

    Attributes:
        messages: How many messages of the host's own it has.
        digest: Names them.
        blocks: Pairs of a block's number and its place among those messages.
        at: When it was built; None in stores that were written before that was noted.
    """

    messages: int
    digest: str
    blocks: tuple[tuple[int, int], ...]
    at: datetime | None = None

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of its blocks."""
        return frozenset(number for number, _ in self.blocks)


def note(space: Namespace, conversation: str, prompt: Prompt) -> None:
    """Note a prompt as the next turn of its conversation."""
    fields = {
        "messages": len(prompt.host),
        "digest": prompt.digests[len(prompt.host)],
        "blocks": [[placed.block.number, placed.place] for placed in prompt.placed],
        "at": to_micros(space.memory.now()),
    }
    scope = f"{SCOPE}{conversation}"
    number, value = len(space.decisions(scope)), json.dumps(fields)
    while not space.decide(scope, str(number), value, only_new=True):
        number += 1


def noted(space: Namespace, conversation: str, turn: int) -> Turn:
    """Read a turn, counted from 0.

    Raises:
        NotFound: The conversation has no such turn.
    """
    value = space.decision(f"{SCOPE}{conversation}", str(turn))
    if value is None:
        raise NotFound(f"conversation {conversation!r} has no turn {turn}")
    return _turn(value)


def every(space: Namespace, conversation: str) -> list[Turn]:
    """Read all turns of a conversation, in order."""
    return parsed(space.decisions(f"{SCOPE}{conversation}"))


def parsed(stored: Mapping[str, str | None]) -> list[Turn]:
    """Read turns as they are stored, by number."""
    return [_turn(value) for value in stored.values() if value is not None]


def _turn(value: str) -> Turn:
    fields: dict[str, Any] = json.loads(value)
    blocks = tuple((number, place) for number, place in fields.pop("blocks"))
    at = fields.pop("at", None)
    return Turn(blocks=blocks, at=None if at is None else from_micros(at), **fields)


# What a review of costs needs


def runs(
    turns: Sequence[Turn],
    calls: Sequence[Call],
    wording: Wording,
    blocks: Sequence[Block],
    *,
    reasons: Collection[Reason] = REASONS,
) -> list[Run]:
    """Give the runs that some turns belong to, each with what its prompts showed.

    Args:
        turns: The turns.
        calls: What was given and written in each of them.
        wording: What the blocks say.
        blocks: All blocks of the conversation.
        reasons: Which memories count, by the reason why they were shown.
    """
    starts = _beginnings(turns)
    return [
        Run(
            calls=tuple(calls[start:stop]),
            exposures=tuple(_exposures(wording, blocks, turns[start:stop], reasons)),
        )
        for start, stop in zip(starts, [*starts[1:], len(calls)], strict=True)
    ]


def _beginnings(turns: Sequence[Turn]) -> list[int]:
    """Name the turns whose prompt lost a block: there the host's messages began anew."""
    lost = [turn for turn in range(1, len(turns)) if turns[turn - 1].numbers - turns[turn].numbers]
    return [0, *lost]


def _exposures(
    wording: Wording, blocks: Iterable[Block], turns: Sequence[Turn], reasons: Collection[Reason]
) -> Iterator[Exposure]:
    """Give what the blocks of some turns showed, each from the first turn that had it."""
    first_turns: dict[int, int] = {}
    for at, turn in enumerate(turns):
        for number in turn.numbers:
            first_turns.setdefault(number, at)
    carried = [block for block in blocks if block.number in first_turns]
    for number, shown in ((block.number, shown) for block in carried for shown in block.shown):
        record = wording.record(shown) if shown.reason in reasons else None
        if record is not None:
            yield Exposure(
                memory_id=record.memory_id,
                kind=record.kind,
                key=record.key,
                visibility="summary" if shown.limit else "pinned",
                body=record.content,
                first_call=first_turns[number],
            )
