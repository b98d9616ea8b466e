"""What authors of stores and of programs on top test with: a conformance suite and fakes.

The suite is `zero_mem.testing.conformance.StoreConformance`; it needs pytest, which nothing
else here does.
"""

from __future__ import annotations

from zero_mem.testing.fakes import CountingTokenizer, FakeClock

__all__ = ["CountingTokenizer", "FakeClock"]
