"""What blocks of memories say: written from the journal, the same after any restart."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from zero_mem.errors import NotFound
from zero_mem.prompts import Block, Reason, Shown, Span
from zero_mem.space import Namespace
from zero_mem.text.compress import compress
from zero_mem.text.fence import HANDLE_OPENING, fence, memory_line
from zero_mem.text.tokens import Tokenizer
from zero_mem.types import MemoryRecord

PURGED: Final = "purged"


class Wording:
    """Writes the lines of blocks; what was read for one is kept for the next."""

    def __init__(self, space: Namespace) -> None:
        self._space = space
        self._found: Mapping[tuple[int, int], str | None] = {}
        self._gone: Collection[str] = ()
        self._known: dict[str, dict[int, MemoryRecord]] = {}
        self._written: dict[Shown, str] = {}

    def update(self, found: Mapping[tuple[int, int], str | None], gone: Collection[str]) -> None:
        """Tell what has changed in the store.

        Args:
            found: The lines of what was found, by block and place; None where one was purged.
            gone: The memories that were purged since they were shown.
        """
        self._found = found
        if gone == self._gone:
            return
        self._gone = gone
        self._known = {k: v for k, v in self._known.items() if k not in gone}
        self._written = {s: v for s, v in self._written.items() if s.memory_id not in gone}

    def record(self, shown: Shown) -> MemoryRecord | None:
        """Give the version that was shown, None once it was purged."""
        if shown.memory_id in self._gone:
            return None
        versions = self._known.get(shown.memory_id, {})
        if shown.version not in versions:
            versions = self._known[shown.memory_id] = self._versions(shown.memory_id)
        return versions.get(shown.version)

    def _versions(self, memory_id: str) -> dict[int, MemoryRecord]:
        try:
            entries = self._space.history(memory_id)
        except NotFound:
            return {}
        # A touch has the version of the change before it, which is what was shown.
        return {e.version: e.record for e in reversed(entries) if e.record is not None}

    def serves(self, before: Shown, record: MemoryRecord, reason: Reason) -> bool:
        """Tell whether what was shown still says of a record all that a prompt must."""
        if before.limit and reason not in ("summary", "found"):
            return False
        if before.version == record.version:
            return True
        if before.reason == "found":  # quoted for a question of its own
            return False
        shown = self.record(before)
        return shown is not None and line_of(shown, before) == line_of(record, before)

    def lines(self, block: Block) -> list[tuple[str, Shown]]:
        """Write each line of a block as it was first sent; a purged memory leaves a mark."""
        listed = enumerate(block.shown)
        return [(self._line(block.number, place, shown), shown) for place, shown in listed]

    def _line(self, number: int, place: int, shown: Shown) -> str:
        line = self._quoted(number, place, shown)
        return f"{HANDLE_OPENING}{shown.memory_id}] {PURGED}" if line is None else line

    def _quoted(self, number: int, place: int, shown: Shown) -> str | None:
        """Write a line of a block, None once its memory was purged."""
        if shown.memory_id in self._gone:
            return None
        if shown.reason == "found":
            return self._found.get((number, place))
        if shown not in self._written:
            record = self.record(shown)
            if record is None:
                return None
            self._written[shown] = line_of(record, shown)
        return self._written[shown]

    def purged(self, block: Block) -> list[str]:
        """Name the memories of a block that were purged since."""
        listed = enumerate(block.shown)
        return [s.memory_id for i, s in listed if self._quoted(block.number, i, s) is None]

    def text(self, block: Block) -> str:
        """Write a block in its fence."""
        return fence(line for line, _ in self.lines(block))

    def says(self, block: Block, lines: Sequence[str]) -> bool:
        """Tell whether lines are those of a block, whatever they tell of what was purged."""
        heads = [f"{HANDLE_OPENING}{shown.memory_id}] " for shown in block.shown]
        if len(lines) != len(heads) or not all(map(str.startswith, lines, heads)):
            return False
        gone = set(self.purged(block))
        return all(
            shown.memory_id in gone or line == own
            for line, (own, shown) in zip(lines, self.lines(block), strict=True)
        )

    def spans(self, block: Block, tokenizer: Tokenizer) -> list[Span]:
        """Show a block line by line, each with its reason."""
        return block_spans(self.lines(block), tokenizer)


def line_of(record: MemoryRecord, shown: Shown) -> str:
    """Write a record as a block shows it."""
    text = record.text
    if shown.limit:
        text = compress(record.content, limit=shown.limit).text
    return superseding(memory_line(record.memory_id, record.kind, record.key, text), shown)


def superseding(line: str, shown: Shown) -> str:
    """Say in a line which earlier one it takes the place of."""
    return f"{line} (supersedes [memo:{shown.memory_id}])" if shown.supersedes else line


def block_spans(lines: Iterable[tuple[str, Shown]], tokenizer: Tokenizer) -> list[Span]:
    """Show the lines of a block and its fence."""
    listed = list(lines)
    opening, *_, closing = fence(line for line, _ in listed).split("\n")
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
            for line, shown in listed
        ),
        Span(text=closing, reason="fence", tokens=tokenizer.count(closing)),
    ]
