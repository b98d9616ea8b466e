"""Disks of the tests' own: small ones that fill up, and one that fails and becomes read-only.

They are mounted, which only root may do, and not in every container: tests skip with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SYSTEM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
"""Where administrators' programs are, on the path or not."""

only_root_mounts = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="only root may mount a disk"
)


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a container without the right to mount: {done.stderr.strip()}")


def _unmount(folder: Path) -> None:
    """Take a disk off as soon as the last process that was killed has let go of it."""
    for _ in range(500):
        if not subprocess.run(["umount", str(folder)], capture_output=True, check=False).returncode:
            return
        time.sleep(0.02)
    pytest.fail(f"{folder} stays in use")


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A disk in memory."""

    folder: Path

    def fill(self) -> None:
        """Leave no room at all."""
        with open(self.folder / "ballast", "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(4096))
            except OSError:
                return

    def grow(self, size: str) -> None:
        """Give it more room."""
        _mount("-o", f"remount,size={size}", str(self.folder))


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    """Mount a disk of a size such as "2m" at a folder, until the end of the block."""
    folder.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(folder))
    try:
        yield SmallDisk(folder)
    finally:
        # Whoever failed may still have files open.
        subprocess.run(["umount", "-l", str(folder)], check=True)


@dataclass(frozen=True, slots=True)
class FailingDisk:
    """A disk in a file, with a file system that becomes read-only when it meets an error."""

    folder: Path
    image: Path

    def attach(self) -> None:
        """Mount it for reading and writing."""
        _mount("-o", "loop,errors=remount-ro", str(self.image), str(self.folder))

    def fail(self) -> None:
        """Have the kernel meet an error: from now on nothing can be written."""
        trigger = Path(f"/sys/fs/ext4/{self._device()}/trigger_fs_error")
        if not trigger.exists():
            pytest.skip("a kernel that does not play a failing disk")
        trigger.write_text("1")

    def _device(self) -> str:
        mounted = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
        return next(Path(each[0]).name for each in mounted if each[1] == str(self.folder))

    def mend(self) -> None:
        """Take it off, repair it and mount it again; no file of it may be open."""
        _unmount(self.folder)
        checker = shutil.which("fsck.ext4", path=SYSTEM_PATH)
        assert checker is not None
        subprocess.run([checker, "-p", str(self.image)], capture_output=True, check=False)
        self.attach()


@contextmanager
def failing_disk(folder: Path, image: Path, size: int) -> Iterator[FailingDisk]:
    """Mount a disk of so many bytes at a folder, until the end of the block."""
    folder.mkdir(exist_ok=True)
    with open(image, "wb") as file:
        file.truncate(size)
    maker = shutil.which("mkfs.ext4", path=SYSTEM_PATH)
    if maker is None or subprocess.run([maker, "-q", "-F", str(image)], check=False).returncode:
        pytest.skip("no mkfs.ext4 here")
    disk = FailingDisk(folder, image)
    disk.attach()
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
