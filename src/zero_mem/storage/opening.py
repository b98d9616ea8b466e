"""Stores opened by URL: a file, a server, several servers, or this process alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

from zero_mem.errors import InvalidInput, MissingExtra, NotAllowed, StoreUnavailable
from zero_mem.storage.base import SEALED, Storage
from zero_mem.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from zero_mem.storage.data_keys import Encryption

URL_VARIABLE: Final = "ZERO_MEM_URL"
"""The environment variable that names the store where no URL is given."""


def default_path() -> FilePath:
    """Give the file that `Memory.open()` uses: memory.db in the user's data folder."""
    base = os.environ.get("XDG_DATA_HOME") or FilePath.home() / ".local" / "share"
    return FilePath(base) / "zero-mem" / "memory.db"


def open_storage(url: str | None, *, durability: str = "full", create: bool = True) -> Storage:
    """Open the store that a URL names.

    Raises:
        InvalidInput: The URL names no store this version knows.
    """
    if url is None:
        path = default_path()
        if create:
            _make_folder(path.parent)
        return _sqlite(str(path), durability, create)
    if not isinstance(url, str):
        raise InvalidInput(f"the store is named by a URL such as sqlite:///{url}, a string")
    if url == "memory://":
        return MemoryStorage()
    file = sqlite_path(url)
    if file is not None:
        return _sqlite(file, durability, create)
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        return _postgres(url, durability, create)
    if separator and scheme == "routes" and rest[:1] == "/" and rest[1:]:
        return _routed(rest[1:], durability, create)
    raise InvalidInput(
        f"{url!r} names no store; use sqlite:///relative.db, sqlite:////absolute/path.db, "
        "memory://, postgresql://user@host/database or routes:///table.json"
    )


def sqlite_path(url: str) -> str | None:
    """Give the file that a URL names, None where it names another kind of store."""
    scheme, _, rest = url.partition("://")
    named = scheme == "sqlite" and rest[:1] == "/" and rest[1:] not in ("", ":memory:")
    return rest[1:] if named else None


def shown(url: str | None) -> str:
    """Name a store or a server for people: without user, password and options."""
    if url is None:
        return str(default_path())
    if sqlite_path(url) is not None:
        return url
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def unlocked(storage: Storage, encryption: Encryption | None) -> Storage:
    """Open an encrypted store with its keys; refuse one without them."""
    try:
        if encryption is not None:
            from zero_mem.storage.sealed import SealedStorage

            return SealedStorage(storage, encryption)
        if storage.note(SEALED) is not None:
            raise NotAllowed(
                "the store is encrypted: open it with encryption=Encryption(…), or name its key in "
                "ZERO_MEM_MASTER_KEY_FILE on the command line"
            )
    except BaseException:
        storage.close()
        raise
    return storage


def _sqlite(path: str, durability: str, create: bool) -> Storage:
    # Imported here so that a program with an in-memory store never loads sqlite3.
    from zero_mem.storage.sqlite import SQLiteStorage

    return SQLiteStorage(path, durability=durability, create=create)


def _postgres(url: str, durability: str, create: bool) -> Storage:
    with _extra_of_postgres():
        from zero_mem.storage.postgres import PostgresStorage
    return PostgresStorage(url, durability=durability, create=create)


def _routed(path: str, durability: str, create: bool) -> Storage:
    with _extra_of_postgres():
        from zero_mem.storage.routing_store import RoutedStorage
    return RoutedStorage(path, durability=durability, create=create)


@contextmanager
def _extra_of_postgres() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("psycopg", "psycopg_pool"):
            raise
        raise MissingExtra("PostgreSQL", "postgres") from error


def _make_folder(folder: FilePath) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"{folder}: can't make the folder: {error.strerror}") from error
