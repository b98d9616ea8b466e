"""A verbatim part of a text result: whole lines, those most likely to be needed.

A line is worth the new identifiers and paths that it brings, each where it first stands;
more if it, or a neighbour, shares words with the conversation (those that are rare in the
result above all), and an error says something of its own. Lines are quoted whole or left out.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from zero_mem import handles

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}|[0-9]{3,}|[\u4e00-\u9fff\u3040-\u30ff]{2}")
# Looked for only where a run of such characters begins, or a long run without a slash takes
# time by the square of its length.
_PATH: Final = re.compile(r"(?<![\w.@+~-])[\w.@+~-]*+(?:/[\w.@+-]+)+")
_TELLING: Final = re.compile(r"[_0-9/]|[a-z][A-Z]")
_HUMP: Final = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])|[0-9]{3,}")
_ALARM: Final = re.compile(
    r"(?i)\b(?:error|exception|traceback|failed|fatal|assert\w*)\b|错误|失败"
)

LONGEST_LINE: Final = 600  # characters; a longer line is read, not quoted
_REMEMBERED: Final = 8192  # lines; a tail looks at the same ones call after call
_NOTHING: Final[frozenset[str]] = frozenset()
_MOST_LINES: Final = 20_000
_PER_COST: Final = 0.5
_SPOKEN: Final = 0.05
_NEIGHBOUR: Final = 0.3
_ALARMING: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One kept line: its number from 1, its text, and why it is kept."""

    number: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineExtract:
    """The kept lines in order, and how many lines the text has."""

    lines: tuple[Line, ...]
    total: int

    @property
    def left_out(self) -> int:
        """How many lines are not shown."""
        return self.total - len(self.lines)


def names(text: str) -> set[str]:
    """Give the identifiers and paths of a text that tell something."""
    found = {name for name in _NAME.findall(text) if len(name) >= 6 and _TELLING.search(name)}
    found.update(_PATH.findall(text))
    return found


def words(text: str) -> Iterator[str]:
    """Give the words of a text in lower case, identifiers also by their parts."""
    for name in _NAME.findall(text):
        yield name.lower()
        for part in _HUMP.findall(name):
            if len(part) < len(name):
                yield part.lower()


def extract_lines(
    text: str,
    *,
    speech: Mapping[str, float],
    known: Collection[str],
    count: Callable[[str], int],
    limit: int,
    asked: float = 0.0,
) -> LineExtract:
    """Choose the lines that are most likely to be needed.

    Args:
        text: the result.
        speech: how much each word was said, the newest messages counting more.
        known: identifiers and paths that the conversation or an earlier extract shows.
        count: counts tokens.
        limit: the most tokens of the kept lines with their numbers.
        asked: what a line is worth, new names or not, for each unit of its relevance to the
            conversation; a rare word that was said makes about five.
    """
    lines = text.split("\n")
    candidates = _candidates(lines[:_MOST_LINES], speech, asked)
    kept = _greedy(candidates, set(known), count, limit)
    chosen = tuple(
        Line(number=line.at + 1, text=lines[line.at], reason=line.reason)
        for line in sorted(kept, key=lambda line: line.at)
    )
    return LineExtract(lines=chosen, total=len(lines))


def numbered(kept: Iterable[Line]) -> Iterator[tuple[str, str]]:
    """Write kept lines, `@N` before one that does not follow on, each piece with its reason."""
    expected = 1
    for line in kept:
        if line.number != expected:
            yield f"@{line.number}", "where the next line stands"
        yield handles.escape(line.text), line.reason
        expected = line.number + 1


@dataclass(slots=True)
class _Candidate:
    at: int
    text: str
    names: frozenset[str]
    relevance: float
    bonus: float
    cost: float
    reason: str = ""

    def merit(self, known: Collection[str]) -> float:
        new = sum(1 for name in self.names if name not in known)
        worth = (new + self.bonus) * (1 + _SPOKEN * self.relevance)
        return worth / math.pow(self.cost, _PER_COST)


def _candidates(lines: list[str], speech: Mapping[str, float], asked: float) -> list[_Candidate]:
    bags = [_bag(line) if len(line) <= LONGEST_LINE else _NOTHING for line in lines]
    frequency = Counter(word for bag in bags for word in bag)
    own = [_relevance(bag, speech, frequency, len(lines)) for bag in bags]
    found = []
    for at, line in enumerate(lines):
        if not bags[at]:
            continue
        near = max(own[at - 1] if at else 0.0, own[at + 1] if at + 1 < len(own) else 0.0)
        relevance = own[at] + _NEIGHBOUR * near
        bonus = asked * relevance + (_ALARMING if _ALARM.search(line) else 0.0)
        cost = 2 + len(line) / 3.5
        found.append(_Candidate(at, line, _names(line), relevance, bonus, cost))
    return found


@lru_cache(maxsize=_REMEMBERED)
def _bag(line: str) -> frozenset[str]:
    return frozenset(words(line))


@lru_cache(maxsize=_REMEMBERED)
def _names(line: str) -> frozenset[str]:
    return frozenset(names(line))


def _relevance(
    bag: Iterable[str], speech: Mapping[str, float], frequency: Counter[str], total: int
) -> float:
    return sum(
        math.log(1 + total / frequency[word]) * min(1.0, speech[word])
        for word in bag
        if word in speech
    )


def _greedy(
    candidates: list[_Candidate], known: set[str], count: Callable[[str], int], limit: int
) -> list[_Candidate]:
    """Take the best line again and again; merits only fall, so a stale one is looked at anew."""
    heap = [(-line.merit(known), index) for index, line in enumerate(candidates)]
    heapq.heapify(heap)
    kept: list[_Candidate] = []
    left = limit
    while heap and left > 0:
        _, index = heapq.heappop(heap)
        line = candidates[index]
        now = -line.merit(known)
        if heap and now > heap[0][0]:
            heapq.heappush(heap, (now, index))
            continue
        if now >= 0:
            break
        cost = count(line.text) + 3
        if cost > left:
            continue
        line.reason = _reason(line, known)
        known |= line.names
        left -= cost
        kept.append(line)
    return kept


def _reason(line: _Candidate, known: Collection[str]) -> str:
    new = sum(1 for name in line.names if name not in known)
    return f"{new} new names" if new else "speaks of what was said"
