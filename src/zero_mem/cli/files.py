"""Output files: there whole, or not there; readable by their owner only, as they hold bodies."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from zero_mem.cli.streams import OutputLost, plain_lines
from zero_mem.errors import InvalidInput

STREAM: Final = Path("-")
"""Stands for stdout where a file is written, and for stdin where one is read."""


def check_targets(*paths: Path | None) -> None:
    """Refuse files whose folder is not there, before long work and not after it.

    Raises:
        InvalidInput: A folder is not there.
    """
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise InvalidInput(f"{path}: can't be written: there is no folder {path.parent}")


@contextmanager
def written(path: Path) -> Iterator[TextIO]:
    """Open a file to write. `-` is stdout.

    A file takes its name when all is written, and keeps the mode of the one that it replaces;
    a symbolic link stays and its target is replaced. A device or a pipe is written straight.

    Raises:
        InvalidInput: It can't be opened.
        OutputLost: It can't be written to its end; a file that was there is as it was.
    """
    if path == STREAM or _is_stdout(path):
        with plain_lines() as lines:
            yield lines
        return
    with _opening(path):
        there = _status(path)
        straight = there is not None and not stat.S_ISREG(there.st_mode)
    with _straight(path) if straight else _replacing(path, there) as file:
        yield file


def _is_stdout(path: Path) -> bool:
    """Tell whether a name such as /dev/stdout leads to where stdout goes already."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(1))
    except OSError:
        return False


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


@contextmanager
def _straight(path: Path) -> Iterator[TextIO]:
    with _opening(path):
        descriptor = os.open(path, os.O_WRONLY)
    with _writing(path), _text(descriptor) as file:
        yield file


@contextmanager
def _replacing(path: Path, there: os.stat_result | None) -> Iterator[TextIO]:
    with _opening(path):
        target = Path(os.path.realpath(path))
        if there is not None and not os.access(target, os.W_OK):
            raise InvalidInput(f"{path}: can't be written: it is read-only")
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".zero-mem-")
    try:
        with _writing(path):
            with _text(descriptor) as file:
                yield file
            if there is not None:
                _take_over(name, target, there)
            os.replace(name, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _take_over(name: str, target: Path, there: os.stat_result) -> None:
    """Give a new file the owner and the mode of the one that it replaces."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(name, there.st_uid, there.st_gid)
    shutil.copymode(target, name)


def _text(descriptor: int) -> TextIO:
    return open(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="\n")


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"{path}: can't be written: {error.strerror}") from error


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputLost(f"{path}: can't be written to its end: {error.strerror}") from error
