"""The prompts that a page carries: every message once, each prompt as a change to the last."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from zero_mem.replay.prompt import Entry, Prompt, Span

DEFAULT_CAP: Final = 2_000_000
MESSAGE_CAP: Final = 20_000

Leaf: TypeAlias = dict[str, Any]


class PromptBook:
    """Collects prompts as they are made, up to a size.

    Within a run a message is kept once, whoever sends it, and a prompt is the number of
    messages that it keeps from the one before plus the numbers of those that follow. The
    book closes for good at the first call after `cap` characters, so what it holds is the
    beginning of the input; a message is cut after `message_cap` characters.
    """

    def __init__(self, *, cap: int = DEFAULT_CAP, message_cap: int = MESSAGE_CAP) -> None:
        self.runs: list[dict[str, Any]] = []
        self.closed = False
        self._cap = cap
        self._message_cap = message_cap
        self._size = 0
        self._place = (-1, -1)
        self._numbers: dict[object, int] = {}

    def __call__(self, prompt: Prompt) -> None:
        """Take the next prompt."""
        place = (prompt.run, prompt.call)
        if place != self._place:
            self._place = place
            self.closed = self.closed or self._size >= self._cap
        if self.closed:
            return
        run = self._run(prompt)
        self._answer(run, prompt)
        key = strategy_key(prompt.strategy, prompt.budget)
        calls = run["prompts"].setdefault(key, [])
        added = [self._number(run, entry) for entry in prompt.entries[prompt.kept :]]
        calls.append([prompt.kept, added, prompt.tokens, self._values(prompt)])
        self._size += 8 * len(added) + 40

    def _run(self, prompt: Prompt) -> dict[str, Any]:
        if prompt.run != (self.runs[-1]["run"] if self.runs else -1):
            self._numbers = {}
            self.runs.append(
                {
                    "run": prompt.run,
                    "name": prompt.trajectory,
                    "messages": [],
                    "answers": [],
                    "prompts": {},
                }
            )
        return self.runs[-1]

    def _answer(self, run: dict[str, Any], prompt: Prompt) -> None:
        if len(run["answers"]) < prompt.call:
            answer = Entry(message=prompt.answer, origin=prompt.index)
            run["answers"].append(self._number(run, answer))

    def _values(self, prompt: Prompt) -> list[list[Any]]:
        return [
            [seen.value, int(seen.visible), int(seen.linked), seen.read] for seen in prompt.values
        ]

    def _number(self, run: dict[str, Any], entry: Entry) -> int:
        key = (entry.message, entry.spans, entry.changed)
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(run["messages"])
            leaf = self._leaf(entry)
            run["messages"].append(leaf)
            self._size += _size(leaf)
        return known

    def _leaf(self, entry: Entry) -> Leaf:
        message = entry.message
        text = message.text[: self._message_cap]
        leaf: Leaf = {"role": message.role, "text": text}
        if len(text) < len(message.text):
            leaf["cut"] = len(message.text) - len(text)
        if message.tool:
            leaf["tool"] = message.tool
        if message.calls:
            leaf["calls"] = [
                [call.name, call.arguments[: self._message_cap]] for call in message.calls
            ]
        if entry.changed:
            leaf["changed"] = entry.changed
        spans = [_span(span, len(text)) for span in entry.spans if span.start < len(text)]
        return leaf | {"spans": spans} if spans else leaf


def _size(leaf: Leaf) -> int:
    """Estimate what a message takes on the page, in characters."""
    arguments = sum(len(given) for _, given in leaf.get("calls", ()))
    return len(leaf["text"]) + arguments + 60 * len(leaf.get("spans", ())) + 80


def strategy_key(strategy: str, budget: float | None) -> str:
    """Name a strategy at a budget, as the page's own scripts do."""
    return strategy if budget is None else f"{strategy}@{budget:g}"


def _span(span: Span, end: int) -> list[Any]:
    return [span.start, min(span.end, end), span.column, span.reason]
