"""The prompts of a conversation in the order they were sent, told from what was decided for them.

A controller notes each history that it sends, a runtime each prompt that it builds. A result is
decided before its prompt is sent, and what a reply did after that, so that the order of the
decisions says which prompt each belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from zero_mem.conversation.persisted import Persisted, scope_of
from zero_mem.conversation.sent import SentAt
from zero_mem.conversation.turns import Turn, Turns
from zero_mem.prompts import Block, parsed_blocks
from zero_mem.space import Namespace

_REPLIES: Final = frozenset({"read", "hidden", "audit", "refused", "claim"})


@dataclass(slots=True, kw_only=True)
class History:
    """A history that was sent, with the keys of what was decided for it and for its reply."""

    digest: str
    inserts: list[str] = field(default_factory=list)
    replies: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """One prompt.

    Attributes:
        history: What was decided for it.
        turn: A runtime's note of it.
        blocks: The numbers of the blocks in it. Where a controller prepared it, all that there
            were by then are taken to be.
        new: The blocks that no earlier prompt had.
        at: When it was sent first; None in stores that were written before that was noted.
    """

    history: History
    turn: Turn | None
    blocks: frozenset[int]
    new: tuple[Block, ...]
    at: datetime | None


def prompts_of(
    space: Namespace, persisted: Persisted
) -> tuple[list[tuple[str, str]], list[Sending]]:
    """Read the prompts of a conversation in order.

    Args:
        space: Its namespace.
        persisted: Its decisions; refreshed by this.

    Returns:
        What replies did before there was any, and the prompts.
    """
    # Read first: whatever stands in it is known after the refresh.
    keys = list(space.decisions(scope_of(persisted.name)))
    built = Turns(space, persisted.name).every()
    persisted.refresh()
    earlier, found = histories(keys)
    blocks = parsed_blocks(persisted.blocks)
    return earlier, in_order(found, built, blocks, persisted.histories())


def histories(keys: Iterable[str]) -> tuple[list[tuple[str, str]], list[History]]:
    """Sort what was decided by the history it was decided for.

    Args:
        keys: Of the conversation's decisions, in order.

    Returns:
        What replies did before there was any, and the histories in order.
    """
    earlier: list[tuple[str, str]] = []
    found: list[History] = []
    inserts: list[str] = []
    for key in keys:
        what, _, rest = key.partition(":")
        if what == "insert":
            inserts.append(rest)
        elif what == "sent":
            found.append(History(digest=rest, inserts=inserts))
            inserts = []
        elif what in _REPLIES:
            (found[-1].replies if found else earlier).append((what, rest))
    if inserts:  # in a request without a list of messages nothing is noted as sent
        found.append(History(digest="", inserts=inserts))
    return earlier, found


def in_order(
    found: Sequence[History],
    turns: Sequence[Turn],
    blocks: Sequence[Block],
    sent: Mapping[str, SentAt],
) -> list[Sending]:
    """Give the prompts in order: each turn that a runtime noted, and what was sent otherwise.

    Args:
        found: The histories.
        turns: A runtime's notes.
        blocks: All blocks of the conversation.
        sent: As `Persisted.histories` gives it.
    """
    left = {block.number: block for block in blocks}
    rows: list[Sending] = []
    for history, turn in _placed(found, turns):
        first = sent.get(history.digest)
        if turn is None:
            numbers = [n for n, block in left.items() if block.digest == history.digest]
            there = frozenset(range(first.blocks if first else 0)).union(numbers)
        else:
            numbers = [n for n, _ in turn.blocks if n in left]
            there = turn.numbers
        rows.append(
            Sending(
                history=history,
                turn=turn,
                blocks=there,
                new=tuple(left.pop(n) for n in numbers),
                at=turn.at if turn else first.at if first else None,
            )
        )
    return rows


def _placed(
    found: Sequence[History], turns: Sequence[Turn]
) -> Iterator[tuple[History, Turn | None]]:
    """Put the turns among the histories; the first turn of a history has what was decided."""
    order = {history.digest: place for place, history in enumerate(found)}
    placed: list[tuple[int, int, History, Turn | None]] = []
    noted: set[str] = set()
    place = -1
    for number, turn in enumerate(turns, start=1):
        place = max(place, order.get(turn.digest, place))
        is_first = turn.digest in order and turn.digest not in noted
        noted.add(turn.digest)
        history = found[order[turn.digest]] if is_first else History(digest=turn.digest)
        placed.append((place, number, history, turn))
    placed += [(order[one.digest], 0, one, None) for one in found if one.digest not in noted]
    placed.sort(key=lambda row: row[:2])
    return ((history, turn) for _, _, history, turn in placed)
