"""AsyncMemory: the synchronous names, awaited, and a loop that is never held up."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
import warnings
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from zero_mem import AsyncMemory, Memory, MemoryRecord
from zero_mem.access.keys import Keyring
from zero_mem.aio import AsyncNamespace
from zero_mem.aio.threads import MOST
from zero_mem.aio.views.keys import AsyncKeyring
from zero_mem.aio.views.past import AsyncPast
from zero_mem.aio.views.subtree import AsyncSubtree
from zero_mem.errors import (
    BlockingCallWarning,
    InvalidInput,
    NotAllowed,
    NotFound,
    StoreCorrupt,
    StoreUnavailable,
)
from zero_mem.past import Past
from zero_mem.space import Namespace
from zero_mem.subtree import Subtree

pytestmark = pytest.mark.req("pkg:async")

ROOT = Path(__file__).resolve().parent.parent
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
INSIDE_ONLY = {
    "apply_save", "reserve_ids", "expected_id", "is_taken", "storage", "transaction", "scrub",
    "dense", "corpora", "key",
}  # fmt: skip
T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def shape(function: Any) -> list[tuple[str, Any, Any, Any]]:
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default, each.annotation) for each in parameters]


PAIRS = [
    (Memory, AsyncMemory),
    (Namespace, AsyncNamespace),
    (Subtree, AsyncSubtree),
    (Past, AsyncPast),
    (Keyring, AsyncKeyring),
]
METHODS = [
    pytest.param(sync, twin, name, id=f"{sync.__name__}.{name}")
    for sync, twin in PAIRS
    for name in sorted(public(sync) - INSIDE_ONLY)
    if (sync, name) != (Keyring, "verify")
]


@pytest.mark.parametrize(("sync", "twin", "name"), METHODS)
def test_each_public_name_has_a_twin_of_the_same_signature(
    sync: type, twin: type, name: str
) -> None:
    there, here = getattr(sync, name), getattr(twin, name)
    if isinstance(there, property):
        assert isinstance(here, property)
        return
    assert shape(here) == shape(there)
    assert inspect.getdoc(here)


def test_the_views_are_what_their_generator_writes() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_aio.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("url", ["memory://", "sqlite:///agent.db"])
def test_the_operations_work_as_they_do_without_a_loop(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def program() -> None:
        async with AsyncMemory.open(url, clock=lambda: NOON) as memory:
            space = memory.namespace("acme", "alice")
            receipt = await space.save("Asia/Shanghai", kind="user_pref", key="timezone")
            assert receipt.to_context() == "[memo:1] save (user_pref:timezone)"
            await space.save_many([{"content": f"note {n} on a refund"} for n in range(250)])
            assert (await space.get(1)).content == "Asia/Shanghai"
            assert len([record async for record in space.each()]) == 251
            assert (await space.recall("refund", limit=3)).items[0].score > 0
            assert [hit.memory_id for hit in await memory.subtree("acme").search("Shanghai")]
            past = await space.as_of(NOON)
            assert (await past.get(1)).version == 1
            assert past.moment == NOON
            assert (await memory.stats()).records == 251
            assert (await memory.tokenizer).count("") == 0
            assert (await memory.expire(dry_run=True)).count == 0
            with pytest.raises(NotFound):
                await space.get("999")

    run(program())


def test_a_store_is_opened_by_its_first_call_too() -> None:
    async def program() -> str:
        memory = AsyncMemory.open("memory://")
        receipt = await memory.namespace("acme").save("tea")
        await memory.close()
        return receipt.memory_id

    assert run(program()) == "1"


def test_a_bad_namespace_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="namespace"):
        AsyncMemory.open("memory://").namespace()


def test_what_opening_finds_wrong_is_raised_by_async_with(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no store at all, only a text of some length\n" * 50)

    async def program() -> None:
        async with AsyncMemory.open(f"sqlite:///{tmp_path}/notes.txt"):
            pass

    with pytest.raises(StoreCorrupt, match=r"notes\.txt"):
        run(program())


def test_plain_with_names_the_right_form() -> None:
    with pytest.raises(NotAllowed, match="async with"), AsyncMemory.open("memory://"):
        pass


def test_after_closing_every_call_says_so() -> None:
    async def program() -> None:
        async with AsyncMemory.open("memory://") as memory:
            await memory.namespace("acme").save("tea")
        await memory.close()
        await memory.namespace("acme").save("coffee")

    with pytest.raises(StoreUnavailable, match="closed"):
        run(program())


def test_threads_start_with_the_first_call_and_end_with_the_store() -> None:
    def ours() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("zero-mem_")]

    async def program() -> None:
        memory = AsyncMemory.open("memory://")
        assert ours() == []
        space = memory.namespace("acme")
        await asyncio.gather(*(space.save(f"fact {n}") for n in range(100)))
        assert 1 <= len(ours()) <= MOST
        await memory.close()
        assert ours() == []

    run(program())


class Gate:
    """A clock that stands still inside a write, once armed, until it is opened."""

    def __init__(self) -> None:
        self.armed = False
        self.reached = threading.Semaphore(0)
        self.opened = threading.Event()

    def __call__(self) -> datetime:
        if self.armed:
            self.reached.release()
            assert self.opened.wait(60)
        return NOON


async def held_up(gate: Gate) -> None:
    """Wait until one more write stands at the gate."""
    await asyncio.to_thread(gate.reached.acquire)


async def contents(space: AsyncNamespace) -> list[Any]:
    return [record.content async for record in space.each()]


def test_the_loop_goes_on_while_a_write_takes_its_time() -> None:
    gate = Gate()

    async def program() -> list[Any]:
        async with AsyncMemory.open("memory://", clock=gate) as memory:
            space = memory.namespace("acme")
            gate.armed = True
            writing = asyncio.create_task(space.save("slow"))
            await held_up(gate)
            gate.opened.set()  # by the loop itself: it would never come here if it were blocked
            await writing
            return await contents(space)

    assert run(program()) == ["slow"]


def test_a_cancelled_write_that_had_begun_is_done_and_the_store_goes_on() -> None:
    gate = Gate()

    async def program() -> list[Any]:
        async with AsyncMemory.open("memory://", clock=gate) as memory:
            space = memory.namespace("acme")
            gate.armed = True
            writing = asyncio.create_task(space.save("begun"))
            await held_up(gate)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            gate.opened.set()
            await space.save("after")
            return await contents(space)

    assert run(program()) == ["begun", "after"]


def test_a_cancelled_write_that_had_not_begun_is_not_done() -> None:
    gate = Gate()

    async def program() -> list[Any]:
        # The first write stands at the gate and the others behind it: all threads are taken.
        async with AsyncMemory.open("memory://", clock=gate) as memory:
            space = memory.namespace("acme")
            gate.armed = True
            first = [asyncio.create_task(space.save(f"begun {n}")) for n in range(MOST)]
            await held_up(gate)
            last = asyncio.create_task(space.save("not begun"))
            await asyncio.sleep(0)
            last.cancel()
            with pytest.raises(asyncio.CancelledError):
                await last
            gate.opened.set()
            await asyncio.gather(*first)
            return await contents(space)

    assert sorted(run(program())) == [f"begun {n}" for n in range(MOST)]


def test_closing_lets_running_writes_finish(tmp_path: Path) -> None:
    gate, url = Gate(), f"sqlite:///{tmp_path}/a.db"

    async def program() -> None:
        memory = AsyncMemory.open(url, clock=gate)
        space = memory.namespace("acme")
        gate.armed = True
        writing = asyncio.create_task(space.save("in time"))
        await held_up(gate)
        closing = asyncio.create_task(memory.close())
        await asyncio.sleep(0)
        gate.opened.set()
        await asyncio.gather(writing, closing)

    run(program())
    with Memory.open(url) as memory:
        assert memory.namespace("acme").get(1).content == "in time"


def test_one_store_serves_two_loops_after_each_other_and_at_once(tmp_path: Path) -> None:
    memory = AsyncMemory.open(f"sqlite:///{tmp_path}/a.db")
    space = memory.namespace("acme")

    async def save(word: str) -> None:
        await asyncio.gather(*(space.save(f"{word} {n}") for n in range(10)))

    run(save("first"))
    loops = [threading.Thread(target=run, args=(save(f"loop {n}"),)) for n in range(2)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join()

    async def end() -> list[MemoryRecord]:
        found = [record async for record in space.each()]
        await memory.close()
        return found

    assert len(run(end())) == 30


def test_an_open_store_can_be_taken_over() -> None:
    sync = Memory.open("memory://")
    sync.namespace("acme").save("tea")

    async def program() -> int:
        async with AsyncMemory(sync) as memory:
            return await memory.namespace("acme").count()

    assert run(program()) == 1


def test_a_synchronous_call_inside_a_loop_is_warned_of_once_at_the_callers_line() -> None:
    async def program() -> None:
        with Memory.open("memory://") as memory:
            space = memory.namespace("acme")
            space.save("tea")
            space.save("coffee")

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run(program())
    assert [each.category for each in seen] == [BlockingCallWarning]
    assert seen[0].filename == __file__
    assert "AsyncMemory" in str(seen[0].message)


def test_without_a_loop_and_in_a_notebook_nothing_is_warned_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Notebook:
        @staticmethod
        def get_ipython() -> object:
            return object()

    async def cell() -> None:
        Memory.open("memory://").namespace("acme").save("tea")

    Memory.open("memory://").namespace("acme").save("tea")
    monkeypatch.setitem(sys.modules, "IPython", Notebook)
    run(cell())
