"""Output files: there whole, or not there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from zero_mem.errors import InvalidInput


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
    """Open a file to write; it takes its name when all is written. `-` is stdout.

    Raises:
        InvalidInput: It can't be written.
    """
    if str(path) == "-":
        yield sys.stdout
        return
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            yield file
        os.replace(part, path)
    except OSError as error:
        raise InvalidInput(f"{path}: can't be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
