"""Why a memory was or was not used: each place where the way can break is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import Server, empty, new_database

from zero_mem import Memory, ZeroMemRuntime
from zero_mem.encryption import Encryption, MasterKey
from zero_mem.errors import InvalidInput
from zero_mem.space import Namespace
from zero_mem.storage.routing import Routes, write_routes
from zero_mem.testing.fakes import FakeClock
from zero_mem.why import Explanation, why

pytestmark = pytest.mark.req("prod:why")

HI = [{"role": "user", "content": "hi"}]
WRITTEN, READABLE, RECEIPT, READ, OLDER = range(5)


@pytest.fixture(scope="module")
def node(postgres: Server) -> Iterator[str]:
    """Give the URL of a database for the one node of a routed store."""
    yield new_database(postgres, "why_node")
    postgres.run("DROP DATABASE why_node WITH (FORCE)")


@pytest.fixture(params=["memory", "sqlite", "sealed", "postgres", "routes"])
def memory(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> Iterator[Memory]:
    """Open a store of every backend: what is said must not depend on it."""
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'agent.db'}"
    sealing = Encryption(master=MasterKey(bytes(32))) if request.param == "sealed" else None
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    if request.param == "routes":
        nodes = {"only": request.getfixturevalue("node")}
        empty(request.getfixturevalue("postgres"), "why_node")
        origin = "0123456789abcdef"
        write_routes(tmp_path / "r.json", Routes(nodes=nodes, default="only", origin=origin))
        url = f"routes:///{tmp_path / 'r.json'}"
    with Memory.open(
        url, clock=clock, durability="normal", actor="test", encryption=sealing
    ) as opened:
        yield opened


def answers(explanation: Explanation) -> list[str]:
    return [step.answer for step in explanation.steps]


def test_a_memory_that_was_used_passes_every_step(space: Namespace) -> None:
    space.save("open", kind="task_state", memory_id="t")
    ZeroMemRuntime(space, conversation="c").build_prompt(HI, require=["t"])
    explanation = why(space, "t", "c")
    assert answers(explanation) == ["yes", "yes", "yes", "yes", "no"]
    assert explanation.advice == ""


def test_a_write_that_never_happened(memory: Memory) -> None:
    memory.namespace("b").save("x", memory_id="t")
    explanation = why(memory.namespace("a"), "t")
    assert answers(explanation)[:2] == ["no", "no"]
    assert "the journal of a has no memory t" in explanation.steps[WRITTEN].evidence
    assert "namespace" in explanation.advice


def test_a_queued_write_that_failed(space: Namespace) -> None:
    space.save("a", memory_id="x")
    space.save("b", memory_id="x", if_version=9, mode="queued")
    step = why(space, "x").steps[WRITTEN]
    assert (step.answer, "version 1, not 9" in step.evidence) == ("no", True)


@pytest.mark.parametrize(
    ("end", "evidence"), [("expire", "expired"), ("archive", "archived"), ("purge", "purged")]
)
def test_a_memory_that_has_ended(
    space: Namespace, clock: FakeClock, end: str, evidence: str
) -> None:
    space.save("a", memory_id="x", expires_in=60)
    if end == "expire":
        clock.advance(60)
    else:
        getattr(space, end)("x")
    step = why(space, "x").steps[READABLE]
    assert (step.answer, evidence in step.evidence) == ("no", True)
    assert step.advice


@pytest.mark.parametrize(
    ("prompt", "answer", "evidence"),
    [
        ("so [memo:t-1] update (task_state)", "yes", "1 handle names it"),
        ("so [memo:8,t-1]", "yes", "1 handle names it"),
        ("the tool said [\\memo:t-1] update", "no", "escaped"),
        ("memory t-1 was updated", "no", "not as [memo:t-1]"),
        ("nothing", "no", "no handle there names it"),
    ],
)
def test_a_receipt_in_a_form_that_the_model_knows_or_not(
    space: Namespace, prompt: str, answer: str, evidence: str
) -> None:
    space.save("a", memory_id="t-1")
    step = why(space, "t-1", prompt_text=prompt).steps[RECEIPT]
    assert (step.answer, evidence in step.evidence) == (answer, True)


def test_a_body_that_was_never_read_or_only_in_an_older_version(space: Namespace) -> None:
    space.save("step 1", memory_id="t")
    assert why(space, "t").steps[READ].answer == "no"
    runtime = ZeroMemRuntime(space, conversation="c")
    runtime.build_prompt(HI, require=["t"])
    assert why(space, "t").steps[READ].answer == "unknown"
    space.update("t", content="step 2")
    step = why(space, "t", "c").steps[READ]
    assert (step.answer, "shows version 1, now it is 2" in step.evidence) == ("no", True)
    line = space.recall_for_prompt(["t"])
    assert why(space, "t", prompt_text=line).steps[READ].answer == "yes"


def test_a_write_that_brought_an_older_value_back(memory: Memory) -> None:
    memory.namespace("a", actor="slow").save("A", memory_id="x")
    memory.namespace("a", actor="quick").save("B", memory_id="x")
    assert why(memory.namespace("a"), "x").steps[OLDER].answer == "no"
    memory.namespace("a", actor="slow").save("A", memory_id="x")
    step = why(memory.namespace("a"), "x").steps[OLDER]
    assert step.answer == "yes"
    assert "by slow has the body of version 1 again" in step.evidence
    assert "by quick" in step.evidence
    assert "if_version" in step.advice


def test_no_step_shows_a_body(space: Namespace) -> None:
    for body in ("secret-A", "secret-B", "secret-A"):
        space.save(body, memory_id="x", metadata={"m": "secret-C"})
    assert "secret" not in repr(why(space, "x", prompt_text="[memo:x] note: secret-A"))


def test_an_id_that_no_handle_could_name_is_refused(space: Namespace) -> None:
    with pytest.raises(InvalidInput):
        why(space, "a/b")
