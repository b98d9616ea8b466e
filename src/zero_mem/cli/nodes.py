"""Commands for a store on several PostgreSQL nodes: node list, node move."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from zero_mem.cli import inputs, printing
from zero_mem.cli.session import CREDENTIAL_VARIABLE, Session, command, parse_namespace
from zero_mem.cli.text import clean
from zero_mem.errors import InvalidInput, NotAllowed, StoreUnavailable
from zero_mem.storage.opening import open_storage
from zero_mem.text.nouns import counted

if TYPE_CHECKING:
    from zero_mem.storage.routing_store import RoutedStorage

app = typer.Typer()
node = typer.Typer(help="The nodes of a store on several servers.", no_args_is_help=True)
app.add_typer(node, name="node")

_ROUTES: Final = "routes:///"


@command(node, "list", shared=("store", "as_json"))
def list_(session: Session) -> None:
    """List the nodes: which namespaces are routed to each, and how many it has.

    A node that does not answer is listed with its problem.
    """
    with _routed(session) as storage:
        nodes = _nodes(storage)
    rows = [
        (
            each["node"],
            "" if each["namespaces"] is None else f"{each['namespaces']:,}",
            "  ".join(each["routes"]),
            each["problem"],
        )
        for each in nodes
    ]
    text = printing.table(("node", "namespaces", "routes", "problem"), rows)
    session.show({"nodes": nodes}, text)


def _nodes(storage: RoutedStorage) -> list[dict[str, Any]]:
    routes = storage.routes()
    found = []
    for name in routes.nodes:
        prefixes = ["/".join(path) for path, to in routes.routes.items() if to == name]
        namespaces, problem = _namespaces(storage, name)
        found.append(
            {
                "node": name,
                "routes": [*prefixes, *(["(all others)"] if name == routes.default else [])],
                "namespaces": namespaces,
                "problem": problem,
            }
        )
    return found


def _namespaces(storage: RoutedStorage, name: str) -> tuple[int | None, str]:
    """Count the namespaces that a node has, or say why it can't tell."""
    try:
        with storage.node(name).transaction() as transaction:
            return len(transaction.namespaces(())), ""
    except StoreUnavailable as error:
        return None, str(error)


@command(node, "move", shared=("store", "as_json"))
def move(
    session: Session,
    namespace: Annotated[
        str,
        typer.Argument(
            metavar="NAMESPACE", help="A/B, or a JSON list; what is below it moves with it."
        ),
    ],
    to: Annotated[str, typer.Option("--to", metavar="NODE", help="The node that it moves to.")],
    admins: Annotated[
        FilePath | None,
        typer.Option(
            metavar="FILE",
            help='JSON such as {"a": "postgresql://…"}: for both nodes the URL of a user who may '
            "replicate. By default the routing table's own URLs.",
        ),
    ] = None,
    patience: Annotated[
        int, typer.Option(min=1, metavar="SECONDS", help="When the move is given up.")
    ] = 3600,
) -> None:
    """Move a tenant to another node while it is read and written.

    Its rows are copied and followed by logical replication, then one commit makes the new node its
    home, and the routing table is changed. A move that was cut short is taken up by the same
    command.
    """
    path = parse_namespace(namespace)
    with _routed(session) as storage:
        routes = storage.routes()
    if to not in routes.nodes:
        raise InvalidInput(f"--to is one of {', '.join(routes.nodes)}, not {to!r}")
    from zero_mem.storage.routing_move import move_tenant

    moved = move_tenant(
        _table(session),
        path,
        to,
        admins=routes.nodes if admins is None else _urls(admins),
        patience=float(patience),
        progress=session.note,
    )
    value = {"namespace": list(path), "node": to, "namespaces": moved}
    what = counted(moved, "namespace", "namespaces")
    session.show(value, f"moved {clean('/'.join(path))} to {to}: {what}")


@contextmanager
def _routed(session: Session) -> Iterator[RoutedStorage]:
    """Open the store on several nodes; a node is asked when it is needed only."""
    _table(session)
    if os.environ.get(CREDENTIAL_VARIABLE):
        raise NotAllowed("the nodes of a store are its operator's; do this without a credential")
    storage: Any = open_storage(session.url, create=False)
    with closing(storage):
        yield storage


def _table(session: Session) -> FilePath:
    url = session.url or ""
    if not url.startswith(_ROUTES):
        raise InvalidInput("only a store that routes:///table.json names has nodes; see --store")
    return FilePath(url.removeprefix(_ROUTES))


def _urls(file: FilePath) -> Mapping[str, str]:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"--admins: {file} can't be read") from None
    found = inputs.parse_json(text, "--admins")
    if isinstance(found, dict) and all(isinstance(url, str) for url in found.values()):
        return found
    raise InvalidInput("--admins is a JSON object: of each node a URL")
