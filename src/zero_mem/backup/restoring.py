"""Restoring: all of a backup, or of it what was recorded up to a moment, or nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from zero_mem.backup import archive
from zero_mem.backup.audit import faults
from zero_mem.backup.counting import count
from zero_mem.backup.dumping import Line, dump
from zero_mem.backup.files import sync_file, written_whole
from zero_mem.backup.replaying import replay
from zero_mem.backup.reports import Counts, RestoreReport
from zero_mem.backup.sources import Survey, as_archives, is_copy, survey
from zero_mem.backup.steps import Step, go_on, stepping
from zero_mem.errors import NotAllowed, StoreCorrupt, StoreUnavailable
from zero_mem.storage.base import LINEAGE, SEALED, Storage, Transaction
from zero_mem.storage.times import to_micros

if TYPE_CHECKING:
    from zero_mem.storage.data_keys import Encryption


def fill(
    storage: Storage,
    backups: Sequence[FilePath],
    *,
    until: datetime | None = None,
    encryption: Encryption | None = None,
    step: Step = go_on,
) -> Survey:
    """Write backups into an empty store, in one transaction.

    Args:
        storage: The store; of an encrypted one's backup, the one beneath.
        backups: A whole backup, and archives that continue it.
        until: Leave out what was recorded later.
        encryption: Opens an encrypted one, where its index is to be that of a moment.
        step: Called before each line; what it raises ends it, with nothing restored.

    Raises:
        NotAllowed: The store holds memories, or keys are missing.
        StoreCorrupt: A backup is damaged, or another number of records arrived.
    """
    refuse_full(storage)
    limit = None if until is None else to_micros(until)
    with as_archives(backups) as archives:

        def lines() -> list[Iterator[Line]]:
            return [stepping(archive.read_lines(path), step) for path in archives]

        found = survey(lines(), limit)
        if storage.note(SEALED) is not None and not found.sealed:
            raise NotAllowed("the store is encrypted and the backup is not; name a plain store")
        if found.sealed and found.cut:
            _fill_unsealed(storage, archives, found, limit, encryption)
        else:
            _write(storage, lines(), found, limit)
    if storage.scrub_pending():
        storage.scrub()
    return found


def _write(
    storage: Storage, archives: Sequence[Iterator[Line]], found: Survey, limit: int | None
) -> None:
    # Before the memories: what can't be opened without keys is never there without the note.
    for name, value in found.restored_notes().items():
        storage.keep_note(name, value)
    replay(storage, archives, until=limit, check=lambda opened: _check_counts(opened, found))


def _fill_unsealed(
    storage: Storage,
    archives: Sequence[FilePath],
    found: Survey,
    limit: int | None,
    encryption: Encryption | None,
) -> None:
    """Restore an encrypted store to a moment: its index then has to be made with its keys.

    Nothing is written plain: what is opened is sealed again on its way into the store.
    """
    if encryption is None:
        raise NotAllowed("an encrypted store is restored to a moment only with its keys")
    from zero_mem.storage.sealed import SealedStorage
    from zero_mem.storage.sqlite import SQLiteStorage

    with (
        tempfile.TemporaryDirectory(prefix="zero-mem-") as folder,
        closing(SQLiteStorage(f"{folder}/whole.db", durability="normal")) as whole,
    ):
        fill(whole, archives)
        opened = SealedStorage(whole, encryption)
        _write(SealedStorage(storage, encryption), [_opened(opened, found)], found, limit)


def _opened(storage: Storage, found: Survey) -> Iterator[Line]:
    yield "archive", {"origin": found.origin}
    yield from dump(storage, sealed=False, since={})


def refuse_full(storage: Storage) -> None:
    """Refuse a store that holds memories.

    Raises:
        NotAllowed: It does.
    """
    with storage.transaction() as transaction:
        if any(row.sequence for row in transaction.namespaces(())):
            raise NotAllowed(
                "the store to restore into holds memories: name a new one; a file can be "
                "replaced (overwrite)"
            )


def _check_counts(transaction: Transaction, found: Survey) -> None:
    """Compare what arrived with what the backup has, by reading it."""
    for path, sequence in found.sequences.items():
        row = transaction.namespace(path)
        records = sum(1 for _ in transaction.scan(row, {})) if row else 0
        entries = sum(1 for _ in transaction.journal(row)) if row else 0
        if (records, entries) != (len(found.records[path]), sequence):
            raise StoreCorrupt(
                f"namespace {'/'.join(path)}: {records} records and {entries} journal entries "
                f"arrived, not {len(found.records[path])} and {sequence}; nothing was restored"
            )


def restore_file(
    target: FilePath,
    backups: Sequence[FilePath],
    *,
    until: datetime | None = None,
    verify: bool = True,
    overwrite: bool = False,
    encryption: Encryption | None = None,
) -> RestoreReport:
    """Restore into an SQLite store, which gets its name when it is complete.

    Args:
        target: The store's file.
        backups: A whole backup, and archives that continue it.
        until: Leave out what was recorded later.
        verify: Check the store before it gets its name.
        overwrite: A store that is there is kept beside it, as TARGET.before-restore.
        encryption: Opens an encrypted one for the check.
    """
    with _making_way(target, overwrite), written_whole(target) as part:
        if len(backups) == 1 and until is None and is_copy(backups[0]):
            cut = _copy(backups[0], part)
        else:
            cut = _build(part, backups, until, encryption)
        counts = _checked(part, verify, encryption)
    return RestoreReport(counts=counts, until=until, cut=cut, verified=verify)


def _copy(backup: FilePath, part: FilePath) -> tuple[tuple[str, ...], ...]:
    """Copy a copied store, and let it begin a life of its own."""
    from zero_mem.storage.sqlite import SQLiteStorage

    shutil.copyfile(backup, part)
    with closing(SQLiteStorage(str(part), create=False)) as storage:
        with storage.transaction() as transaction:
            rows = transaction.namespaces(())
        before = storage.renew_origin()
        found = Survey(
            origin=before,
            notes=storage.notes(LINEAGE),
            sequences={row.path: row.sequence for row in rows},
        )
        for name, value in found.restored_notes().items():
            storage.keep_note(name, value)
    return ()


def _build(
    part: FilePath,
    backups: Sequence[FilePath],
    until: datetime | None,
    encryption: Encryption | None,
) -> tuple[tuple[str, ...], ...]:
    from zero_mem.storage.sqlite import SQLiteStorage

    with closing(SQLiteStorage(str(part), durability="normal")) as storage:
        found = fill(storage, backups, until=until, encryption=encryption)
    return tuple(sorted(found.cut))


def _checked(part: FilePath, verify: bool, encryption: Encryption | None) -> Counts:
    from zero_mem.storage.sqlite import SQLiteStorage

    with closing(SQLiteStorage(str(part), create=False)) as storage:
        if verify:
            refuse_faults(storage.check() + sealed_faults(storage, encryption))
        return count(storage)


def sealed_faults(storage: Storage, encryption: Encryption | None) -> list[str]:
    """Name what is wrong in a store, with its keys where they are at hand."""
    if storage.note(SEALED) is None:
        return faults(storage)
    if encryption is None:
        return faults(storage, sealed=True)
    from zero_mem.storage.sealed import SealedStorage

    return faults(SealedStorage(storage, encryption))


def refuse_faults(found: Sequence[str]) -> None:
    """Fail loudly where something is wrong.

    Raises:
        StoreCorrupt: Something is.
    """
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise StoreCorrupt(f"the backup is not sound, nothing was restored: {found[0]}{more}")


@contextmanager
def _making_way(target: FilePath, overwrite: bool) -> Iterator[None]:
    """Move a store that is to be replaced aside; it comes back if the restore fails."""
    if not target.exists():
        yield
        return
    from zero_mem.storage.sqlite import SQLiteStorage

    if not overwrite:
        with closing(SQLiteStorage(str(target), create=False)) as storage:
            refuse_full(storage)
    _settle_log(target)
    aside = target.with_name(f"{target.name}.before-restore")
    if aside.exists():
        raise NotAllowed(f"{aside} is there from an earlier restore; remove or rename it first")
    os.rename(target, aside)
    try:
        yield
    except BaseException:
        os.rename(aside, target)
        raise
    if not overwrite:
        aside.unlink()
    sync_file(target.parent)


def _settle_log(target: FilePath) -> None:
    """Bring everything of a store into its file, so that no log of it meets the new one."""
    with closing(sqlite3.connect(target, timeout=5)) as connection:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy or target.with_name(f"{target.name}-wal").exists():
        raise StoreUnavailable(f"{target}: the store is in use; close it before a restore")


def restore_into(
    storage: Storage,
    backups: Sequence[FilePath],
    *,
    until: datetime | None = None,
    verify: bool = True,
    encryption: Encryption | None = None,
) -> RestoreReport:
    """Restore into a store that is open and empty, such as one of PostgreSQL.

    Args:
        storage: The store, without encryption.
        backups: A whole backup, and archives that continue it.
        until: Leave out what was recorded later.
        verify: Check the store afterwards.
        encryption: Opens an encrypted one for the check.
    """
    found = fill(storage, backups, until=until, encryption=encryption)
    if verify:
        refuse_faults(storage.check() + sealed_faults(storage, encryption))
    cut = tuple(sorted(found.cut))
    return RestoreReport(counts=count(storage), until=until, cut=cut, verified=verify)
