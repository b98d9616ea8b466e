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
from zero_mem.controller.interest import Interest, scalars, words_of
from zero_mem.controller.messages import Message
from zero_mem.controller.rows import Rows
from zero_mem.controller.units import Surveyor, Unit, write
from zero_mem.errors import InvalidInput
from zero_mem.text.tokens import Tokenizer

_STANDING: Final = 0.66  # of the share; what is final takes so much, the tail the rest
_THRESHOLD: Final = (0.25, 0.15, 10.0)  # of merit: at this share, and how it falls with it
_SLACK: Final = 1.5  # a single prompt may hold so much more than the share,
_RESERVE: Final = 500  # of a column that is expected to grow by so many tokens
_FRESH: Final = 5.0  # how much more of a result is used that no call has seen yet
_AGEING: Final = 0.9  # with each newer result an old one is used less
_NEWEST: Final = 32  # results that are looked at,
_NEWEST_TEXTS: Final = 4  # of them those that are text
_LONG_TABLE: Final = 100  # rows; of a longer one those that were spoken of are quoted
_LONGEST: Final = 20_000  # tokens of a result; a longer one is read, not quoted
_ASKED: Final = 0.2  # what a line of a text is worth for speaking of what was said
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

    def take(self, message: Message, standing: Standing | None = None) -> None:
        """Take the next message, of a result its body, and what stands for it in the prompt."""
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
            texts = frozenset(text for text, _ in scalars(value) if isinstance(text, str))
            unshown = _unshown_lines(message.text, shown) if value is None else ()
            self._results.append(_Result(self._taken, standing, value, texts, unshown))
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
        candidates: dict[int, _Candidate] = {}
        newer: set[str] = set()
        for result in reversed(self._results):
            if result.value is not None:
                unshown = _Unshown(self._interest, result, frozenset(newer))
                candidates[result.at] = _Candidate(result, Rows(unshown, 1.0, {}, long=_LONG_TABLE))
                newer |= result.texts
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
        newer = sum(1 for result in self._results if result.at > at)
        moment = math.pow(_AGEING, newer) * (_FRESH if at >= self._seen else 1.0)
        for unit in Surveyor(candidate.rows, self._count).units(candidate.result.value):
            unit.worth *= moment * self._interest.emphasis(unit.name)
            yield unit

    def _threshold(self) -> float:
        """Give the merit that a part needs: the less may stand, the more."""
        least, at, fall = _THRESHOLD
        return least * math.exp(-fall * (self._share - at))

    def _text_parts(self, limit: int) -> dict[int, _Part]:
        """Choose lines of all text results together, of those that the prompt does not show."""
        texts = [result for result in self._results if result.value is None][-_NEWEST_TEXTS:]
        unshown = [(result, *line) for result in texts for line in result.unshown]
        found = lines.extract_lines(
            "\n".join(line for _, _, line in unshown),
            speech=self._interest.speech,
            known=self._interest.names,
            count=self._count,
            limit=limit - _HEAD * len(texts),
            asked=_ASKED,
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
    """A tool result: its place in the history, what stands for it, and its value.

    `texts` are the strings of its JSON value; of a text `unshown` has the lines that its place
    does not show, each with its number.
    """

    at: int
    standing: Standing
    value: Any
    texts: frozenset[str]
    unshown: Sequence[tuple[int, str]]


def _unshown_lines(body: str, shown: str) -> Sequence[tuple[int, str]]:
    there = set(shown.split("\n"))
    numbered = enumerate(body.split("\n"), 1)
    return [(number, line) for number, line in numbered if handles.escape(line) not in there]


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
    return _Part(result, text, "likely to be needed now: lines")


def _parts(
    candidates: Mapping[int, _Candidate], chosen: Sequence[tuple[Unit, int]]
) -> dict[int, _Part]:
    by_result: dict[int, list[Unit]] = {}
    for unit, at in chosen:
        by_result.setdefault(at, []).append(unit)
    return {at: candidates[at].part(units) for at, units in by_result.items()}


class _Unshown:
    """What is expected of values that a result's own place in the prompt does not show."""

    def __init__(self, interest: Interest, result: _Result, newer: frozenset[str]) -> None:
        self._interest = interest
        self._newer = newer
        self._shown = result.standing.text
        self._words = words_of(self._shown)

    def said(self, text: str) -> bool:
        """Tell whether the conversation itself has a text whole."""
        return self._interest.said(text)

    def expected_use(self, value: Any, key: str | None, *, tells_rows: bool = False) -> float:
        """Give a scalar's expected use; nothing for what stands there or was said already.

        What a newer result has is taken from there.
        """
        text = value if isinstance(value, str) else str(value)
        if words_of(text) <= self._words and text in self._shown:
            return 0.0
        if value in self._newer or (not tells_rows and self._interest.said(text)):
            return 0.0
        return self._interest.expected_use(value, key, tells_rows=tells_rows)
