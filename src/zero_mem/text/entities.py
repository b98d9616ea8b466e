"""Names in a text by its own typography: capitals, quotation marks, ids, titles of address.

No dictionary and no model. What is only capitalised because a sentence begins with it is given
apart (`doubtful`): the texts beside it decide (`index.entities`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
_GIVEN = r"(?:(?![和与跟及同或在是的了])[\u4e00-\u9fff])"
_ADDRESSED = re.compile(rf"([{_SURNAMES}]{_GIVEN}{{0,2}}?)(?:{_ADDRESS})")
_TITLED = re.compile(
    rf"(?:{_ADDRESS}|同事|朋友|客户|邻居|室友|表[哥姐弟妹]|导师)([{_SURNAMES}]{_GIVEN}{{1,2}}?)"
    r"(?=[，。、！？：；,.!?:;\s（(]|[和与跟在是说的来去把给叫为]|$)"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DATES = re.compile(
    r"(?<![\w.-])(?P<y1>(?:19|20)\d\d)-(?P<m1>1[0-2]|0\d)-(?P<d1>3[01]|[0-2]\d)(?![\w-])"
    rf"|(?<!\w)(?P<d2>3[01]|[12]?\d)(?:st|nd|rd|th)? (?P<m2>{_MONTH})\.?,? (?P<y2>(?:19|20)\d\d)"
    rf"|(?<!\w)(?P<m3>{_MONTH})\.? (?P<d3>3[01]|[12]?\d)(?:st|nd|rd|th)?,? (?P<y3>(?:19|20)\d\d)"
    r"|(?P<y4>(?:19|20)\d\d)年(?P<m4>1[0-2]|0?[1-9])月(?P<d4>3[01]|[12]\d|0?[1-9])[日号]"
)
# What each of the above can't do without is looked for first: most texts lack most of it.
_CAPITAL = re.compile("[A-ZÀ-ÖØ-Þ]")
_QUOTE = re.compile("[《“「『\"']")
_MARK = re.compile("[@#]")
_DIGIT = re.compile(r"\d")
_WIDE = re.compile(r"[^\x00-\x7f]")
_SENTENCE_ENDS = frozenset(".!?:;\n\"“”'‘(–—•*-")
_ELIDED = re.compile(r"['’]s$|['’]$|[.\-]+$")


class Entity(NamedTuple):
    """A name, folded, and whether only the place in its sentence may have capitalised it.

    `kind` is what it is the name of as far as its form tells: name, title, person, place,
    group, mention, id, number or date.
    """

    name: str
    doubtful: bool = False
    kind: str = "name"


class EntityExtractor(Protocol):
    """Finds the names of a text, as an optional package may do better than rules.

    The same extractor reads records and questions. It takes no clock and no state: the same
    text always gives the same names.
    """

    name: str

    def entities(self, text: str) -> Iterator[Entity]:
        """Give the names in order of appearance, folded to lower case, with repeats."""


class RuleEntities:
    """The extractor of the core.

    Args:
        more: Finds further names, which follow those of the rules.
    """

    def __init__(self, more: EntityExtractor | None = None) -> None:
        self._more = more
        self.name = "rules" if more is None else f"rules+{more.name}"

    def entities(self, text: str) -> Iterator[Entity]:
        """See `EntityExtractor`."""
        yield from entities(text)
        if self._more is not None:
            yield from self._more.entities(text)


RULES = RuleEntities()


def entities(text: str) -> Iterator[Entity]:
    """Find the names of a text by rules.

    Returns:
        Names folded to lower case: capitalised words, quoted titles, mentions, ids, numbers of
        four digits or more, full dates (as `2024-05-07`), and Chinese names beside a title of
        address.
    """
    for needed, found in FINDERS:
        if needed.search(text):
            yield from found(text)


def _names(text: str) -> Iterator[Entity]:
    for match in _CAPITALS.finditer(text):
        yield from _capitalised(text, match)


def _titles(text: str) -> Iterator[Entity]:
    for match in _QUOTED.finditer(text):
        quoted = next(group for group in match.groups() if group)
        yield Entity(_folded(quoted), kind="title")


def _marked(text: str) -> Iterator[Entity]:
    for match in _MARKED.finditer(text):
        yield Entity(match.group().lower(), kind="mention")


def _numbered(text: str) -> Iterator[Entity]:
    for kind, pattern in (("id", _IDS), ("number", _NUMBERS)):
        for match in pattern.finditer(text):
            if not _DATES.fullmatch(match.group()):
                yield Entity(match.group().lower(), kind=kind)
    for match in _DATES.finditer(text):
        yield Entity(_date(match), kind="date")


def _chinese_people(text: str) -> Iterator[Entity]:
    for match in _ADDRESSED.finditer(text):
        yield Entity(match[0], kind="person")
        if len(match[1]) > 1:
            yield Entity(match[1], kind="person")
    for match in _TITLED.finditer(text):
        yield Entity(match[1], kind="person")


FINDERS: tuple[tuple[re.Pattern[str], Callable[[str], Iterator[Entity]]], ...] = (
    (_CAPITAL, _names),
    (_QUOTE, _titles),
    (_MARK, _marked),
    (_DIGIT, _numbered),
    (_WIDE, _chinese_people),
)
"""What finds names, each after what no name of its kind can do without."""


def _date(match: re.Match[str]) -> str:
    """Write a date in one form, whatever its language."""
    parts = {name.rstrip("1234"): value for name, value in match.groupdict().items() if value}
    month = parts["m"]
    number = int(month) if month.isdecimal() else _MONTHS.index(month[:3].lower()) + 1
    return f"{parts['y']}-{number:02}-{int(parts['d']):02}"


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
