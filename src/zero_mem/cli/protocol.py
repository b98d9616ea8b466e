"""Commands of the Model Context Protocol: mcp serve, install, uninstall."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args
from urllib.parse import parse_qsl, urlsplit

import typer

from zero_mem.api.arguments import namespace_text
from zero_mem.cli.changing import show_change
from zero_mem.cli.session import CREDENTIAL_VARIABLE, Session, command
from zero_mem.errors import InvalidInput
from zero_mem.mcp.clients import (
    CLIENTS,
    Client,
    Scope,
    Surroundings,
    client_named,
    settings_path,
)
from zero_mem.mcp.installing import NAME, installing, note_path, uninstalling
from zero_mem.settings_file import Change, apply
from zero_mem.storage.opening import URL_VARIABLE, default_path, sqlite_path

if TYPE_CHECKING:
    from zero_mem.memory import Memory

app = typer.Typer()
mcp = typer.Typer(
    help="Memory in clients of the Model Context Protocol, as tools.", no_args_is_help=True
)
app.add_typer(mcp, name="mcp")

Which = Annotated[
    str,
    typer.Argument(metavar="CLIENT", help=", ".join(client.name for client in CLIENTS) + "."),
]
InScope = Annotated[
    str, typer.Option("--scope", metavar="SCOPE", help="user, or project: the folder you are in.")
]
Named = Annotated[
    str, typer.Option("--name", metavar="NAME", help="The server's name in the client.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


@command(mcp, "serve", shared=("store", "namespace"), creates=True)
def serve(session: Session) -> None:
    """Serve one namespace on stdin and stdout, as a client starts it.

    --store may be the address of a running `zero-mem serve`, such as http://127.0.0.1:8765;
    the key for it is taken from ZERO_MEM_CREDENTIAL. The store and the namespace are chosen
    here: no tool has an argument for them.
    """
    from zero_mem.mcp.stdio import serve as serve_stdio  # the extra is not everyone's

    memory = _opened(session)
    serve_stdio(memory, memory.namespace(*session.path))


@command(mcp, "install")
def install(
    session: Session,
    client: Which,
    scope: InScope = "user",
    name: Named = NAME,
    dry_run: DryRun = False,
) -> None:
    """Write the server into a client's settings.

    --store and --namespace are written with it. A key is not: set ZERO_MEM_CREDENTIAL where
    the client starts. Everything else in the file stays; uninstall takes exactly this back.
    """
    program, path = _place(client, scope)
    change = installing(program, path, _command(session), name=name)
    _carry_out(session, change, note=_note(path, name), dry_run=dry_run, installs=True)
    if find_spec("mcp") is None:
        session.note(f"{program.title} can't start it yet: pip install 'zero-mem[mcp]'")


@command(mcp, "uninstall", shared=("as_json",))
def uninstall(
    session: Session,
    client: Which,
    scope: InScope = "user",
    name: Named = NAME,
    dry_run: DryRun = False,
) -> None:
    """Take the server out of a client's settings.

    What is stored stays.
    """
    program, path = _place(client, scope)
    note = _note(path, name)
    change = uninstalling(program, path, note, name=name)
    _carry_out(session, change, note=note, dry_run=dry_run, installs=False)


def _opened(session: Session) -> Memory:
    credential = os.environ.get(CREDENTIAL_VARIABLE) or None
    if session.url is not None and session.url.startswith(("http://", "https://")):
        from zero_mem.client import connect

        remote: Any = connect(session.url, credential=credential, actor="mcp")
        return remote  # type: ignore[no-any-return]
    return session.opened(actor="mcp")


def _place(name: str, scope: str) -> tuple[Client, Path]:
    client = client_named(name)
    around = Surroundings(
        system=sys.platform, home=Path.home(), folder=Path.cwd(), environment=os.environ
    )
    for known in get_args(Scope):
        if scope == known:
            return client, settings_path(client, known, around)
    raise InvalidInput(f"--scope is one of {', '.join(get_args(Scope))}, not {scope!r}")


def _note(path: Path, name: str) -> Path:
    return note_path(default_path().parent / "installed", path, name)


def _command(session: Session) -> list[str]:
    # A client with a window does not see the PATH of a terminal.
    program = shutil.which("zero-mem") or str(Path(sys.executable).with_name("zero-mem"))
    given = ["--store", _lasting(session.url)] if session.url else []
    given += ["--namespace", namespace_text(session.named)] if session.named else []
    return [program, "mcp", "serve", *given]


def _lasting(url: str) -> str:
    """Give a store's URL as it holds from any folder.

    Raises:
        InvalidInput: It holds a password, which would be written where others read it.
    """
    parts = urlsplit(url)
    # PostgreSQL takes password and sslpassword among the options, too.
    if parts.password or any("password" in name for name, _ in parse_qsl(parts.query)):
        raise InvalidInput(
            f"the store's URL holds a password; leave --store out and set {URL_VARIABLE} where "
            "the client starts"
        )
    file = sqlite_path(url)
    return url if file is None else f"sqlite:///{Path(file).absolute()}"


def _carry_out(
    session: Session, change: Change, *, note: Path, dry_run: bool, installs: bool
) -> None:
    if not dry_run:
        apply(change, note=note, installs=installs)
    # The lines around a change may hold what others keep secret there.
    show_change(session, change, dry_run=dry_run, around=0)
