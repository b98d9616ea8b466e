"""What a command's exit code means: one table, one function."""

from __future__ import annotations

from typing import Final

from zero_mem.cli.streams import OutputLost, ReaderGone
from zero_mem.errors import (
    Conflict,
    InvalidInput,
    LimitReached,
    MigrationNeeded,
    MissingExtra,
    NotAllowed,
    NotFound,
    RequiredMemoryMissing,
    StoreUnavailable,
    ZeroMemError,
)

NOTHING: Final = 1
USAGE: Final = 2
UNHEALTHY: Final = 8
INTERRUPTED: Final = 130


class PartlyDone(ZeroMemError):
    """All was done that could be, and something of the input could not be read."""


EXIT_CODES: Final = {
    0: "done",
    1: "no such memory, or nothing found, recalled or matched",
    2: "the input or an option is wrong, or an extra is not installed",
    3: "conflict: another write came first, or an id or key is taken",
    4: "not allowed, or a limit is reached",
    5: "the store is not there, can't be opened, is damaged, or newer; or a model can't be reached",
    6: "the output can't be written: the disk is full, or stdout is closed",
    7: "done, but for input that can't be read",
    8: "`doctor` found something bad",
    130: "interrupted",
    141: "whoever read the output has gone, as after `| head -1`; nothing is said",
}

_CODES: Final[tuple[tuple[type[ZeroMemError], int], ...]] = (
    (NotFound, NOTHING),
    (InvalidInput, USAGE),
    (MissingExtra, USAGE),
    (Conflict, 3),
    (NotAllowed, 4),
    (LimitReached, 4),
    (RequiredMemoryMissing, 4),
    (StoreUnavailable, 5),
    (MigrationNeeded, 5),
    (ReaderGone, 141),
    (OutputLost, 6),
    (PartlyDone, 7),
)


def exit_code(error: ZeroMemError) -> int:
    """Give the code with which a command ends on an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), 5)


def table() -> str:
    """Write the table for `--help`."""
    lines = [f"{code:>3}  {meaning}" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["Exit codes:", *lines])
