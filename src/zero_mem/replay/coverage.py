"""Decision coverage: does the prompt hold what the next decision takes from memory?

A replay gives, for each LLM call, the prompt that a strategy would have sent. This module
says which values the call takes from memory, and what of them the prompt shows. The terms:

value
    In JSON arguments: each string of 3 characters or more and each number of 2 digits or
    more, at any depth, once a call. In text (a shell command, code, Markdown), be it all of
    the arguments or a string in JSON: each path, and each identifier of 6 characters or more
    with `_`, a digit or camelCase. Sentences among JSON arguments are talk, and name nothing.
from memory
    It stands in an earlier tool result and in no earlier user, system or assistant message
    or call: it can only have come from memory. What the assistant says and calls in the
    same turn is not earlier.
stands
    Whole: where an end of the value is an ASCII letter, digit or `_`, none touches it from
    outside. (ASCII, so that an id between Chinese characters stands.) Case counts.
visible
    It stands anywhere in the prompt sent for that call.
linked
    It stands in the part of the prompt that is the newest tool result holding it, and its
    key stands before it there, in its line or above. Its key is the object key nearest to
    it in the original; what is itself a key, or has none above it, is its own header. In a
    result that is not JSON, linked means in line, in that part.
in line
    It stands in the prompt inside a whole line of an earlier tool result that holds it.
reachable
    It is visible, or the prompt has a live handle of a tool result that holds it.

reply value
    Of the assistant's text in a message without calls: each id, code, date and number of 2
    digits or more that is from memory, as above. Replies charge no reads.

A value that is not visible charges a read, its request and its answer, at that call.
All figures are pooled: sums over all calls of all runs, never means of runs.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from zero_mem.controller.messages import Message
from zero_mem.replay.values import (
    Leaf,
    argument_values,
    container,
    find,
    leaves,
    reply_values,
    stands,
)

CACHE_READ: Final = 0.1
_WORD: Final = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_ESCAPE: Final = re.compile(r"\\(?:[nrt]|u[0-9a-fA-F]{4})")
_LONG: Final = 1 << 20  # characters; a longer text is searched, not indexed

Count: TypeAlias = Callable[[str], int]


# What has been said and what memory holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A value that a call, or a reply, takes from memory.

    `holders` are the indexes of the tool results that hold it, oldest first, among the
    messages observed.
    """

    value: str
    holders: tuple[int, ...]

    @property
    def newest(self) -> int:
        """The index of the newest tool result that holds the value."""
        return self.holders[-1]


class _Record:
    """One tool result, with what is needed to judge values against it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: list[Leaf] | None = None
        parsed = container(text)
        self.is_json = parsed is not None
        self._parsed = parsed

    def leaves(self) -> list[Leaf]:
        """The scalars and object keys, read when first asked for."""
        if self._found is None:
            self._found = list(leaves(self._parsed, keys=True))
        return self._found

    def holding(self, value: str) -> list[Leaf]:
        """The leaves in which a value stands."""
        return [leaf for leaf in self.leaves() if value in leaf.text and stands(value, leaf.text)]

    def counts(self, number: str) -> bool:
        """Tell whether a number is a scalar of the result, which a text has anywhere."""
        return not self.is_json or any(leaf.text == number for leaf in self.leaves())

    def lines(self, value: str) -> Iterator[str]:
        """The whole lines in which a value stands, without white space around them."""
        seen: set[str] = set()
        at = find(value, self.text, 0, len(self.text))
        while at >= 0:
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            line = self.text[self.text.rfind("\n", 0, at) + 1 : end].strip()
            if line not in seen:
                seen.add(line)
                yield line
            at = find(value, self.text, max(end, at + len(value)), len(self.text))


class _Texts:
    """Texts under numbers, in which a value is found by its words and not by a search of all.

    Where a value stands whole, so does each run of letters, digits and `_` in it.
    """

    def __init__(self) -> None:
        self._texts: list[tuple[int, str]] = []
        self._indexed = 0
        self._places: dict[str, list[int]] = defaultdict(list)
        self._searched: list[int] = []

    def add(self, number: int, text: str) -> None:
        """Take a text; numbers don't fall."""
        self._texts.append((number, text))

    def holding(self, value: str) -> Iterator[int]:
        """Give the numbers of the texts in which a value stands, in order."""
        for at in self._candidates(value):
            number, text = self._texts[at]
            if stands(value, text):
                yield number

    def _candidates(self, value: str) -> Iterable[int]:
        words = _WORD.findall(value)
        if not words or not value.isascii():
            return range(len(self._texts))
        self._index()
        rarest = min((self._places.get(word, ()) for word in words), key=len)
        return sorted((*rarest, *self._searched))

    def _index(self) -> None:
        for at in range(self._indexed, len(self._texts)):
            text = self._texts[at][1]
            if len(text) > _LONG:
                self._searched.append(at)
                continue
            for word in _words(text):
                self._places[word].append(at)
        self._indexed = len(self._texts)


def _words(text: str) -> set[str]:
    found = set(_WORD.findall(text))
    return found.union(_WORD.findall(_ESCAPE.sub(" ", text))) if "\\" in text else found


class History:
    """The messages of one run so far; it tells what a call takes from memory."""

    def __init__(self) -> None:
        self._size = 0
        self._said = _Texts()
        self._results = _Texts()
        self._records: dict[int, _Record] = {}

    def observe(self, message: Message) -> None:
        """Take the next message of the full transcript."""
        if message.role == "tool":
            self._records[self._size] = _Record(message.text)
            self._results.add(self._size, message.text)
        else:
            self._said.add(self._size, message.text)
            for call in message.calls:
                self._said.add(self._size, call.arguments)
        self._size += 1

    def record(self, index: int) -> _Record:
        """The tool result at an index of the transcript."""
        return self._records[index]

    def called(self, message: Message) -> list[Taken]:
        """List what the calls of the next message take from memory, call by call."""
        return [
            taken for call in message.calls for taken in self.named(argument_values(call.arguments))
        ]

    def replied(self, message: Message) -> list[Taken]:
        """List what the text of the next message takes from memory.

        Its values are the ids, codes, dates and numbers that `reply_values` finds. A number
        is short enough to stand in a result by accident, so that of JSON it has to be a whole
        scalar.
        """
        named, numbers = reply_values(message.text)
        found = list(self.named(named))
        for taken in self.named(numbers):
            holders = tuple(at for at in taken.holders if self._records[at].counts(taken.value))
            if holders:
                found.append(Taken(value=taken.value, holders=holders))
        return found

    def named(self, values: Iterable[str]) -> Iterator[Taken]:
        """Give those of some values that can only have come from memory."""
        for value in values:
            if any(True for _ in self._said.holding(value)):
                continue
            holders = tuple(self._results.holding(value))
            if holders:
                yield Taken(value=value, holders=holders)


# Judging a prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A message of the prompt: its text, and the transcript's message it stands for, or -1."""

    text: str
    origin: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a prompt shows one value; `read` is what a read of it would cost, in texts."""

    visible: bool
    linked: bool
    in_line: bool
    reachable: bool


def judge(
    taken: Taken, parts: Sequence[Part], history: History, *, live: Collection[int] = ()
) -> Verdict:
    """Judge one value against the prompt sent for the call that takes it.

    Args:
        taken: From `History.called` or `replied`, before the message is observed.
        parts: The whole prompt, with all arguments of earlier calls.
        history: The full transcript so far.
        live: Indexes of the tool results whose handle stands in the prompt and can be read.
    """
    if taken.value.isascii() and "\\" not in json.dumps(taken.value):
        parts = [part for part in parts if taken.value in part.text]
    showing = [part for part in parts if stands(taken.value, part.text)]
    newest = [part for part in showing if part.origin == taken.newest]
    record = history.record(taken.newest)
    if record.is_json:
        linked = any(_with_key(taken.value, part.text, record) for part in newest)
    else:
        linked = any(_in_line(taken.value, part.text, record) for part in newest)
    holders = [history.record(at) for at in taken.holders] if showing else []
    return Verdict(
        visible=bool(showing),
        linked=linked,
        in_line=any(_in_line(taken.value, p.text, r) for r in holders for p in showing),
        reachable=bool(showing) or any(at in live for at in taken.holders),
    )


def _with_key(value: str, text: str, record: _Record) -> bool:
    keys = {leaf.key for leaf in record.holding(value)}
    if None in keys or not keys:
        return True
    at = find(value, text, 0, len(text))
    while at >= 0:
        if any(key is not None and stands(key, text, at) for key in keys):
            return True
        at = find(value, text, at + 1, len(text))
    return False


def _in_line(value: str, text: str, record: _Record) -> bool:
    return any(stands(line, text) for line in record.lines(value))


# Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The one read that gives a value: the call's arguments, and the text that it returns."""

    arguments: str
    text: str


def read_of(taken: Taken, history: History, memory_id: str) -> Read:
    """Give the smallest read of a value from the newest result that holds it.

    A value of a JSON result is read by its pointer, any other by its line.
    """
    record = history.record(taken.newest)
    leaves = record.holding(taken.value) if record.is_json else []
    if leaves:
        leaf = min(leaves, key=lambda leaf: len(leaf.text))
        return Read(arguments=_arguments(id=memory_id, pointer=leaf.pointer), text=leaf.text)
    line = next(record.lines(taken.value))
    number = record.text.count("\n", 0, find(taken.value, record.text, 0, len(record.text))) + 1
    return Read(arguments=_arguments(id=memory_id, lines=str(number)), text=line)


def _arguments(**named: str) -> str:
    return json.dumps(named, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallColumn:
    """The tokens that memory takes in one call's prompt, beside what it takes in full.

    `sent` is the prompt less everything but tool results in the full transcript: receipts,
    extracts, fences, injections, charged reads. `cached` is the part of it that stands in
    the prefix which equals the previous call's prompt. `full` is the tool results' tokens in
    the full transcript's prompt. `ours` is tool definitions and preamble.
    """

    sent: int
    cached: int
    full: int
    ours: int = 0


def cost(calls: Iterable[CallColumn], *, with_ours: bool = False) -> float:
    """Give memory's tokens over the tool results' in the full transcript, summed over calls."""
    counted = list(calls)
    sent = sum(call.sent + (call.ours if with_ours else 0) for call in counted)
    return _ratio(sent, sum(call.full for call in counted))


def price(calls: Iterable[CallColumn]) -> float:
    """Give the same with cache reads at a tenth of fresh input, over undiscounted results."""
    counted = list(calls)
    paid = sum(call.sent - (1 - CACHE_READ) * call.cached for call in counted)
    return _ratio(paid, sum(call.full for call in counted))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


@dataclass(slots=True)
class Tally:
    """Counts of values, pooled over calls and runs."""

    values: int = 0
    visible: int = 0
    linked: int = 0
    in_line: int = 0
    reachable: int = 0

    def add(self, verdict: Verdict) -> None:
        """Count one value."""
        self.values += 1
        self.visible += verdict.visible
        self.linked += verdict.linked
        self.in_line += verdict.in_line
        self.reachable += verdict.reachable

    def share(self, name: str) -> float:
        """Give one count as a share of all values; 1.0 where there are none."""
        return float(getattr(self, name)) / self.values if self.values else 1.0
