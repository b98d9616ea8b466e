"""The ephemeral tail in a request: a block for one call, after everything else, never kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.controller.messages import Message, WireFormat
from zero_mem.controller.tail import Standing, Tail, tail
from zero_mem.controller.wire.sites import LIST_FIELD, Result, Step, Turn, items_of
from zero_mem.conversation.insertion import part_types
from zero_mem.conversation.persisted import Inserted
from zero_mem.prompts import Span, text_of
from zero_mem.text.fence import FENCE_OPENING, escape_tags, fence
from zero_mem.text.tokens import Tokenizer

NOTE: Final = "(for this call only)"
_OPENING: Final = f"{FENCE_OPENING}\n{NOTE}\n"
_SIGNED: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TailBlock:
    """The message of one call, and its text with the reason of each stretch."""

    message: Mapping[str, Any]
    spans: tuple[Span, ...] = ()


def without_tails(request: Mapping[str, Any], wire_format: WireFormat) -> Mapping[str, Any]:
    """Take out of a history the blocks of earlier calls that a host has kept."""
    items = items_of(request, wire_format)
    kept = [item for item in items if not _is_tail(item)]
    return request if len(kept) == len(items) else {**request, LIST_FIELD[wire_format]: kept}


def _is_tail(item: Any) -> bool:
    if not isinstance(item, Mapping) or item.get("role") != "user":
        return False
    return (text_of(item) or "").startswith(_OPENING)


def may_follow(request: Mapping[str, Any], wire_format: WireFormat) -> bool:
    """Tell whether a block may stand at the end of a request and be gone from the next.

    Not where the model's thinking follows, which is signed with all that came before it; not
    where the provider keeps the history; and not between a call and its result, or after words
    that the model is to go on with.
    """
    if request.get("previous_response_id") or request.get("conversation"):
        return False
    if _thinks(request):
        return False
    items = items_of(request, wire_format)
    if not _SIGNED.isdisjoint(part_types(items)):
        return False
    last = items[-1] if items else None
    if not isinstance(last, Mapping):
        return False
    return last.get("role") in ("user", "tool") or str(last.get("type")).endswith("_output")


def _thinks(request: Mapping[str, Any]) -> bool:
    thinking = request.get("thinking")
    if isinstance(thinking, Mapping):
        return thinking.get("type") != "disabled"
    return bool(thinking) or isinstance(request.get("reasoning"), Mapping)


def tail_block(
    history: Sequence[Step],
    inserted: Mapping[int, Inserted],
    *,
    share: float,
    tokenizer: Tokenizer,
) -> TailBlock | None:
    """Select the block of a call; None where nothing is worth it.

    Args:
        history: The messages, results as the host has them.
        inserted: What stands in the place of the texts of results, by the text's number.
        share: As in `controller.tail`.
        tokenizer: Counts.
    """
    messages, standing = [], {}
    number = 0
    for step in history:
        if not isinstance(step, Result):
            messages.append(step.message() if isinstance(step, Turn) else step)
            continue
        for site in step.parts:
            found = inserted.get(number)
            if found is not None and found.text is not None and found.receipt:
                standing[len(messages)] = Standing(memory_id=found.memory_id, text=found.text)
            messages.append(Message(role="tool", text=site.text, tool=step.tool))
            number += 1
    chosen = tail(messages, standing, share=share, tokenizer=tokenizer)
    if not chosen.text:
        return None
    text = fence([NOTE, escape_tags(chosen.text.rstrip("\n"))])
    return TailBlock(
        message={"role": "user", "content": text}, spans=tuple(_spans(chosen, tokenizer))
    )


def _spans(chosen: Tail, tokenizer: Tokenizer) -> Iterator[Span]:
    opening, note, closing = fence([NOTE]).split("\n")
    for line in (opening, note):
        yield Span(text=line, reason="fence", tokens=tokenizer.count(line))
    for span in chosen.spans:
        text = escape_tags(chosen.text[span.start : span.end].rstrip("\n"))
        reason = f"this call only, {span.reason}"
        yield Span(text=text, reason=reason, tokens=tokenizer.count(text), memory_id=span.memory_id)
    yield Span(text=closing, reason="fence", tokens=tokenizer.count(closing))
