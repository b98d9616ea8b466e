"""Keeping number-crunching libraries to one thread while an embedder runs.

Their pools spin between calls and, where cores are shared, cost several times what they give
(measured: five times the CPU for the same texts on two busy cores).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

from zero_mem.errors import MissingExtra


class OneThread:
    """Limits OpenMP and BLAS to the calling thread, for the time of a `with` only."""

    @cached_property
    def _controller(self) -> Any:
        """The libraries that are loaded by now: look for them after the model has been."""
        try:
            from threadpoolctl import ThreadpoolController
        except ImportError as error:
            raise MissingExtra("an embedder with its model inside", "dense") from error
        return ThreadpoolController()

    def __call__(self) -> AbstractContextManager[Any]:
        """Give the context in which one thread works."""
        limit: AbstractContextManager[Any] = self._controller.limit(limits=1)
        return limit
