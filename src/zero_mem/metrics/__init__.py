"""What a process did with its store, counted: numbers only, never a body, a key or a name."""

from __future__ import annotations

from zero_mem.metrics.registry import Metrics, Snapshot

__all__ = ["Metrics", "Snapshot"]
