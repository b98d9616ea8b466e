"""Tries rules where their hints stand, in one pass over a text for each hint at most.

Nearly every text has nothing to find, so what counts is what it costs to see that. Searching
`bytes` for a short literal runs at the speed of memory; a regular expression takes a hundred times
as long for each character.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from zero_mem.redaction.engine import Found
from zero_mem.redaction.rules import RUN, Rule

Ranked: TypeAlias = tuple[int, Found]
"""What was found, after the place of its rule among the rules."""

_FOLD: Final = bytes.maketrans(
    string.ascii_uppercase.encode() + b"123456789",
    string.ascii_lowercase.encode() + b"0" * 9,
)
_OF_KEYS: Final = frozenset((string.ascii_letters + string.digits + "-._~+/=").encode())
_AS_RUNS: Final = bytes(97 if code in _OF_KEYS else 32 for code in range(256))
_LONG_VALUE: Final = 512
_KEY_RUN: Final = b"a" * RUN
_BEGINNINGS: Final = re.compile(
    rb"[a-z](?<![a-z0_-].)[a-z0-][a-z0._=-](?=[a-z0._~+/=-]{%d})" % (RUN - 3)
)


class _Try(NamedTuple):
    """Rules that are tried together at a hint, each with what it needs.

    Those after the same name are, which is read once for all of them; others stand alone.
    """

    after: re.Pattern[str] | None
    rules: list[tuple[bytes, int]]


_Hint: TypeAlias = tuple[bytes, list[int]]
_Sign: TypeAlias = tuple[bytes, list[_Try]]


class Scanner:
    """Finds what rules match.

    Args:
        rules: In the order of their ranks.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        numbered = list(enumerate(self._rules))
        self._always = [n for n, rule in numbered if not rule.hints]
        self._gates = _gates([(n, rule) for n, rule in numbered if not rule.in_run])
        self._words = _words(numbered)
        in_runs = [(n, rule) for n, rule in numbered if rule.in_run]
        self._inside = _hints((n, rule) for n, rule in in_runs if rule.before)
        self._beginnings = _beginnings((n, rule) for n, rule in in_runs if not rule.before)
        self._begun = frozenset(self._beginnings)

    def search(self, text: str) -> list[Ranked]:
        """Find all matches of all rules, in no order."""
        # "replace" keeps each character at its place.
        folded = text.encode("ascii", "replace").translate(_FOLD)
        runs = folded.translate(_AS_RUNS)
        found: list[Ranked] = []
        for hint, tries in self._present(folded):
            for after, rules in tries:
                places = [n for needed, n in rules if needed in folded]
                if places:
                    found += self._tried(text, folded, hint, after, places)
        if _KEY_RUN in runs:
            for hint, places in self._in_long(b" ".join(_long(folded, runs))):
                found += self._tried(text, folded, hint, None, places)
        if not text.isascii():
            found += self._at_words(text, folded)
        for n in self._always:
            found += ((n, each) for each in self._rules[n].search(text))
        return found

    def _present(self, folded: bytes) -> list[_Sign]:
        return [
            sign
            for needed, signs in self._gates
            if needed in folded
            for sign in signs
            if sign[0] in folded
        ]

    def _in_long(self, runs: bytes) -> list[_Hint]:
        """Give the hints that are in runs, or begin one where they have to."""
        begun = self._begun.intersection(_BEGINNINGS.findall(runs))
        hints = [*self._inside, *(hint for each in begun for hint in self._beginnings[each])]
        return [hint for hint in hints if hint[0] in runs]

    def _at_words(self, text: str, folded: bytes) -> Iterator[Ranked]:
        for word, tries in self._words.items():
            if word in text:
                for after, rules in tries:
                    places = [n for needed, n in rules if needed in folded]
                    yield from self._tried(text, text, word, after, places)

    def _tried(
        self,
        text: str,
        folded: str | bytes,
        hint: str | bytes,
        after: re.Pattern[str] | None,
        places: list[int],
    ) -> Iterator[Ranked]:
        rules = [(n, self._rules[n]) for n in places]
        if after is None:
            for n, rule in rules:
                yield from ((n, each) for each in rule.at(text, folded, hint))
            return
        place = folded.find(hint)  # type: ignore[arg-type]
        read = dict.fromkeys(places, 0)
        while place >= 0:
            name = after.match(text, place)
            if name is not None:
                for n, rule in rules:
                    match = None if place < read[n] else rule.match(text, name.end())
                    if match is not None:
                        yield from ((n, each) for each in rule.found(match))
                        # A long run may have a name at every third place: it is read once.
                        read[n] = match.end() if match.end() - place > _LONG_VALUE else 0
            place = folded.find(hint, place + 1)  # type: ignore[arg-type]


def _long(folded: bytes, runs: bytes) -> Iterator[bytes]:
    """Give the runs that are long enough for a key."""
    begin = runs.find(_KEY_RUN)
    while begin >= 0:
        end = runs.find(b" ", begin)
        end = len(runs) if end < 0 else end
        yield folded[begin:end]
        begin = runs.find(_KEY_RUN, end)


def _gates(numbered: Sequence[tuple[int, Rule]]) -> list[tuple[bytes, list[_Sign]]]:
    """List what rules need, each with their hints.

    A hint of rules that need nothing is looked for anyway, so those that need more stand there.
    """
    always = {hint for _, rule in numbered if not rule.needs for hint in rule.hints}
    gates: dict[str, dict[str, list[tuple[int, Rule]]]] = {}
    for n, rule in numbered:
        for hint in filter(str.isascii, rule.hints):
            signs = gates.setdefault("" if hint in always else rule.needs, {})
            signs.setdefault(hint, []).append((n, rule))
    return [
        (needed.encode(), [(hint.encode(), _tries(rules)) for hint, rules in signs.items()])
        for needed, signs in gates.items()
    ]


def _words(numbered: Sequence[tuple[int, Rule]]) -> dict[str, list[_Try]]:
    """List the hints that are not ASCII."""
    words: dict[str, list[tuple[int, Rule]]] = {}
    for n, rule in numbered:
        for hint in rule.hints:
            if not hint.isascii():
                words.setdefault(hint, []).append((n, rule))
    return {word: _tries(rules) for word, rules in words.items()}


def _tries(numbered: Iterable[tuple[int, Rule]]) -> list[_Try]:
    tries: dict[re.Pattern[str] | int, _Try] = {}
    for n, rule in numbered:
        one = n if rule.after is None else rule.after
        tries.setdefault(one, _Try(rule.after, [])).rules.append((rule.needs.encode(), n))
    return list(tries.values())


def _hints(numbered: Iterable[tuple[int, Rule]]) -> list[_Hint]:
    places: dict[bytes, list[int]] = {}
    for n, rule in numbered:
        for hint in rule.hints:
            places.setdefault(hint.encode(), []).append(n)
    return list(places.items())


def _beginnings(numbered: Iterable[tuple[int, Rule]]) -> dict[bytes, list[_Hint]]:
    """List the hints that begin a run, by their first characters."""
    begun: dict[bytes, list[_Hint]] = {}
    for hint in _hints(numbered):
        begun.setdefault(hint[0][:3], []).append(hint)
    return begun
