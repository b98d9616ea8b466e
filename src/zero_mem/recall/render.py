"""Turning chosen records into the few compact lines that a prompt gets, under a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from zero_mem.errors import InvalidInput
from zero_mem.recall.request import Explanation, Finding
from zero_mem.text.compress import compress
from zero_mem.text.fence import memory_line
from zero_mem.text.tokens import Tokenizer
from zero_mem.types import MemoryRecord, Recall, RecallItem

DEFAULT_BUDGET = 1000
"""Tokens of one recall where the caller names no budget."""

NEAR = 5
"""So many records beyond the limit are told where a recall explains itself."""

_MOST = 1 << 40


def check_count(value: object, what: str) -> int:
    """Accept a whole number from 1; one beyond any store is as good as none."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInput(f"{what} is a whole number from 1, not {value!r}")
    return min(value, _MOST)


@dataclass(slots=True)
class Lines:
    """The lines of a recall as they are filled, best first, up to a budget of tokens."""

    budget: int
    tokenizer: Tokenizer
    items: list[RecallItem] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    missed: list[RecallItem] = field(default_factory=list)
    over_budget: list[str] = field(default_factory=list)
    shortened: int = 0
    spent: int = 0

    def add(self, found: Finding, *, threshold: int, query: str, rank: int | None = None) -> bool:
        """Add a record's line if it fits; tell whether it did.

        Args:
            found: The record and why it was found.
            threshold: Most characters of its body.
            query: Chooses which parts of a long body are quoted.
            rank: Its place, where the item should explain itself.
        """
        record, newer = found.hit.record, found.superseded_by
        extract = compress(record.content, limit=threshold, query=query)
        item = _item(found, extract.text, rank)
        line = memory_line(record.memory_id, record.kind, record.key, extract.text)
        line += f" (superseded by {newer})" if newer else ""
        cost = self.tokenizer.count(line + "\n")
        if self.spent + cost > self.budget:
            self.missed.append(_out(item, f"over the budget of {self.budget} tokens"))
            self.over_budget.append(record.memory_id)
            return False
        self.items.append(item)
        self.lines.append(line)
        self.spent += cost
        self.shortened += extract.left_out > 0
        return True

    def miss(self, found: Finding, *, threshold: int, query: str, rank: int, why: str) -> None:
        """Note a record that would have come next."""
        text = compress(found.hit.record.content, limit=threshold, query=query).text
        self.missed.append(_out(_item(found, text, rank), why))

    def text(self) -> str:
        """Join the lines; a joint that costs more than its parts gives up its last item."""
        while self.lines and self.tokenizer.count("\n".join(self.lines)) > self.budget:
            self._give_up_last()
        return "\n".join(self.lines)

    def _give_up_last(self) -> None:
        self.lines.pop()
        item = self.items.pop()
        self.missed.insert(0, _out(item, f"over the budget of {self.budget} tokens"))
        self.over_budget.insert(0, item.memory_id)

    def with_note(self, notes: Sequence[str]) -> str:
        """Join the lines and, where something was left out, a last line that says so.

        The budget holds for both; only the shortest note is given whatever it costs.
        """
        while True:
            recall = self.recall(notes, explain=False)
            note = f"({recall.left_out})" if recall.left_out else ""
            text = "\n".join(part for part in (recall.text, note) if part)
            if self.tokenizer.count(text) <= self.budget:
                return text
            if not self.lines:
                return "(left out)"
            self._give_up_last()

    def recall(self, notes: Iterable[str], *, explain: bool) -> Recall:
        """Make the result; `notes` say what else was left out."""
        text = self.text()
        over = self.over_budget
        said = [
            f"{len(over)} over the budget of {self.budget} tokens: {_some(over)}" if over else "",
            f"{self.shortened} shortened" if self.shortened else "",
            *notes,
        ]
        return Recall(
            items=tuple(self.items),
            text=text,
            tokens=self.tokenizer.count(text),
            tokens_exact=self.tokenizer.exact,
            left_out="; ".join(note for note in said if note),
            near_misses=tuple(self.missed) if explain else (),
        )


def _item(found: Finding, text: str, rank: int | None) -> RecallItem:
    why = Explanation() if rank is None else found.why()
    return RecallItem(
        memory_id=found.hit.record.memory_id,
        text=text,
        score=found.hit.score,
        record=found.hit.record,
        superseded_by=found.superseded_by,
        reason="" if rank is None else _reason(found, why, rank),
        parts=why.parts,
    )


def _out(item: RecallItem, why: str) -> RecallItem:
    """Say why an item that explains itself is out."""
    return replace(item, reason=f"{item.reason}, {why}") if item.reason else item


def _some(ids: list[str], most: int = 10) -> str:
    shown = ", ".join(ids[:most])
    return shown if len(ids) <= most else f"{shown} and {len(ids) - most} more"


def named(what: str, ids: list[str]) -> str:
    """Say which ids something is true of; "" where there are none."""
    return f"{what}: {_some(ids)}" if ids else ""


def _reason(found: Finding, why: Explanation, rank: int) -> str:
    """Say in a line why a record was found where it was."""
    parts = dict(why.parts)
    own = parts.pop("own", 0.0)
    said = [f"rank {rank}, BM25 {own:.3f}", *(f"{name} {parts[name]:.3f}" for name in parts)]
    newer = [f"superseded by {found.superseded_by}"] if found.superseded_by else []
    note = [why.note] if why.note else []
    return ", ".join([*said, f"score {found.hit.score:.3f}", *newer, *note])


def recalled(
    findings: Iterable[Finding],
    *,
    query: str,
    limit: int,
    budget: int,
    tokenizer: Tokenizer,
    threshold: Callable[[MemoryRecord], int],
    explain: bool,
) -> Recall:
    """Fill a recall with the best hits.

    Args:
        findings: Best first; read only as far as needed.
        query: Chooses which parts of a long body are quoted.
        limit: Most items.
        budget: Most tokens of the text.
        tokenizer: Counts them.
        threshold: Most characters of one body.
        explain: Keep the reasons, and what just missed: up to `NEAR` beyond the limit.
    """
    lines = Lines(budget=budget, tokenizer=tokenizer)
    more, last = False, 0
    for rank, found in enumerate(findings, start=1):
        full = len(lines.items) == limit or len(lines.over_budget) == limit
        if full and (not explain or rank - last > NEAR):
            more = True
            break
        most = threshold(found.hit.record)
        if full:
            more, why = True, f"over the limit of {limit} items"
            lines.miss(found, threshold=most, query=query, rank=rank, why=why)
        else:
            last = rank
            lines.add(found, threshold=most, query=query, rank=rank if explain else None)
    note = f"more matched than the {limit} shown" if more and lines.items else ""
    return lines.recall([note], explain=explain)
