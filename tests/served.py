"""`zero-mem serve` as a process, for the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ZERO_MEM = [sys.executable, "-c", "from zero_mem.cli import main; main()"]


class Served:
    """The command as a process; what it says is read as it comes, so that it never waits."""

    def __init__(self, store: str, *flags: str) -> None:
        command = [*ZERO_MEM, "serve", "--store", store, "--port", "0", *flags]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stderr is not None
        self.said = self.process.stderr
        self.url = self.said.readline().strip()
        self.lines: list[str] = []
        self._reading = threading.Thread(target=lambda: self.lines.extend(self.said))
        self._reading.start()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.ended()

    def ended(self) -> int:
        """Wait for its end and for all that it said; give its exit code."""
        code = self.process.wait(30)
        self._reading.join()
        self.said.close()
        return code
