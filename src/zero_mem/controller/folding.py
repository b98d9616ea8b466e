"""Folding on the next call: a result is read in full once, then stands in its short form.

The one moment at which a sent message may change is the very next call: then only the
prompt's tail is sent anew. Later it would break a prefix that has been paid for, so a result
that was not folded then never is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from zero_mem.controller.messages import Message

_SIGNED: Final = ("thinking", "redacted_thinking", "reasoning")


def folds_after(answer: Message) -> bool:
    """Tell whether results may be folded once this turn has answered them.

    Providers that sign a turn's thinking refuse it after a changed message, so that a turn
    with such a part keeps what it has read as it was.
    """
    return not any(part in _SIGNED for part in answer.opaque)


def folded(history: Sequence[Message]) -> frozenset[int]:
    """Give the indexes of the tool results that stand folded in the prompt of the next call.

    All others stand in full: those that no call has seen, and those whose answer forbids it.
    A later history never takes an index back, nor adds one that an answer has passed.

    Args:
        history: the conversation so far, in order.
    """
    found: list[int] = []
    fresh: list[int] = []
    for at, message in enumerate(history):
        if message.role == "tool":
            fresh.append(at)
        elif message.role == "assistant":
            if folds_after(message):
                found += fresh
            fresh = []
    return frozenset(found)
