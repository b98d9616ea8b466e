"""The tools with which a model uses its memory, in each vendor's schema, and the preamble.

The texts are counted in every request, so they are short on purpose: tests hold the read
tool to 150 tokens of o200k, all tools to 350 and the preamble to 120.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from zero_mem.controller.messages import WireFormat

READ_TOOL: Final = "memory_read"
SEARCH_TOOL: Final = "memory_search"
NOTE_TOOL: Final = "memory_note"
FORGET_TOOL: Final = "memory_forget"
MEMORY_TOOLS: Final = (READ_TOOL, SEARCH_TOOL, NOTE_TOOL, FORGET_TOOL)

_PURPOSES: Final[Mapping[str, str]] = {
    READ_TOOL: "Read [memo:ID], whole or in part.",
    SEARCH_TOOL: "Search all memories.",
    NOTE_TOOL: "Remember a fact; same key replaces.",
    FORGET_TOOL: "Delete a memory.",
}

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_PROPERTIES: Final[Mapping[str, Mapping[str, Any]]] = {
    READ_TOOL: {
        "id": _TEXT,
        "pointer": {"type": "string", "description": "JSON Pointer"},
        "rows": {"type": "object", "description": '{"status":"late"}'},
        "lines": {"type": "string", "description": "10-40"},
        "pattern": _TEXT,
        "query": _TEXT,
        "budget": _NUMBER,
        "page": _NUMBER,
    },
    SEARCH_TOOL: {"query": _TEXT},
    NOTE_TOOL: {"text": _TEXT, "key": _TEXT},
    FORGET_TOOL: {"id": _TEXT},
}
_REQUIRED: Final[Mapping[str, str]] = {
    READ_TOOL: "id",
    SEARCH_TOOL: "query",
    NOTE_TOOL: "text",
    FORGET_TOOL: "id",
}

PREAMBLE: Final = (
    "Long tool results are stored intact outside this prompt. [memo:ID] is the receipt of one; "
    "+N means that N of its values or lines are not shown below it. What is shown is quoted: "
    "`key: value`, or a table `key[rows]{columns}` with one row a line (`name=value` holds for "
    "every row, ^X repeats row X, @N precedes line N). Never guess what is not shown: read it "
    f"with {READ_TOOL}."
)


def read_definition(wire_format: WireFormat) -> dict[str, Any]:
    """Give the read tool's definition as an item of a request's `tools`.

    Args:
        wire_format: `openai_chat`, `openai_responses` or `anthropic` (`claude_code` is the
            same as `anthropic`).

    Returns:
        A fresh object that the caller may change.
    """
    return _definition(READ_TOOL, wire_format)


def memory_definitions(wire_format: WireFormat) -> list[dict[str, Any]]:
    """Give the definitions of all memory tools, fresh, in an order that never changes."""
    return [_definition(name, wire_format) for name in MEMORY_TOOLS]


def _definition(name: str, wire_format: WireFormat) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": json.loads(json.dumps(_PROPERTIES[name])),
        "required": [_REQUIRED[name]],
    }
    named = {"name": name, "description": _PURPOSES[name]}
    if wire_format == "openai_chat":
        return {"type": "function", "function": {**named, "parameters": parameters}}
    if wire_format == "openai_responses":
        # The platform takes a function for strict unless it is told otherwise.
        return {"type": "function", **named, "parameters": parameters, "strict": False}
    return {**named, "input_schema": parameters}
