"""The lines that a recall would put in a prompt for one question, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from zero_mem.evaluation.sets import Asked
from zero_mem.index.units import Unit
from zero_mem.policy.limits import Limits
from zero_mem.text.compress import compress
from zero_mem.text.fence import memory_line
from zero_mem.text.tokens import Tokenizer

CUT: Final = Limits().compaction_threshold
"""Characters of a body as a prompt shows it by default."""

WHOLE: Final = 1 << 30
"""The same where the namespace sets no bound."""

SHORTEST_LINE: Final = 12
"""Tokens; with fewer left a prompt is full."""


class Order(NamedTuple):
    """A ranking: units, best first, and of each replaced one the unit that replaces it."""

    indices: Sequence[int]
    newer: Mapping[int, int] = {}


class PromptLine(NamedTuple):
    """One line: whose it is, its text, what that shows, its tokens, the share of the body kept."""

    place: int
    text: str
    shown: str
    tokens: int
    share: float


@dataclass(slots=True, kw_only=True)
class Prompt:
    """Makes the lines of one question; each is made once, whatever ranks it.

    Attributes:
        question: The question.
        tokenizer: Counts the tokens of the lines.
        dated: Say of each record when it was and who said it, as a host does for a reader.
    """

    question: Asked
    tokenizer: Tokenizer
    dated: bool = False
    made: dict[tuple[int, int, int | None], PromptLine] = field(default_factory=dict)

    def filled(
        self, order: Order, budget: int, *, threshold: int = CUT, limit: int | None = None
    ) -> Iterator[PromptLine]:
        """Give the lines that a budget holds, as a recall fills them: what does not fit is skipped.

        Args:
            order: The ranking.
            budget: Most tokens.
            threshold: Most characters of one body.
            limit: Most lines.
        """
        spent = lines = 0
        for index in order.indices:
            if budget - spent < SHORTEST_LINE or lines == limit:
                return
            line = self._line(index, threshold, order.newer.get(index))
            if spent + line.tokens <= budget:
                spent, lines = spent + line.tokens, lines + 1
                yield line

    def _line(self, index: int, threshold: int, newer: int | None) -> PromptLine:
        key = (index, threshold, newer)
        if key not in self.made:
            self.made[key] = self._make(index, threshold, newer)
        return self.made[key]

    def _make(self, index: int, threshold: int, newer: int | None) -> PromptLine:
        space, count = self.question.space, self.tokenizer.count
        body = space.texts[index]
        shown = compress(body, limit=threshold, query=self.question.text).text
        unit = space.corpus.units[index]
        head = _head(unit) if self.dated else ""
        text = memory_line(str(index + 1), unit.kind, None, head + shown)
        if newer is not None:
            text += f" (superseded by {newer + 1})"
        share = 1.0 if shown == body else min(1.0, count(shown) / max(1, count(body)))
        return PromptLine(index, text, head + shown, count(f"{text}\n"), share)


def _head(unit: Unit) -> str:
    said = [f"{unit.stamp:%Y-%m-%d %H:%M}" if unit.stamp else "", unit.speaker]
    head = " ".join(part for part in said if part)
    return f"{head}: " if head else ""
