"""Time phrases that the rules do not know, read by an optional package."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from typing import Any, Protocol

from zero_mem.errors import InvalidInput, MissingExtra

LANGUAGES = ("en", "zh")

_MAY_HOLD = re.compile(r"\d|\b(?:ago|fortnight|hence|noon|midnight)\b|[前后]", re.I)
_TELLS_A_DAY = re.compile(
    r"\d\D|\D\d|\b(?:ago|fortnight|hence)\b|[年月日天周前后]", re.I
)  # not `may`, `sat`, `on`, nor a number alone


class DateParser(Protocol):
    """Finds the days that a text speaks of, beside those that the rules find.

    It is asked for questions only, about what the rules have left of them.
    """

    name: str

    def days(self, text: str, *, anchor: date) -> Iterator[tuple[date, date]]:
        """Give the first and last day of each time phrase; relative ones count from `anchor`."""


class DateparserDays:
    """Days by the package dateparser, in English and Chinese, without its doubtful hits.

    Raises:
        MissingExtra: The extra `dates` is not installed.
    """

    name = "dateparser"

    def __init__(self) -> None:
        try:
            from dateparser.search import search_dates
        except ModuleNotFoundError as error:
            raise MissingExtra("the dateparser reader of dates", "dates") from error
        self._search: Callable[..., list[tuple[str, datetime]] | None] = search_dates

    def days(self, text: str, *, anchor: date) -> Iterator[tuple[date, date]]:
        """See `DateParser`."""
        if not _MAY_HOLD.search(text):
            return
        settings: dict[str, Any] = {
            "RELATIVE_BASE": datetime.combine(anchor, time(12)),
            "PREFER_DATES_FROM": "past",
            "RETURN_AS_TIMEZONE_AWARE": False,
        }
        for phrase, found in self._search(text, languages=LANGUAGES, settings=settings) or ():
            if _TELLS_A_DAY.search(phrase):
                yield found.date(), found.date()


def date_parser_named(name: str) -> DateParser:
    """Make the reader of dates that a name stands for: `dateparser`.

    Raises:
        InvalidInput: The name stands for none.
        MissingExtra: Its package is not installed.
    """
    if name == "dateparser":
        return DateparserDays()
    raise InvalidInput(f"a reader of dates is dateparser or your own, not {name!r}")
