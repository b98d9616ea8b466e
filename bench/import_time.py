"""Measure what `import zero_mem` costs beyond a bare interpreter with sqlite3.

Both are run in turn, in new processes, and the medians are compared, so that a slow machine
slows both.

Usage: python bench/import_time.py [--runs 41] [--json out.json] [--markdown out.md]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from _report import command, options, report, table

BARE = "import sqlite3"
OURS = "import sqlite3; import zero_mem"
GOAL = 0.1


def main() -> int:
    """Print the medians, their ratio and the seconds added; exit 1 above the goal."""
    parser = options(__doc__)
    parser.add_argument("--runs", type=int, default=41, help="processes of each kind")
    given = parser.parse_args()
    pairs = [(seconds(BARE), seconds(OURS)) for _ in range(given.runs)]
    bare = statistics.median(pair[0] for pair in pairs)
    ours = statistics.median(pair[1] for pair in pairs)
    figures = {
        "bare_s": round(bare, 4),
        "zero_mem_s": round(ours, 4),
        "added_s": round(ours - bare, 4),
        "ratio": round(ours / bare, 2),
        "modules_added": modules(OURS) - modules(BARE),
        "goal_s": GOAL,
    }
    rows = ([name, f"{value}"] for name, value in figures.items())
    report(given, f"{command()}\n\n{table(['figure', 'value'], rows)}", figures)
    return 0 if ours - bare < GOAL else 1


def seconds(statement: str) -> float:
    """Time one new interpreter that runs the statement, from start to end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", statement], check=True)
    return time.perf_counter() - start


def modules(statement: str) -> int:
    """Count the modules that are loaded after the statement."""
    source = f"{statement}; import sys; print(len(sys.modules))"
    command = [sys.executable, "-I", "-c", source]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    sys.exit(main())
