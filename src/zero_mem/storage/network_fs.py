"""A warning for stores on network file systems, whose locks SQLite can't trust."""

from __future__ import annotations

import os
import re
import warnings

NETWORK_TYPES = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs"})

_OCTAL = re.compile(r"\\([0-7]{3})")  # spaces, tabs, line breaks and backslashes in /proc/mounts


class NetworkFileSystemWarning(UserWarning):
    """The store lies on a network file system."""


def file_system_type(path: str, mounts: str) -> str:
    """Find the type of the mount that holds a path in the text of /proc/mounts."""
    best, kind = "", ""
    absolute = os.path.abspath(path)
    for line in mounts.splitlines():
        _, mount, mount_type, *_ = [*line.split(" "), "", "", ""]
        mount = _OCTAL.sub(lambda escaped: chr(int(escaped[1], 8)), mount)
        inside = absolute == mount or absolute.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, mount_type
    return kind


def warn_if_network(path: str) -> None:
    """Warn when the file is on a network file system (Linux; elsewhere nothing is known)."""
    try:
        with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
            kind = file_system_type(path, mounts.read())
    except OSError:
        return
    if kind in NETWORK_TYPES:
        warnings.warn(
            f"{path} is on a network file system ({kind}), where SQLite's locks are not "
            "reliable; keep the store on a local disk, or use a server",
            NetworkFileSystemWarning,
            stacklevel=4,
        )
