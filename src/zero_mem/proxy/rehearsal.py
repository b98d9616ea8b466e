"""What offloading would do to a conversation that is only observed; nothing is kept of it.

The same offloader decides, on the same messages, so the rehearsed prompt is the one that
`offload` would send, but for the memory reads that the model would make.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from zero_mem.controller.core import Offloader
from zero_mem.controller.definitions import MEMORY_TOOLS, PREAMBLE
from zero_mem.controller.messages import Message
from zero_mem.controller.wire.sites import Result, Step, Turn
from zero_mem.text.tokens import Tokenizer


class Rehearsal:
    """The decisions that one observed conversation would have got, made as it goes on.

    Args:
        share: As in `Offloader`.
        tokenizer: Counts for the offloader.
    """

    def __init__(self, *, share: float, tokenizer: Tokenizer) -> None:
        self._share = share
        self._tokenizer = tokenizer
        self._begin()

    def _begin(self) -> None:
        self._offloader = Offloader(
            share=self._share, tokenizer=self._tokenizer, exempt=MEMORY_TOOLS
        )
        self._seen: list[int] = []
        self._inserted: list[list[str]] = []
        self._saved = 0

    def history(self, history: Sequence[Step]) -> list[Step]:
        """Give the steps of a request as offloading would have sent them."""
        marks = [hash(_content(step)) for step in history]
        if marks[: len(self._seen)] != self._seen:
            self._begin()
        for step, mark in zip(history[len(self._seen) :], marks[len(self._seen) :], strict=True):
            self._take(step)
            self._seen.append(mark)
        inserted = iter(self._inserted)
        rehearsed = [
            _with_texts(step, next(inserted)) if isinstance(step, Result) else step
            for step in history
        ]
        return [Message(role="system", text=PREAMBLE), *rehearsed]

    def _take(self, step: Step) -> None:
        if not isinstance(step, Result):
            self._offloader.observe(step.message() if isinstance(step, Turn) else step)
            return
        texts: list[str] = []
        for site in step.parts:
            message = _message(step, site.text)
            if not site.text.strip():
                self._offloader.adopt(message, site.text)
                texts.append(site.text)
                continue
            self._saved += 1
            texts.append(self._offloader.insert(message, str(self._saved)).text)
        self._inserted.append(texts)


def _with_texts(result: Result, texts: Sequence[str]) -> Result:
    parts = zip(result.parts, texts, strict=True)
    return replace(result, parts=tuple(replace(site, text=text) for site, text in parts))


def _message(result: Result, text: str) -> Message:
    return Message(
        role="tool",
        text=text,
        call_id=result.call_id,
        tool=result.tool,
        is_error=result.is_error,
    )


def _content(step: Step) -> Hashable:
    """Give what of a step the offloader sees, without its place in the body."""
    if isinstance(step, Result):
        texts = tuple(site.text for site in step.parts)
        return step.call_id, step.tool, step.is_error, texts
    return step.message() if isinstance(step, Turn) else step
