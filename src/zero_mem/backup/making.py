"""Making a backup while the store is in use."""

from __future__ import annotations

import secrets
import sys
from contextlib import closing
from datetime import datetime
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from zero_mem.backup import archive
from zero_mem.backup.counting import count
from zero_mem.backup.dumping import dump
from zero_mem.backup.files import written_whole
from zero_mem.backup.reports import BackupReport, Counts
from zero_mem.backup.sources import as_archives
from zero_mem.backup.steps import Step, go_on, stepping
from zero_mem.errors import InvalidInput
from zero_mem.storage.base import SEALED, Storage
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.storage.sqlite import SQLiteStorage


def back_up(
    storage: Storage,
    path: FilePath,
    *,
    now: datetime,
    portable: bool = False,
    since: FilePath | None = None,
    step: Step = go_on,
) -> BackupReport:
    """Write a store into a new file, as it is at this moment; nobody has to stop writing.

    Args:
        storage: The store, unguarded. An encrypted one stays encrypted in the backup.
        path: A new file; its folder is there.
        now: The time, to note when it was made.
        portable: Write an archive, which every store can be restored from; an SQLite store is
            copied as a file otherwise.
        since: An archive of the same store; only what came after it is written.
        step: Called again and again; what it raises ends the writing, and nothing stays.

    Raises:
        InvalidInput: The file is there already, or `since` is no archive of this store.
        NotAllowed: The store was opened with a credential.
        StoreUnavailable: The file can't be written; nothing of it stays.
    """
    beneath = storage.beneath
    copies = _copying(beneath)
    with written_whole(path) as part:
        if copies is not None and not portable and since is None:
            copies.copy_to(str(part), step)
            form, counts = "copy", _cleaned(part)
        else:
            form, counts = "archive", _archive(beneath, part, now, since, step)
    size = path.stat().st_size
    return BackupReport(path=path, form=form, made_at=now, counts=counts, bytes=size)


def _archive(
    storage: Storage,
    part: FilePath,
    now: datetime,
    since: FilePath | None,
    step: Step,
) -> Counts:
    base, after = (None, {}) if since is None else _base(since)
    if base is not None and base["origin"] != storage.origin:
        raise InvalidInput(f"{since} is the backup of another store, or of one restored since")
    sealed = storage.note(SEALED) is not None
    header = {
        "id": secrets.token_hex(8),
        "origin": storage.origin,
        "made_at": now.isoformat(),
        "sealed": sealed,
        "continues": None if base is None else base["id"],
    }
    with archive.writing(part, header) as writer:
        for sort, value in stepping(dump(storage, sealed=sealed, since=after), step):
            writer.write(sort, value)
    lines = writer.counts
    return Counts(namespaces=lines["namespace"], records=lines["record"], entries=lines["entry"])


def _base(path: FilePath) -> tuple[dict[str, Any], dict[Path, int]]:
    """Read which store a backup is of, and up to where it has each namespace's journal."""
    with as_archives([path]) as (whole,):
        ends = {
            tuple(value["path"]): value["sequence"]
            for sort, value in archive.read_lines(whole)
            if sort == "namespace"
        }
        return archive.read_header(whole), ends


def _copying(storage: Storage) -> SQLiteStorage | None:
    """Give the store if it can be copied as a file; what has no file needs no sqlite3."""
    module = sys.modules.get("zero_mem.storage.sqlite")
    return storage if module is not None and isinstance(storage, module.SQLiteStorage) else None


def _cleaned(part: FilePath) -> Counts:
    """Count what a copy holds; to open it overwrites what a purge had only begun to erase."""
    from zero_mem.storage.sqlite import SQLiteStorage

    with closing(SQLiteStorage(str(part), create=False)) as copied:
        return count(copied)
