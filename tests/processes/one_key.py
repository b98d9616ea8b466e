"""Save under one key, again and again: `one_key.py URL COUNT NAME`; prints the ids seen."""

from __future__ import annotations

import sys

from zero_mem import Memory


def main(url: str, count: int, name: str) -> None:
    with Memory.open(url, durability="normal") as memory:
        space = memory.namespace("acme")
        receipts = [space.save(f"{name} {n}", kind="user_pref", key="k") for n in range(count)]
    print(" ".join(sorted({receipt.memory_id for receipt in receipts})))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
