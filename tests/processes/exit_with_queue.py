"""Queue saves and end at once, without closing: `exit_with_queue.py URL COUNT HOW`."""

from __future__ import annotations

import sys

from zero_mem import Memory


def main(url: str, count: int, how: str) -> None:
    space = Memory.open(url).namespace("acme")
    for number in range(count):
        space.save(f"queued {number}", mode="queued")
    if how == "error":
        raise SystemExit(3)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
