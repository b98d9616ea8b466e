"""The ephemeral tail: a block at the end of one prompt, selected anew for each call.

What stands in the place of a tool result is final, so it was chosen before anybody knew what
comes next. The tail makes up for that: it quotes, of all results so far, what the coming
call is most likely to need and the prompt does not show under its own record. It is kept out
of the history, so it never costs more than one call, and never comes from a cache.

    offloader = Offloader(share=standing_share(0.25), tokenizer=tokens)
    ...
    block = tail(history, standing, share=0.25, tokenizer=tokens)

A pure function of the conversation: the same history gives the same block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zero_mem import handles
from zero_mem.controller.compact import as_json
from zero_mem.controller.interest import Interest, words_of
from zero_mem.controller.messages import Message
from zero_mem.controller.rows import Rows
from zero_mem.controller.units import Surveyor, Unit, write
from zero_mem.text.tokens import Tokenizer

_STANDING: Final = 0.64  # of the share; what is final takes so much, the tail the rest
_THRESHOLD: Final = (0.1, 9.5)
_SLACK: Final = 1.3
_RESERVE: Final = 500
_FRESH: Final = 4.0  # how much more of a result is used that no call has seen yet
_NEWEST: Final = 32  # results that are looked at
_HEAD: Final = 6  # tokens of a handle's line
_SPEECH_KEPT: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What stands in the place of a tool result: its memory, and the text in the prompt."""

    memory_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TailSpan:
    """A stretch of the block: what it quotes of the result at index `origin`, and why."""

    start: int
    end: int
    origin: int
    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The block of one call; without a text where nothing is worth it."""

    text: str = ""
    spans: tuple[TailSpan, ...] = ()
    tokens: int = 0


def standing_share(share: float) -> float:
    """Give the share for the offloader where a tail uses the rest of it."""
    return share * _STANDING


def tail(
    history: Sequence[Message],
    standing: Mapping[int, Standing],
    *,
    share: float,
    tokenizer: Tokenizer,
) -> Tail:
    """Select the block for the call that comes now.

    Args:
        history: the whole conversation so far; of a tool result `text` is the stored body.
        standing: by index in `history`, what stands for a result in the prompt; one that is
            not among them stands there as it is, and nothing of it is quoted again.
        share: the part of the tool results' tokens, summed over all calls, that may stand in
            the prompts, tails included; above 0 and at most 1.
        tokenizer: counts tokens.
    """
    quoted = [at for at in sorted(standing) if handles.find(standing[at].text)][-_NEWEST:]
    limit = _limit(history, standing, share, tokenizer.count)
    if limit <= _HEAD or not quoted:
        return Tail()
    selection = _Selection(history, standing, tokenizer.count)
    parts = selection.of_json(quoted, limit, _threshold(share))
    left = limit - _tokens(parts, standing, tokenizer.count)
    parts |= selection.of_text(quoted, left)
    return _written(parts, standing, tokenizer.count)


def _threshold(share: float) -> float:
    """Give the merit that a part needs: the less may stand, the more."""
    at, fall = _THRESHOLD
    return at * math.exp(-fall * (share - 0.15))


def _limit(
    history: Sequence[Message],
    standing: Mapping[int, Standing],
    share: float,
    count: Callable[[str], int],
) -> int:
    full = sent = 0
    for at, message in enumerate(history):
        if message.role == "tool":
            full += count(message.text)
            sent += count(standing[at].text if at in standing else message.text)
    return max(0, int(_SLACK * share * (full + _RESERVE)) - sent)


@dataclass(frozen=True, slots=True)
class _Part:
    text: str
    reason: str


def _written(
    parts: Mapping[int, _Part], standing: Mapping[int, Standing], count: Callable[[str], int]
) -> Tail:
    text, spans = "", []
    for at in sorted(parts):
        start = len(text)
        memory_id = standing[at].memory_id
        text += f"{handles.render(memory_id)}\n{parts[at].text}\n"
        spans.append(
            TailSpan(
                start=start,
                end=len(text),
                origin=at,
                memory_id=memory_id,
                reason=parts[at].reason,
            )
        )
    return Tail(text=text, spans=tuple(spans), tokens=count(text))


def _tokens(
    parts: Mapping[int, _Part], standing: Mapping[int, Standing], count: Callable[[str], int]
) -> int:
    return _written(parts, standing, count).tokens


class _Selection:
    """What is known of one conversation, and the choice from its results."""

    def __init__(
        self,
        history: Sequence[Message],
        standing: Mapping[int, Standing],
        count: Callable[[str], int],
    ) -> None:
        self._history = history
        self._standing = standing
        self._count = count
        self._interest = Interest()
        self._seen_until = 0
        for at, message in enumerate(history):
            if message.role == "assistant":
                self._seen_until = at
            if message.role != "tool":
                self._interest.hear(message)
            elif (value := as_json(message.text)) is not None:
                self._interest.show(value, standing[at].text if at in standing else message.text)

    # JSON results

    def of_json(self, places: Sequence[int], limit: int, threshold: float) -> dict[int, _Part]:
        """Choose the units of all JSON results together, best first."""
        results = {
            at: _Result(value, self._rows(at), at > self._seen_until)
            for at in places
            if (value := as_json(self._history[at].text)) is not None
        }
        ranked = [
            (unit, at)
            for at, result in results.items()
            for unit in result.units(self._count)
            if unit.merit > threshold
        ]
        ranked.sort(key=lambda item: (-item[0].merit, -item[1]))
        low, high = 0, len(ranked)
        best: dict[int, _Part] = {}
        while low < high:
            middle = (low + high + 1) // 2
            parts = _parts(results, ranked[:middle])
            if _tokens(parts, self._standing, self._count) <= limit:
                low, best = middle, parts
            else:
                high = middle - 1
        return best

    def _rows(self, at: int) -> Rows:
        return Rows(_Unshown(self._interest, self._standing[at].text), 1.0, {})

    # Text results

    def of_text(self, places: Sequence[int], budget: int) -> dict[int, _Part]:
        """Choose lines of all text results together."""
        return {}


@dataclass(frozen=True, slots=True)
class _Result:
    """A JSON result to choose from; `fresh` where no call has seen it yet."""

    value: Any
    rows: Rows
    fresh: bool

    def units(self, count: Callable[[str], int]) -> Iterator[Unit]:
        for unit in Surveyor(self.rows, count).units(self.value):
            if self.fresh:
                unit.worth *= _FRESH
            yield unit

    def part(self, units: Sequence[Unit]) -> _Part:
        text, _ = write(self.value, units, self.rows)
        kinds = ", ".join(sorted({unit.what for unit in units}))
        when = "new" if self.fresh else "likely to be needed now"
        return _Part(handles.escape(text), f"{when}: {kinds}")


def _parts(results: Mapping[int, _Result], chosen: Sequence[tuple[Unit, int]]) -> dict[int, _Part]:
    by_result: dict[int, list[Unit]] = {}
    for unit, at in chosen:
        by_result.setdefault(at, []).append(unit)
    return {at: results[at].part(units) for at, units in by_result.items()}


class _Unshown:
    """What is expected of values that a result's own place in the prompt does not show."""

    def __init__(self, interest: Interest, shown: str) -> None:
        self._interest = interest
        self._shown = shown
        self._words = words_of(shown)

    def said(self, text: str) -> bool:
        """Tell whether the conversation itself has a text whole."""
        return self._interest.said(text)

    def expected_use(self, value: Any, key: str | None, *, tells_rows: bool = False) -> float:
        """Give a scalar's expected use; nothing for what stands there already."""
        text = value if isinstance(value, str) else str(value)
        if words_of(text) <= self._words and text in self._shown:
            return 0.0
        return self._interest.expected_use(value, key, tells_rows=tells_rows)
