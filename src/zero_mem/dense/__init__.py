"""Dense recall: vectors that follow the records, made outside every write."""

from __future__ import annotations

from zero_mem.dense.index import DenseIndex, Found
from zero_mem.dense.reindex import Progress, Reindexed, reindex

__all__ = ["DenseIndex", "Found", "Progress", "Reindexed", "reindex"]
