"""Token counts, offline: exact for OpenAI's encodings, else an estimate on the safe side.

Exact counts come from `toktok-rs` (extra `cli`). Without it, and for models whose vocabulary
is not public, `exact` is False and the count is meant to lie above the true one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from types import ModuleType
from typing import Protocol

from zero_mem.text.segment import without_surrogates

_O200K = "o200k"
_CL100K = "cl100k"
_OTHER = "other"
# For vocabularies that nobody can run offline: this much above the exact o200k count, which
# is also where the estimate by character classes lies on average.
_ALLOWANCE = 1.3
_CACHED_TEXTS = 2048
_CACHED_LENGTH = 16_384
_SLICE = 65_536

_ENCODING_OF_MODEL = (
    (_O200K, re.compile(r"o200k|gpt-oss|(chat)?gpt-4o|gpt-4\.[1-9]|gpt-[5-9]|o[1-9](?![0-9a-z])")),
    (_CL100K, re.compile(r"cl100k|gpt-4(?![0-9a-z.])|gpt-3\.?5|text-embedding-(3|ada-002)")),
)
_PROVIDER = re.compile(r"^(?:.*/)?(?:ft:)?")


class Tokenizer(Protocol):
    """Counts tokens as one model would; bring your own where you have the vocabulary."""

    @property
    def name(self) -> str:
        """The encoding, for reports."""
        ...

    @property
    def exact(self) -> bool:
        """Whether counts are exact; an estimate never means to be too low."""
        ...

    def count(self, text: str) -> int:
        """Count the tokens of any text, lone surrogates included; 0 for ""."""
        ...


class _Counter:
    """A tokenizer over a counting function, with a small cache: prompts repeat."""

    __slots__ = ("_cached", "_count", "exact", "name")

    def __init__(self, name: str, exact: bool, count: Callable[[str], int]) -> None:
        self.name = name
        self.exact = exact
        self._count = count
        self._cached = lru_cache(maxsize=_CACHED_TEXTS)(count)

    def count(self, text: str) -> int:
        return self._cached(text) if len(text) <= _CACHED_LENGTH else self._count(text)


def tokenizer(model_or_encoding: str = _O200K) -> Tokenizer:
    """Give the tokenizer of a model or an encoding.

    Args:
        model_or_encoding: `o200k`, `cl100k`, or a model's name, with or without its
            provider (`openai/gpt-4o-mini`). Unknown names get an estimate.

    Returns:
        A shared tokenizer. It is exact for OpenAI's models where `toktok-rs` is installed.
    """
    return _tokenizer(_encoding(model_or_encoding))


def _encoding(name: str) -> str:
    bare = _PROVIDER.sub("", name.strip().lower())
    matches = (encoding for encoding, models in _ENCODING_OF_MODEL if models.match(bare))
    return next(matches, _OTHER)


@cache
def _tokenizer(encoding: str) -> Tokenizer:
    toktok = _toktok()
    if toktok is None:
        weights = _CL100K_WEIGHTS if encoding == _CL100K else _O200K_WEIGHTS
        return _Counter(f"{encoding} (estimate)", False, lambda text: _estimate(text, weights))
    if encoding == _OTHER:
        exact = _exact_count(toktok, _O200K)
        return _Counter("other (estimate)", False, lambda text: math.ceil(_ALLOWANCE * exact(text)))
    return _Counter(encoding, True, _exact_count(toktok, encoding))


def _toktok() -> ModuleType | None:
    try:
        import toktok
    except ImportError:
        return None
    module: ModuleType = toktok
    return module


def _exact_count(toktok: ModuleType, encoding: str) -> Callable[[str], int]:
    def count(text: str) -> int:
        # One thread: a synchronous call starts none.
        counts = toktok.batch_count([without_surrogates(text)], f"{encoding}_base", threads=1)
        return int(counts[0])

    return count


# The estimate: pieces much like those that OpenAI's encodings cut first, each class with a
# price by length. Prices were fitted on conversations, agent traces, code, JSON, identifiers
# and Chinese so that fewer than 5 texts in 1,000 come out below the exact count.
_PIECES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("word", re.compile(r"(?<![A-Za-z0-9])[a-z]+")),
    ("name", re.compile(r"(?<![A-Za-z0-9])[A-Z][a-z]+")),
    ("hump", re.compile(r"(?<=[A-Za-z0-9])[A-Z][a-z]+|(?<=[0-9])[a-z]+")),
    ("capitals", re.compile(r"[A-Z]+(?![a-z])")),
    ("digits", re.compile(r"[0-9]{1,3}")),
    ("marks", re.compile(r"(?:(?!'[a-z])[!-/:-@\[-`{-~])+")),
    ("space", re.compile(r" (?=[0-9])|\s\s+|[\n\t\r]")),
    ("control", re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")),
)
# Frequent characters, which mostly stand in words that are one token.
_COMMON_HAN = (
    "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家十用发天如然作方成者多日都三小"
    "军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从知使开动间意情全部问题关通工员本话高长第现实加量化相外已正想信务户请查询确认订单"
    "服客退款付支原因金额今明午早晚周月号联系电提供需处理完审核安排议机器市场习统数据司老师朋友建计划项目研究报告"
)
_WIDE_PIECES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("two_bytes", re.compile(r"[\x80-\u07ff]")),
    ("three_bytes", re.compile(r"[\u0800-\u33ff\ua000-\uffff]")),
    ("rare_han", re.compile(r"[\u3400-\u4dbf]")),
    ("common_han", re.compile(f"[{_COMMON_HAN}]")),
    ("han", re.compile(rf"(?![{_COMMON_HAN}])[\u4dc0-\u9fff]")),
    ("emoji", re.compile(r"[\U0001f300-\U0001f64f\U0001f680-\U0001f6ff]")),
    ("new_emoji", re.compile(r"[\U0001f000-\U0001f2ff\U0001f650-\U0001f67f\U0001f700-\U0001faff]")),
    ("four_bytes", re.compile(r"[\U00010000-\U0001efff\U0001fb00-\U0010ffff]")),
)


def _word(length: int) -> float:
    if length <= 3:
        return 1.04
    return 0.93 + 0.045 * length if length <= 12 else 0.44 * length - 3.8


def _name(length: int) -> float:
    return 0.8 + 0.177 * length if length <= 10 else 0.42 * length - 1.6


def _marks(length: int) -> float:
    if length <= 2:
        return 1.04
    return 0.5 * length if length < 24 else 11 + length / 16


_O200K_WEIGHTS: dict[str, Callable[[int], float]] = {
    "word": _word,
    "name": _name,
    "hump": lambda length: 1.55 if length <= 4 else 1.1 + 0.1 * length,
    "capitals": lambda length: 1.15 if length == 1 else 0.66 * length,
    "digits": lambda length: 1.04,
    "marks": _marks,
    "space": lambda length: 1.04 if length <= 2 else 1.9 + length / 80,
    "control": lambda length: 1.0,
    "two_bytes": lambda length: 1.25,
    "three_bytes": lambda length: 1.25,
    "rare_han": lambda length: 3.0,
    "common_han": lambda length: 0.86,
    "han": lambda length: 1.15,
    "emoji": lambda length: 1.9,
    "new_emoji": lambda length: 2.8,
    "four_bytes": lambda length: 4.0,
}
_CL100K_WEIGHTS: dict[str, Callable[[int], float]] = _O200K_WEIGHTS | {
    "hump": lambda length: 1.7 if length <= 4 else 1.3 + 0.1 * length,
    "name": lambda length: 1.06 * _name(length),
    "two_bytes": lambda length: 1.5,
    "three_bytes": lambda length: 2.0,
    "common_han": lambda length: 1.3,
    "han": lambda length: 1.75,
    "emoji": lambda length: 3.2,
}


def _estimate(text: str, weights: dict[str, Callable[[int], float]]) -> int:
    if not text:
        return 0
    return math.ceil(1 + sum(_price(part, weights) for part in _slices(text)))


def _slices(text: str) -> Iterator[str]:
    for start in range(0, len(text), _SLICE):
        yield text[start : start + _SLICE]


def _price(text: str, weights: dict[str, Callable[[int], float]]) -> float:
    total = 0.0
    for name, pattern in _PIECES if text.isascii() else _PIECES + _WIDE_PIECES:
        weight = weights[name]
        for length, times in Counter(map(len, pattern.findall(text))).items():
            total += weight(length) * times
    return total
