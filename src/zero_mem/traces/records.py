"""Telling records of a trace and what a transcript says from one another: pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from zero_mem.replay.said import Said, called
from zero_mem.types import Body

Held: TypeAlias = tuple[Body, Mapping[str, Any]]
"""What a record holds: its body and its metadata."""


def completes(whole: Held, part: Held) -> bool:
    """Tell whether a record is the beginning of another: it was still being written."""
    (content, metadata), (beginning, before) = whole, part
    if not isinstance(content, str) or not isinstance(beginning, str):
        return False
    calls, first = metadata.get("calls", []), before.get("calls", [])
    if calls[: len(first)] != first:
        return False
    return content.startswith(beginning) or beginning == called(first)


def digest(messages: Sequence[Said]) -> str:
    """Tell threads apart by what was said, whoever says when."""
    found = hashlib.blake2b(digest_size=4)
    for one in messages:
        found.update(f"{one.kind}\0{one.speaker}\0{one.content!r}\0".encode("utf-8", "replace"))
    return found.hexdigest()
