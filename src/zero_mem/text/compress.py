"""Extractive compression: a body's text, quoted or dropped, never rewritten.

Text is cut into sentences (English and Chinese), and sentences too long for the limit into
clauses and words. JSON is cut into its values, each shown with its key, under the JSON
Pointer of what holds it: `status: "open"; /items/0 id: 7, name: "lamp"`. What is left out
between two quotations shows as ` … `.
"""

from __future__ import annotations

import heapq
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from zero_mem.text.segment import query_terms, terms
from zero_mem.types import Blob, Body, body_text

ELISION = " \u2026 "
# Both edges together take one character more than the elision that each run is charged for.
_EDGES = 1

# A run of stops is tried once and without backing up, for linear time. A full stop after a
# title, an initial or `e.g` ends nothing.
_ABBREVIATED = "".join(
    rf"(?<!\b{word}\.)" for word in ("Dr", "Mr", "Ms", "Mrs", "No", "vs", "[A-Z]", r"[ei]\.[ge]")
)
_SENTENCE_END = re.compile(
    rf"[.!?](?<![.!?].){_ABBREVIATED}[.!?]*+[\"'\u201d\u2019)\]]*+(?=\s)"
    "|[\u3002\uff01\uff1f\uff1b\u2026]+[\u201d\u2019\u300d\u300f\uff09]*|\n+"
)
_CLAUSE_END = re.compile(r"[;:|](?=\s)|(?<!\d),|,(?!\d)|[\uff0c\u3001\uff1a]")
_CJK = "\u3005-\u3007\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
# What must stay whole: a flag, a pair of surrogates, a character with all that modifies it,
# white space, and a run without white space (a word, a number, a path).
_ATOM = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}|[\ud800-\udbff][\udc00-\udfff]"
    rf"|[{_CJK}{_EMOJI}](?:[\ufe00-\ufe0f\u20e3\U0001f3fb-\U0001f3ff\u3099\u309a]|\u200d\S)*"
    rf"|\s+|[^\s{_CJK}{_EMOJI}]+"
)
_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')


LEAST_MORE = 12
"""With less room than this a beginning of a sentence says nothing."""

LOOK_BACK = 64
"""Characters; what must stay whole is seldom longer."""

_Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """What is shown of a body.

    `pieces` are the quotations in order, each a substring of the body's text; `left_out` is
    the number of its characters that they do not hold (of JSON, values only).
    """

    text: str
    left_out: int
    pieces: tuple[str, ...] = ()


class _Unit(NamedTuple):
    """A quotable stretch of the text; of JSON, with its key and the pointer to its container."""

    start: int
    end: int
    key: str | None = None
    parent: str = ""

    def cost(self, before: _Unit | None) -> int:
        """Give the characters it takes, shown right after `before` or after an elision."""
        cost = self.end - self.start + len(_label(self, before))
        if before is None:
            return cost + len(ELISION)
        return cost if self.key is None else cost + len("; ")


def compress(body: Body, *, limit: int, query: str = "") -> Extract:
    """Show the most telling parts of a body in at most `limit` characters.

    Args:
        body: Text (JSON written as text counts as JSON), JSON, or a blob.
        limit: The most characters of the result, elisions and keys included.
        query: What the reader asks; parts that share words with it come first, and
            without it the first parts do.

    Returns:
        The body as it is where it fits; else its parts in their order in the body; "" where
        no part fits. The same arguments always give the same result, in linear time.
    """
    text = body_text(body)
    if len(text) <= limit:
        return Extract(text=text, left_out=0, pieces=(text,) if text else ())
    if isinstance(body, Blob):
        return Extract(text="", left_out=len(text))
    if _is_json(body, text):
        return _compress_json(text, limit, query)
    return _compress_text(text, limit, query)


def _compress_text(text: str, limit: int, query: str) -> Extract:
    units, _ = _candidates(_sentences(text, limit), limit, query)
    runs = _runs(_choose(text, units, limit - _EDGES, query))
    spans = [(units[first].start, units[last].end) for first, last in runs]
    spans = _read_on(text, spans, limit)
    pieces = tuple(filter(None, (text[start:end].strip() for start, end in spans)))
    if not pieces:
        return Extract(text="", left_out=len(text))
    before, after = text[: spans[0][0]].strip(), text[spans[-1][1] :].strip()
    shown = _between(bool(before), ELISION.join(pieces), bool(after))
    return Extract(text=shown, left_out=len(text) - sum(map(len, pieces)), pieces=pieces)


def _read_on(text: str, spans: Sequence[_Span], limit: int) -> list[_Span]:
    """Use the room that whole sentences leave for the words after them, or else before."""
    if not spans:
        return []
    found = list(spans)
    room = limit - sum(end - start + len(ELISION) for start, end in spans) - _EDGES
    borders = [*(start for start, _ in spans[1:]), len(text)]
    for place, ((start, end), border) in enumerate(zip(spans, borders, strict=True)):
        if LEAST_MORE <= room < border - end:
            more = _whole_words(text, end, end + room)
            if more - end >= LEAST_MORE:
                found[place] = (start, more)
                room -= more - end
    start, end = found[0]
    if LEAST_MORE <= room < start:
        before = _whole_words_before(text, start - room, start)
        found[0] = (before if start - before >= LEAST_MORE else start, end)
    return found


def _whole_words(text: str, start: int, end: int) -> int:
    """Give the last place up to `end` where no word is cut."""
    last = start
    for match in _ATOM.finditer(text, start):
        if match.end() > end:
            break
        last = match.end()
    return last


def _whole_words_before(text: str, start: int, end: int) -> int:
    """Give the first place from `start` on where no word is cut."""
    # What stands at `start` may have begun before it, so reading begins a little earlier.
    atoms = _ATOM.finditer(text, max(0, start - LOOK_BACK), end)
    return next((match.start() for match in atoms if match.start() >= start), end)


def _compress_json(text: str, limit: int, query: str) -> Extract:
    units, complete = _candidates(_values(text), limit, query)
    chosen = _choose(text, units, limit - _EDGES, query)
    if not chosen:
        return _compress_value(text, units, limit, query)
    runs = _runs(chosen)
    shown = ELISION.join(_show_run(text, units[first : last + 1]) for first, last in runs)
    shown = _between(chosen[0] > 0, shown, not complete or chosen[-1] < len(units) - 1)
    pieces = tuple(text[units[index].start : units[index].end] for index in chosen)
    left_out = sum(unit.end - unit.start for unit in units) - sum(map(len, pieces))
    left_out += 0 if complete else len(text) - units[-1].end
    return Extract(text=shown, left_out=left_out, pieces=pieces)


def _compress_value(text: str, units: Sequence[_Unit], limit: int, query: str) -> Extract:
    """Quote from inside the most telling value, where no value fits as a whole."""
    nothing = Extract(text="", left_out=len(text))
    if not units:
        return nothing
    unit = units[next(iter(_order(text, units, 1, query)))]
    label = _label(unit, None)
    inside = _compress_text(text[unit.start : unit.end], limit - len(label), query)
    if not inside.pieces:
        return nothing
    left_out = len(text) - sum(map(len, inside.pieces))
    return Extract(text=label + inside.text, left_out=left_out, pieces=inside.pieces)


def _between(before: bool, shown: str, after: bool) -> str:
    return (ELISION.lstrip() if before else "") + shown + (ELISION.rstrip() if after else "")


def _show_run(text: str, units: Sequence[_Unit]) -> str:
    shown, before = "", None
    for unit in units:
        if before is not None:
            shown += ", " if before.parent == unit.parent else "; "
        shown += _label(unit, before) + text[unit.start : unit.end]
        before = unit
    return shown


def _label(unit: _Unit, before: _Unit | None) -> str:
    if unit.key is None:
        return ""
    known = before is not None and before.parent == unit.parent
    return f"{unit.key}: " if known or not unit.parent else f"{unit.parent} {unit.key}: "


# ---- choosing


def _candidates(units: Iterator[_Unit], limit: int, query: str) -> tuple[list[_Unit], bool]:
    """Take every unit for a query, else no more than can be shown; tell if these are all."""
    if query_terms(query):
        return list(units), True
    taken: list[_Unit] = []
    room, fits = limit, False
    for unit in units:
        taken.append(unit)
        room -= unit.end - unit.start
        fits = fits or unit.cost(None) <= limit - _EDGES
        if room < 0 and fits:
            return taken, next(units, None) is None
    return taken, True


def _choose(text: str, units: Sequence[_Unit], room: int, query: str) -> list[int]:
    """Give the indexes of the units to show, in order."""
    chosen: set[int] = set()
    for index in _order(text, units, 4 * room, query):
        before = units[index - 1] if index - 1 in chosen else None
        cost = units[index].cost(before)
        if cost <= room:
            room -= cost
            chosen.add(index)
        elif chosen and not query:
            break
    return sorted(chosen)


def _order(text: str, units: Sequence[_Unit], most: int, query: str) -> Iterable[int]:
    """Rank units by the words of the query they hold, rare ones first, then by nearness."""
    wanted = frozenset(query_terms(query))
    if not wanted:
        return range(len(units))
    held = [
        wanted.intersection(terms(_label(unit, None) + text[unit.start : unit.end]))
        for unit in units
    ]
    frequency = Counter(term for each in held for term in each)
    weight = {term: math.log1p(len(units) / times) for term, times in frequency.items()}
    scores = [sum(weight[term] for term in sorted(each)) for each in held]
    far = _distances(scores)
    # What is shown has a character at least, so few of the best can matter.
    return heapq.nsmallest(
        most, range(len(units)), key=lambda index: (-scores[index], far[index], index)
    )


def _distances(scores: Sequence[float]) -> list[int]:
    """Give each unit's distance to the nearest one with a score, all 0 where none has any."""
    if not any(scores):
        return [0] * len(scores)
    far = [len(scores)] * len(scores)
    for indexes in (range(len(scores)), reversed(range(len(scores)))):
        steps = len(scores)
        for index in indexes:
            steps = 0 if scores[index] else steps + 1
            far[index] = min(far[index], steps)
    return far


def _runs(chosen: Sequence[int]) -> list[tuple[int, int]]:
    """Join neighbours: the first and last index of each run of units shown."""
    runs: list[tuple[int, int]] = []
    for index in chosen:
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return runs


# ---- cutting


def _sentences(text: str, limit: int) -> Iterator[_Unit]:
    """Cut text into sentences that cover it, long ones into clauses and then words."""
    for start, end in _cut(_SENTENCE_END, text, 0, len(text)):
        if end - start <= limit // 2:
            yield _Unit(start, end)
            continue
        for first, last in _cut(_CLAUSE_END, text, start, end):
            yield from _words(text, first, last, max(limit // 4, 1))


def _cut(ends: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in ends.finditer(text, start, end):
        yield start, match.end()
        start = match.end()
    if start < end:
        yield start, end


def _words(text: str, start: int, end: int, size: int) -> Iterator[_Unit]:
    """Cut a stretch into runs of whole words of about `size` characters."""
    if end - start <= size:
        yield _Unit(start, end)
        return
    for match in _ATOM.finditer(text, start, end):
        if match.end() - start > size and match.start() > start:
            yield _Unit(start, match.start())
            start = match.start()
    yield _Unit(start, end)


def _is_json(body: Body, text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    if not isinstance(body, str):
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _values(text: str) -> Iterator[_Unit]:
    """Find the scalar values of a JSON text, in order, where they stand in it."""
    walk = _Walk()
    for match in _JSON_TOKEN.finditer(text):
        token = match[0]
        if token in ("{", "["):
            walk.open(array=token == "[")
        elif token in ("}", "]"):
            walk.close()
        elif token == ",":
            walk.next()
        elif token == ":":
            walk.in_key = False
        elif walk.in_key:
            walk.key = str(json.loads(token, strict=False))
        else:
            yield _Unit(match.start(), match.end(), walk.key, walk.parent)


class _Walk:
    """Where a scan over JSON tokens stands: the container, and the key or index in it."""

    __slots__ = ("_outer", "array", "in_key", "index", "key", "parent")

    def __init__(self) -> None:
        self._outer: list[tuple[str, str, bool, int]] = []
        self.parent, self.key, self.array, self.index, self.in_key = "", "", False, 0, False

    def open(self, *, array: bool) -> None:
        if self._outer:
            escaped = self.key.replace("~", "~0").replace("/", "~1")
            inner = f"{self.parent}/{escaped}"
        else:
            inner = ""
        self._outer.append((self.parent, self.key, self.array, self.index))
        self.parent, self.array, self.index = inner, array, 0
        self.key, self.in_key = ("0", False) if array else ("", True)

    def close(self) -> None:
        self.parent, self.key, self.array, self.index = self._outer.pop()
        self.in_key = False

    def next(self) -> None:
        if self.array:
            self.index += 1
            self.key = str(self.index)
        else:
            self.in_key = True
