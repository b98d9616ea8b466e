"""Save until the store can't grow: `fill.py PATH BYTES`; prints what was acknowledged, then why."""

from __future__ import annotations

import resource
import sys

from zero_mem import Memory
from zero_mem.errors import StoreUnavailable


def main(path: str, size: int) -> None:
    with Memory.open(f"sqlite:///{path}") as memory:
        space = memory.namespace("acme")
        if size:
            # Python ignores SIGXFSZ, so a write beyond the limit fails like one to a full disk.
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        acknowledged = 0
        try:
            while True:
                space.save(f"text {acknowledged} " + "x" * 4000)
                acknowledged += 1
        except StoreUnavailable as error:
            print(acknowledged, error)
        # What was acknowledged can still be read, by the very process that met the error.
        assert space.count() == acknowledged
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if size:
            space.save("room again")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
