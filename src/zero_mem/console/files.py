"""The console's own style and scripts, served with a name for each version of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is served."""

    content: bytes
    media_type: str
    version: str


@cache
def static_files() -> Mapping[str, File]:
    """Read the files by name."""
    found = {}
    for file in (files("zero_mem.console") / "static").iterdir():
        media_type = _TYPES.get(file.name.rpartition(".")[2])
        if media_type is not None:
            content = file.read_bytes()
            version = hashlib.sha256(content).hexdigest()[:16]
            found[file.name] = File(content, media_type, version)
    return found
