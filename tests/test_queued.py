"""Queued writes: accepted at once, seen by this process, never lost but by a kill."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from zero_mem import Memory, ZeroMemRuntime
from zero_mem.errors import Conflict, InvalidInput, LimitReached
from zero_mem.space import Namespace
from zero_mem.testing.fakes import FakeClock

pytestmark = pytest.mark.req("op:queued")


def test_a_queued_write_is_accepted_and_every_read_sees_it(space: Namespace) -> None:
    receipt = space.save("refund", kind="fact", key="k", mode="queued")
    assert receipt.accepted
    assert (receipt.version, receipt.operation, receipt.preview) == (0, "save", "fact:k")
    assert space.get(receipt.memory_id).content == "refund"
    reads: list[Callable[[], list[str]]] = [
        lambda: [hit.memory_id for hit in space.search("parcel")],
        lambda: [r.memory_id for r in space.list({"kind": "note"})],
        lambda: [item.memory_id for item in space.recall("parcel").items],
        lambda: [r.memory_id for r in space.memory.subtree().list({"kind": "note"})],
        lambda: [r.memory_id for r in space.as_of(space.memory.now()).list({"kind": "note"})],
    ]
    for number, read in enumerate(reads, start=1):
        space.save(f"parcel {number}", mode="queued")
        assert len(read()) == number
    assert space.memory.stats().records == 1 + len(reads)


def test_every_prompt_waits_for_queued_writes(space: Namespace) -> None:
    identity = space.save("refund", mode="queued").memory_id
    assert space.recall_for_prompt([identity]).endswith("refund")
    later = space.save("parcel", mode="queued").memory_id
    prompt = ZeroMemRuntime(space).build_prompt(
        [{"role": "user", "content": "hi"}], require=[later]
    )
    assert "parcel" in prompt[1]["content"]


def test_queued_and_direct_writes_keep_their_order(space: Namespace) -> None:
    for number in range(20):
        mode = "queued" if number % 3 else "sync"
        space.save(f"v{number}", key="k", mode=mode)  # type: ignore[arg-type]
    assert space.get("1").content == "v19"
    assert [entry.version for entry in space.history("1")] == list(range(1, 21))
    assert space.failures() == []


def test_the_accepted_id_is_the_records(space: Namespace) -> None:
    ids = [space.save(f"b{n}", mode="queued").memory_id for n in range(120)]
    keyed = {space.save(f"k{n}", key="k", mode="queued").memory_id for n in range(5)}
    assert len(set(ids)) == 120
    assert len(keyed) == 1
    assert [space.get(key).content for key in ids] == [f"b{n}" for n in range(120)]
    assert space.get(keyed.pop()).content == "k4"
    assert space.save("mine", memory_id="x", mode="queued").memory_id == "x"


def test_a_wrong_argument_is_refused_at_once(space: Namespace) -> None:
    with pytest.raises(InvalidInput):
        space.save(" ", mode="queued")


def test_a_write_that_can_not_be_applied_becomes_a_failure_to_ask_for(
    memory: Memory, space: Namespace, clock: FakeClock
) -> None:
    space.configure(kind="note", max_memory_items=1, overflow="refuse")
    space.save("first", memory_id="x")
    refused = space.save("second", mode="queued")
    stale = space.save("third", memory_id="x", if_version=9, mode="queued")
    last = space.save("fourth", kind="fact", mode="queued")
    failures = space.failures()
    assert [f.memory_id for f in failures] == [refused.memory_id, stale.memory_id]
    assert [type(f.error) for f in failures] == [LimitReached, Conflict]
    assert {(f.namespace, f.at) for f in failures} == {(space.path, clock())}
    assert space.get(last.memory_id).content == "fourth"
    assert memory.namespace("other").failures() == []


@pytest.mark.req("op:idempotency")
def test_a_retried_queued_write_is_applied_once(space: Namespace) -> None:
    first = space.save("a", kind="message", idempotency_key="one", mode="queued")
    again = space.save("a", kind="message", idempotency_key="one", mode="queued")
    assert (space.count(), space.failures()) == (1, [])
    assert again.memory_id == first.memory_id
    later = space.save("a", kind="message", idempotency_key="one", mode="queued")
    assert later.memory_id == first.memory_id
    assert space.save("a", kind="message", idempotency_key="one").replayed
    assert (space.count(), space.failures()) == (1, [])


@pytest.mark.req("handle:short")
def test_a_queued_write_never_takes_a_callers_number(space: Namespace) -> None:
    first = space.save("queued", mode="queued").memory_id
    space.save("mine", memory_id=str(int(first) + 1))
    second = space.save("queued too", mode="queued").memory_id
    assert space.get(str(int(first) + 1)).content == "mine"
    assert space.get(second).content == "queued too"
    assert (space.count(), space.failures()) == (3, [])


def test_a_queued_write_does_not_move_a_key_to_another_id(space: Namespace) -> None:
    space.save("a", key="k", memory_id="x")
    space.save("b", key="k", memory_id="y", mode="queued")
    (failure,) = space.failures()
    assert isinstance(failure.error, Conflict)
    assert space.get("x").content == "a"


def test_many_threads_may_queue_at_once(space: Namespace) -> None:
    ids: list[str] = []

    def work(name: int) -> None:
        for number in range(25):
            ids.append(space.save(f"{name}.{number}", mode="queued").memory_id)
            space.save(f"{name}.{number}", key="shared", mode="queued")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(set(ids)), space.count(), space.failures()) == (100, 101, [])


def test_closing_applies_what_is_queued(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    with Memory.open(url) as memory:
        memory.namespace("a").save("kept", memory_id="x", mode="queued")
    with Memory.open(url) as memory:
        assert memory.namespace("a").get("x").content == "kept"


def test_a_store_that_nobody_holds_any_more_loses_no_accepted_write(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    for number in range(5):
        Memory.open(url).namespace("a").save("kept", memory_id=f"m{number}", mode="queued")
        gc.collect()
    reader = Memory.open(url).namespace("a")
    for thread in threading.enumerate():
        while thread.name == "zero-mem-queue" and thread.is_alive():
            gc.collect()
            thread.join(timeout=0.2)
    assert reader.count() == 5


SCRIPT = """
import sys
from zero_mem import Memory
space = Memory.open(sys.argv[1]).namespace("a")
for number in range(300):
    space.save(f"body {number}", mode="queued")
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "raise RuntimeError('boom')"])
def test_a_script_that_exits_right_after_loses_nothing(tmp_path: Path, end: str) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    subprocess.run([sys.executable, "-c", SCRIPT + end, url], capture_output=True, check=False)
    with Memory.open(url) as memory:
        assert memory.namespace("a").count() == 300
