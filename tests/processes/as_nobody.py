"""Open a store as a user who owns nothing: `as_nobody.py PATH`; prints what happens."""

from __future__ import annotations

import os
import sys

import zero_mem.storage.sqlite  # noqa: F401 - while the modules can still be read
from zero_mem import Memory
from zero_mem.errors import ZeroMemError

NOBODY = 65534


def main(path: str) -> None:
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        with Memory.open(f"sqlite:///{path}") as memory:
            print("read", memory.namespace("acme").count())
            memory.namespace("acme").save("text")
            print("saved")
    except ZeroMemError as error:
        print(type(error).__name__, error)


if __name__ == "__main__":
    main(sys.argv[1])
