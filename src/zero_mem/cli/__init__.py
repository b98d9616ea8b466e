"""The command `zero-mem`; it needs the extra `cli`."""

from __future__ import annotations

import sys

from zero_mem.errors import MissingExtra

_OURS = frozenset({"typer", "rich"})


def main() -> None:
    """Run the command line, or say how to install what it needs (exit code 2)."""
    try:
        from zero_mem.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in _OURS:
            raise
        print(f"zero-mem: {MissingExtra('the command line', 'cli')}", file=sys.stderr)
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):
        # A body may hold what this terminal's encoding does not.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    app()
