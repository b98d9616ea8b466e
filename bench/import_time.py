"""Measure what `import zero_mem` costs beyond a bare interpreter with sqlite3.

Both are run in turn, in new processes, and the medians are compared, so that a slow machine
slows both.

Usage: python bench/import_time.py [--runs 41] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

BARE = "import sqlite3"
OURS = "import sqlite3; import zero_mem"
GOAL = 0.1


def main() -> int:
    """Print the medians, their ratio and the seconds added; exit 1 above the goal."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=41, help="processes of each kind")
    arguments.add_argument("--json", action="store_true", help="print one JSON object")
    options = arguments.parse_args()
    pairs = [(seconds(BARE), seconds(OURS)) for _ in range(options.runs)]
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
    print(json.dumps(figures) if options.json else table(figures))
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


def table(figures: dict[str, float]) -> str:
    """Render the figures as a Markdown table."""
    rows = [f"| {name} | {value} |" for name, value in figures.items()]
    return "\n".join(["| figure | value |", "|---|---|", *rows])


if __name__ == "__main__":
    sys.exit(main())
