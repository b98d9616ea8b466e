"""Dense recall: vectors that follow the records, made outside every write.

This module and `results` load nothing foreign; the others need numpy.
"""

from __future__ import annotations

from zero_mem.dense.results import Found, Progress, Reindexed

__all__ = ["Found", "Progress", "Reindexed"]
