r"""How text is cut into the terms of the lexical index, English and Chinese alike.

- A word gives its stem; the index leaves stop words out (`content_terms`).
- An identifier (`POL-358`, `C:\repo\a.py`, `snake_case`, `20.04`, a UUID) gives its parts
  and, joined by a character nobody writes, the whole; camelCase also its lower-case whole.
- Scripts written without spaces give every bigram, and Han also its single characters
  less those that only carry grammar.
- An emoji is a term, whatever its skin colour or presentation.

A term has only ASCII `[a-z0-9]` and non-ASCII characters, none of them a surrogate, so
FTS5's `ascii` tokenizer keeps it whole. Time is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import chain
from operator import add
from typing import NamedTuple

from zero_mem.text.stem import stem

VERSION = 1
JOINER = "\ue000"

_SLICE = 512
_CACHED_LENGTH = 64
_SHORT = 1024  # no piece of a text this short is too long to keep in the cache
_MOST_JOINED = 256
_LONGEST_TERM = 4096  # FTS5 cuts a token after 32,768 bytes, and a query's would not match

# Scripts without spaces between words: Han, kana, bopomofo, Hangul, Thai, Lao, Burmese, Khmer.
_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = (
    _HAN + "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31ff"
    "\u1100-\u11ff\uac00-\ud7a3\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u1000-\u109f\u1780-\u17d3"
)
# Vowel signs and other marks that belong to a word, which `\w` does not know.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff\u0f71-\u0f84"
)
_EMOJI = (
    "\u231a\u231b\u23e9-\u23fa\u2600-\u275a\u275f-\u2767\u2776-\u27bf\u2b05-\u2b55"
    "\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
)
_LETTER = rf"(?:[A-Za-z0-9]|[^\W_{_UNSPACED}]|[{_MARKS}])"
_JOINS = r"[-_.:/\\'\u2019@&+#=?%~$]"

_ASCII_WORDS = re.compile(rf"[A-Za-z0-9]+(?:{_JOINS}{{1,3}}[A-Za-z0-9]+)*")
_ASCII_PARTS = re.compile(r"[A-Za-z0-9]+")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_POSSESSIVE = re.compile(r"['\u2019]s$", re.IGNORECASE)

_ENGLISH = (
    "a about above after again against all am an and any are as at be because been before being "
    "below between both but by can could d did do does doing don down during each few for from "
    "further had has have having he her here hers herself him himself his how i if in into is it "
    "its itself just let ll m me more most my myself no nor not now of off on once only or other "
    "our ours ourselves out over own re s same she should so some such t than that the their "
    "theirs them themselves then there these they this those through to too under until up us ve "
    "very was we were what when where which while who whom why will with would you your yours "
    "yourself yourselves"
)
STOP_WORDS = frozenset(_ENGLISH.split())
GRAMMAR_CHARACTERS = frozenset(
    "的了是在和与也就都而及着或之于吗呢吧啊呀嘛么把被这那个我你他她它们有很还又再才给让对从到为以什怎哪"
)
_EMPTY = "一个 一下 可以 多少 如何 为何 是否 没有 是不 不是 哪里 哪儿"
_EMPTY_BIGRAMS = frozenset(_EMPTY.split())


class _Wide(NamedTuple):
    """The patterns for text beyond ASCII: large classes, compiled when first needed."""

    words: re.Pattern[str]
    parts: re.Pattern[str]
    unspaced_run: re.Pattern[str]
    han: re.Pattern[str]


@cache
def _wide() -> _Wide:
    return _Wide(
        words=re.compile(
            rf"{_LETTER}+(?:{_JOINS}{{1,3}}{_LETTER}+)*|[{_UNSPACED}]+"
            rf"|[\U0001f1e6-\U0001f1ff]{{2}}|[{_EMOJI}]"
        ),
        parts=re.compile(rf"{_LETTER}+"),
        unspaced_run=re.compile(rf"[{_UNSPACED}]+"),
        han=re.compile(rf"[{_HAN}]"),
    )


def without_surrogates(text: str) -> str:
    """Make a text that encodes: a surrogate pair becomes its character, a lone one U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def fold(text: str) -> str:
    """Fold a text for substring search: NFKC, case, and surrogates made harmless.

    Returns:
        Text that encodes as UTF-8. A pair of surrogates becomes its character, a lone one
        U+FFFD.
    """
    return text.lower() if text.isascii() else _normalise(text).casefold()


def terms(text: str) -> list[str]:
    """Cut a text into terms, in order and with repeats; punctuation gives none."""
    return list(chain.from_iterable(map(_word_terms, _words(text))))


def content_terms(text: str) -> list[str]:
    """Cut a text into the terms that say something: all but stop words, for the index."""
    # A word never holds white space, and pieces between it repeat: most are looked up whole.
    if text.isascii():
        pieces = text.split()
        if len(text) <= _SHORT or len(max(pieces, key=len, default="")) <= _CACHED_LENGTH:
            return list(chain.from_iterable(map(_content_of_piece, pieces)))
    return [term for term in terms(text) if not _says_nothing(term)]


def query_terms(text: str) -> list[str]:
    """Cut a query into terms: each once, in order, without stop words if others remain."""
    return list(dict.fromkeys(content_terms(text))) or list(dict.fromkeys(terms(text)))


def _words(text: str) -> list[str]:
    return _ASCII_WORDS.findall(text) if text.isascii() else _wide().words.findall(_normalise(text))


def _word_terms(word: str) -> Iterable[str]:
    if len(word) <= _CACHED_LENGTH:
        return _cached(word)
    return (term[:_LONGEST_TERM] for term in _cut(word))


@lru_cache(maxsize=1 << 16)
def _says_nothing(term: str) -> bool:
    if term.isascii():
        return term in STOP_WORDS
    if JOINER in term:
        return STOP_WORDS.issuperset(term.split(JOINER))
    return term in _EMPTY_BIGRAMS or GRAMMAR_CHARACTERS.issuperset(term)


def _cut(word: str) -> tuple[str, ...]:
    if not word.isascii() and _wide().unspaced_run.match(word):
        return tuple(_run_terms(word.casefold()))
    pattern = _ASCII_PARTS if word.isascii() else _wide().parts
    parts = pattern.findall(_POSSESSIVE.sub("", word))
    if not parts:
        return (word.casefold(),)
    found = [term for part in parts for term in _part_terms(part)]
    if len(parts) > 1 and len(word) <= _MOST_JOINED:
        found.append(JOINER.join(part.casefold() for part in parts))
    return tuple(found)


_cached = lru_cache(maxsize=1 << 16)(_cut)


@lru_cache(maxsize=1 << 16)
def _content_of_piece(piece: str) -> tuple[str, ...]:
    found = (term for word in _ASCII_WORDS.findall(piece) for term in _cached(word))
    return tuple(term for term in found if not _says_nothing(term))


def _part_terms(part: str) -> Iterable[str]:
    """Give a word's stem, and before it those of its humps where it is camelCase."""
    whole = _term(part.casefold())
    if part.islower() or part.isupper() or part.istitle() or not part.isascii():
        return (whole,)
    humps = _HUMPS.findall(part)
    return (whole,) if len(humps) < 2 else (*(_term(hump.lower()) for hump in humps), whole)


def _term(word: str) -> str:
    if word in STOP_WORDS or not (word.isascii() and word.isalpha()):
        return word
    return stem(word)


def _run_terms(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    found: list[str] = []
    for character, pair in zip(run, map(add, run, run[1:]), strict=False):
        if _stands_alone(character):
            found.append(character)
        found.append(pair)
    if _stands_alone(run[-1]):
        found.append(run[-1])
    return found


@lru_cache(maxsize=1 << 15)
def _stands_alone(character: str) -> bool:
    return character not in GRAMMAR_CHARACTERS and _wide().han.match(character) is not None


def _normalise(text: str) -> str:
    """Apply NFKC in slices: CPython sorts a run of combining marks in quadratic time."""
    text = without_surrogates(text)
    if len(text) <= _SLICE:
        return unicodedata.normalize("NFKC", text)
    slices, start = [], 0
    while start < len(text):
        end = _slice_end(text, start)
        slices.append(unicodedata.normalize("NFKC", text[start:end]))
        start = end
    return "".join(slices)


def _slice_end(text: str, start: int) -> int:
    """Find an end near `start + _SLICE` where the next character does not combine."""
    end = start + _SLICE
    while end < min(len(text), start + 2 * _SLICE) and _combines(text[end]):
        end += 1
    return end


def _combines(character: str) -> bool:
    if unicodedata.category(character) in ("Mn", "Mc"):
        return True
    return "\u1160" <= character <= "\u11ff" or character in "\uff9e\uff9f"
