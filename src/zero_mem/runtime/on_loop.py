"""The hooks for an agent that runs on an event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from zero_mem.aio import AsyncNamespace
from zero_mem.errors import InvalidInput
from zero_mem.runtime.awaited import AsyncHooks
from zero_mem.runtime.hooks import ZeroMemRuntime
from zero_mem.runtime.tools import MemoryIdOf, ToolRun, named_memory_id


class AsyncZeroMemRuntime(AsyncHooks):
    """Connects the events of an agent on an event loop to one namespace.

    It has the names of `ZeroMemRuntime`, each awaited; what touches the store runs in the
    store's threads.

    Args:
        space: The namespace that the agent's memories live in.
        conversation: As for `ZeroMemRuntime`.
        memory_id_of: As for `ZeroMemRuntime`.

    Raises:
        InvalidInput: `space` is not a namespace of an `AsyncMemory`.
    """

    def __init__(
        self,
        space: AsyncNamespace,
        *,
        conversation: str = "default",
        memory_id_of: MemoryIdOf = named_memory_id,
    ) -> None:
        if not isinstance(space, AsyncNamespace):
            raise InvalidInput(
                f"an asynchronous runtime takes an AsyncNamespace, not {type(space).__name__}: "
                'pass AsyncMemory.open(url).namespace("acme")'
            )
        self.space = space
        self.conversation = conversation
        self._memory_id_of = memory_id_of
        self._lock = threading.Lock()
        self._made: ZeroMemRuntime | None = None
        super().__init__(space.memory.threads, self._runtime)

    def _runtime(self) -> ZeroMemRuntime:
        """Make the runtime that is called, once; in a thread, since this opens the store."""
        with self._lock:
            if self._made is None:
                self._made = ZeroMemRuntime(
                    self.space.blocking(),
                    conversation=self.conversation,
                    memory_id_of=self._memory_id_of,
                )
            return self._made

    async def execute_tool(self, name: str, payload: Any, fn: Callable[[Any], Any]) -> ToolRun:
        """Run `fn(payload)` and write what it gave; a failure keeps the previous body.

        `fn` is asynchronous and awaited here, or it is not and runs in a thread. All else is
        as in `ZeroMemRuntime.execute_tool`.

        Raises:
            InvalidInput: The arguments name no possible id, or `fn` gives results one by one;
                the tool did not run.
            Whatever the tool raised, after the failure was recorded.
        """
        if inspect.isasyncgenfunction(fn):
            raise InvalidInput(f"tool {name} gives results one by one and did not run: gather them")
        call = await self._call(lambda runtime: runtime.tool_call(name, payload))
        try:
            result = await _run(fn, payload)
        except BaseException as error:
            note = partial(call.failed, error)
            await self._call(lambda _: note())
            raise
        return await self._call(lambda _: call.gave(result))


async def _run(fn: Callable[[Any], Any], payload: Any) -> Any:
    if inspect.iscoroutinefunction(fn):
        return await fn(payload)
    result = await asyncio.to_thread(fn, payload)
    return await result if inspect.isawaitable(result) else result
