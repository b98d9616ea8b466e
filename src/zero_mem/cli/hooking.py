"""Commands that put memory into Claude Code by its hooks: hook install, uninstall, run."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, get_args

import typer

from zero_mem.cli.changing import show_change
from zero_mem.cli.session import Session, command
from zero_mem.errors import InvalidInput
from zero_mem.hook.settings import (
    OFFLOADED,
    Scope,
    apply,
    installing,
    settings_path,
    uninstalling,
)
from zero_mem.settings_file import Change

app = typer.Typer()
hook = typer.Typer(help="Memory inside Claude Code, by its hooks.", no_args_is_help=True)
app.add_typer(hook, name="hook")

InScope = Annotated[
    str,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="user, project, or local (this project, only here).",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


@command(hook, "install")
def install(
    session: Session,
    scope: InScope = "user",
    share: Annotated[
        float, typer.Option(metavar="PART", help="Part of the results that may stand in prompts.")
    ] = 0.25,
    tools: Annotated[
        str, typer.Option(metavar="PATTERN", help="Tools whose results are offloaded.")
    ] = OFFLOADED,
    dry_run: DryRun = False,
) -> None:
    """Write our hooks into the settings of Claude Code.

    PostToolUse puts a receipt in the place of a long result, PreToolUse replaces handles by what
    they stand for, SessionStart tells the model how to read. Sessions that are running go on
    without. Everything else in the file stays; uninstall takes exactly this back.
    """
    if not 0 < share <= 1:
        raise InvalidInput(f"--share is a part above 0 and at most 1, not {share}")
    change = installing(_path(scope), _hook_command(session, share), tools=tools)
    _carry_out(session, change, dry_run, installs=True)


@command(hook, "uninstall", shared=("as_json",))
def uninstall(session: Session, scope: InScope = "user", dry_run: DryRun = False) -> None:
    """Take our hooks out of the settings of Claude Code.

    What is stored stays.
    """
    _carry_out(session, uninstalling(_path(scope)), dry_run, installs=False)


@command(hook, "run", shared=("store", "namespace"))
def run(session: Session) -> None:
    """Answer one event of Claude Code, read on stdin.

    The settings call this.
    """
    from zero_mem.hook.__main__ import main as run_hook  # what decides is slow to load

    given = ["--store", session.url] if session.url else []
    given += ["--namespace", "/".join(session.named)] if session.named else []
    raise typer.Exit(run_hook(given))


def _path(scope: str) -> Path:
    for known in get_args(Scope):
        if scope == known:
            return settings_path(known, Path.cwd(), Path.home())
    raise InvalidInput(f"--scope is one of {', '.join(get_args(Scope))}, not {scope!r}")


def _hook_command(session: Session, share: float) -> str:
    program = shutil.which("zero-mem") or str(Path(sys.executable).with_name("zero-mem"))
    named = "zero-mem" if shutil.which("zero-mem") == program else shlex.quote(program)
    given = ["--share", f"{share:g}", "--command", named]
    given += ["--store", session.url] if session.url else []
    given += ["--namespace", "/".join(session.named)] if session.named else []
    return f"{shlex.quote(sys.executable)} -m zero_mem.hook {shlex.join(given)}"


def _carry_out(session: Session, change: Change, dry_run: bool, *, installs: bool) -> None:
    if not dry_run:
        apply(change, installs=installs)
    show_change(session, change, dry_run=dry_run)
