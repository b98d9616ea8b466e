"""`zero-mem bench recall` on the public sets, where they are; see docs/bench.md.

    python bench/recall.py [OPTIONS of `zero-mem bench recall`]

The sets are looked for where the tests look for them: ZERO_MEM_DATA, or ../shared/data. The
measuring itself is in `zero_mem.evaluation`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from zero_mem.cli import main as zero_mem

DATA = Path(os.environ.get("ZERO_MEM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def main() -> int:
    if not DATA.is_dir():
        print(f"no public sets at {DATA}: set ZERO_MEM_DATA to their folder", file=sys.stderr)
        return 0
    sys.argv[1:] = ["bench", "recall", str(DATA), *sys.argv[1:]]
    zero_mem()
    return 0


if __name__ == "__main__":
    sys.exit(main())
