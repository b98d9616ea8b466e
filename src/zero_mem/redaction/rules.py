"""The rule: a pattern for one kind of thing, and cheap signs without which it can't match."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from zero_mem.redaction.engine import Found

VALUE = "value"
"""The group of a pattern that is the secret itself, where the pattern has more than that."""


NUMBER = "123"
"""The hint of what has three digits in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Finds one kind of thing in a text.

    Attributes:
        kind: What is found, as the placeholder names it.
        pattern: Matches it; a group `value` is what is taken out, else the whole match.
        hints: One of them, in lower case, stands in every text that matches, whatever its
            case; "" stands in any.
        run: At least so many characters of a match stand without white space between them.
        check: Confirms the value.
    """

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ("",)
    run: int = 0
    check: Callable[[str], bool] | None = None

    def find(self, text: str) -> Iterator[Found]:
        """Find every place of the kind in a text."""
        group = VALUE if VALUE in self.pattern.groupindex else 0
        for match in self.pattern.finditer(text):
            value = match[group]
            if value is not None and (self.check is None or self.check(value)):
                yield Found(*match.span(group), self.kind)
