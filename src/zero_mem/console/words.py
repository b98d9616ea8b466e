"""The words of the console in every language it speaks, and how each writes numbers and times.

A file `words/NAME.toml` has a table for each language with the same names in each; `NAME.word`
is what a template asks for. A word is a text with `{places}`, or a table of plural forms that
the number `n` chooses from.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeAlias

LANGUAGES: Final = ("en", "zh")
"""The first is spoken to whoever asks for none of them."""

TAGS: Final[Mapping[str, str]] = {"en": "en", "zh": "zh-Hans"}
"""What HTML calls them."""

Word: TypeAlias = str | Mapping[str, str]

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)


@dataclass(frozen=True, slots=True)
class Words:
    """One language.

    Args:
        language: One of `LANGUAGES`.
        catalogue: Its words by name.
    """

    language: str
    catalogue: Mapping[str, Word]

    def __contains__(self, name: str) -> bool:
        return name in self.catalogue

    def say(self, name: str, /, **given: Any) -> str:
        """Give a word, with what belongs into its places; numbers are written out."""
        word = self.catalogue[name]
        if not isinstance(word, str):
            word = word[self._plural(given["n"])] if "one" in word else word["other"]
        shown = {each: self._written(value) for each, value in given.items()}
        return word.format(**shown) if shown else word

    def _plural(self, count: float) -> str:
        return "one" if count == 1 and self.language == "en" else "other"

    def _written(self, value: Any) -> Any:
        return self.number(value) if type(value) in (int, float) else value

    def number(self, value: float) -> str:
        """Write a number with its thousands apart, and at most two decimals."""
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".rstrip("0").rstrip(".")
        return text.replace("-", "−")

    def share(self, value: float) -> str:
        """Write a share of 1 as a percentage."""
        return f"{100 * value:.1f}%"

    def size(self, count: int) -> str:
        """Write a number of bytes."""
        value, unit = float(count), 0
        while value >= 1000 and unit < len(_UNITS) - 1:
            value, unit = value / 1000, unit + 1
        return f"{value:.3g} {_UNITS[unit]}" if value < 1000 else f"{value:,.0f} {_UNITS[unit]}"

    def date(self, moment: datetime) -> str:
        """Write a day, in UTC."""
        at = moment.astimezone(UTC)
        if self.language == "zh":
            return f"{at.year}年{at.month}月{at.day}日"
        return f"{at.day} {_MONTHS[at.month - 1]} {at.year}"

    def moment(self, moment: datetime) -> str:
        """Write a time to the second; its zone is said."""
        at = moment.astimezone(UTC)
        comma = "" if self.language == "zh" else ","
        return f"{self.date(at)}{comma} {at:%H:%M:%S} UTC"


@cache
def words_in(language: str) -> Words:
    """Read a language's words."""
    found: dict[str, Word] = {}
    for file in (files("zero_mem.console") / "words").iterdir():
        area, dot, kind = file.name.rpartition(".")
        if kind == "toml":
            tables = tomllib.loads(file.read_text("utf-8"))
            found |= {f"{area}{dot}{name}": word for name, word in tables[language].items()}
    return Words(language, found)


def preferred(accepted: str) -> str:
    """Choose a language by an Accept-Language header."""
    ranked: list[tuple[float, int, str]] = []
    for place, part in enumerate(accepted.split(",")[:20]):
        tag, _, rest = part.strip().partition(";")
        primary = tag.strip().lower().partition("-")[0]
        if primary in LANGUAGES:
            ranked.append((-_quality(rest), place, primary))
    return min(ranked)[2] if ranked else LANGUAGES[0]


def _quality(text: str) -> float:
    name, _, value = text.strip().partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
