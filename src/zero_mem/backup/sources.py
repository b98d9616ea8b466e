"""Backups as they lie there: a copied SQLite file, or an archive."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from zero_mem.backup import archive
from zero_mem.backup.dumping import Line, dump
from zero_mem.errors import InvalidInput, StoreCorrupt, StoreUnavailable
from zero_mem.storage.base import LINEAGE, SEALED, Lineage
from zero_mem.storage.codec import encode_path
from zero_mem.types import Path

if TYPE_CHECKING:
    from zero_mem.storage.sqlite import SQLiteStorage

_SQLITE = b"SQLite format 3\0"


def is_copy(path: FilePath) -> bool:
    """Tell whether a backup is a copied SQLite store; else it is an archive.

    Raises:
        StoreCorrupt: It is neither.
        StoreUnavailable: It can't be read.
    """
    try:
        with open(path, "rb") as file:
            begin = file.read(len(_SQLITE))
    except OSError as error:
        raise StoreUnavailable(f"{path}: can't be read: {error.strerror}") from error
    if begin == _SQLITE:
        return True
    if begin[:2] != archive.MAGIC:
        raise StoreCorrupt(f"{path}: this is no backup of Zero-Mem")
    return False


@contextmanager
def opened_copy(path: FilePath) -> Iterator[SQLiteStorage]:
    """Open a copy of a copied store, so that the backup itself stays as it is."""
    from zero_mem.storage.sqlite import SQLiteStorage

    with tempfile.TemporaryDirectory(prefix="zero-mem-") as folder:
        name = FilePath(folder) / "store.db"
        try:
            shutil.copyfile(path, name)
        except OSError as error:
            raise StoreUnavailable(f"{path}: can't be read: {error.strerror}") from error
        name.chmod(0o600)
        with closing(SQLiteStorage(str(name), create=False)) as storage:
            yield storage


@contextmanager
def as_archives(paths: Sequence[FilePath]) -> Iterator[list[FilePath]]:
    """Give backups as archives: a copied store is written into one for the time."""
    with ExitStack() as stack:
        archives = []
        for path in paths:
            if is_copy(path):
                folder = FilePath(stack.enter_context(tempfile.TemporaryDirectory()))
                path = _archived(path, folder / "store.zma")
            archives.append(path)
        yield archives


def _archived(path: FilePath, target: FilePath) -> FilePath:
    with opened_copy(path) as storage:
        sealed = storage.note(SEALED) is not None
        header = {
            "id": f"copy:{storage.origin}",
            "origin": storage.origin,
            "made_at": "",
            "sealed": sealed,
            "continues": None,
        }
        with archive.writing(target, header) as writer:
            for sort, value in dump(storage, sealed=sealed, since={}):
                writer.write(sort, value)
    return target


@dataclass(slots=True, kw_only=True)
class Survey:
    """What archives hold together, up to a moment.

    Attributes:
        origin: The store that they are of.
        sealed: Whether its rows are encrypted.
        notes: The notes of the last one.
        sequences: By namespace, the last entry of its journal.
        records: By namespace, the ids of the records that these entries are of.
        cut: The namespaces of which later entries are left out.
    """

    origin: str = ""
    sealed: bool = False
    notes: dict[str, str] = field(default_factory=dict)
    sequences: dict[Path, int] = field(default_factory=dict)
    records: dict[Path, set[str]] = field(default_factory=dict)
    cut: set[Path] = field(default_factory=set)

    def restored_notes(self) -> dict[str, str]:
        """Give the notes that the restored store gets, and under which origin it was written."""
        notes = dict(self.notes)
        for path, sequence in self.sequences.items():
            name = f"{LINEAGE}{encode_path(path)}"
            before = json.loads(notes.get(name, "[]"))
            notes[name] = json.dumps(_lives([*before, (self.origin, sequence)], sequence))
        return notes


def _lives(lineage: Lineage, until: int) -> Lineage:
    """Keep of a lineage what wrote some entry up to a sequence."""
    kept: list[tuple[str, int]] = []
    written = 0
    for origin, last in lineage:
        if min(last, until) > written:
            written = min(last, until)
            kept.append((origin, written))
    return kept


def survey(archives: Iterable[Iterable[Line]], until: int | None) -> Survey:
    """Read archives from end to end before anything of them is written.

    Raises:
        InvalidInput: They are not of one store, each continuing the one before.
        StoreCorrupt: One is damaged or breaks off.
    """
    found = Survey()
    for number, lines in enumerate(archives):
        path_now: Path = ()
        for sort, value in lines:
            if sort == "archive":
                _check_follows(value, found, first=number == 0)
                found.origin, found.sealed, found.notes = value["origin"], value["sealed"], {}
            elif sort == "note":
                found.notes[value[0]] = value[1]
            elif sort == "namespace":
                path_now = tuple(value["path"])
                found.sequences.setdefault(path_now, 0)
                found.records.setdefault(path_now, set())
            elif sort == "entry":
                _survey_entry(found, path_now, value, until)
    return found


def _check_follows(header: Any, found: Survey, *, first: bool) -> None:
    if first and header["continues"] is not None:
        raise InvalidInput("the first backup only holds what came after another; name that one")
    if not first and header["origin"] != found.origin:
        raise InvalidInput("the backups are of different stores")


def _survey_entry(found: Survey, path: Path, entry: list[Any], until: int | None) -> None:
    if until is not None and entry[2] > until:
        found.cut.add(path)
    else:
        found.sequences[path] = entry[0]
        found.records[path].add(entry[7])
