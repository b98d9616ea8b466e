"""The schema of a PostgreSQL store: whether it is there, making it, and bringing it up to date.

An older store is copied first, into a schema beside it; then all scripts that it lacks run, in one
transaction. One process migrates at a time (an advisory lock); what needs a table for itself waits
only a moment for it and is tried again, so that readers and writers never queue behind it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path as FilePath

import psycopg

from zero_mem.errors import MigrationNeeded, StoreCorrupt, StoreUnavailable
from zero_mem.storage.postgres_copy import copy_store
from zero_mem.storage.postgres_server import Connection, Server, translated

SCHEMA_VERSION = 3
PARTITIONS = 16
"""Hash partitions of each large table."""

LOCK_MILLISECONDS = 2000
"""How long a step of a migration waits for a table while others wait behind it."""

TRIES = 30

MIGRATIONS = FilePath(__file__).with_name("migrations") / "postgres"


def prepare(server: Server, *, create: bool, origin: str = "") -> tuple[str, str]:
    """Check the store, make or migrate it, and give its origin and the server's durability.

    Args:
        server: The database.
        create: False refuses a database that holds no store.
        origin: The origin that a new store is given; a random one by default.

    Raises:
        StoreUnavailable: There is no store, or it can't be reached or changed.
        StoreCorrupt: The schema holds something else.
        MigrationNeeded: A newer version wrote it.
    """
    with translated(server.name), server.connect() as connection:
        connection.autocommit = True
        version = _version(server, connection)
        if version == 0 and not create:
            raise StoreUnavailable(
                f"{server.name}: there is no store in the schema {server.schema}; "
                "save something to make one"
            )
        if version < SCHEMA_VERSION:
            _migrate(server, connection, origin or secrets.token_hex(8))
        return _facts(server, connection)


NODES = 64
"""How many nodes may make up one store: each numbers its namespaces in steps of so many."""


def become_node(server: Server, name: str, place: int) -> None:
    """Note that a new, empty store is one node of a larger one, and number its namespaces apart.

    Args:
        server: The database.
        name: The node's name.
        place: Its place among the nodes, from 0; no two nodes have the same.

    Raises:
        StoreCorrupt: It is another node, or holds namespaces of its own.
    """
    schema = server.schema
    with translated(server.name), server.connect() as connection, connection.transaction():
        connection.execute(f"LOCK TABLE {schema}.store IN SHARE ROW EXCLUSIVE MODE".encode())
        sql = f"SELECT value FROM {schema}.store WHERE name = 'node'"
        found = connection.execute(sql.encode()).fetchone()
        if found is not None and found[0] != name:
            raise StoreCorrupt(f"{server.name}: this is the node {found[0]!r}, not {name!r}")
        if found is not None:
            return
        connection.execute(b"SELECT set_config('zero_mem.path', '[', true)")
        if connection.execute(f"SELECT 1 FROM {schema}.namespace LIMIT 1".encode()).fetchone():
            raise StoreCorrupt(
                f"{server.name}: a store that holds memories can't become a node; export them, "
                "and import them into the store of all nodes"
            )
        connection.execute(
            f"ALTER TABLE {schema}.namespace ALTER COLUMN number SET INCREMENT BY {NODES}"
            f" RESTART WITH {place + 1}".encode()
        )
        note = f"INSERT INTO {schema}.store VALUES ('node', %s)"
        connection.execute(note.encode(), (name,))


def _version(server: Server, connection: Connection) -> int:
    store = f"{server.schema}.store"
    there = connection.execute(b"SELECT to_regclass(%s) IS NOT NULL", (store,)).fetchone()
    if there != (True,):
        return 0
    sql = f"SELECT value FROM {store} WHERE name = 'version'"
    found = connection.execute(sql.encode()).fetchone()
    version = int(found[0]) if found else 0
    if version > SCHEMA_VERSION:
        raise MigrationNeeded(
            f"{server.name}: written by a newer Zero-Mem (schema {version}; this one knows "
            f"{SCHEMA_VERSION}); upgrade zero-mem to open it"
        )
    return version


def _facts(server: Server, connection: Connection) -> tuple[str, str]:
    sql = f"SELECT value FROM {server.schema}.store WHERE name = 'origin'"
    origin = connection.execute(sql.encode()).fetchone()
    synchronous = connection.execute(b"SHOW synchronous_commit").fetchone()
    assert origin is not None
    assert synchronous is not None
    return str(origin[0]), str(synchronous[0])


def _migrate(server: Server, connection: Connection, origin: str) -> None:
    try:
        with connection.transaction():
            _update(server, connection, origin)
    except psycopg.errors.DuplicateTable as error:
        if _version(server, connection):
            return  # another process was first, and this one looked too early
        raise StoreCorrupt(
            f"{server.name}: the schema {server.schema} holds tables of something else; "
            "name another one in the URL (?schema=…)"
        ) from error


def _update(server: Server, connection: Connection, origin: str) -> None:
    """Copy an older store, then run every script that it lacks: all of it or nothing."""
    connection.execute(
        b"SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"zero-mem {server.schema}",)
    )
    # Another process may have been first.
    current = _version(server, connection)
    if current == SCHEMA_VERSION:
        return
    if current and server.target.migrate == "refuse":
        raise MigrationNeeded(
            f"{server.name}: written by an older Zero-Mem (schema {current}; this one writes "
            f"{SCHEMA_VERSION}), and the URL says migrate=refuse; open it once without that"
        )
    if current and server.target.migrate == "copy":
        _copy(server, connection, current)
    for _ in range(TRIES):
        with suppress(psycopg.errors.LockNotAvailable):
            _step(server, connection, current, origin)
            return
    raise StoreUnavailable(
        f"{server.name}: a table stays locked while the store's schema is brought up to date; "
        "end long transactions and open the store again"
    )


def _copy(server: Server, connection: Connection, current: int) -> None:
    try:
        copy_store(
            connection,
            server.schema,
            current,
            lambda schema: _run(connection, schema, _scripts()[:current]),
        )
    except psycopg.Error as error:
        if connection.broken:
            raise
        raise StoreUnavailable(
            f"{server.name}: written by an older Zero-Mem (schema {current}); it is copied before "
            f"it is brought up to date, and that failed (SQLSTATE {error.sqlstate}). The store is "
            "as it was. Let this user make a schema and see to room on the disk, or back the "
            "store up yourself and open it with ?migrate=bare"
        ) from error


def _scripts() -> list[FilePath]:
    return sorted(MIGRATIONS.glob("*.sql"))


def _run(connection: Connection, schema: str, scripts: Sequence[FilePath]) -> None:
    """Run scripts of the folder in a schema, which is made if it is not there."""
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
    for script in scripts:
        sql = script.read_text("utf-8").format(schema=schema, partitions=PARTITIONS)
        connection.execute(sql.encode())


def _step(server: Server, connection: Connection, current: int, origin: str) -> None:
    """Run every script that is missing, all or none, and wait but a moment for any table."""
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}".encode())
            _run(connection, server.schema, _scripts()[current:])
            _note(server, connection, origin)
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DuplicateTable):
        raise
    except psycopg.Error as error:
        if connection.broken or not current:
            raise
        raise StoreUnavailable(
            f"{server.name}: bringing the store from schema {current} to {SCHEMA_VERSION} failed "
            f"(SQLSTATE {error.sqlstate}); the store is as it was"
        ) from error


def _note(server: Server, connection: Connection, origin: str) -> None:
    """Note whose store it is, if that is new, and its version."""
    note = f"INSERT INTO {server.schema}.store VALUES (%s, %s) ON CONFLICT (name) DO "
    connection.execute(f"{note} NOTHING".encode(), ("origin", origin))
    connection.execute(
        f"{note} UPDATE SET value = EXCLUDED.value".encode(), ("version", str(SCHEMA_VERSION))
    )
