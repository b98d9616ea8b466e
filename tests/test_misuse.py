"""What a newcomer passes by mistake is said at once, with what to pass instead."""

from __future__ import annotations

from typing import Any

import pytest
from openai import OpenAI

import zero_mem
from zero_mem import InvalidInput, Memory, MemoryController, MemoryStore, ZeroMemAgent
from zero_mem.conversation import with_memory

pytestmark = pytest.mark.req("pkg:errors")


def controller() -> MemoryController:
    return MemoryController(MemoryStore(), conversation="c")


def test_a_store_is_no_namespace() -> None:
    given: Any = Memory.open("memory://")
    with pytest.raises(InvalidInput, match=r"namespace\(\"acme\"\)"):
        MemoryController(given, conversation="c")


def test_a_client_takes_a_controller() -> None:
    given: Any = Memory.open("memory://")
    with OpenAI(api_key="k") as client, pytest.raises(InvalidInput, match="MemoryController"):
        with_memory(client, given)


@pytest.mark.parametrize("call", ["prepare", "absorb"])
def test_an_unknown_format_and_what_is_no_body_are_refused(call: str) -> None:
    method: Any = getattr(controller(), call)
    with pytest.raises(InvalidInput, match="openai_responses"):
        method({}, "openai")
    with pytest.raises(InvalidInput, match="list"):
        method([], "openai_chat")


def test_an_agent_needs_a_model_to_call() -> None:
    llm: Any = None
    with pytest.raises(InvalidInput, match="callable"):
        ZeroMemAgent(MemoryStore(), llm)


@pytest.mark.req("pkg:import")
def test_a_prompt_that_completes_shows_the_public_names() -> None:
    assert {"Memory", "MemoryController", "ZeroMemRuntime"} <= set(dir(zero_mem))
    assert not {"Any", "TYPE_CHECKING", "annotations"} & set(dir(zero_mem))
