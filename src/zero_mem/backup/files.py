"""Files that are written whole or not at all, for their owner only."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path as FilePath

from zero_mem.errors import InvalidInput, StoreUnavailable


@contextmanager
def written_whole(path: FilePath) -> Iterator[FilePath]:
    """Give a name beside a new file; what was written there gets the file's name at the end.

    The file is on disk, with its name, before this returns.

    Raises:
        InvalidInput: The file is there already.
        StoreUnavailable: It can't be written; nothing of it stays.
    """
    with unnamed(path) as part:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        yield part
        sync_file(part)


@contextmanager
def unnamed(path: FilePath) -> Iterator[FilePath]:
    """Give a name beside a new file; a file that is there at the end gets the file's own name.

    Raises:
        InvalidInput: The file is there already.
        StoreUnavailable: It can't be written; nothing of it stays.
    """
    if path.exists():
        raise InvalidInput(f"{path} is there already; choose another name, or remove it first")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        _name(part, path)
        sync_file(path.parent)
    except FileExistsError:
        raise InvalidInput(f"{path} was made by somebody else meanwhile") from None
    except OSError as error:
        raise StoreUnavailable(f"{path}: can't be written: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _name(part: FilePath, path: FilePath) -> None:
    """Give a file its name, unless somebody else made one meanwhile."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.rename(part, path)


def sync_file(path: FilePath) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
