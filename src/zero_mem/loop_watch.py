"""Telling a caller that a blocking store stands in the way of a running event loop."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

from zero_mem.errors import BlockingCallWarning

_INSIDE = (os.path.dirname(__file__) + os.sep, contextlib.__file__)


def warned_of_loop() -> bool:
    """Warn when an event loop runs in this thread; tell whether to stop looking for one."""
    running = getattr(sys.modules["asyncio"], "_get_running_loop", None)
    if running is None or running() is None:
        return False
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:  # a notebook's cells run in a loop
        warnings.warn(
            "a synchronous Memory is used inside a running event loop, which stands still "
            "meanwhile; use AsyncMemory, or asyncio.to_thread(...)",
            BlockingCallWarning,
            stacklevel=_levels_to_caller(),
        )
    return True


def _levels_to_caller() -> int:
    """Count the frames from the function that warns to the caller's own code."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    return level
