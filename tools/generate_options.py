"""Write docs/cli-options.md from the commands themselves, or check that it is up to date.

Usage: python tools/generate_options.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generate_aio import ROOT, update

sys.path.insert(0, str(ROOT / "src"))

import typer

from zero_mem.cli.app import app

FILE = ROOT / "docs" / "cli-options.md"

HEAD = """\
# Arguments and options of every command

What [each command](cli.md) takes, as `zero-mem COMMAND --help` says it. An option that has a
variable of the environment is taken from there where it is not typed. `--help` is an option of all.
"""


def generated() -> list[tuple[Path, str]]:
    """Give the file and what it has to hold."""
    sections = [_section(name, each) for name, each in _commands(typer.main.get_command(app), "")]
    return [(FILE, "\n".join([HEAD, *sections]))]


def _commands(group: Any, before: str) -> Iterator[tuple[str, Any]]:
    for name, each in sorted(group.commands.items()):
        if hasattr(each, "commands"):
            yield from _commands(each, f"{before}{name} ")
        else:
            yield f"{before}{name}", each


def _section(name: str, each: Any) -> str:
    arguments = [p for p in each.params if p.param_type_name == "argument"]
    typed = [_argument(p) for p in arguments]
    lines = [f"## {name}", "", f"`zero-mem {' '.join([name, *typed])} [OPTIONS]`", ""]
    lines += [_joined(each.help), ""]
    rows = [_row(p) for p in each.params]
    if rows:
        lines += ["| | | by default |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return name if parameter.required else f"[{name}]"


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        names = [*parameter.opts, *parameter.secondary_opts]
        value = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
        name = ", ".join(f"`{each}{value}`" for each in names)
    cells = (name, _joined(parameter.help or ""), _default(parameter))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "must be given"
    variable = f"`{parameter.envvar}`" if parameter.envvar else ""
    value = parameter.default
    said = "" if value in (None, False, "") or callable(value) else f"`{value}`"
    if value is True:
        said = "on"
    return ", else ".join(filter(None, (variable, said)))


def _joined(text: str) -> str:
    return " ".join(text.replace("\b", "").split())


if __name__ == "__main__":
    sys.exit(update(generated(), "make aio"))
