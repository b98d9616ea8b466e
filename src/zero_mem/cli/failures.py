"""What a command's exit code means: one table, one function."""

from __future__ import annotations

from typing import Final

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

EXIT_CODES: Final = {
    0: "done",
    1: "no such memory, or a search that found nothing",
    2: "the input or an option is wrong, or an extra is not installed",
    3: "conflict: another write came first, or an id or key is taken",
    4: "not allowed, or a limit is reached",
    5: "the store can't be opened, is damaged, or is of a newer version",
}

_CODES: Final[tuple[tuple[type[ZeroMemError], int], ...]] = (
    (NotFound, NOTHING),
    (InvalidInput, 2),
    (MissingExtra, 2),
    (Conflict, 3),
    (NotAllowed, 4),
    (LimitReached, 4),
    (RequiredMemoryMissing, 4),
    (StoreUnavailable, 5),
    (MigrationNeeded, 5),
)


def exit_code(error: ZeroMemError) -> int:
    """Give the code with which a command ends on an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), 5)


def table() -> str:
    """Write the table for `--help`."""
    lines = [f"{code}  {meaning}" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["Exit codes:", *lines])
