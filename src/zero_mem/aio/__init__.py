"""The asynchronous face: the same names, run in a few threads over the one implementation.

`views/` is generated from the synchronous classes (tools/generate_aio.py), so the two can't
drift; what is written by hand here is the threads and the opening and closing of the store.
"""

from __future__ import annotations

from zero_mem.aio.store import AsyncMemory, AsyncNamespace

__all__ = ["AsyncMemory", "AsyncNamespace"]
