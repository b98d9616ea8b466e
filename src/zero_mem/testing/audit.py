"""Does a store agree with itself? The check that `Memory.verify` makes, for tests."""

from __future__ import annotations

from zero_mem.backup.audit import faults

__all__ = ["faults"]
