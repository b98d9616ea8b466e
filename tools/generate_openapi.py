"""Write docs/openapi.json from the table of routes, or check that it is up to date.

Usage: python tools/generate_openapi.py [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from generate_aio import ROOT, update

sys.path.insert(0, str(ROOT / "src"))

from zero_mem.api.openapi import document

FILE = ROOT / "docs" / "openapi.json"


def generated() -> list[tuple[Path, str]]:
    """Give the file and what it has to hold."""
    return [(FILE, json.dumps(document(), indent=1, ensure_ascii=False) + "\n")]


if __name__ == "__main__":
    sys.exit(update(generated(), "make aio"))
