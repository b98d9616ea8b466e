"""Decision coverage: does the prompt hold what the next decision takes from memory?

A replay gives, for each LLM call, the prompt that a strategy would have sent. This module
says which values the call takes from memory, and what of them the prompt shows. The terms:

value
    In JSON arguments: each string of 3 characters or more and each number of 2 digits or
    more, at any depth, once a call. In text arguments (a shell command, Markdown): each
    path, and each identifier of 6 characters or more with `_`, a digit or camelCase.
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

A value that is not visible charges a read, its request and its answer, at that call.
All figures are pooled: sums over all calls of all runs, never means of runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from zero_mem.controller.messages import Message

CACHE_READ: Final = 0.1
_PATH: Final = re.compile(r"(?<![\w./-])[\w.@+~-]*(?:/[\w.@+-]+)+", re.ASCII)
_IDENTIFIER: Final = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]{5,}", re.ASCII)
_TELLING: Final = re.compile(r"[_0-9]|[a-z][A-Z]", re.ASCII)
_WORD: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")

Count: TypeAlias = Callable[[str], int]


# Values


def stands(value: str, text: str, stop: int | None = None) -> bool:
    """Tell whether a value stands whole in a text, or in its part before `stop`."""
    return find(value, text, 0, len(text) if stop is None else stop) >= 0


def find(value: str, text: str, start: int, stop: int) -> int:
    """Give the first place in `text[start:stop]` where a value stands whole, or -1."""
    at = text.find(value, start, stop) if value else -1
    while at >= 0:
        end = at + len(value)
        touched_before = at > 0 and value[0] in _WORD and text[at - 1] in _WORD
        touched_after = end < len(text) and value[-1] in _WORD and text[end] in _WORD
        if not touched_before and not touched_after:
            return at
        at = text.find(value, at + 1, stop)
    return -1


def argument_values(arguments: str) -> list[str]:
    """List the values of one call's arguments, each once, in order.

    Arguments that are a JSON object or array are JSON, all others are text.
    """
    parsed = _container(arguments)
    if parsed is None:
        return text_values(arguments)
    leaves = (leaf for leaf in _leaves(parsed) if leaf.long_enough)
    return list(dict.fromkeys(leaf.text for leaf in leaves))


def text_values(text: str) -> list[str]:
    """List the paths and telling identifiers of a text, each once, in order."""
    found = [(match.start(), match[0].rstrip(".")) for match in _PATH.finditer(text)]
    found += [
        (match.start(), match[0])
        for match in _IDENTIFIER.finditer(text)
        if _TELLING.search(match[0])
    ]
    return list(dict.fromkeys(value for _, value in sorted(found)))


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One scalar, or one object key, of a JSON value.

    `key` is the nearest object key above it, None for what is a key itself or has none.
    """

    text: str
    number: bool
    key: str | None
    pointer: str
    is_key: bool = False

    @property
    def long_enough(self) -> bool:
        if self.number:
            return sum(char.isdigit() for char in self.text) >= 2
        return len(self.text) >= 3


def _leaves(
    value: Any, key: str | None = None, pointer: str = "", *, keys: bool = False
) -> Iterator[_Leaf]:
    if isinstance(value, dict):
        for name, item in value.items():
            inner = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if keys:
                yield _Leaf(name, False, None, inner, is_key=True)
            yield from _leaves(item, name, inner, keys=keys)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, key, f"{pointer}/{index}", keys=keys)
    elif isinstance(value, str):
        yield _Leaf(value, False, key, pointer)
    elif value is not None and not isinstance(value, bool):
        yield _Leaf(json.dumps(value), True, key, pointer)


def _container(text: str) -> Any:
    """Parse a JSON object or array, or give None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


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
        self._found: list[_Leaf] | None = None
        parsed = _container(text)
        self.is_json = parsed is not None
        self._parsed = parsed

    def leaves(self) -> list[_Leaf]:
        """The scalars and object keys, read when first asked for."""
        if self._found is None:
            self._found = list(_leaves(self._parsed, keys=True))
        return self._found

    def holding(self, value: str) -> list[_Leaf]:
        """The leaves in which a value stands."""
        return [leaf for leaf in self.leaves() if value in leaf.text and stands(value, leaf.text)]

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


class History:
    """The messages of one run so far; it tells what a call takes from memory."""

    def __init__(self) -> None:
        self._size = 0
        self._said: list[str] = []
        self._records: dict[int, _Record] = {}

    def observe(self, message: Message) -> None:
        """Take the next message of the full transcript."""
        if message.role == "tool":
            self._records[self._size] = _Record(message.text)
        else:
            self._said += [message.text, *(call.arguments for call in message.calls)]
        self._size += 1

    def record(self, index: int) -> _Record:
        """The tool result at an index of the transcript."""
        return self._records[index]

    def called(self, message: Message) -> list[Taken]:
        """List what the calls of the next message take from memory, call by call."""
        return [
            taken
            for call in message.calls
            for taken in self._from_memory(argument_values(call.arguments))
        ]

    def replied(self, message: Message) -> list[Taken]:
        """List what the text of the next message takes from memory.

        Its values are the scalars of JSON results that stand in the text, and the paths and
        telling identifiers of the text, by the same rules of length.
        """
        texts = {
            leaf.text
            for record in self._records.values()
            for leaf in (record.leaves() if record.is_json else ())
            if leaf.long_enough and not leaf.is_key and leaf.text in message.text
        }
        values = [text for text in sorted(texts) if stands(text, message.text)]
        values += [value for value in text_values(message.text) if value not in texts]
        return list(self._from_memory(values))

    def _from_memory(self, values: Iterable[str]) -> Iterator[Taken]:
        for value in values:
            if any(stands(value, text) for text in self._said):
                continue
            holders = [at for at, record in self._records.items() if stands(value, record.text)]
            if holders:
                yield Taken(value=value, holders=tuple(holders))


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
