"""What became of the files that were imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from zero_mem.controller.messages import Defect
from zero_mem.types import Body

Fields: TypeAlias = Mapping[str, Any]
"""The arguments of a save."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceItem:
    """One record to be: where it stands, under which key it is taken once, and its fields."""

    file: str
    line: int
    once: str
    fields: Fields

    @property
    def content(self) -> Body:
        """The body."""
        return self.fields["content"]  # type: ignore[no-any-return]

    @property
    def created_at(self) -> datetime | None:
        """When it happened, where the file says so."""
        return self.fields.get("created_at")


@dataclass(slots=True, kw_only=True)
class TraceReport:
    """What became of the records; in a dry run, what would.

    Attributes:
        imported: New records.
        unchanged: Records that an earlier import had written.
        completed: Messages that were still being written then and are whole now.
        sessions: The sessions of the records, in order, with how many records each.
        instructions: System prompts, which are no part of what happened and were left out.
        defects: What could not be read, by file and line.
        unread: Files that held nothing to import; each is a defect too.
        left_out: Mapped lines and records that could not be taken; each is a defect too.
        sample: In a dry run, the first records that would be written.
        dry_run: Whether nothing was written.
    """

    imported: int = 0
    unchanged: int = 0
    completed: int = 0
    sessions: dict[str, int] = field(default_factory=dict)
    instructions: int = 0
    defects: list[Defect] = field(default_factory=list)
    unread: int = 0
    left_out: int = 0
    sample: list[TraceItem] = field(default_factory=list)
    dry_run: bool = False

    @property
    def lost(self) -> int:
        """How many files and records are not there that should be."""
        return self.unread + self.left_out
