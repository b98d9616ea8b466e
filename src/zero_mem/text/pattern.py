r"""Regular expressions that are searched in linear time, whoever wrote pattern and text.

Python's `re` backs up, and `(a+)+$` on thirty letters can hang a process; a pattern from a
model must not. Here a pattern becomes a set of states that all advance together, cached as
a deterministic automaton on the way.

Supported, with Python's meaning: literals, `.`, classes and escapes (`\d \w \s \t` …),
`|`, groups (capturing or `(?:…)`), `? * + {m} {m,} {m,n}` (also lazy, which changes nothing
in a search), `^ $ \A \Z \b \B`, and `(?i)` at the beginning. Back-references and
look-around cannot be searched in linear time and are refused.

Source: K. Thompson, Regular Expression Search Algorithm, 1968.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from zero_mem.errors import InvalidInput

MOST_CHARACTERS = 500
MOST_STATES = 500
_DEEPEST = 50
_MOST_HELD = 500_000
_ASSERTIONS = {"^": "^", "$": "$", "\\A": "^", "\\Z": "$", "\\b": "b", "\\B": "B"}
_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[^1-9A-Za-z]|[abdDfnrsStvwW]|[AZbB])"
)
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
# An unfinished class too: `re` warns of it before it says so.
_CLASS_OR_ESCAPE = re.compile(rf"\\.|{_CLASS.pattern}?", re.DOTALL)
_SET_OPERATOR = re.compile(r"\\.|(?P<first>[-&|~])(?P<second>(?P=first))|\[", re.DOTALL)
_COUNTS = re.compile(r"\{(?:(\d{1,4})(,(\d{0,4}))?|,(\d{1,4}))\}")


@dataclass(frozen=True, slots=True)
class _Character:
    accepts: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Assertion:
    kind: str


@dataclass(frozen=True, slots=True)
class _Sequence:
    nodes: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    nodes: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Repeat:
    node: _Node
    least: int
    most: int | None


_Node: TypeAlias = _Character | _Assertion | _Sequence | _Choice | _Repeat


@dataclass(frozen=True, slots=True)
class _Jump:
    targets: tuple[int, ...]


_Step: TypeAlias = _Character | _Assertion | _Jump | None
"""One step of the program; None accepts."""


class _State:
    """The steps reached, what the last character was, and the states known to follow.

    `before` is "" (no character), "w" (of a word) or "-"; None follows where a match ends.
    """

    __slots__ = ("before", "following", "steps")

    def __init__(self, steps: frozenset[int], before: str) -> None:
        self.steps = steps
        self.before = before
        self.following: dict[str, _State | None] = {}


class Pattern:
    """A compiled pattern.

    Args:
        pattern: The regular expression, at most 500 characters.

    Raises:
        InvalidInput: A syntax error, or something that is not supported; the message says
            at which position.
    """

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MOST_CHARACTERS:
            raise InvalidInput(f"the pattern is longer than {MOST_CHARACTERS} characters")
        self._program = _compile(_Parser(pattern).parse())
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._held = 0

    def first_end(self, text: str) -> int | None:
        """Give the earliest position at which a match ends, or None where there is none."""
        state = self._state(frozenset(), "")
        for position, character in enumerate(text):
            try:
                following = state.following[character]
            except KeyError:
                following = self._advance(state, character)
            if following is None:
                return position
            state = following
        return len(text) if self._advance(state, "") is None else None

    def _advance(self, state: _State, character: str) -> _State | None:
        """Go over a character ("" is the end of the text); None: a match ends before it."""
        self._held += 1
        after = _kind(character)
        reached: set[int] = set()
        following: _State | None = None
        for index in self._closure({*state.steps, 0}, state.before, after):
            step = self._program[index]
            if step is None:
                break
            if isinstance(step, _Character) and character and step.accepts.fullmatch(character):
                reached.add(index + 1)
        else:
            following = self._state(frozenset(reached), after)
        state.following[character] = following
        return following

    def _state(self, steps: frozenset[int], before: str) -> _State:
        state = self._states.get((steps, before))
        if state is None:
            self._held += 1 + len(steps)
            if self._held > _MOST_HELD:
                self._states.clear()
                self._held = 0
            state = self._states[steps, before] = _State(steps, before)
        return state

    def _closure(self, steps: Iterable[int], before: str, after: str) -> set[int]:
        seen: set[int] = set()
        waiting = list(steps)
        while waiting:
            index = waiting.pop()
            if index in seen:
                continue
            seen.add(index)
            step = self._program[index]
            if isinstance(step, _Jump):
                waiting.extend(step.targets)
            elif isinstance(step, _Assertion) and _holds(step.kind, before, after):
                waiting.append(index + 1)
        return seen


def _kind(character: str) -> str:
    if not character:
        return ""
    return "w" if character.isalnum() or character == "_" else "-"


def _holds(kind: str, before: str, after: str) -> bool:
    if kind in "^$":
        return not (before if kind == "^" else after)
    return ((before == "w") != (after == "w")) == (kind == "b")


def _compile(node: _Node) -> list[_Step]:
    program: list[_Step] = []
    _emit(node, program)
    program.append(None)
    return program


def _emit(node: _Node, program: list[_Step]) -> None:
    if len(program) > MOST_STATES:
        raise InvalidInput("the pattern repeats too much; use smaller counts")
    if isinstance(node, _Sequence):
        for each in node.nodes:
            _emit(each, program)
    elif isinstance(node, _Choice):
        _emit_choice(node, program)
    elif isinstance(node, _Repeat):
        _emit_repeat(node, program)
    else:
        program.append(node)


def _emit_choice(node: _Choice, program: list[_Step]) -> None:
    fork = len(program)
    program.append(None)
    starts, ends = [], []
    for each in node.nodes:
        starts.append(len(program))
        _emit(each, program)
        ends.append(len(program))
        program.append(None)
    program[fork] = _Jump(tuple(starts))
    for end in ends:
        program[end] = _Jump((len(program),))


def _emit_repeat(node: _Repeat, program: list[_Step]) -> None:
    for _ in range(node.least):
        size = len(program)
        _emit(node.node, program)
        if len(program) == size:  # repeating what is empty adds nothing, and could go on for long
            return
    if node.most is None:
        fork = len(program)
        program.append(None)
        _emit(node.node, program)
        program.append(_Jump((fork,)))
        program[fork] = _Jump((fork + 1, len(program)))
        return
    forks = []
    for _ in range(node.most - node.least):
        forks.append(len(program))
        program.append(None)
        _emit(node.node, program)
    for fork in forks:
        program[fork] = _Jump((fork + 1, len(program)))


def _plain_class(found: re.Match[str]) -> str:
    """Escape in a class what a later `re` may take for an operation on sets, and warns of today."""
    text = found[0]
    if not text.startswith("["):
        return text
    return "[" + _SET_OPERATOR.sub(_escaped, text[1:])


def _escaped(found: re.Match[str]) -> str:
    if found["second"] is not None:
        return f"{found['first']}\\{found['second']}"
    return "\\[" if found[0] == "[" else found[0]


class _Parser:
    """Reads a pattern from left to right; single characters keep `re`'s own meaning."""

    def __init__(self, pattern: str) -> None:
        self._flags = re.IGNORECASE if pattern.startswith("(?i)") else re.NOFLAG
        self._pattern = _CLASS_OR_ESCAPE.sub(_plain_class, pattern)
        self._at = 4 if self._flags else 0
        self._depth = 0

    def parse(self) -> _Node:
        try:
            re.compile(self._pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise InvalidInput(f"not a regular expression: {error}") from error
        node = self._choice()
        if self._at < len(self._pattern):
            raise self._unsupported()
        return node

    def _unsupported(self) -> InvalidInput:
        return InvalidInput(
            f"the pattern has something unsupported at position {self._at}; back-references, "
            "look-around, named groups and flags other than a leading (?i) are not"
        )

    def _choice(self) -> _Node:
        nodes = [self._sequence()]
        while self._pattern.startswith("|", self._at):
            self._at += 1
            nodes.append(self._sequence())
        return nodes[0] if len(nodes) == 1 else _Choice(tuple(nodes))

    def _sequence(self) -> _Node:
        nodes: list[_Node] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            nodes.append(self._repeated(self._atom()))
        return _Sequence(tuple(nodes))

    def _repeated(self, node: _Node) -> _Node:
        counts = self._counts()
        if counts is None:
            return node
        if self._pattern.startswith("?", self._at):
            self._at += 1
        elif self._pattern.startswith("+", self._at):
            raise self._unsupported()
        return _Repeat(node, *counts)

    def _counts(self) -> tuple[int, int | None] | None:
        simple = {"?": (0, 1), "*": (0, None), "+": (1, None)}
        character = self._pattern[self._at : self._at + 1]
        if character in simple:
            self._at += 1
            return simple[character]
        match = _COUNTS.match(self._pattern, self._at)
        if match is None:
            return None
        self._at = match.end()
        least, comma, most, only_most = match.groups()
        if only_most is not None:
            return 0, int(only_most)
        if comma is None:
            return int(least), int(least)
        return int(least), int(most) if most else None

    def _atom(self) -> _Node:
        character = self._pattern[self._at]
        if character == "(":
            return self._group()
        if character in "^$":
            self._at += 1
            return _Assertion(character)
        if character == "[":
            return self._matched(_CLASS)
        if character == "\\":
            return self._matched(_ESCAPE)
        self._at += 1
        return self._character("." if character == "." else re.escape(character))

    def _matched(self, atom: re.Pattern[str]) -> _Node:
        match = atom.match(self._pattern, self._at)
        if match is None:
            raise self._unsupported()
        self._at = match.end()
        if match[0] in _ASSERTIONS:
            return _Assertion(_ASSERTIONS[match[0]])
        return self._character(match[0])

    def _character(self, source: str) -> _Character:
        return _Character(re.compile(source, self._flags))

    def _group(self) -> _Node:
        self._depth += 1
        if self._pattern.startswith("(?:", self._at):
            self._at += 3
        elif self._pattern.startswith("(?", self._at) or self._depth > _DEEPEST:
            raise self._unsupported()
        else:
            self._at += 1
        node = self._choice()
        self._depth -= 1
        self._at += 1  # the closing bracket is there: `re` has compiled the whole
        return node
