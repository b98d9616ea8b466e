"""The command line as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from zero_mem.cli import (
    backing,
    benching,
    demo,
    encrypting,
    examining,
    exchanging,
    explaining,
    failures,
    forgetting,
    hooking,
    indexing,
    journal,
    keys,
    nodes,
    protocol,
    proxying,
    reading,
    replaying,
    serving,
    syncing,
    writing,
)
from zero_mem.cli.program import Program
from zero_mem.cli.streams import say

_HELP = """\
Memory for LLM agents that stays out of the prompt.

Every command works on one store: --store, or ZERO_MEM_URL, or else the file memory.db in
~/.local/share/zero-mem ($XDG_DATA_HOME/zero-mem where that is set). Most work on one namespace in
it: --namespace, or ZERO_MEM_NAMESPACE, or else `default`. Only save, import, sync, configure,
replay and proxy make a store where there is none. With --json a result is one line of JSON on
stdout, and an error one line on stderr. For an ID you can give its handle or its receipt, such as
"[memo:7] save".
"""

app = typer.Typer(
    name="zero-mem",
    cls=Program,
    help=_HELP,
    # A line with \b alone keeps the lines after it as they are.
    epilog=f"\b\n{failures.table()}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for group in (
    writing,
    reading,
    journal,
    forgetting,
    indexing,
    explaining,
    exchanging,
    syncing,
    backing,
    replaying,
    proxying,
    benching,
    hooking,
    encrypting,
    keys,
    nodes,
    examining,
    serving,
    protocol,
    demo,
):
    app.add_typer(group.app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # 15 ms that no other command needs

        say(f"zero-mem {version('zero-mem')}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Take the options that stand before the command."""
