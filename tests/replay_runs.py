"""Small invented runs, and a tokenizer that a reader can check by eye: one word, one token."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from zero_mem.controller.messages import Message, ToolCall, Transcript
from zero_mem.replay.prompt import Prompt
from zero_mem.replay.strategies import (
    ExternalState,
    ExtractiveSummary,
    FullConcatenation,
    LateClearing,
    NextCallFolding,
    ReceiptsOnly,
    SlidingWindow,
    Strategy,
    ZeroMem,
)

STRATEGIES: tuple[Strategy, ...] = (
    FullConcatenation(),
    SlidingWindow(messages=6),
    ExtractiveSummary(keep=4),
    ExternalState(),
    LateClearing(trigger=400, keep=1),
    NextCallFolding(),
    ReceiptsOnly(),
    ZeroMem(share=0.25),
)
"""One of each, with bounds that small runs reach."""


class Words:
    """Counts words, and how often each text was counted."""

    name = "words"
    exact = True

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def count(self, text: str) -> int:
        self.asked[text] += 1
        return len(text.split())


class Prompts:
    """A sink that keeps the prompts it is given."""

    def __init__(self) -> None:
        self.all: list[Prompt] = []

    def __call__(self, prompt: Prompt) -> None:
        self.all.append(prompt)

    def of(self, strategy: str) -> list[list[Message]]:
        return [[e.message for e in p.entries] for p in self.all if p.strategy == strategy]


def system(text: str) -> Message:
    return Message(role="system", text=text)


def user(text: str) -> Message:
    return Message(role="user", text=text)


def says(text: str) -> Message:
    return Message(role="assistant", text=text)


def calls(*named: tuple[str, str, dict[str, Any]]) -> Message:
    """An assistant message with calls of (call id, tool, arguments)."""
    made = [
        ToolCall(call_id=call_id, name=tool, arguments=json.dumps(arguments))
        for call_id, tool, arguments in named
    ]
    return Message(role="assistant", calls=tuple(made))


def result(call_id: str, tool: str, text: str, *, is_error: bool = False) -> Message:
    return Message(role="tool", call_id=call_id, tool=tool, text=text, is_error=is_error)


def run(*messages: Message, name: str = "run") -> Transcript:
    return Transcript(name=name, wire_format="openai_chat", messages=messages)


def orders(rows: int, start: int = 0) -> str:
    """A tool's long answer: a JSON list of orders."""
    listed = [
        {"order_id": f"ORD-{n:05d}", "status": "shipped", "amount": 100 + n, "note": "parcel " * 9}
        for n in range(start, start + rows)
    ]
    return json.dumps(listed)


def refund_run(steps: int = 6, name: str = "refund") -> Transcript:
    """An agent that looks orders up and refunds one that only the last answer names."""
    messages = [system("You handle refunds."), user("我要退款 please refund my parcel")]
    for step in range(steps):
        messages += [
            calls((f"c{step}", "list_orders", {"page": step})),
            result(f"c{step}", "list_orders", orders(12, start=12 * step)),
            calls((f"r{step}", "refund_order", {"order_id": f"ORD-{12 * step + 3:05d}"})),
            result(f"r{step}", "refund_order", "done"),
            says(f"Step {step} is through."),
            user("next one"),
        ]
    return run(*messages, says("All done."), name=name)
