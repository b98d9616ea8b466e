"""Write down one agent run as OpenAI chat messages, the same every time."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")
ALNUM = "abcdefghijkmnpqrstuvwxyz23456789"


class Dice:
    """Seeded choices from `random.random` alone, whose sequence no Python version changes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def number(self, low: int, high: int) -> int:
        """Give an integer from low to high, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """Give one of the choices."""
        return choices[self.number(0, len(choices) - 1)]

    def code(self, length: int, alphabet: str = ALNUM) -> str:
        """Give a random identifier of `length` characters."""
        return "".join(self.pick(alphabet) for _ in range(length))


class Run:
    """The messages of a run in order; every call is answered at once."""

    def __init__(self, *, seed: int, system: str) -> None:
        self._dice = Dice(seed)
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": system}]

    def user(self, text: str) -> None:
        """Add what the customer writes."""
        self.messages.append({"role": "user", "content": text})

    def says(self, text: str) -> None:
        """Add what the agent answers."""
        self.messages.append({"role": "assistant", "content": text})

    def calls(self, name: str, arguments: dict[str, Any], result: object) -> None:
        """Add one call and its result: text as it is, anything else as JSON."""
        call_id = f"call_{self._dice.code(22)}"
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        call = {"id": call_id, "type": "function", "function": function}
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        content = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": content})


def tool(name: str, description: str, /, **parameters: str) -> dict[str, Any]:
    """Define a tool whose parameters are strings, all required unless their text says optional."""
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    required = [key for key, text in parameters.items() if not text.startswith("Optional")]
    schema = {"type": "object", "properties": properties, "required": required}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


def transcript(run: Run, tools: Sequence[dict[str, Any]]) -> str:
    """Render as the body of a chat request, one message a line, so that changes can be read."""
    lines = ",\n  ".join(json.dumps(message, ensure_ascii=False) for message in run.messages)
    defined = ",\n  ".join(json.dumps(definition, ensure_ascii=False) for definition in tools)
    return f'{{"tools": [\n  {defined}\n ],\n "messages": [\n  {lines}\n ]}}\n'
