"""The read tool's definition and the preamble: their size, and that they say what matters."""

from __future__ import annotations

import inspect
import json

import pytest

from zero_mem.controller.definitions import (
    MEMORY_TOOLS,
    PREAMBLE,
    READ_TOOL,
    memory_definitions,
    read_definition,
)
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.wire.places import tool_name
from zero_mem.recall.select import select
from zero_mem.text.tokens import tokenizer

FORMATS: list[WireFormat] = ["openai_chat", "openai_responses", "anthropic", "claude_code"]


@pytest.mark.req("ledger:columns", "controller:offload")
@pytest.mark.parametrize("wire_format", FORMATS)
def test_the_definition_costs_at_most_150_tokens(wire_format: WireFormat) -> None:
    counter = tokenizer("o200k")
    assert counter.exact
    assert counter.count(json.dumps(read_definition(wire_format))) <= 150


@pytest.mark.req("ledger:columns", "controller:offload")
@pytest.mark.parametrize("wire_format", FORMATS)
def test_all_definitions_cost_at_most_350_tokens(wire_format: WireFormat) -> None:
    definitions = memory_definitions(wire_format)
    assert tuple(map(tool_name, definitions)) == MEMORY_TOOLS
    assert tokenizer("o200k").count(json.dumps(definitions)) <= 350


@pytest.mark.req("ledger:columns", "controller:offload")
def test_the_preamble_costs_at_most_120_tokens_and_says_stored_intact_and_how_to_read() -> None:
    assert tokenizer("o200k").count(PREAMBLE) <= 120
    assert "stored intact" in PREAMBLE
    assert READ_TOOL in PREAMBLE


@pytest.mark.req("controller:offload")
def test_each_vendor_gets_its_own_schema() -> None:
    chat = read_definition("openai_chat")
    responses = read_definition("openai_responses")
    anthropic = read_definition("anthropic")
    assert chat["function"]["name"] == responses["name"] == anthropic["name"] == READ_TOOL
    assert chat["type"] == responses["type"] == "function"
    assert chat["function"]["parameters"] == responses["parameters"] == anthropic["input_schema"]


@pytest.mark.req("controller:offload")
def test_its_arguments_are_the_choices_of_a_read() -> None:
    offered = set(read_definition("anthropic")["input_schema"]["properties"])
    choices = set(inspect.signature(select).parameters) - {"body"}
    assert offered == choices | {"id", "query", "budget", "page"}


@pytest.mark.req("controller:offload")
def test_a_definition_is_the_callers_own() -> None:
    read_definition("anthropic")["input_schema"]["properties"].clear()
    assert read_definition("anthropic")["input_schema"]["properties"]
