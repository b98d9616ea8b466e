"""The file under a SQLite store: opening, connections, locks, migrations, errors."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path as FilePath
from typing import NoReturn

from zero_mem.errors import InvalidInput, StoreCorrupt, StoreUnavailable
from zero_mem.storage import sqlite_schema
from zero_mem.storage.network_fs import warn_if_network
from zero_mem.storage.sqlite_schema import is_current, migrate

BUSY_SECONDS = 60.0
"""How long a writer waits for the others before it gives up."""

PAUSE_SECONDS = 0.01
"""How long it stands aside for another process that empties the log."""

CHECKPOINT_PAGES = 4000
"""How far the write-ahead log grows (16 MB) before its pages are moved into the file."""

COPY_PAGES = 1000
"""Pages that a copy moves in one step."""

_OPEN: weakref.WeakSet[SQLiteFile] = weakref.WeakSet()
_NO_LOCK = nullcontext()
_SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}


class SQLiteFile:
    """A pool of connections to one file, and the one place that talks to its header.

    A thread takes a connection for one transaction and gives it back. Writers of one
    process queue on a lock of their own, so that they never wait in SQLite's busy loop.
    After a fork the child opens connections of its own; fork while no other thread is inside
    a transaction.
    """

    def __init__(self, path: str, *, durability: str, create: bool = True) -> None:
        if durability not in _SYNCHRONOUS:
            raise InvalidInput(f'durability is "full" or "normal", not {durability!r}')
        self.path = path
        self._synchronous = _SYNCHRONOUS[durability]
        self._closed = False
        self.migrated_from: str | None = None
        self._reset()
        _OPEN.add(self)
        if create:
            self._create()
        elif not FilePath(path).exists():
            raise StoreUnavailable(f"{path}: there is no store here; save something to make one")
        warn_if_network(path)
        with translated(path):
            self._identity = self._stat()
            with self._connection() as connection:
                self.origin = self._prepare(connection)

    def _reset(self) -> None:
        self._idle: list[sqlite3.Connection] = []
        self._writing = threading.Lock()

    def leave_to_parent(self) -> None:
        """Close, in a forked child, the connections that it took over.

        All of them, used here or not: SQLite notes locks by process and file, so with one of
        them left it would take the parent's locks for the child's.
        """
        for connection in self._idle:
            connection.close()
        self._reset()

    def _create(self) -> None:
        """Make an empty file for its owner only, before SQLite would make a wider one."""
        with suppress(FileExistsError):
            try:
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            except FileExistsError:
                raise
            except OSError as error:
                raise StoreUnavailable(
                    f"{self.path}: can't make the store: {error.strerror}; "
                    "the folder must exist and be writable"
                ) from error

    def _stat(self) -> tuple[int, int]:
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise StoreUnavailable(
                f"{self.path}: the store's file is gone ({error.strerror}); "
                "open the store again to start a new one"
            ) from error
        return found.st_dev, found.st_ino

    def _check_identity(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self.path}: the store is closed; open it again")
        if self._stat() != self._identity:
            raise StoreUnavailable(
                f"{self.path}: the store's file was replaced by another; open it again"
            )

    def _take(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _give(self, connection: sqlite3.Connection) -> None:
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = self._take()
        try:
            yield connection
        finally:
            self._give(connection)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        return connection

    @contextmanager
    def transaction(self, *, write: bool, durable: bool) -> Iterator[sqlite3.Connection]:
        """Run BEGIN … COMMIT on a connection of the pool, ROLLBACK on an exception."""
        # One generator and not a stack of them: this is on the path of every operation.
        self._check_identity()
        connection = self._take()
        relaxed = write and not durable and self._synchronous != "NORMAL"
        try:
            with self._writing if write else _NO_LOCK:
                if relaxed:
                    connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield connection
                connection.execute("COMMIT")
        except BaseException as error:
            # SQLite has already rolled back by itself after some errors (disk full).
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise_translated(self.path, error)
            raise
        finally:
            if relaxed:
                connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            self._give(connection)

    @contextmanager
    def exclusive(self, *, wait: bool) -> Iterator[sqlite3.Connection]:
        """Give a connection outside any transaction while this process writes nothing else.

        Args:
            wait: False gives up at once where another process is in the way.
        """
        with translated(self.path):
            self._check_identity()
            with self._connection() as connection, self._writing:
                connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000 * wait)}")
                try:
                    yield connection
                finally:
                    connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")

    def _prepare(self, connection: sqlite3.Connection) -> str:
        """Check that the file is ours, bring its schema up to date, give its origin."""
        scripts = sqlite_schema.SCRIPTS
        if not is_current(connection, self.path, scripts):
            _use_write_ahead_log(connection)
            with _transaction(connection, "BEGIN IMMEDIATE"):
                # Another process may have been first.
                if not is_current(connection, self.path, scripts):
                    self.migrated_from = migrate(connection, self.path, scripts, self._copy)
        row = connection.execute("SELECT value FROM store WHERE name = 'origin'").fetchone()
        return str(row[0])

    def copy_to(self, path: str, step: Callable[[], None] = lambda: None) -> None:
        """Copy the file as it is at this moment into a new one, in steps.

        The copy reads one snapshot, so it is consistent and never begins again, and no writer
        waits for it; the log grows meanwhile.

        Args:
            path: The new file.
            step: Called before each step; what it raises ends the copy.
        """
        with translated(self.path):
            self._check_identity()
            self._copy(path, step)

    def _copy(self, path: str, step: Callable[[], None] = lambda: None) -> None:
        with closing(self._connect()) as source, _transaction(source, "BEGIN"):
            source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            with closing(sqlite3.connect(path, isolation_level=None)) as target:
                source.backup(target, pages=COPY_PAGES, progress=lambda *_: step())
                target.execute("PRAGMA journal_mode = DELETE")

    def check(self) -> list[str]:
        """Name damaged pages and rows, and an index that does not fit."""
        found: list[str] = []
        with translated(self.path), self._connection() as connection:
            rows = connection.execute("PRAGMA integrity_check(20)")
            found += [f"damaged: {text}" for (text,) in rows if text != "ok"]
            try:
                # The rank 1 compares with the records' own terms, too.
                compare = "INSERT INTO lexicon (lexicon, rank) VALUES ('integrity-check', 1)"
                connection.execute(compare)
            except sqlite3.DatabaseError as error:
                # It counts as a write: a read-only disk refuses it, and says nothing by that.
                if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CORRUPT:
                    found.append(
                        "the lexical index does not fit the records; scrub the store to rebuild "
                        "it (zero-mem verify --rebuild)"
                    )
        return found

    def size(self) -> int:
        """Tell the bytes of the file and its write-ahead log."""
        paths = (self.path, f"{self.path}-wal")
        return sum(os.path.getsize(path) for path in paths if os.path.exists(path))

    def close(self) -> None:
        """Close the idle connections, and the others when they come back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def _leave_to_parent() -> None:
    for file in list(_OPEN):
        file.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def empty_log(connection: sqlite3.Connection, *, wait: bool) -> bool:
    """Move everything of the write-ahead log into the file and cut the log to nothing.

    SQLite waits by itself for readers and writers of other processes, but gives up at once where
    one of them is emptying the log as well, and that one may be waiting for our writes.

    Args:
        connection: Outside any transaction.
        wait: False gives up where anybody is in the way.

    Returns:
        Whether the log is empty.
    """
    until = time.monotonic() + BUSY_SECONDS * wait
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() >= until:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has already rolled back by itself after some errors (disk full).
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite answers "locked" without waiting while others do the same."""
    for _ in range(1000):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            # Waits in SQLite's busy handler until the other one's lock is gone.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    raise StoreUnavailable("the store stays locked while it is made; close other openers")


_MEANINGS: dict[int, tuple[type[StoreUnavailable], str]] = {
    sqlite3.SQLITE_BUSY: (
        StoreUnavailable,
        "another process holds the store's lock too long; try again",
    ),
    sqlite3.SQLITE_LOCKED: (StoreUnavailable, "the store is locked; try again"),
    sqlite3.SQLITE_FULL: (
        StoreUnavailable,
        "the disk is full; nothing of this operation was written. Free space and try again",
    ),
    sqlite3.SQLITE_READONLY: (
        StoreUnavailable,
        "the store is read-only (file, folder or file system); make it writable for this user",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        StoreUnavailable,
        "the store can't be opened; check that the folder exists and may be written to",
    ),
    sqlite3.SQLITE_IOERR: (
        StoreUnavailable,
        "reading or writing the store failed; nothing of this operation was acknowledged. Look at "
        "the disk, which may have failed or become read-only, and try again",
    ),
    sqlite3.SQLITE_NOTADB: (StoreCorrupt, "this file is not a Zero-Mem store"),
    sqlite3.SQLITE_CORRUPT: (
        StoreCorrupt,
        "the store is damaged; restore a backup, or export what can still be read",
    ),
}


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn SQLite's errors into ours, naming the file and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise_translated(path, error)


def raise_translated(path: str, error: sqlite3.Error) -> NoReturn:
    """Raise what an error of SQLite means; one that no user can cause goes on as it is."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code not in _MEANINGS:
        raise error
    kind, meaning = _MEANINGS[code]
    raise kind(f"{path}: {meaning}") from error
