"""An agent's loop and one namespace: hooks that write, and prompts of what must be known."""

from __future__ import annotations

from zero_mem.runtime.hooks import ZeroMemRuntime
from zero_mem.runtime.tools import ERROR_KEY, MemoryIdOf, ToolRun

__all__ = ["ERROR_KEY", "MemoryIdOf", "ToolRun", "ZeroMemRuntime"]
