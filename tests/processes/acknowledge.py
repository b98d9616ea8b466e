"""Save and tell each receipt at once: `acknowledge.py PATH COUNT DURABILITY`."""

from __future__ import annotations

import sys

from zero_mem import Memory


def main(path: str, count: int, durability: str) -> None:
    with Memory.open(f"sqlite:///{path}", durability=durability) as memory:
        space = memory.namespace("acme")
        for number in range(count):
            space.save(f"text {number}")
            print(f"saved-{number}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
