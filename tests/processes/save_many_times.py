"""Open a store and save: `save_many_times.py URL COUNT NAME`; prints the ids."""

from __future__ import annotations

import sys

from zero_mem import Memory


def main(url: str, count: int, name: str) -> None:
    with Memory.open(url) as memory:
        space = memory.namespace("acme")
        ids = [space.save(f"{name} saves text {n}").memory_id for n in range(count)]
    print(" ".join(ids))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
