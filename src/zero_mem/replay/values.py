"""The values that a call's arguments name, and where they stand in a text.

Arguments are JSON or text. In JSON each scalar is a value as it is, save a string that is
itself text: a command, code, a query, a phrase with a path in it. Of text, whether it is
all of the arguments or one string among them, the paths and the telling identifiers are the
values, so that a shell run has the same ones in whatever format it was recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.text.segment import STOP_WORDS

_PATH: Final = re.compile(r"(?<![\w./-])[\w.@+~-]*(?:/[\w.@+-]+)+", re.ASCII)
_IDENTIFIER: Final = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]{5,}", re.ASCII)
_TELLING: Final = re.compile(r"[_0-9]|[a-z][A-Z]", re.ASCII)
_WORD: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_NAMED: Final = re.compile(r"(?<![\w-])\w+(?:-\w+)*", re.ASCII)
_NUMBER: Final = re.compile(r"(?<![\w.,:/-])\d[\d,]*(?:\.\d+)?(?![\w:/-]|[.,]\d)", re.ASCII)
_CODE: Final = re.compile(r"[A-Z]{3,}", re.ASCII)
_ESCAPED: Final = re.compile(r"\\(?:[nrt]|u[0-9a-fA-F]{4})\Z")

_COMMANDS: Final = frozenset(("bash", "cmd", "command", "commands", "script", "shell", "sql"))
_MARKS: Final = re.compile(r"""[\n|;<>{}()\[\]$`\\"]""")
_FILE: Final = re.compile(r"/[\w.-]*[./]\w|(?<!\S)[~.]?/\w", re.ASCII)
_SPACED: Final = re.compile(r"[*=']|\w_\w|(?<!\S)--?\w", re.ASCII)
_NAME_WORDS: Final = 6
_SAID_WORDS: Final = 12


# Where a value stands


def stands(value: str, text: str, stop: int | None = None) -> bool:
    """Tell whether a value stands whole in a text, or in its part before `stop`."""
    return find(value, text, 0, len(text) if stop is None else stop) >= 0


def find(value: str, text: str, start: int, stop: int) -> int:
    """Give the first place in `text[start:stop]` where a value stands whole, or -1.

    Text may be JSON that escapes what a value holds, or what stands before it.
    """
    at = _find(value, text, start, stop)
    if at < 0 and "\\" in text and (escaped := json.dumps(value)[1:-1]) != value:
        return _find(escaped, text, start, stop)
    return at


def _find(value: str, text: str, start: int, stop: int) -> int:
    at = text.find(value, start, stop) if value else -1
    while at >= 0:
        end = at + len(value)
        before = at > 0 and value[0] in _WORD and text[at - 1] in _WORD
        after = end < len(text) and value[-1] in _WORD and text[end] in _WORD
        if not after and not (before and not _ESCAPED.search(text, max(0, at - 6), at)):
            return at
        at = text.find(value, at + 1, stop)
    return -1


# What the arguments name


def argument_values(arguments: str) -> list[str]:
    """List the values of one call's arguments, each once, in order.

    Arguments that are a JSON object or array are JSON, all others are text.
    """
    parsed = container(arguments)
    if parsed is None:
        return text_values(arguments)
    found = (value for leaf in leaves(parsed) for value in _leaf_values(leaf))
    return list(dict.fromkeys(found))


def _leaf_values(leaf: Leaf) -> list[str]:
    if not leaf.number:
        if (leaf.key or "").casefold() in _COMMANDS:
            return text_values(leaf.text)
        named = _named(leaf.text)
        if named:
            return named
    return [leaf.text] if leaf.long_enough else []


def _named(text: str) -> list[str]:
    """List what a string names that is itself text; nothing for one that is a plain value.

    A plain value has no blanks, or is a name of a few words. Sentences are plain too, unless
    they name files or quote code: what the model tells itself or a person in an argument is
    talk, as the text of its turn is.
    """
    spaced = len(text.split(maxsplit=1)) > 1
    coded = _MARKS.search(text) or (spaced and (_SPACED.search(text) or _FILE.search(text)))
    if not coded and len(text.split(maxsplit=_NAME_WORDS)) <= _NAME_WORDS:
        return []
    values = text_values(text)
    if not any(char.isalpha() for value in values for char in value) or _is_talk(text):
        return []
    return values


def _is_talk(text: str) -> bool:
    """Tell sentences from commands and code: by their end, and by a fifth of stop words."""
    if "`" in text or _FILE.search(text):
        return False
    body = text.strip()
    if body.endswith(("。", "！", "？")):
        return True
    words = body.split()
    common = sum(word.strip(".,;:!?()'\"").casefold() in STOP_WORDS for word in words)
    sentence = body[0].isupper() and body.endswith((".", "!", "?"))
    return 5 * common >= len(words) and (sentence or len(words) >= _SAID_WORDS)


def text_values(text: str) -> list[str]:
    """List the paths and telling identifiers of a text, each once, in order."""
    found = [(match.start(), match[0].rstrip(".")) for match in _PATH.finditer(text)]
    found += [
        (match.start(), match[0])
        for match in _IDENTIFIER.finditer(text)
        if _TELLING.search(match[0])
    ]
    return list(dict.fromkeys(value for _, value in sorted(found)))


# What a reply names


def reply_values(text: str) -> tuple[list[str], list[str]]:
    """List what a text to a person names, each once, in order: ids, codes and dates, numbers.

    An id has letters and digits, or is a telling identifier or a path; a code is capitals
    alone, 3 or more; a date is written as in `2026-05-20`. A number has 2 digits or more and
    is no part of a date, a time or an id; its thousands may have commas.
    """
    named = [match[0] for match in _NAMED.finditer(text) if _names_one(match[0])]
    named += text_values(text)
    numbers = [match[0].replace(",", "") for match in _NUMBER.finditer(text)]
    numbers = [number for number in numbers if sum(map(str.isdigit, number)) >= 2]
    return list(dict.fromkeys(named)), list(dict.fromkeys(numbers))


def _names_one(word: str) -> bool:
    """Tell an id, a code or a date from a word and a number."""
    if len(word) < 3:
        return False
    digits, letters = any(map(str.isdigit, word)), any(map(str.isalpha, word))
    return (digits and (letters or "-" in word)) or bool(_CODE.fullmatch(word))


# JSON


@dataclass(frozen=True, slots=True)
class Leaf:
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
        """Whether it can be a value: 3 characters, or 2 digits of a number."""
        if self.number:
            return sum(char.isdigit() for char in self.text) >= 2
        return len(self.text) >= 3


def leaves(
    value: Any, key: str | None = None, pointer: str = "", *, keys: bool = False
) -> Iterator[Leaf]:
    """Give the scalars of a JSON value in order, with `keys` its object keys too."""
    if isinstance(value, dict):
        for name, item in value.items():
            inner = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if keys:
                yield Leaf(name, False, None, inner, is_key=True)
            yield from leaves(item, name, inner, keys=keys)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, key, f"{pointer}/{index}", keys=keys)
    elif isinstance(value, str):
        yield Leaf(value, False, key, pointer)
    elif value is not None and not isinstance(value, bool):
        yield Leaf(json.dumps(value), True, key, pointer)


def container(text: str) -> Any:
    """Parse a JSON object or array, or give None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
