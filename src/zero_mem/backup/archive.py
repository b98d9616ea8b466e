"""The portable form of a backup: JSON lines, compressed, closed by their number and digest.

| line | holds |
|---|---|
| `archive` | the format, the archive's own id, the store, when, and what it continues |
| `note` | what is kept of the store as a whole: the hashes of API keys, that it is sealed |
| `namespace` | the counters and settings; the lines up to the next one are of this namespace |
| `record` | of a record what its journal has not: its position, its use, sealed terms |
| `entry` | one entry of the journal with its body, unless that is the one before |
| `decision`, `hold` | what hosts keep |
| `end` | how many lines of each sort there were, and the digest of all before |
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any, Final

from zero_mem.errors import MigrationNeeded, StoreCorrupt, StoreUnavailable

FORMAT: Final = 1
MAGIC: Final = b"\x1f\x8b"
"""How a compressed file begins."""

_SORTS: Final = ("note", "namespace", "record", "entry", "decision", "hold")


class ArchiveWriter:
    """Writes lines and keeps count of them."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self._digest = hashlib.blake2b(digest_size=16)
        self.counts: Counter[str] = Counter()

    def write(self, sort: str, value: object) -> None:
        """Write one line."""
        line = json.dumps([sort, value], separators=(",", ":")).encode() + b"\n"
        self._digest.update(line)
        self._file.write(line)
        self.counts[sort] += 1

    def end(self) -> None:
        """Write the line that closes the archive."""
        counts = {sort: self.counts[sort] for sort in _SORTS}
        self.write("end", [counts, self._digest.hexdigest()])


@contextmanager
def writing(path: FilePath, header: Mapping[str, Any]) -> Iterator[ArchiveWriter]:
    """Write an archive into a file; it is closed by its end line unless something fails."""
    with gzip.open(path, "wb", compresslevel=4) as file:
        writer = ArchiveWriter(file)
        writer.write("archive", {"format": FORMAT, **header})
        yield writer
        writer.end()


def read_header(path: FilePath) -> dict[str, Any]:
    """Read what an archive says of itself.

    Raises:
        StoreCorrupt: It is no archive.
        MigrationNeeded: A newer version wrote it.
    """
    with _reading(path) as lines:
        return _header(path, next(lines, b""))


def read_lines(path: FilePath) -> Iterator[tuple[str, Any]]:
    """Read an archive line by line, its header first, checking that it is whole.

    Raises:
        StoreCorrupt: It breaks off, was changed, or is no archive.
        MigrationNeeded: A newer version wrote it.
    """
    digest = hashlib.blake2b(digest_size=16)
    counts: Counter[str] = Counter()
    with _reading(path) as lines:
        first = next(lines, b"")
        yield "archive", _header(path, first)
        digest.update(first)
        for line in lines:
            sort, value = _line(path, line)
            if sort == "end":
                _check_end(path, value, counts, digest.hexdigest())
                if next(lines, None) is not None:
                    raise StoreCorrupt(f"{path}: something follows the end of the archive")
                return
            digest.update(line)
            counts[sort] += 1
            yield sort, value
    raise StoreCorrupt(f"{path}: the archive breaks off before its end")


@contextmanager
def _reading(path: FilePath) -> Iterator[Iterator[bytes]]:
    try:
        with gzip.open(path, "rb") as file:
            yield iter(file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StoreCorrupt(f"{path}: the archive is damaged or breaks off ({error})") from error
    except OSError as error:
        raise StoreUnavailable(f"{path}: can't be read: {error.strerror}") from error


def _header(path: FilePath, line: bytes) -> dict[str, Any]:
    sort, value = _line(path, line)
    if sort != "archive" or not isinstance(value, dict):
        raise StoreCorrupt(f"{path}: this is not an archive of Zero-Mem")
    if value["format"] > FORMAT:
        raise MigrationNeeded(f"{path}: a newer zero-mem wrote the archive; upgrade to read it")
    return value


def _line(path: FilePath, line: bytes) -> tuple[str, Any]:
    try:
        sort, value = json.loads(line)
    except (ValueError, TypeError) as error:
        raise StoreCorrupt(f"{path}: a line of the archive can't be read") from error
    return sort, value


def _check_end(path: FilePath, value: Any, counts: Counter[str], digest: str) -> None:
    wanted, told = value
    for sort in _SORTS:
        if counts[sort] != wanted[sort]:
            raise StoreCorrupt(
                f"{path}: the archive has {counts[sort]} lines of sort {sort}, not {wanted[sort]}"
            )
    if told != digest:
        raise StoreCorrupt(f"{path}: the archive was changed: its digest is another")
