"""Starting the scripts of this folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def command(script: str, *arguments: object) -> list[str]:
    """Give the command line of a script."""
    return [sys.executable, "-I", str(FOLDER / script), *map(str, arguments)]


def run(script: str, *arguments: object, expected: int = 0) -> str:
    """Run a script to its end and give what it printed."""
    done = subprocess.run(
        command(script, *arguments), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == expected, done.stderr
    return done.stdout


def run_together(script: str, arguments: list[tuple[object, ...]]) -> list[str]:
    """Run a script several times at once, and give what each printed."""
    running = [
        subprocess.Popen(
            command(script, *each), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for each in arguments
    ]
    ended = [(process, *process.communicate(timeout=300)) for process in running]
    assert [errors for process, _, errors in ended if process.returncode] == []
    return [output for _, output, _ in ended]
