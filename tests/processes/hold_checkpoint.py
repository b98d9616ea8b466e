"""Hold the lock of whoever empties a store's log: `hold_checkpoint.py PATH`, until told to end.

The lock is the byte of SQLite's shared memory that its checkpoints lock, so that it is held as
surely as in the midst of one.
"""

from __future__ import annotations

import fcntl
import os
import sys

CHECKPOINT_LOCK = 121
"""The place of WAL_CKPT_LOCK in the file, see SQLite's format of the WAL index."""


def main(path: str) -> None:
    with open(f"{path}-shm", "r+b") as shared:
        fcntl.lockf(shared, fcntl.LOCK_EX, 1, CHECKPOINT_LOCK, os.SEEK_SET)
        print("held", flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1])
