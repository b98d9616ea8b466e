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
from zero_mem.controller import lines
from zero_mem.controller.compact import as_json
from zero_mem.controller.interest import Interest, words_of
from zero_mem.controller.messages import Message, Role
from zero_mem.controller.rows import Rows
from zero_mem.controller.units import Surveyor, Unit, write
from zero_mem.errors import InvalidInput
from zero_mem.text.tokens import Tokenizer

_STANDING: Final = 0.65  # of the share; what is final takes so much, the tail the rest
_THRESHOLD: Final = (0.3, 9.5)
_SLACK: Final = 1.5
_RESERVE: Final = 500
_FRESH: Final = 4.0  # how much more of a result is used that no call has seen yet
_ASKED = 1.0  # of the threshold where the user spoke last
_NEWEST: Final = 32  # results that are looked at,
_NEWEST_TEXTS: Final = 8  # of them those that are text
_LONGEST: Final = 20_000  # tokens of a result; a longer one is read, not quoted
_HEAD: Final = 6  # tokens of a handle's line


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
        share: as for `TailSelector`.
        tokenizer: counts tokens.
    """
    selector = TailSelector(share=share, tokenizer=tokenizer)
    for at, message in enumerate(history):
        selector.take(message, standing.get(at))
    return selector.select()


class TailSelector:
    """The same for a conversation that grows: what was taken is not looked at again.

    Args:
        share: the part of the tool results' tokens, summed over all calls, that may stand in
            the prompts, tails included; above 0 and at most 1.
        tokenizer: counts tokens.
    """

    def __init__(self, *, share: float, tokenizer: Tokenizer) -> None:
        if not 0 < share <= 1:
            raise InvalidInput(f"share is {share}; it has to be above 0 and at most 1")
        self._share = share
        self._count = tokenizer.count
        self._interest = Interest()
        self._results: list[_Result] = []
        self._taken = self._seen = self._full = self._sent = 0
        self._last: Role = "system"

    def take(self, message: Message, standing: Standing | None = None) -> None:
        """Take the next message, of a result its body, and what stands for it in the prompt."""
        self._last = message.role
        if message.role == "tool":
            self._result(message, standing)
        else:
            self._interest.hear(message)
        self._taken += 1
        if message.role == "assistant":
            self._seen = self._taken

    def _result(self, message: Message, standing: Standing | None) -> None:
        value = as_json(message.text)
        shown = message.text if standing is None else standing.text
        self._interest.show(value, shown)
        full = self._count(message.text)
        self._full += full
        self._sent += self._count(shown)
        if standing is not None and handles.find(shown) and full <= _LONGEST:
            self._results.append(_Result(self._taken, standing, message.text, value))
            del self._results[:-_NEWEST]

    def select(self) -> Tail:
        """Select the block for the call that comes now."""
        limit = int(_SLACK * self._share * (self._full + _RESERVE)) - self._sent
        if limit <= _HEAD or not self._results:
            return Tail()
        parts = self._json_parts(limit)
        left = min(limit, int(self._share * self._full) - self._sent) - self._tokens(parts)
        if left > _HEAD:
            parts |= self._text_parts(left)
        return _written(parts, self._count)

    def _tokens(self, parts: Mapping[int, _Part]) -> int:
        return _written(parts, self._count).tokens if parts else 0

    def _json_parts(self, limit: int) -> dict[int, _Part]:
        """Choose the units of all JSON results together, best first."""
        threshold = self._threshold()
        candidates = {
            result.at: _Candidate(result, Rows(_Unshown(self._interest, result), 1.0, {}))
            for result in self._results
            if result.value is not None
        }
        ranked = [
            (unit, at)
            for at, candidate in candidates.items()
            for unit in self._units(candidate, at)
            if unit.merit > threshold
        ]
        ranked.sort(key=lambda item: (-item[0].merit, -item[1]))
        low, high = 0, len(ranked)
        best: dict[int, _Part] = {}
        while low < high:
            middle = (low + high + 1) // 2
            parts = _parts(candidates, ranked[:middle])
            if self._tokens(parts) <= limit:
                low, best = middle, parts
            else:
                high = middle - 1
        return best

    def _units(self, candidate: _Candidate, at: int) -> Iterator[Unit]:
        fresh = _FRESH if at >= self._seen else 1.0
        for unit in Surveyor(candidate.rows, self._count).units(candidate.result.value):
            unit.worth *= fresh * self._interest.emphasis(unit.name)
            yield unit

    def _threshold(self) -> float:
        """Give the merit that a part needs: the less may stand, the more."""
        at, fall = _THRESHOLD
        asked = _ASKED if self._last == "user" else 1.0
        return asked * at * math.exp(-fall * (self._share - 0.15))

    def _text_parts(self, limit: int) -> dict[int, _Part]:
        """Choose lines of all text results together, of those that the prompt does not show."""
        texts = [result for result in self._results if result.value is None][-_NEWEST_TEXTS:]
        unshown = [(result, *line) for result in texts for line in result.unshown_lines()]
        found = lines.extract_lines(
            "\n".join(line for _, _, line in unshown),
            speech=self._interest.speech,
            known=self._interest.names,
            count=self._count,
            limit=limit - _HEAD * len(texts),
        )
        quoted: dict[int, list[lines.Line]] = {}
        by_place = {result.at: result for result in texts}
        for line in found.lines:
            result, number, text = unshown[line.number - 1]
            kept = lines.Line(number=number, text=text, reason=line.reason)
            quoted.setdefault(result.at, []).append(kept)
        return {at: _quoted(by_place[at], kept) for at, kept in quoted.items()}


@dataclass(frozen=True, slots=True)
class _Result:
    """A tool result: its place in the history, what stands for it, and its body."""

    at: int
    standing: Standing
    body: str
    value: Any

    def unshown_lines(self) -> Iterator[tuple[int, str]]:
        """Give the lines of a text that its place does not show, each with its number."""
        shown = set(self.standing.text.split("\n"))
        for number, line in enumerate(self.body.split("\n"), 1):
            if handles.escape(line) not in shown:
                yield number, line


@dataclass(frozen=True, slots=True)
class _Part:
    """What is quoted of a result, and why."""

    result: _Result
    text: str
    reason: str


def _written(parts: Mapping[int, _Part], count: Callable[[str], int]) -> Tail:
    text, spans = "", []
    for at in sorted(parts):
        start, memory_id = len(text), parts[at].result.standing.memory_id
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


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A JSON result to choose from."""

    result: _Result
    rows: Rows

    def part(self, units: Sequence[Unit]) -> _Part:
        text, _ = write(self.result.value, units, self.rows)
        kinds = ", ".join(sorted({unit.what for unit in units}))
        return _Part(self.result, handles.escape(text), f"likely to be needed now: {kinds}")


def _quoted(result: _Result, kept: Sequence[lines.Line]) -> _Part:
    text = "\n".join(piece for piece, _ in lines.numbered(kept))
    return _Part(result, text, f"likely to be needed now: {kept[0].reason}")


def _parts(
    candidates: Mapping[int, _Candidate], chosen: Sequence[tuple[Unit, int]]
) -> dict[int, _Part]:
    by_result: dict[int, list[Unit]] = {}
    for unit, at in chosen:
        by_result.setdefault(at, []).append(unit)
    return {at: candidates[at].part(units) for at, units in by_result.items()}


class _Unshown:
    """What is expected of values that a result's own place in the prompt does not show."""

    def __init__(self, interest: Interest, result: _Result) -> None:
        self._interest = interest
        self._shown = result.standing.text
        self._words = words_of(self._shown)

    def said(self, text: str) -> bool:
        """Tell whether the conversation itself has a text whole."""
        return self._interest.said(text)

    def expected_use(self, value: Any, key: str | None, *, tells_rows: bool = False) -> float:
        """Give a scalar's expected use; nothing for what stands there already."""
        text = value if isinstance(value, str) else str(value)
        if words_of(text) <= self._words and text in self._shown:
            return 0.0
        return self._interest.expected_use(value, key, tells_rows=tells_rows)
