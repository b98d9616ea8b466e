"""Zero-Mem: memory for LLM agents that stays out of the prompt.

Operations on memory are deterministic code; they call no LLM and put no body into the prompt,
only a receipt. A body enters the prompt when the model must decide on it: explicitly, few,
compact, under a budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zero_mem import errors
from zero_mem.errors import ZeroMemError
from zero_mem.memory import Memory, MemoryStore
from zero_mem.types import UNSET, Blob, Json, MemoryReceipt, MemoryRecord

if TYPE_CHECKING:
    from zero_mem.agent import ZeroMemAgent
    from zero_mem.aio import AsyncMemory
    from zero_mem.client import connect
    from zero_mem.conversation import MemoryController
    from zero_mem.runtime import ZeroMemRuntime
    from zero_mem.runtime.on_loop import AsyncZeroMemRuntime

__all__ = [
    "UNSET",
    "AsyncMemory",
    "AsyncZeroMemRuntime",
    "Blob",
    "Json",
    "Memory",
    "MemoryController",
    "MemoryReceipt",
    "MemoryRecord",
    "MemoryStore",
    "ZeroMemAgent",
    "ZeroMemError",
    "ZeroMemRuntime",
    "connect",
]

_LAZY = {
    "AsyncMemory": "zero_mem.aio",
    "AsyncZeroMemRuntime": "zero_mem.runtime.on_loop",
    "MemoryController": "zero_mem.conversation",
    "ZeroMemAgent": "zero_mem.agent",
    "ZeroMemRuntime": "zero_mem.runtime",
    "connect": "zero_mem.client",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Give the errors too, and import on first use what not every program needs."""
    if name in _LAZY:
        # asyncio alone costs more than the core.
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    if isinstance(found := getattr(errors, name, None), type):
        return found
    raise AttributeError(f"module 'zero_mem' has no attribute {name!r}")
