"""Which of several PostgreSQL nodes has a namespace: a table of path prefixes, kept in a file.

    {
      "origin": "9f…",
      "nodes": {"a": "postgresql://…", "b": "postgresql://…"},
      "routes": [{"prefix": ["acme"], "node": "b"}],
      "default": "a"
    }

The longest prefix of a path decides. The table says where to ask first; each node knows which
namespaces are its own and refuses the others, so that a table that is out of date misleads nobody.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any

from zero_mem.errors import InvalidInput, StoreUnavailable
from zero_mem.storage.codec import below
from zero_mem.types import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """The routing table.

    Attributes:
        nodes: The URL of each node, by name; never in another order, and none is taken out.
        default: The node of every path that no route names.
        routes: The node of each prefix.
        origin: The name that all nodes' journals bear.
    """

    nodes: Mapping[str, str]
    default: str
    routes: Mapping[Path, str] = field(default_factory=dict)
    origin: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        unknown = {self.default, *self.routes.values()} - self.nodes.keys()
        if unknown or "" in self.nodes:
            raise InvalidInput(
                f"the routing table names nodes that have no URL: {sorted(unknown) or ['']}"
            )

    def node_of(self, path: Path) -> str:
        """Give the node that answers for a path."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.routes:
                return self.routes[path[:length]]
        return self.default

    def rerouted(self, prefix: Path, node: str) -> Routes:
        """Give the table in which a node answers for a prefix and everything below it."""
        kept = {path: name for path, name in self.routes.items() if not below(prefix, path)}
        return replace(self, routes={**kept, prefix: node})


def read_routes(file: FilePath) -> Routes:
    """Read a routing table.

    Raises:
        StoreUnavailable: The file can't be read.
        InvalidInput: It is no routing table.
    """
    try:
        written = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise StoreUnavailable(f"{file}: can't read the routes: {error.strerror}") from error
    except ValueError as error:
        raise InvalidInput(f"{file}: this is no routing table: {error}") from error
    try:
        return _routes(written)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f'{file}: a routing table has "nodes", "default", "routes" and "origin"; '
            "see zero_mem.storage.routing"
        ) from error


def _routes(written: Any) -> Routes:
    return Routes(
        nodes={str(name): str(url) for name, url in written["nodes"].items()},
        default=written["default"],
        routes={tuple(route["prefix"]): route["node"] for route in written["routes"]},
        origin=written["origin"],
    )


def write_routes(file: FilePath, routes: Routes) -> None:
    """Write a routing table, readable by its owner only: URLs may hold passwords.

    Whoever reads it meanwhile reads the old one or the new one.

    Raises:
        StoreUnavailable: The file can't be written.
    """
    written = {
        "origin": routes.origin,
        "nodes": dict(routes.nodes),
        "routes": [{"prefix": list(path), "node": node} for path, node in routes.routes.items()],
        "default": routes.default,
    }
    try:
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as fresh:
            json.dump(written, fresh, ensure_ascii=False, indent=2)
            fresh.flush()
            os.fsync(fresh.fileno())
        os.replace(fresh.name, file)
    except OSError as error:
        raise StoreUnavailable(f"{file}: can't write the routes: {error.strerror}") from error
