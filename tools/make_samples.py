"""Write the sample runs that the package ships, or check that they are what this writes.

Usage: python tools/make_samples.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from samples import refund, short

FOLDER = Path(__file__).resolve().parent.parent / "src" / "zero_mem" / "replay" / "samples"


def main() -> int:
    """Write both files; with --check, only name those that differ and return 1."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true", help="write nothing, report drift")
    check = arguments.parse_args().check
    wanted = {"refund.json": refund.build(), "short.json": short.build()}
    stale = [name for name, text in wanted.items() if _stored(name) != text]
    for name in stale:
        if check:
            print(f"{FOLDER / name} is not what tools/make_samples.py writes: run `make samples`")
        else:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / name).write_text(wanted[name], encoding="utf-8")
    return 1 if check and stale else 0


def _stored(name: str) -> str | None:
    path = FOLDER / name
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
