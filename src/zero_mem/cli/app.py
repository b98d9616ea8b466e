"""The command line as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from zero_mem.cli import (
    demo,
    exchanging,
    explaining,
    failures,
    forgetting,
    indexing,
    journal,
    reading,
    replaying,
    writing,
)

_HELP = """\
Memory for LLM agents that stays out of the prompt.

Every command works on one store (--store, or ZERO_MEM_URL) and most on one namespace in it
(--namespace, or ZERO_MEM_NAMESPACE). With --json a result is one line of JSON on stdout, and an
error one line on stderr.
"""

app = typer.Typer(
    name="zero-mem",
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
    replaying,
    demo,
):
    app.add_typer(group.app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # 15 ms that no other command needs

        typer.echo(f"zero-mem {version('zero-mem')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Take the options that stand before the command."""
