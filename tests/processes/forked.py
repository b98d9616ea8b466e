"""Use two handles on one file across a fork: `forked.py PATH`; prints what is there at the end.

The child writes on after the parent has closed all it had and is gone.
"""

from __future__ import annotations

import os
import sys

from zero_mem import Memory


def main(path: str) -> None:
    one, two = (Memory.open(f"sqlite:///{path}") for _ in range(2))
    space = one.namespace("acme")
    space.save("parent", mode="queued")  # takes numbers for more
    assert (space.count(), two.namespace("acme").count()) == (1, 1)
    gone, going = os.pipe()
    if os.fork():
        space.save("parent, queued", mode="queued")
        one.close()
        two.close()
        os._exit(0)  # closes the pipe, which wakes the child
    os.close(going)
    os.read(gone, 1)
    space.save("child")
    space.save("child, queued", mode="queued")
    one.close()
    print(*sorted(record.text for record in two.namespace("acme").each()), sep="\n")
    two.close()


if __name__ == "__main__":
    main(sys.argv[1])
