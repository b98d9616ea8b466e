"""Backups by the clock: named by time, checked, and the old ones removed after that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path as FilePath
from typing import Final

from zero_mem.backup.making import back_up
from zero_mem.backup.reports import BackupReport
from zero_mem.backup.verifying import verify_file
from zero_mem.errors import InvalidInput, StoreCorrupt, StoreUnavailable
from zero_mem.storage.base import Storage

BACKED_UP: Final = "backed-up"
"""The note of when the store was last backed up and the backup verified."""

_STAMP: Final = "%Y%m%dT%H%M%SZ"
_NAMED: Final = re.compile(r"zero-mem-(\d{8}T\d{6}Z)\.backup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How often backups are made, where, and how many are kept.

    Attributes:
        folder: Where they go; it is made where it is not there.
        interval: How long after the last one the next is due.
        keep: How many there are at most; the oldest go, once the newest was verified.
        portable: Make archives of SQLite stores, too.
    """

    folder: FilePath
    interval: timedelta
    keep: int = 7
    portable: bool = False

    def __post_init__(self) -> None:
        if self.keep < 1 or self.interval <= timedelta(0):
            raise InvalidInput("keep at least 1 backup, and make one after an interval above 0")

    def backups(self) -> list[FilePath]:
        """List the backups in the folder, the oldest first; other files are left alone."""
        if not self.folder.is_dir():
            return []
        return sorted(each for each in self.folder.iterdir() if _NAMED.fullmatch(each.name))

    def due(self, now: datetime) -> bool:
        """Tell whether the last backup is older than the interval.

        One that is dated later than now was made before the clock was set back: it puts off none.
        """
        made = [moment for moment in map(_made_at, self.backups()) if moment <= now]
        return not made or now - made[-1] >= self.interval

    def run(self, storage: Storage, now: datetime) -> BackupReport | None:
        """Make a backup if one is due, verify it, and remove those beyond `keep`.

        Args:
            storage: The store, unguarded.
            now: The time.

        Returns:
            What was written; None where none was due.

        Raises:
            StoreCorrupt: The new backup is not sound; it is removed and the old ones stay.
            StoreUnavailable: It can't be written.
        """
        if not self.due(now):
            return None
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{self.folder}: can't be made: {error.strerror}") from error
        path = self.folder / f"zero-mem-{now.astimezone(UTC).strftime(_STAMP)}.backup"
        report = back_up(storage, path, now=now, portable=self.portable)
        found = verify_file(path)
        if not found.sound:
            path.unlink()
            raise StoreCorrupt(f"the new backup is not sound, the old ones stay: {found.faults[0]}")
        storage.keep_note(BACKED_UP, now.isoformat())
        others = [each for each in self.backups() if each != path]
        for old in others[: max(0, len(others) - self.keep + 1)]:
            old.unlink(missing_ok=True)
        return report


def _made_at(path: FilePath) -> datetime:
    found = _NAMED.fullmatch(path.name)
    assert found is not None
    return datetime.strptime(found[1], _STAMP).replace(tzinfo=UTC)
