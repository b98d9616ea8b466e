"""The server under a PostgreSQL store: its URL, connections, transactions, errors."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NoReturn, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import psycopg
import psycopg_pool

from zero_mem.errors import InvalidInput, StoreCorrupt, StoreUnavailable
from zero_mem.storage.base import PoolState

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
Cursor: TypeAlias = "psycopg.Cursor[tuple[Any, ...]]"
Statement: TypeAlias = tuple[str, Sequence[Any]]

CONNECTIONS = 16
"""How many connections a store opens at most, by default."""

PATIENCE = 30.0
"""Seconds that a transaction waits for a connection, by default."""

MIGRATE = ("copy", "bare", "refuse")
"""What becomes of an older store: brought up to date after a copy, without one, or not at all."""

RECONNECT = 1.0
"""Seconds after which the pool gives up a connection that it can't open, until the next asks.

Its own default tries for minutes, at ever longer intervals: a server that was away for one minute
would be left alone for up to another.
"""

TURN = 2.0
"""Seconds that a transaction waits in one go; then it asks anew, so that the pool tries anew."""

LIBPQ = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "tcp_user_timeout": "30000",
    "application_name": "zero-mem",
}
"""What libpq is told where the URL says nothing else: nobody waits long for a dead server."""

_OPEN: weakref.WeakSet[Server] = weakref.WeakSet()


class Target:
    """What a store's URL says: the database, and what is for the store itself.

    Raises:
        InvalidInput: An option has no value of its kind.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.schema = options.pop("schema", "zero_mem")
        if not (self.schema.isidentifier() and self.schema.isascii() and len(self.schema) < 60):
            raise InvalidInput(f"schema is a plain name, not {self.schema!r}")
        self.connections = _count(options.pop("connections", str(CONNECTIONS)), "connections")
        self.patience = float(_count(options.pop("patience", str(int(PATIENCE))), "patience"))
        self.migrate = options.pop("migrate", MIGRATE[0])
        if self.migrate not in MIGRATE:
            raise InvalidInput(f"migrate is one of {', '.join(MIGRATE)}, not {self.migrate!r}")
        prepared = options.pop("prepare_threshold", "")
        self.prepare_threshold = _count(prepared, "prepare_threshold") if prepared else None
        credentials, _, host = parts.netloc.rpartition("@")
        # Quoted anew, so that no part of a password with odd signs is taken for the host.
        user = ":".join(quote(unquote(part), safe="") for part in credentials.split(":", 1))
        netloc = f"{user}@{host}" if credentials else host
        self.conninfo = urlunsplit(parts._replace(netloc=netloc, query=urlencode(LIBPQ | options)))
        host = host or options.get("host", "")
        self.name = f"postgresql://{host}{parts.path}"
        """The place without user and password, for messages."""


def _count(text: str, what: str) -> int:
    if text.isdecimal() and 0 < int(text) < 10_000:
        return int(text)
    raise InvalidInput(f"{what} in a store's URL is a number from 1, not {text!r}")


class Server:
    """A bounded pool of connections to one database, safe to share between threads.

    Nothing is kept in a connection between transactions, so that a pooler may stand between
    (pgbouncer in transaction mode). After a fork the child opens connections of its own.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.name = target.name
        self.schema = target.schema
        self._closed = False
        self.reset()
        _OPEN.add(self)

    def reset(self) -> None:
        """Begin with no connection; a forked child leaves the parent's alone."""
        self._opening = threading.Lock()
        self._pool: psycopg_pool.ConnectionPool[Connection] | None = None
        self._asked_again = self._gave_up = 0

    def connect(self) -> Connection:
        """Open a connection outside the pool.

        Raises:
            InvalidInput: The URL has an option that libpq does not know.
            StoreUnavailable: The server does not let us in; the message says why.
        """
        try:
            return psycopg.connect(self.target.conninfo, **self._options())
        except psycopg.ProgrammingError as error:
            raise InvalidInput(f"{self.name}: {' '.join(str(error).split())}") from error
        except psycopg.Error as error:
            # What libpq says of a failed connection has host and user, never a password.
            why = " ".join(str(error).split())
            raise StoreUnavailable(f"{self.name}: can't connect: {why}") from error

    def _options(self) -> dict[str, Any]:
        return {"autocommit": True, "prepare_threshold": self.target.prepare_threshold}

    def _opened(self) -> psycopg_pool.ConnectionPool[Connection]:
        if self._closed:
            raise StoreUnavailable(f"{self.name}: the store is closed; open it again")
        with self._opening:
            if self._pool is None:
                self._pool = psycopg_pool.ConnectionPool(
                    self.target.conninfo,
                    min_size=0,
                    max_size=self.target.connections,
                    timeout=self.target.patience,
                    reconnect_timeout=RECONNECT,
                    kwargs=self._options(),
                    name="zero-mem",
                    open=True,
                )
            return self._pool

    def take(self) -> Connection:
        """Take a connection for one transaction.

        Raises:
            StoreUnavailable: The store is closed, or no connection is free in time.
        """
        pool = self._pool or self._opened()
        try:
            try:
                return pool.getconn(timeout=min(TURN, self.target.patience))
            except psycopg_pool.PoolTimeout:
                return self._waited_for(pool, time.monotonic() + self.target.patience - TURN)
        except psycopg_pool.PoolTimeout as error:
            raise StoreUnavailable(
                f"{self.name}: no connection within {self.target.patience:g} seconds; the server "
                f"does not answer, or all {self.target.connections} connections are busy"
            ) from error
        except psycopg_pool.PoolClosed as error:
            raise StoreUnavailable(f"{self.name}: the store is closed; open it again") from error

    def _waited_for(
        self, pool: psycopg_pool.ConnectionPool[Connection], until: float
    ) -> Connection:
        """Ask again and again for a connection, until a moment of the monotonic clock."""
        while (left := until - time.monotonic()) > 0:
            with self._opening:
                self._asked_again += 1
            with suppress(psycopg_pool.PoolTimeout):
                return pool.getconn(timeout=min(TURN, left))
        with self._opening:
            self._gave_up += 1
        raise psycopg_pool.PoolTimeout

    def give(self, connection: Connection) -> None:
        """Give a connection back; one that is broken or still in a transaction is closed."""
        pool = self._pool
        if pool is None:
            connection.close()
            return
        pool.putconn(connection)

    def pool_state(self) -> PoolState:
        """Tell how the pool stands."""
        most = self.target.connections
        pool = self._pool
        if pool is None:
            return PoolState(most=most)
        found: dict[str, int] = pool.get_stats()
        size = found["pool_size"]
        return PoolState(
            most=most,
            size=size,
            in_use=max(0, size - found["pool_available"]),
            waiting=found["requests_waiting"],
            requests=found.get("requests_num", 0) - self._asked_again,
            waits=found.get("requests_queued", 0) - self._asked_again,
            wait_seconds=found.get("requests_wait_ms", 0) / 1000,
            timeouts=self._gave_up,
            lost=found.get("returns_bad", 0) + found.get("connections_lost", 0),
        )

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        if self._pool is not None:
            self._pool.close()


def _leave_to_parent() -> None:
    for server in list(_OPEN):
        server.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


class Session:
    """One transaction on a connection that is taken when the first statement needs it.

    Statements that give nothing back wait for the next one that does, or for the commit, and
    travel with it: a save is two round trips.
    """

    def __init__(self, server: Server, *, write: bool) -> None:
        self._server = server
        self._write = write
        self._begin = (
            "BEGIN ISOLATION LEVEL READ COMMITTED"
            if write
            else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        )
        self._connection: Connection | None = None
        self._begun = False
        self._waiting: list[Statement] = []
        self._pipeline: ExitStack | None = None

    def defer(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement later, before anything that comes after it."""
        self._waiting.append((sql, values))

    def send(self) -> None:
        """Let the server begin on what waits, and do not wait for it."""
        if not self._begun or self._connection is None:
            return
        self._pipeline = self._pipelined(self._connection)
        for sql, values in self._waiting:
            self._connection.execute(sql.encode(), values or None)
        self._waiting.clear()

    def run(self, sql: str, values: Sequence[Any] = ()) -> Cursor:
        """Run a statement, after those that wait, and give its rows."""
        statements = [*self._waiting, (sql, values)]
        self._waiting.clear()
        if self._begun:
            return self._send(statements)
        statements.insert(0, (self._begin, ()))
        return self._send_first(statements)

    def _send_first(self, statements: Sequence[Statement]) -> Cursor:
        """Begin; a connection that was lost while it was idle is replaced, nothing was done."""
        # After a restart of the server every pooled connection is a lost one; the next is new.
        for _ in range(self._server.target.connections + 1):
            self._connection = self._server.take()
            try:
                cursor = self._send(statements)
            except psycopg.OperationalError:
                if not self._connection.broken:
                    raise
                self._drop()
            else:
                self._begun = True
                return cursor
        raise StoreUnavailable(
            f"{self._server.name}: the server closes every connection; nothing was read or written"
        )

    def _send(self, statements: Sequence[Statement]) -> Cursor:
        """Run statements in one round trip; give the rows of the last one."""
        connection = self._connection
        assert connection is not None
        if self._pipeline is not None:
            pipeline, self._pipeline = self._pipeline, None
            with pipeline:
                for sql, values in statements:
                    cursor = connection.execute(sql.encode(), values or None)
            return cursor
        if len(statements) == 1:
            ((sql, values),) = statements
            return connection.execute(sql.encode(), values or None)
        # As one message: a pipeline sends each statement by itself, and wakes the server for it.
        whole = psycopg.ClientCursor(connection)
        together = "; ".join([sql for sql, _ in statements])
        whole.execute(together.encode(), [value for _, values in statements for value in values])
        while whole.nextset():
            pass
        return whole

    def _pipelined(self, connection: Connection) -> ExitStack:
        """Give the open pipeline, or one that is opened now; leaving it waits for the server."""
        if self._pipeline is not None:
            return self._pipeline
        with ExitStack() as stack:
            stack.enter_context(connection.pipeline())
            return stack.pop_all()

    def _drop(self) -> None:
        if self._connection is not None:
            self._server.give(self._connection)
            self._connection = None
        self._begun = False

    def commit(self) -> None:
        """Send what waits and commit.

        Raises:
            StoreUnavailable: The connection was lost on the way: whether the write took effect
                is unknown.
        """
        statements = [*self._waiting, ("COMMIT", ())]
        self._waiting.clear()
        if not self._begun:
            if len(statements) == 1:
                return
            self._send_first([(self._begin, ()), *statements[:-1]])
            statements = statements[-1:]
        try:
            self._send(statements)
        except psycopg.OperationalError as error:
            assert self._connection is not None
            if self._write and self._connection.broken:
                self._drop()
                raise StoreUnavailable(
                    f"{self._server.name}: the connection was lost before the server answered the "
                    "commit; whether the write took effect is unknown. Repeat it with the same "
                    "idempotency key, or read before writing again"
                ) from error
            if self._write:
                raise
            # What was to be read has been read.
        self._drop()

    def roll_back(self) -> None:
        """Undo everything and give the connection back."""
        self._waiting.clear()
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            with suppress(psycopg.Error):
                pipeline.close()
        if self._connection is not None and self._begun and not self._connection.broken:
            with suppress(psycopg.Error):
                self._connection.execute(b"ROLLBACK")
        self._drop()


_RETRY = "nothing of this operation was written; try again"
_MEANINGS: dict[str, tuple[type[StoreUnavailable], str]] = {
    "08": (StoreUnavailable, f"the connection to the server was lost; {_RETRY}"),
    "25006": (StoreUnavailable, "this server is a read-only replica; connect to the primary"),
    "28": (StoreUnavailable, "the server refuses this user; check name, password and pg_hba.conf"),
    "40": (StoreUnavailable, f"two transactions were in each other's way; {_RETRY}"),
    "42501": (StoreUnavailable, "this database user lacks a right on the store's tables"),
    "42P01": (StoreCorrupt, "a table of the store is missing; restore a backup"),
    "3F000": (StoreCorrupt, "the store's schema is missing; restore a backup"),
    "42883": (StoreCorrupt, "a function of the store is missing; restore a backup"),
    "53100": (StoreUnavailable, f"the server's disk is full; {_RETRY} with free space"),
    "53": (StoreUnavailable, f"the server is short of memory or connections; {_RETRY}"),
    "55P03": (StoreUnavailable, f"another writer holds the namespace too long; {_RETRY}"),
    "57014": (StoreUnavailable, f"the server cancelled the statement; {_RETRY}"),
    "57": (StoreUnavailable, f"the server is stopping or starting; {_RETRY}"),
    "58": (StoreUnavailable, f"the server can't read or write its files; {_RETRY}"),
    "XX001": (StoreCorrupt, "the server reports damaged data; restore a backup"),
    "XX002": (StoreCorrupt, "the server reports a damaged index; REINDEX it"),
}


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Turn psycopg's errors into ours, naming the server and what to do."""
    try:
        yield
    except psycopg.Error as error:
        raise_translated(name, error)


def raise_translated(name: str, error: psycopg.Error) -> NoReturn:
    """Raise what an error of PostgreSQL means; one that no user can cause goes on as it is."""
    code = error.sqlstate or ("08" if _is_lost(error) else "")
    for known in (code, code[:2]):
        if known in _MEANINGS:
            kind, meaning = _MEANINGS[known]
            raise kind(f"{name}: {meaning}") from error
    raise error


def _is_lost(error: psycopg.Error) -> bool:
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
