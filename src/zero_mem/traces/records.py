"""Telling records of a trace and what a transcript says from one another: pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from zero_mem.replay.said import Said, called
from zero_mem.types import Body


def completes(whole: Said, content: Body, metadata: Mapping[str, Any]) -> bool:
    """Tell whether a record is the beginning of what was said: it was still being written."""
    if not isinstance(content, str) or not isinstance(whole.content, str):
        return False
    calls, before = whole.metadata.get("calls", []), metadata.get("calls", [])
    if calls[: len(before)] != before:
        return False
    return whole.content.startswith(content) or content == called(before)


def digest(messages: Sequence[Said]) -> str:
    """Tell threads apart by what was said, whoever says when."""
    found = hashlib.blake2b(digest_size=4)
    for one in messages:
        found.update(f"{one.kind}\0{one.speaker}\0{one.content!r}\0".encode("utf-8", "replace"))
    return found.hexdigest()
