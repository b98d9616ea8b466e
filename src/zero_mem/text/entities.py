"""Names in a text by its own typography: capitals, quotation marks, ids, titles of address.

No dictionary and no model. What is only capitalised because a sentence begins with it is given
apart (`doubtful`): the texts beside it decide (`index.entities`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from zero_mem.text.segment import STOP_WORDS

LONGEST = 80
"""Characters of the longest name."""

_WORD = r"(?:(?:St|Dr|Mr|Mrs|Ms|Jr|Sr|Mt|[A-Z])\.|[A-ZÀ-ÖØ-Þ][\w’'&\-]*(?:\.\w+)*)"
_JOIN = r"(?:of|the|de|la|le|van|von|der|den|du|da|di|del|for|&)"
_CAPITALS = re.compile(
    rf"(?<![\w@#/.\-]){_WORD}(?:\s+(?:{_JOIN}\s+){{0,2}}(?:{_WORD}|\d[\w.\-]*))*"
)
_QUOTED = re.compile(
    r"《([^《》\n]{1,60})》|“([^“”\n]{2,60})”|「([^「」\n]{2,60})」|『([^『』\n]{2,60})』"
    r"|(?<!\w)\"([^\"\n]{2,60})\"(?!\w)|(?<!\w)'([A-Z][^'\n]{2,60})'(?!\w)"
)
_MARKED = re.compile(r"(?<![\w@])@[\w.\-]{2,40}|(?<!\w)#\w[\w\-]{2,40}")
_IDS = re.compile(
    r"(?<![\w.])(?=[\w\-]{0,40}\d)(?=[\w\-]{0,40}[A-Za-z_\-])[A-Za-z0-9][\w\-]{3,40}(?!\w)"
)
_NUMBERS = re.compile(r"(?<![\w.,])\d{4,15}(?![\w]|[.,]\d)")
_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈"
    "姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
_ADDRESS = (
    "先生|女士|小姐|老师|医生|大夫|教授|经理|总监|主任|律师|师傅|同学|阿姨|叔叔|教练|护士|院长|校长"
    "|局长|警官|工程师|总"
)
_ADDRESSED = re.compile(rf"([{_SURNAMES}][\u4e00-\u9fff]{{0,2}}?)(?:{_ADDRESS})")
_SENTENCE_ENDS = frozenset(".!?:;\n\"“”'‘(–—•*-")
_ELIDED = re.compile(r"['’]s$|['’]$|[.\-]+$")


class Entity(NamedTuple):
    """A name, folded, and whether only the place in its sentence may have capitalised it."""

    name: str
    doubtful: bool = False


class EntityExtractor(Protocol):
    """Finds the names of a text; an optional package may do it better than rules."""

    def entities(self, text: str) -> Iterator[Entity]:
        """Give the names in order of appearance, with repeats."""


class RuleEntities:
    """The extractor of the core."""

    def entities(self, text: str) -> Iterator[Entity]:
        """See `EntityExtractor`."""
        return entities(text)


def entities(text: str) -> Iterator[Entity]:
    """Find the names of a text by rules.

    Returns:
        Names folded to lower case: capitalised words, quoted titles, mentions, ids, numbers of
        four digits or more, and Chinese names before a title of address.
    """
    for match in _CAPITALS.finditer(text):
        yield from _capitalised(text, match)
    for match in _QUOTED.finditer(text):
        quoted = next(group for group in match.groups() if group)
        yield Entity(_folded(quoted))
    for pattern in (_MARKED, _IDS, _NUMBERS):
        for match in pattern.finditer(text):
            yield Entity(match.group().lower())
    for match in _ADDRESSED.finditer(text):
        yield Entity(match[0])


def _folded(name: str) -> str:
    return " ".join(name.split()).lower()[:LONGEST]


def _capitalised(text: str, match: re.Match[str]) -> Iterator[Entity]:
    words = match.group().split()
    begins = _begins_sentence(text, match.start())
    while words and words[0].lower().rstrip(".,'’") in _OPENERS:
        words, begins = words[1:], False
        while words and not words[0][0].isupper():
            words = words[1:]
    name = _ELIDED.sub("", _folded(" ".join(words)))
    if len(name) > 1:
        yield Entity(name, doubtful=begins and len(words) == 1)


def _begins_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 3) : start].rstrip(" ")
    return not before or before[-1] in _SENTENCE_ENDS


_GREETINGS = (
    "i'm i've i'd i'll it's that's what's who's let's hey hi hello wow oh yeah yes ok okay thanks "
    "thank also since although though however"
)
_OPENERS = STOP_WORDS.union(_GREETINGS.split())
