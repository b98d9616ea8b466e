"""The copy of a PostgreSQL store that is made before its schema is brought up to date.

It is a store of its own in a schema beside the first one, which the version that wrote it opens
by `?schema=…`. Nobody waits while it is made: each namespace is copied by one statement, as it is
at that moment.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from zero_mem.storage.postgres_server import Connection

_OF_NAMESPACES = (
    "body", "journal", "record", "lexicon", "vector", "decision", "hold", "counter",
)  # fmt: skip
_OF_STORE = ("store", "departed", "namespace")


def copy_store(
    connection: Connection, schema: str, version: int, make: Callable[[str], None]
) -> str:
    """Copy a store into a new schema, inside the transaction that is open.

    Args:
        connection: Of a user who may make a schema.
        schema: The store's schema.
        version: Which version of the schema it is.
        make: Makes the empty tables of that version in a schema.

    Returns:
        The new schema's name.
    """
    copy = _free_name(connection, f"{schema}_schema{version}")
    make(copy)
    connection.execute(b"SELECT set_config('zero_mem.path', '[', true)")
    for table in _OF_STORE:
        connection.execute(f"INSERT INTO {copy}.{table} SELECT * FROM {schema}.{table}".encode())
    _go_on_counting(connection, schema, copy)
    *others, last = (
        f"INSERT INTO {copy}.{table} SELECT * FROM {schema}.{table} WHERE namespace = %(number)s"
        for table in _OF_NAMESPACES
    )
    parts = ", ".join(f"part{place} AS ({insert})" for place, insert in enumerate(others))
    listed = connection.execute(f"SELECT number FROM {copy}.namespace ORDER BY number".encode())
    for (number,) in listed.fetchall():
        connection.execute(b"SELECT set_config('zero_mem.namespace', %s, true)", (str(number),))
        connection.execute(f"WITH {parts} {last}".encode(), {"number": number})
    return copy


def _go_on_counting(connection: Connection, schema: str, copy: str) -> None:
    """Let the copy number new namespaces as the store would."""
    found = connection.execute(
        b"SELECT coalesce(last_value + increment_by, start_value), increment_by FROM pg_sequences"
        b" WHERE schemaname = %s AND sequencename = 'namespace_number_seq'",
        (schema,),
    ).fetchone()
    assert found is not None
    following, step = found
    connection.execute(
        f"ALTER TABLE {copy}.namespace ALTER COLUMN number SET INCREMENT BY {step}"
        f" RESTART WITH {following}".encode()
    )


def _free_name(connection: Connection, wanted: str) -> str:
    rows = connection.execute(b"SELECT nspname FROM pg_namespace").fetchall()
    taken = {name for (name,) in rows}
    if wanted not in taken:
        return wanted
    return next(name for n in count(2) if (name := f"{wanted}_{n}") not in taken)
