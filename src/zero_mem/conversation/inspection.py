"""The prompt of a conversation, run by run, with the reason why each stands there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zero_mem import handles
from zero_mem.controller.definitions import MEMORY_TOOLS, PREAMBLE
from zero_mem.controller.wire.places import tool_name
from zero_mem.controller.wire.sites import Result, Step, Turn
from zero_mem.conversation.persisted import Inserted
from zero_mem.prompts import Span
from zero_mem.text.tokens import Tokenizer


def definition_spans(request: Mapping[str, Any], tokenizer: Tokenizer) -> Iterator[Span]:
    """Show the definitions of the memory tools."""
    for tool in request.get("tools") or ():
        if tool_name(tool) in MEMORY_TOOLS:
            yield _span(json.dumps(tool), "definition of a memory tool", tokenizer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What memory put into a prompt.

    `inserted` stands in the place of results and `blocks` are messages of their own, both by
    their text; `is_ours` tells whether a result is the answer of a memory tool.
    """

    inserted: Mapping[str, Inserted]
    blocks: Mapping[str, Sequence[Span]]
    is_ours: Callable[[Result], bool]


def prompt_spans(history: Iterable[Step], shown: Shown, tokenizer: Tokenizer) -> Iterator[Span]:
    """Show a prepared history.

    Args:
        history: What the provider is sent.
        shown: What of it is memory's.
        tokenizer: Counts each run.
    """
    for step in history:
        if isinstance(step, Result):
            for site in step.parts:
                ours = shown.is_ours(step)
                yield from _result_spans(site.text, shown.inserted, ours, tokenizer)
        elif isinstance(step, Turn):
            message = step.message()
            calls = [f"{call.name}({call.arguments})" for call in message.calls]
            for text in filter(None, (message.text, *calls)):
                yield _span(text, "model", tokenizer)
        elif step.text in shown.blocks:
            yield from shown.blocks[step.text]
        else:
            own, found, _ = step.text.partition(PREAMBLE)
            if own.strip():
                yield _span(own, f"host: {step.role}", tokenizer)
            if found:
                yield _span(PREAMBLE, "preamble", tokenizer)


def _result_spans(
    text: str, inserted: Mapping[str, Inserted], ours: bool, tokenizer: Tokenizer
) -> Iterator[Span]:
    found = None if ours else inserted.get(text)
    if found is None:
        named = handles.find(text)
        reason = "answer of a memory tool" if ours else "the whole result"
        memory_id = named[0].references[0].memory_id if ours and named else None
        yield _span(text, reason, tokenizer, memory_id)
        return
    for start, end, reason in found.spans or ((0, len(text), "the whole result"),):
        yield _span(text[start:end], reason, tokenizer, found.memory_id or None)


def _span(text: str, reason: str, tokenizer: Tokenizer, memory_id: str | None = None) -> Span:
    return Span(text=text, reason=reason, tokens=tokenizer.count(text), memory_id=memory_id)
