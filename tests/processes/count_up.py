"""Raise a counter by compare-and-set: `count_up.py URL COUNT NAME`; prints the conflicts met."""

from __future__ import annotations

import sys

from zero_mem import Json, Memory
from zero_mem.errors import Conflict


def main(url: str, count: int, name: str) -> None:
    conflicts = done = 0
    with Memory.open(url, durability="normal", actor=name) as memory:
        space = memory.namespace("acme")
        while done < count:
            record = space.get("counter")
            assert isinstance(record.content, Json)
            body = Json(record.content.value + 1)
            try:
                space.update("counter", content=body, if_version=record.version)
                done += 1
            except Conflict:
                conflicts += 1
    print(conflicts)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
