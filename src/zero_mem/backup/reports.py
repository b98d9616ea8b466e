"""What a backup, a check and a restore tell."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path as FilePath

from zero_mem.types import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much a store or a backup holds; equal ones after a restore, or it failed."""

    namespaces: int
    records: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupReport:
    """A backup that was written.

    Attributes:
        path: The file.
        form: "copy" of an SQLite store, or "archive" of any.
        made_at: The moment that it holds the store as of.
        counts: What it holds; of a continued backup, what came since.
        bytes: Its size.
    """

    path: FilePath
    form: str
    made_at: datetime
    counts: Counts
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a check of a store or a backup found.

    Attributes:
        faults: What is wrong, a sentence each; none in a sound store.
        counts: What it holds.
        sealed: Whether it is encrypted and was checked without its keys, so that digests and
            terms were not compared.
    """

    faults: tuple[str, ...]
    counts: Counts
    sealed: bool = False

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What was restored.

    Attributes:
        counts: What the store holds now.
        until: The moment that it was restored to, None for all that the backup had.
        cut: The namespaces of which something later was left out.
        verified: Whether it was checked afterwards.
    """

    counts: Counts
    until: datetime | None
    cut: tuple[Path, ...]
    verified: bool
