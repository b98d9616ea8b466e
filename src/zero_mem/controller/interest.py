"""What of a tool result the conversation is likely to need, judged from what came before.

A value's interest is its expected use: a prior by its shape (ids are used, prose is not),
lowered when the conversation shows the value already, raised when its key is one that the
model has used as an argument. Nothing here knows a tool or a domain.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from zero_mem.controller import lines
from zero_mem.controller.compact import parse
from zero_mem.controller.messages import Message

Shape: TypeAlias = Literal[
    "id",
    "code",
    "date",
    "moment",
    "time",
    "address",
    "term",
    "word",
    "name",
    "number",
    "mark",
    "prose",
]

# Relative frequency with which a new value of a result becomes an argument later on.
_PRIOR: Final[dict[Shape, float]] = {
    "id": 1.0,
    "date": 1.2,
    "code": 0.38,
    "name": 0.3,
    "term": 0.27,
    "word": 0.1,
    "number": 0.1,
    "time": 0.08,
    "address": 0.03,
    "moment": 0.03,
    "prose": 0.03,
    "mark": 0.02,
}
_SAID = 0.02  # the conversation shows it: no need to say it again
_TELLING: Final = ("term", "word", "name")
_ASKED = 1.8  # a word of the conversation that some rows have and others do not
_REPEATED: Final = {"id": 0.9, "code": 0.9, "date": 0.8}  # an earlier extract shows it
_REPEATED_OTHER = 0.3
_ARGUMENT = 2.2  # its key is the name of an argument that the model has used
_NAMED = 4.0  # its key is spoken of in
_TURNS: Final = 8  # the newest messages
_FADING: Final = 0.8  # with each message what was said weighs less, and is forgotten in the end
_FAR_YEAR = 0.4  # a date in a year that nobody spoke of

_DATE = re.compile(r"(\d{4})[-/.]\d{1,2}[-/.]\d{1,2}|(\d{4})年\d{1,2}月\d{1,2}日")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d.*")
_TIME = re.compile(r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?(?:[+-]\d+|Z)?")
_CODE = re.compile(r"[A-Z]{2,5}")
_DIGITS = re.compile(r"[+-]?\d+(?:\.\d+)?")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_WORDS = re.compile(r"[A-Za-z0-9_]+")
_SHORTEST_ID = 6  # digits alone make an id from here on; postal codes are shorter
_LONGEST_WORDS = 24


def shape(value: Any) -> Shape:
    """Name the shape of a scalar."""
    if value is None or isinstance(value, bool) or value == "":
        return "mark"
    if not isinstance(value, str):
        return "number"
    text = value.strip()
    if _DATE.fullmatch(text):
        return "date"
    if _MOMENT.fullmatch(text):
        return "moment"
    if _TIME.fullmatch(text):
        return "time"
    if _CODE.fullmatch(text):
        return "code"
    if _DIGITS.fullmatch(text):
        return "id" if text.isdigit() and len(text) >= _SHORTEST_ID else "number"
    return _shape_of_words(text)


def _shape_of_words(text: str) -> Shape:
    has_digit = any(char.isdigit() for char in text)
    one_word = not any(char.isspace() for char in text)
    if "@" in text or "/" in text:
        return "address"
    if one_word and len(text) <= 64 and (has_digit or (text.isupper() and len(text) > 5)):
        return "id"
    if has_digit and len(text) <= 40:
        return "address"
    if len(text) <= _LONGEST_WORDS and text.count(" ") <= 2:
        if "_" in text:
            return "term"
        return "word" if text.islower() else "name"
    return "prose"


def scalars(value: Any, key: str | None = None) -> Iterator[tuple[Any, str | None]]:
    """Give each scalar below a value with the object key nearest above it."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from scalars(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from scalars(item, key)
    else:
        yield value, key


class Interest:
    """What the conversation so far says about the use of a value.

    `speech` has the words that were said, the newest messages counting more; `names` the
    identifiers and paths that the conversation shows.
    """

    def __init__(self) -> None:
        self._said: list[str] = []
        self._words: set[str] = set()
        self._years: set[str] = set()
        self._arguments: set[str] = set()
        self._shown: set[str] = set()
        self._known: dict[str, bool] = {}
        self.speech: dict[str, float] = {}
        self.names: set[str] = set()
        self._recent: deque[set[str]] = deque(maxlen=_TURNS)

    def hear(self, message: Message) -> None:
        """Take a message that is not a tool result, with its calls."""
        self._known.clear()
        for text in (message.text, *(call.arguments for call in message.calls)):
            self._said.append(text)
            self._words.update(_WORDS.findall(text))
            self._years.update(_YEAR.findall(text))
        spoken = " ".join((message.text, *(call.arguments for call in message.calls)))
        self._recent.append(set(lines.words(spoken)))
        self.speech = {word: fresh * _FADING for word, fresh in self.speech.items() if fresh > 0.1}
        for word in self._recent[-1]:
            self.speech[word] = self.speech.get(word, 0.0) + 1.0
        self.names |= lines.names(spoken)
        for call in message.calls:
            self._learn(call.arguments)

    def _learn(self, arguments: str) -> None:
        try:
            parsed = parse(arguments)
        except ValueError:
            return
        self._arguments.update(key for _, key in scalars(parsed) if key is not None)

    def show(self, value: Any, text: str) -> None:
        """Note what the text in the place of a result shows.

        Args:
            value: the result's JSON value, or None.
            text: the text.
        """
        self.names |= lines.names(text)
        if value is None:
            return
        words = set(_WORDS.findall(text))
        for scalar, _ in scalars(value):
            spelled = scalar if isinstance(scalar, str) else str(scalar)
            if _all_words(spelled, words) and spelled in text:
                self._shown.add(spelled)

    def said(self, text: str) -> bool:
        """Tell whether the conversation itself, not a result, has a text whole."""
        found = self._known.get(text)
        if found is None:
            found = _all_words(text, self._words) and any(text in said for said in self._said)
            self._known[text] = found
        return found

    def spoken(self, word: str) -> bool:
        """Tell whether the conversation has a word of ASCII letters, digits and `_`."""
        return word in self._words

    def emphasis(self, name: str) -> float:
        """Tell how much more a field is used for being spoken of in the newest messages.

        Args:
            name: the field's key; its words are looked for, as `ship_date` in "ship by date".
        """
        words = set(lines.words(name))
        if not words:
            return 1.0
        named = sum(1 for word in words if any(word in recent for recent in self._recent))
        return 1 + _NAMED * named / len(words)

    def expected_use(self, value: Any, key: str | None, *, tells_rows: bool = False) -> float:
        """Give a scalar's expected use, relative to a new id's, which is 1.

        Args:
            value: the scalar.
            key: the object key nearest above it.
            tells_rows: whether it varies over rows, so that a word which was said tells which
                rows were meant.
        """
        kind = shape(value)
        use = _PRIOR[kind]
        text = value if isinstance(value, str) else str(value)
        if kind == "mark" or len(text) < 2:
            return use * 0.3
        if kind == "date" and not self._near(text):
            use *= _FAR_YEAR
        if self.said(text):
            use *= _ASKED if tells_rows and kind in _TELLING else _SAID
        elif text in self._shown:
            use *= _REPEATED.get(kind, _REPEATED_OTHER)
        return use * _ARGUMENT if key in self._arguments else use

    def _near(self, date: str) -> bool:
        return not self._years or date[:4] in self._years


def words_of(text: str) -> set[str]:
    """Give the words of ASCII letters, digits and `_` in a text."""
    return set(_WORDS.findall(text))


def _all_words(text: str, words: set[str]) -> bool:
    """Tell whether every ASCII word of a text is among `words`."""
    return all(word in words for word in _WORDS.findall(text))
