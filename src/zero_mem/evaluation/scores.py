"""How near a reader's answer is to the right one: F1 and BLEU-1 over words, in Chinese characters.

Both texts are normalised as SQuAD does it: lower case, no punctuation, no English articles. Words
are what stands between spaces; each Chinese, Japanese or Korean character is a word of its own,
since words of those languages have no spaces and a segmenter would decide the score. Numbers and
Latin words inside such text stay whole. There is no stemming.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORDS = re.compile(rf"[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]+")


def words(text: str) -> list[str]:
    """Give the words of a text as they are compared.

    Source:
        Rajpurkar et al. (2016), the normalisation of the SQuAD evaluation.
    """
    folded = unicodedata.normalize("NFKC", text).lower()
    bare = "".join(sign for sign in folded if not unicodedata.category(sign).startswith("P"))
    return _WORDS.findall(_ARTICLES.sub(" ", bare))


def f1(answer: str, right: str) -> float:
    """Give the harmonic mean of precision and recall over words, 0 to 1.

    Two empty texts are equal. Source: Rajpurkar et al. (2016).
    """
    given, wanted = words(answer), words(right)
    if not given or not wanted:
        return float(given == wanted)
    common = (Counter(given) & Counter(wanted)).total()
    return 2 * common / (len(given) + len(wanted))


def bleu1(answer: str, right: str) -> float:
    """Give BLEU with single words: clipped precision times the brevity penalty, 0 to 1.

    The penalty is exp(1 - r / c) where the answer (c words) is shorter than the right one (r),
    else 1. Without smoothing. Source: Papineni et al. (2002), with N = 1.
    """
    given, wanted = words(answer), words(right)
    if not given or not wanted:
        return float(given == wanted)
    precision = (Counter(given) & Counter(wanted)).total() / len(given)
    return precision * min(1.0, math.exp(1 - len(wanted) / len(given)))


def best(score: Callable[[str, str], float], answer: str, rights: Sequence[str]) -> float:
    """Give the score against the right answer that is nearest."""
    return max(score(answer, right) for right in rights)
