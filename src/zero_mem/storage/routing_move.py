"""Moving a tenant from one PostgreSQL node to another while it is read and written.

Its rows are copied and followed by logical replication with a row filter. Then one commit on the
old node makes the new one its home: from there on the old node refuses it, and the new one, which
receives changes in the order of their commits, has everything when that commit arrives. Each step
may be done again, so that a move that was cut short is finished by starting it anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path as FilePath

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from zero_mem.errors import InvalidInput, StoreUnavailable
from zero_mem.storage.codec import below, decode_path, encode_path
from zero_mem.storage.postgres_server import Connection, Target, translated
from zero_mem.storage.postgres_text import digest, escape, unescape
from zero_mem.storage.routing import read_routes, write_routes
from zero_mem.storage.routing_store import RoutedStorage
from zero_mem.types import Path

_TABLES = ("counter", "body", "journal", "record", "lexicon", "vector", "decision", "hold")
_PAUSE = 0.05


def move_tenant(
    file: FilePath,
    prefix: Path,
    node: str,
    *,
    admins: Mapping[str, str],
    patience: float = 3600.0,
    progress: Callable[[str], None] = lambda step: None,
) -> int:
    """Move the namespaces at and below a path to another node, and the routing table with them.

    Args:
        file: The routing table.
        prefix: The path of the tenant.
        node: Where it goes.
        admins: For both nodes a URL of a user who may replicate: a superuser, or one with
            pg_create_subscription and BYPASSRLS. The new node connects by the old one's.
        patience: Seconds until the move is given up; what was done stays and can be resumed.
        progress: Told of each step.

    Returns:
        How many namespaces were moved.

    Raises:
        InvalidInput: The table has no such node, or both are databases of one server.
        StoreUnavailable: A node can't be reached or does not let this user replicate, or it
            takes too long.
    """
    routes = read_routes(file)
    origin = routes.node_of(prefix)
    if node not in routes.nodes or not {origin, node} <= admins.keys():
        raise InvalidInput(f"the move needs URLs of {origin!r} and {node!r}, and both in {file}")
    if origin == node:
        return 0
    with closing(RoutedStorage(str(file))) as storage:
        # Both are there, and are what the table says they are.
        storage.node(origin)
        storage.node(node)
    ends = Target(admins[origin]), Target(admins[node])
    with (
        translated(" → ".join(end.name for end in ends)),
        _connected(ends[0]) as old,
        _connected(ends[1]) as new,
    ):
        _check_apart(old, new)
        move = _Move(
            old=old,
            new=new,
            schema=Target(routes.nodes[origin]).schema,
            prefix=prefix,
            node=node,
            source=ends[0].conninfo,
            until=time.monotonic() + patience,
            progress=progress,
        )
        move.copy()
        move.hand_over()
        move.clean_up()
        # Last, since nobody depends on it: the old node sends everybody to the new one.
        write_routes(file, read_routes(file).rerouted(prefix, node))
        progress("done")
        return len(move.numbers)


def _connected(target: Target) -> Connection:
    connection = psycopg.connect(target.conninfo, autocommit=True)
    # A user whom the policies hold back would see no row, and move none: an error instead.
    connection.execute("SET row_security = off")
    return connection


def _check_apart(old: Connection, new: Connection) -> None:
    """Refuse two databases of one server, which would wait for each other without end."""
    ask = "SELECT system_identifier FROM pg_control_system()"
    if old.execute(ask).fetchone() == new.execute(ask).fetchone():
        raise InvalidInput(
            "both nodes are databases of one server, and rows are moved between servers: export "
            "and import them, or put the new node on a server of its own"
        )


@dataclass(slots=True, kw_only=True)
class _Move:
    """One move: its two nodes, and what it is about."""

    old: Connection
    new: Connection
    schema: str
    prefix: Path
    node: str
    source: str
    until: float
    progress: Callable[[str], None]
    numbers: list[int] = field(default_factory=list)

    @property
    def _name(self) -> str:
        return f"zero_mem_{digest(self._written, self.node)[:16]}"

    @property
    def _written(self) -> str:
        return escape(encode_path(self.prefix))

    def copy(self) -> None:
        """Let the new node have all rows of the tenant, and follow their changes."""
        self._close_to_newcomers()
        self.numbers = self._listed()
        if not self._arrived():
            self._replicate()
        self.progress("copying")
        self._wait(
            "SELECT NOT EXISTS (SELECT FROM pg_subscription_rel r JOIN pg_subscription s"
            " ON s.oid = r.srsubid WHERE s.subname = %s AND r.srsubstate <> 'r')",
            (self._name,),
        )

    def _replicate(self) -> None:
        if not self._exists(self.old, "pg_publication", "pubname"):
            self.old.execute(self._publication())
        if not self._exists(self.new, "pg_subscription", "subname"):
            self.new.execute(
                sql.SQL(
                    "CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION {}"
                    # As the owner of the tables it would stand behind their policies.
                    " WITH (run_as_owner = true)"
                ).format(
                    sql.Identifier(self._name),
                    sql.Literal(make_conninfo(self.source)),
                    sql.Identifier(self._name),
                )
            )

    def _close_to_newcomers(self) -> None:
        """Have new namespaces below the path made on the new node, from now on."""
        with self.old.transaction():
            self.old.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
                (f"zero-mem making {self.schema}",),
            )
            self.old.execute(
                f"INSERT INTO {self.schema}.departed (path, node, digest)"
                " VALUES (%s, %s, %s::uuid) ON CONFLICT (digest)"
                " DO UPDATE SET node = excluded.node".encode(),
                (self._written, self.node, digest(self._written)),
            )
        self.new.execute(
            f"DELETE FROM {self.schema}.departed WHERE digest = %s::uuid".encode(),
            (digest(self._written),),
        )

    def _listed(self) -> list[int]:
        found = self.old.execute(f"SELECT number, path FROM {self.schema}.namespace".encode())
        return sorted(
            number for number, path in found if below(self.prefix, decode_path(unescape(path)))
        )

    def _publication(self) -> sql.Composed:
        numbers = sql.SQL(", ").join(map(sql.Literal, self.numbers))
        parts = [self._part("namespace", "number", numbers)]
        parts += [self._part(table, "namespace", numbers) for table in _TABLES]
        return sql.SQL(
            "CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)"
        ).format(sql.Identifier(self._name), sql.SQL(", ").join(parts))

    def _part(self, table: str, column: str, numbers: sql.Composed) -> sql.Composed:
        return sql.SQL("{} WHERE ({} IN ({}))").format(
            sql.Identifier(self.schema, table), sql.Identifier(column), numbers
        )

    def _exists(self, connection: Connection, catalogue: str, column: str) -> bool:
        found = connection.execute(
            f"SELECT 1 FROM {catalogue} WHERE {column} = %s".encode(), (self._name,)
        )
        return found.fetchone() is not None

    def _arrived(self) -> bool:
        """Tell whether the new node knows that it is the home of all of the tenant."""
        return self._says(*self._homes())

    def _homes(self) -> tuple[str, Sequence[object]]:
        question = (
            f"SELECT count(*) = %s FROM {self.schema}.counter"
            " WHERE namespace = ANY(%s::integer[]) AND home = %s"
        )
        return question, (len(self.numbers), self.numbers, self.node)

    def _says(self, question: str, values: Sequence[object]) -> bool:
        return self.new.execute(question.encode(), values).fetchone() == (True,)

    def _wait(self, question: str, values: Sequence[object]) -> None:
        """Wait until the new node answers yes."""
        while not self._says(question, values):
            if time.monotonic() > self.until:
                raise StoreUnavailable(
                    f"moving to {self.node!r} takes too long; look at the new node's log, and "
                    "start the move again to go on"
                )
            time.sleep(_PAUSE)

    def hand_over(self) -> None:
        """Make the new node the tenant's home, and wait until it knows that it is."""
        self.progress("handing over")
        with self.old.transaction():
            # Waits for each writer's commit, in the order in which everybody locks.
            self.old.execute(
                f"SELECT FROM {self.schema}.counter WHERE namespace = ANY(%s::integer[])"
                " ORDER BY namespace FOR UPDATE".encode(),
                (self.numbers,),
            )
            self.old.execute(
                f"UPDATE {self.schema}.counter SET home = %s"
                " WHERE namespace = ANY(%s::integer[])".encode(),
                (self.node, self.numbers),
            )
        self._wait(*self._homes())

    def clean_up(self) -> None:
        """End the replication and remove the rows that stayed behind."""
        self.progress("cleaning up")
        name = sql.Identifier(self._name)
        self.new.execute(sql.SQL("DROP SUBSCRIPTION IF EXISTS {}").format(name))
        self.old.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(name))
        for table in (*_TABLES[1:], "counter"):
            self._remove(table, "namespace")
        self._remove("namespace", "number")

    def _remove(self, table: str, column: str) -> None:
        self.old.execute(
            f"DELETE FROM {self.schema}.{table} WHERE {column} = ANY(%s::integer[])".encode(),
            (self.numbers,),
        )
