"""Settings files of other programs: changed whole or not at all, and put back as they were.

A note beside, or in a folder of ours, keeps what stood there before the first change and the
digest of what was written. As long as nobody else has changed the file, taking our change back
is putting that back.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from zero_mem.errors import StoreUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of a settings file; None is a file that is not there.

    `without` is the file as it stands, less what is ours in it.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    without: bytes | None

    @property
    def is_change(self) -> bool:
        """Tell whether anything changes."""
        return self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What a note keeps: the text before our first change, and the digest of what we wrote."""

    before: str | None
    written: str

    def is_untouched(self, data: bytes | None) -> bool:
        """Tell whether a file is as we wrote it."""
        return data is not None and self.written == _digest(data)

    @property
    def original(self) -> bytes | None:
        """What stood there before."""
        return None if self.before is None else self.before.encode()


def read(path: Path) -> bytes | None:
    """Read a file, None where there is none.

    Raises:
        StoreUnavailable: It can't be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnavailable(f"{path}: can't be read: {error.strerror}") from error


def noted(note: Path) -> Noted | None:
    """Read a note; one that is damaged counts for none."""
    data = read(note)
    try:
        found = json.loads(data or b"null")
    except ValueError:
        return None
    if not isinstance(found, dict) or not {"before", "written"} <= set(found):
        return None
    return Noted(before=found["before"], written=found["written"])


def apply(change: Change, *, note: Path, installs: bool) -> None:
    """Write a change, the whole file or nothing of it.

    Args:
        change: What becomes of the file.
        note: Where what stood there before is kept; taking the change back removes it.
        installs: Whether this puts our change in, rather than takes it back.

    Raises:
        StoreUnavailable: The file can't be written.
    """
    try:
        if installs and change.after is not None and (change.is_change or not note.exists()):
            fields = {"before": _original(change, note), "written": _digest(change.after)}
            replace(note, json.dumps(fields).encode())
        if change.is_change:
            replace(change.path, change.after)
        if not installs:
            note.unlink(missing_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"{change.path}: can't be written: {error.strerror}") from error


def _original(change: Change, note: Path) -> str | None:
    """Give what an uninstall restores: what stood there before the first install."""
    known = noted(note)
    if known is not None and known.is_untouched(change.before):
        return known.before
    return None if change.without is None else change.without.decode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def replace(path: Path, data: bytes | None) -> None:
    """Put a file in the place of another at once; a link keeps pointing to it."""
    path = path.resolve()
    if data is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(handle, mode)
            os.fsync(handle)  # the name must not come to stand for a file that is not there yet
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
