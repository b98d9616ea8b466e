"""The hooks of an agent on an event loop: the same names, awaited, and the loop never blocked."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from zero_mem import AsyncMemory, AsyncZeroMemRuntime, Memory, ZeroMemRuntime
from zero_mem.errors import InvalidInput, LimitReached, RequiredMemoryMissing

pytestmark = pytest.mark.req("runtime:hooks", "pkg:async")


def run(program: Callable[[AsyncZeroMemRuntime], Awaitable[None]]) -> None:
    async def main() -> None:
        async with AsyncMemory.open("memory://") as memory:
            await program(AsyncZeroMemRuntime(memory.namespace("shop")))

    asyncio.run(main())


def test_it_has_the_names_and_signatures_of_the_synchronous_one() -> None:
    for name, member in inspect.getmembers(ZeroMemRuntime, inspect.isfunction):
        if name.startswith("_") or name == "tool_call":
            continue
        mine = getattr(AsyncZeroMemRuntime, name)
        assert inspect.iscoroutinefunction(mine), name
        assert inspect.signature(mine) == inspect.signature(member), name


def test_a_whole_task_on_a_loop() -> None:
    async def program(runtime: AsyncZeroMemRuntime) -> None:
        opened = await runtime.on_task_start("task-1", "refund asked for")
        assert opened.to_context() == "[memo:task-1] save (task_state)"
        await runtime.on_tool_start("task-1", "status")

        async def status(payload: Any) -> str:
            await asyncio.sleep(0)
            return f"approved for {payload['order']}"

        done = await runtime.execute_tool("status", {"task_id": "task-1", "order": 57}, status)
        assert done.receipt.to_context() == "[memo:task-1] update (task_state)"
        prompt = await runtime.build_prompt([{"role": "user", "content": "?"}], require=["task-1"])
        assert "approved for 57" in prompt[-1]["content"]
        spans = await runtime.inspect(0, [{"role": "user", "content": "?"}])
        assert any("task-1" in span.text for span in spans)
        ended = await runtime.on_task_end("task-1")
        assert ended.count == 1

    run(program)


def test_a_tool_that_is_not_asynchronous_runs_beside_the_loop() -> None:
    async def program(runtime: AsyncZeroMemRuntime) -> None:
        here = threading.get_ident()
        done = await runtime.execute_tool("where", {}, lambda _: threading.get_ident())
        assert done.result != here

        async def later(payload: Any) -> str:
            return "awaited"

        given = await runtime.execute_tool("later", {}, lambda payload: later(payload))
        assert given.result == "awaited"
        assert (await runtime.space.get(given.receipt.memory_id)).content == "awaited"

    run(program)


def test_what_a_tool_raises_comes_through_and_is_noted() -> None:
    async def program(runtime: AsyncZeroMemRuntime) -> None:
        await runtime.on_tool_success("order", "paid")

        async def broken(payload: Any) -> None:
            raise TimeoutError("no answer")

        with pytest.raises(TimeoutError, match="no answer"):
            await runtime.execute_tool("ship", {"memory_id": "order"}, broken)
        record = await runtime.space.get("order")
        assert record.content == "paid"
        assert record.metadata["last_error"]["type"] == "TimeoutError"

    run(program)


def test_a_tool_that_is_cancelled_is_noted_too() -> None:
    async def program(runtime: AsyncZeroMemRuntime) -> None:
        await runtime.on_tool_success("order", "paid")
        begun = asyncio.Event()

        async def endless(payload: Any) -> None:
            begun.set()
            await asyncio.Event().wait()

        call = asyncio.create_task(runtime.execute_tool("ship", {"memory_id": "order"}, endless))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        record = await runtime.space.get("order")
        assert record.metadata["last_error"]["type"] == "CancelledError"

    run(program)


def test_a_result_that_cannot_be_written_is_returned() -> None:
    async def program(runtime: AsyncZeroMemRuntime) -> None:
        await runtime.space.configure(kind="tool_result", max_memory_items=1, overflow="refuse")
        await runtime.execute_tool("one", {}, lambda _: "first")
        second = await runtime.execute_tool("two", {}, lambda _: "second")
        assert (second.result, type(second.error)) == ("second", LimitReached)

    run(program)


@pytest.mark.req("pkg:errors")
def test_wrong_input_is_refused_before_the_tool_runs() -> None:
    async def program(runtime: AsyncZeroMemRuntime) -> None:
        ran: list[Any] = []

        async def one_by_one(payload: Any) -> AsyncIterator[int]:
            ran.append(payload)
            yield 1

        with pytest.raises(InvalidInput, match="one by one and did not run"):
            await runtime.execute_tool("rows", {}, one_by_one)
        with pytest.raises(InvalidInput):
            await runtime.execute_tool("bad", {"memory_id": "a]b"}, ran.append)
        with pytest.raises(RequiredMemoryMissing):
            await runtime.build_prompt([{"role": "user", "content": "?"}], require=["nowhere"])
        assert (ran, await runtime.space.count()) == ([], 0)

    run(program)
    with Memory.open("memory://") as memory, pytest.raises(InvalidInput, match="AsyncNamespace"):
        AsyncZeroMemRuntime(memory.namespace("a"))  # type: ignore[arg-type]


@pytest.mark.req("inspect:prompt")
def test_prompts_that_are_built_at_once_keep_one_block(tmp_path: Path) -> None:
    async def main() -> list[list[dict[str, Any]]]:
        async with AsyncMemory.open(f"sqlite:///{tmp_path}/agent.db") as memory:
            runtime = AsyncZeroMemRuntime(memory.namespace("shop"))
            await runtime.on_tool_success("order", "paid")
            chat = [{"role": "user", "content": "?"}]
            return await asyncio.gather(
                *(runtime.build_prompt(chat, require=["order"]) for _ in range(8))
            )

    prompts = asyncio.run(main())
    assert all(prompt == prompts[0] for prompt in prompts)
    assert len(prompts[0]) == 2
