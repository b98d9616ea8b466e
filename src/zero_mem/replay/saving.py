"""Where a replay keeps the tool results: one fresh namespace of memories per run."""

from __future__ import annotations

from typing import Any, Final, Protocol

from zero_mem.memory import Memory
from zero_mem.operations.requests import name_of
from zero_mem.runtime import ZeroMemRuntime
from zero_mem.types import Path

ROOT: Final = ("replay",)


class RunSaver(Protocol):
    """Keeps the tool results of one run."""

    def save(self, text: str, tool: str) -> str:
        """Save one result and give its memory_id; empty for a result that is not kept."""
        ...


class Saver(Protocol):
    """Opens a place for each run."""

    def run(self, name: str) -> RunSaver:
        """Begin a run; the same name twice begins two."""
        ...


class MemorySaver:
    """Keeps each run's results by an agent runtime's own hook, in a namespace below `root`.

    Namespaces are numbered on from those there are, so that a store can take many replays
    and every run's memories count from 1, as an agent's own would.
    """

    def __init__(self, memory: Memory | None = None, *, root: Path = ROOT) -> None:
        self._memory = memory or Memory.open("memory://")
        self._root = root
        self._runs = len(self._memory.subtree(*root).namespaces())

    def run(self, name: str) -> RunSaver:
        """Begin a run in the next namespace."""
        self._runs += 1
        space = self._memory.namespace(*self._root, f"run-{self._runs}")
        conversation = name_of(name) or f"run-{self._runs}"
        runtime = ZeroMemRuntime(space, conversation=conversation, memory_id_of=_its_own)
        return _RuntimeSaver(runtime)


class _RuntimeSaver:
    def __init__(self, runtime: ZeroMemRuntime) -> None:
        self._runtime = runtime

    def save(self, text: str, tool: str) -> str:
        return self._runtime.execute_tool(tool, {}, lambda _: text).receipt.memory_id


def _its_own(tool: str, payload: Any, result: Any) -> None:
    """Give every result a memory of its own: a transcript names none."""
