"""The tool with which a model reads a handle, in each vendor's schema, and the preamble.

The texts are counted in every request, so they are short on purpose: tests hold the tool
to 150 tokens of o200k and the preamble to 120.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from zero_mem.controller.messages import WireFormat

READ_TOOL: Final = "memory_read"

_PURPOSE: Final = "Read [memo:ID], whole or in part."

_PARAMETERS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "pointer": {"type": "string", "description": "JSON Pointer"},
        "rows": {"type": "object", "description": 'filter: {"status":"late"}'},
        "lines": {"type": "string", "description": "10-40"},
        "pattern": {"type": "string", "description": "regex"},
        "budget": {"type": "integer", "description": "tokens"},
    },
    "required": ["id"],
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
    parameters = json.loads(json.dumps(_PARAMETERS))
    named = {"name": READ_TOOL, "description": _PURPOSE}
    if wire_format == "openai_chat":
        return {"type": "function", "function": {**named, "parameters": parameters}}
    if wire_format == "openai_responses":
        return {"type": "function", **named, "parameters": parameters}
    return {**named, "input_schema": parameters}
