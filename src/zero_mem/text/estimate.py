"""The token estimate for installs without a tokenizer: on the safe side, by character classes.

Pieces are cut much like OpenAI's encodings cut first, each class with a price by length. The
prices were fitted on conversations, agent traces, code, JSON, identifiers and Chinese so that
fewer than 5 texts in 1,000 come out below the exact count.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

Weights: TypeAlias = Mapping[str, Callable[[int], float]]

_SLICE = 65_536

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


O200K_WEIGHTS: dict[str, Callable[[int], float]] = {
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
CL100K_WEIGHTS: Weights = O200K_WEIGHTS | {
    "hump": lambda length: 1.7 if length <= 4 else 1.3 + 0.1 * length,
    "name": lambda length: 1.06 * _name(length),
    "two_bytes": lambda length: 1.5,
    "three_bytes": lambda length: 2.0,
    "common_han": lambda length: 1.3,
    "han": lambda length: 1.75,
    "emoji": lambda length: 3.2,
}


def estimate(text: str, weights: Weights) -> int:
    """Estimate the tokens of a text, in time linear in its length; 0 for ""."""
    if not text:
        return 0
    return math.ceil(1 + sum(_price(part, weights) for part in _slices(text)))


def _slices(text: str) -> Iterator[str]:
    for start in range(0, len(text), _SLICE):
        yield text[start : start + _SLICE]


def _price(text: str, weights: Weights) -> float:
    total = 0.0
    for name, pattern in _PIECES if text.isascii() else _PIECES + _WIDE_PIECES:
        weight = weights[name]
        for length, times in Counter(map(len, pattern.findall(text))).items():
            total += weight(length) * times
    return total
