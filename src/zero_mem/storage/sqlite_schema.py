"""The schema of an SQLite store: made by numbered scripts, brought up to date after a backup.

The number of the last script that ran is in the file's header. An older file is copied first;
then all scripts that it lacks run in one transaction.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Final

from zero_mem.errors import MigrationNeeded, StoreCorrupt, StoreUnavailable

APPLICATION_ID: Final = 0x5A4D454D
"""Marks the file as ours in SQLite's header ("ZMEM")."""

SCRIPTS: Final = FilePath(__file__).with_name("migrations")


def schema_version(scripts: FilePath = SCRIPTS) -> int:
    """Tell the newest schema that this version knows."""
    return len(_numbered(scripts))


def is_current(connection: sqlite3.Connection, path: str, scripts: FilePath) -> bool:
    """Tell whether a file has the newest schema.

    Raises:
        StoreCorrupt: It is another program's.
        MigrationNeeded: A newer version wrote it.
    """
    version, known = pragma(connection, "user_version"), schema_version(scripts)
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and pragma(connection, "application_id") != APPLICATION_ID:
        raise StoreCorrupt(
            f"{path}: this is an SQLite file of another program, not a Zero-Mem store"
        )
    if version > known:
        raise MigrationNeeded(
            f"{path}: written by a newer Zero-Mem (schema {version}; this one knows {known}); "
            "upgrade zero-mem to open it"
        )
    return version == known


def migrate(
    connection: sqlite3.Connection,
    path: str,
    scripts: FilePath,
    copy: Callable[[str], None],
) -> str | None:
    """Run the scripts that a file lacks; the caller holds its write lock, and commits.

    Args:
        connection: Inside a transaction for writing.
        path: The file, for names and messages.
        scripts: The folder of the scripts.
        copy: Copies the file, over a connection of its own, to a path.

    Returns:
        The backup that was made of an older store, None of a new one.

    Raises:
        StoreUnavailable: The backup can't be made, or a script fails; the file stays as it is.
    """
    current = pragma(connection, "user_version")
    backup = _back_up(path, current, copy) if current else None
    try:
        for script in _numbered(scripts)[current:]:
            for statement in _statements(script.read_text("utf-8")):
                connection.execute(statement)
    except sqlite3.Error as error:
        if backup is None:
            raise
        raise StoreUnavailable(
            f"{path}: bringing the store from schema {current} to {schema_version(scripts)} "
            f"failed ({error}); the store is as it was, and a copy of it is {backup}"
        ) from error
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {schema_version(scripts)}")
    origin = "INSERT OR IGNORE INTO store VALUES ('origin', ?)"
    connection.execute(origin, (secrets.token_hex(8),))
    return backup


def _back_up(path: str, version: int, copy: Callable[[str], None]) -> str:
    """Copy an older store beside itself, under a name that says which schema it has."""
    backup = _free_name(f"{path}.schema{version}")
    try:
        os.close(os.open(backup, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        copy(backup)
        handle = os.open(backup, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except (OSError, sqlite3.Error, StoreUnavailable) as error:
        with suppress(FileNotFoundError):
            os.unlink(backup)
        raise StoreUnavailable(
            f"{path}: written by an older Zero-Mem (schema {version}); it is copied before it is "
            f"brought up to date, and that failed ({error}). The store is as it was"
        ) from error
    return backup


def _free_name(wanted: str) -> str:
    names = (f"{wanted}.{number}.backup" if number else f"{wanted}.backup" for number in range(999))
    return next(name for name in names if not os.path.exists(name))


def _numbered(scripts: FilePath) -> list[FilePath]:
    return sorted(scripts.glob("*.sql"))


def _statements(script: str) -> Iterator[str]:
    """Split a migration into statements (they hold no `;` of their own)."""
    return (part.strip() for part in script.split(";\n") if part.strip())


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """Read a number of the file's header."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
