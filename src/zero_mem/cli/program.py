"""The program around the commands: every way to fail ends in a line on stderr and a code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from zero_mem.cli.failures import INTERRUPTED, USAGE, exit_code
from zero_mem.cli.streams import ReaderGone, reporting_loss, whisper
from zero_mem.cli.text import clean
from zero_mem.errors import ZeroMemError
from zero_mem.exchange import json_line

# Its home differs between versions of typer; its place among the parents does not.
_UsageProblem: Final[type[Exception]] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


class Program(TyperGroup):
    """All commands; with `--json` an error is one line of JSON, whoever raised it."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run and exit.

        Args:
            args: What was typed; by default what the process was given.
            prog_name: The program's name, for its help.
            complete_var: As typer has it.
            standalone_mode: Always taken as True.
            windows_expand_args: As typer has it.
            extra: As typer has it.
        """
        given = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except _UsageProblem as problem:
            code = _misused(problem, as_json=wants_json(given))
        except ZeroMemError as error:
            code = _failed(error, as_json=wants_json(given))
        except (typer.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        sys.exit(code or 0)

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read what stands before the command; print the help."""
        with reporting_loss():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, or print its help."""
        with reporting_loss():
            return super().invoke(ctx)


def wants_json(args: Sequence[str]) -> bool:
    """Tell whether `--json` is among the options that were typed."""
    options = args[: args.index("--")] if "--" in args else args
    return any(each == "--json" or each.startswith("--json=") for each in options)


def _misused(problem: Any, *, as_json: bool) -> int:
    if as_json:
        _say_json("UsageError", problem.format_message())
    else:
        problem.show()
    return int(getattr(problem, "exit_code", USAGE))


def _failed(error: ZeroMemError, *, as_json: bool) -> int:
    if isinstance(error, ReaderGone):
        return exit_code(error)
    if as_json:
        _say_json(type(error).__name__, str(error))
    else:
        for line in (f"zero-mem: {error}", *getattr(error, "__notes__", ())):
            whisper(clean(line))
    return exit_code(error)


def _say_json(name: str, message: str) -> None:
    whisper(json_line({"error": name, "message": message}).rstrip("\n"))
