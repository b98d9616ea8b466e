"""Token counts, offline: exact for OpenAI's encodings, else an estimate on the safe side.

Exact counts come from `toktok-rs` (extra `cli`). Without it, and for models whose vocabulary
is not public, `exact` is False and the count is meant to lie above the true one.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
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
        # Its many patterns are only compiled where they are needed.
        from zero_mem.text.estimate import CL100K_WEIGHTS, O200K_WEIGHTS, estimate

        weights = CL100K_WEIGHTS if encoding == _CL100K else O200K_WEIGHTS
        return _Counter(f"{encoding} (estimate)", False, lambda text: estimate(text, weights))
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
    name = f"{encoding}_base"

    def count(text: str) -> int:
        # `batch_count` starts a thread for each call, which costs more than the counting.
        _, tokens = toktok.truncate(without_surrogates(text), sys.maxsize, name)
        return int(tokens)

    return count
