"""The rule: a pattern for one kind of thing, and the signs at which it is tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from zero_mem.redaction.engine import Found

Check: TypeAlias = Callable[[str], bool]

VALUE: Final = "value"
"""The group of a pattern that is the secret itself, where the pattern has more than that."""

RUN: Final = 20
"""The shortest stretch in which rules that say `in_run` have their hints."""

_AFTER: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Finds one kind of thing in a text.

    A pattern is not looked for all over a text, which would cost a save more than all else it
    does: it is tried where one of the hints stands.

    Attributes:
        kind: What is found, as the placeholder names it.
        pattern: Matches it; a group `value` is what is taken out, else the whole match.
        hints: One of them is where a match begins. They are in lower case, whatever the case
            of the text; "0" stands for any digit. Without hints the pattern is searched.
        needs: What also stands in every text with a match, written as the hints are.
        after: Matches at a hint, and the pattern then right behind it. Names that many rules share
            are read once for all of them.
        before: A match begins up to so many characters before the hint, and ends up to four times
            as many after it, at most 256.
        in_run: The hint stands in at least `RUN` characters of keys (letters, digits and
            `-._~+/=`) in a row. Unless the match begins before it, it has three characters or more,
            and so long a row begins with it, with no letter, digit, `_` or `-` before it.
        check: Confirms the value.
    """

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()
    needs: str = ""
    after: re.Pattern[str] | None = None
    before: int = 0
    in_run: bool = False
    check: Check | None = None

    def search(self, text: str) -> Iterator[Found]:
        """Find every place of the kind in a text."""
        for match in self.pattern.finditer(text):
            yield from self.found(match)

    def match(self, text: str, place: int) -> re.Match[str] | None:
        """Match what begins at a place of a text."""
        return self.pattern.match(text, place)

    def at(self, text: str, folded: str | bytes, hint: str | bytes) -> Iterator[Found]:
        """Find the places of the kind at a hint.

        Args:
            text: What is searched.
            folded: The text as the hints are written, each character at its place.
            hint: One of the hints.
        """
        place = folded.find(hint)  # type: ignore[arg-type]
        while place >= 0:
            match = self._match(text, place)
            if match is not None:
                yield from self.found(match)
            after = place + 1 if match is None else max(place + 1, match.end())
            place = folded.find(hint, after)  # type: ignore[arg-type]

    def _match(self, text: str, place: int) -> re.Match[str] | None:
        if not self.before:
            return self.pattern.match(text, place)
        around = self.pattern.finditer(
            text, max(0, place - self.before), place + min(4 * self.before, _AFTER)
        )
        return next((m for m in around if m.end() > place), None)

    def found(self, match: re.Match[str]) -> Iterator[Found]:
        """Give what a match has of the kind."""
        group = VALUE if VALUE in self.pattern.groupindex else 0
        value = match[group]
        if value and (self.check is None or self.check(value)):
            yield Found(*match.span(group), self.kind)
