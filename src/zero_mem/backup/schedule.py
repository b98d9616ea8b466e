"""Backups by the clock: named by time, checked, and the old ones removed after that."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path as FilePath
from typing import Final

from zero_mem.backup.files import unnamed
from zero_mem.backup.making import back_up
from zero_mem.backup.reports import BackupReport
from zero_mem.backup.steps import Step, go_on
from zero_mem.backup.verifying import verify_file
from zero_mem.errors import InvalidInput, StoreCorrupt, StoreUnavailable
from zero_mem.storage.base import Storage

BACKED_UP: Final = "backed-up"
"""The note of when the store was last backed up and the backup verified."""

_STAMP: Final = "%Y%m%dT%H%M%SZ"
_NAMED: Final = re.compile(r"zero-mem-(\d{8}T\d{6}Z)\.backup")
_UNFINISHED: Final = re.compile(r"\.+zero-mem-\d{8}T\d{6}Z\.backup\..*part(-\w+)?")
_ABANDONED: Final = 86_400
"""Seconds since an unfinished file was last written to, after which nobody writes it any more."""


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
        """List the backups in the folder, the oldest first; other files are left alone.

        Raises:
            StoreUnavailable: The folder can't be read.
        """
        return sorted(each for each in self._files() if _NAMED.fullmatch(each.name))

    def _files(self) -> list[FilePath]:
        try:
            return list(self.folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreUnavailable(f"{self.folder}: can't be read: {error.strerror}") from error

    def due(self, now: datetime) -> bool:
        """Tell whether the last backup is older than the interval.

        One that is dated later than now was made before the clock was set back: it puts off none.
        """
        made = [moment for moment in map(made_at, self.backups()) if moment <= now]
        return not made or now - made[-1] >= self.interval

    def run(self, storage: Storage, now: datetime, *, step: Step = go_on) -> BackupReport | None:
        """Make a backup if one is due; see `make`.

        Returns:
            What was written; None where none was due.
        """
        return self.make(storage, now, step=step) if self.due(now) else None

    def make(self, storage: Storage, now: datetime, *, step: Step = go_on) -> BackupReport:
        """Make a backup, verify it, give it its name, and remove those beyond `keep`.

        Args:
            storage: The store, unguarded.
            now: The time.
            step: Called again and again; what it raises ends the backup, and nothing of it stays.

        Raises:
            StoreCorrupt: The new backup is not sound; it is removed and the old ones stay.
            StoreUnavailable: It can't be written; or it is there, and one that it makes too many
                can't be removed.
            InvalidInput: Somebody else made one at the same second.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{self.folder}: can't be made: {error.strerror}") from error
        self._clear(now)
        path = self.folder / f"zero-mem-{now.astimezone(UTC).strftime(_STAMP)}.backup"
        with unnamed(path) as part:
            report = back_up(storage, part, now=now, portable=self.portable, step=step)
            found = verify_file(part, step=step)
            if not found.sound:
                fault = found.faults[0]
                raise StoreCorrupt(f"the new backup is not sound, the old ones stay: {fault}")
        storage.keep_note(BACKED_UP, now.isoformat())
        others = [each for each in self.backups() if each != path]
        for old in others[: max(0, len(others) - self.keep + 1)]:
            _remove(old)
        return replace(report, path=path)

    def _clear(self, now: datetime) -> None:
        """Remove what processes that were killed have left unfinished."""
        for each in self._files():
            if _UNFINISHED.fullmatch(each.name):
                with suppress(FileNotFoundError):
                    if now.timestamp() - each.stat().st_mtime > _ABANDONED:
                        _remove(each)


def _remove(path: FilePath) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"{path}: can't be removed: {error.strerror}") from error


def made_at(path: FilePath) -> datetime:
    """Tell when a backup of a schedule was made, from its name."""
    found = _NAMED.fullmatch(path.name)
    assert found is not None
    return datetime.strptime(found[1], _STAMP).replace(tzinfo=UTC)
