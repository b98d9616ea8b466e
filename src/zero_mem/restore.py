"""Restoring a store from its backups (`prod:backup`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from zero_mem.backup import RestoreReport, restore_file, restore_into
from zero_mem.errors import InvalidInput
from zero_mem.memory import FileName
from zero_mem.storage.opening import open_storage, sqlite_path
from zero_mem.storage.times import to_micros

if TYPE_CHECKING:
    from zero_mem.storage.data_keys import Encryption


def restore(
    backups: FileName | Sequence[FileName],
    url: str,
    *,
    until: datetime | None = None,
    verify: bool = True,
    overwrite: bool = False,
    encryption: Encryption | None = None,
) -> RestoreReport:
    """Restore a store from a backup, whole or not at all.

    The restored store has an origin of its own, so that others can sync with it.

    Args:
        backups: A backup, or several: a whole one and those that continue it, in order.
        url: The store to make; one that is there must be empty.
        until: Leave out what was recorded after this moment. Settings and what hosts keep beside
            the memories are as of the last backup.
        verify: Check the store before it can be used.
        overwrite: Replace an SQLite store; the old one stays beside it, as *.before-restore.
        encryption: Opens an encrypted one for the check; without it less can be compared.

    Raises:
        NotAllowed: The store holds memories.
        StoreCorrupt: A backup is damaged, or not all of it arrived; nothing was restored.
        InvalidInput: The backups do not follow each other, or the URL names no store.
    """
    paths = [backups] if isinstance(backups, str | os.PathLike) else backups
    files = [FilePath(path) for path in paths]
    if not files:
        raise InvalidInput("name a backup to restore")
    if until is not None:
        to_micros(until)
    file = sqlite_path(url)
    if file is not None:
        return restore_file(
            FilePath(file),
            files,
            until=until,
            verify=verify,
            overwrite=overwrite,
            encryption=encryption,
        )
    with closing(open_storage(url)) as storage:
        return restore_into(storage, files, until=until, verify=verify, encryption=encryption)
