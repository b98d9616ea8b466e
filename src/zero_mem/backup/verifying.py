"""Is a store, or a backup, sound? (`prod:backup`)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from zero_mem.backup.audit import faults
from zero_mem.backup.counting import count
from zero_mem.backup.reports import Counts, Verification
from zero_mem.backup.restoring import fill
from zero_mem.backup.sources import is_copy, opened_copy
from zero_mem.backup.steps import Step, go_on
from zero_mem.errors import StoreCorrupt
from zero_mem.storage.base import SEALED, Storage

if TYPE_CHECKING:
    from zero_mem.storage.data_keys import Encryption

_NOTHING = Counts(namespaces=0, records=0, entries=0)


def verify(storage: Storage, step: Step = go_on) -> Verification:
    """Check a store: its files, its journal's digests, and its index against a new one.

    Args:
        storage: The store.
        step: Called again and again; what it raises ends the check.

    Raises:
        NotAllowed: The store was opened with a credential.
    """
    sealed = storage.note(SEALED) is not None and storage.beneath is storage
    found, counts = storage.check(), _NOTHING
    try:
        found += faults(storage, sealed=sealed, step=step)
        counts = count(storage)
    except StoreCorrupt as error:
        found.append(_told(error))
    return Verification(faults=tuple(found), counts=counts, sealed=sealed)


def verify_file(
    path: FilePath,
    encryption: Encryption | None = None,
    *,
    step: Step = go_on,
) -> Verification:
    """Check a backup by restoring it into a folder that goes away again.

    Args:
        path: The backup; it stays as it is.
        encryption: Opens an encrypted one, so that digests and terms are compared too.
        step: Called again and again; what it raises ends the check.

    Raises:
        StoreUnavailable: The file can't be read.
        InvalidInput: It only holds what came after another backup.
    """
    try:
        with _opened(path, step) as storage:
            return verify(_unlocked(storage, encryption), step)
    except StoreCorrupt as error:
        return Verification(faults=(_told(error),), counts=_NOTHING)


def _told(error: StoreCorrupt) -> str:
    """Say what is wrong without the file's name, which may be that of a passing copy."""
    place, _, told = str(error).partition(": ")
    return told or place


@contextmanager
def _opened(path: FilePath, step: Step) -> Iterator[Storage]:
    if is_copy(path):
        with opened_copy(path) as copied:
            yield copied
        return
    from zero_mem.storage.sqlite import SQLiteStorage

    with (
        tempfile.TemporaryDirectory(prefix="zero-mem-") as folder,
        closing(SQLiteStorage(f"{folder}/store.db", durability="normal")) as storage,
    ):
        fill(storage, [path], step=step)
        yield storage


def _unlocked(storage: Storage, encryption: Encryption | None) -> Storage:
    if encryption is None or storage.note(SEALED) is None:
        return storage
    from zero_mem.storage.sealed import SealedStorage

    return SealedStorage(storage, encryption)
