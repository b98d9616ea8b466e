"""What a prompt shows of a record without being asked."""

from __future__ import annotations

from zero_mem.policy.limits import Limits, Visibility
from zero_mem.types import MemoryRecord


def visibility_of(record: MemoryRecord, limits: Limits) -> Visibility:
    """Give a record's visibility under its limits.

    Only what a person wrote is pinned: what a tool, a document or a model wrote shows its
    handle, so that text from outside can't put itself into every prompt.
    """
    if limits.visibility == "pinned" and record.source != "user":
        return "handle"
    return limits.visibility
