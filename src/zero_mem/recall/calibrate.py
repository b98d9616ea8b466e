"""Calibration, the last step: evidence that fits goes first, and an answer is only tidied.

Deterministic and conservative: an answer that the evidence holds is kept as it is, and what is
returned instead of one was in the answer or in the evidence, word for word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from zero_mem.recall.profile import Answer, answer_type
from zero_mem.text.segment import fold

Action: TypeAlias = Literal["kept", "normalised", "shortened", "pruned", "replaced"]

LONGEST = 60
"""Characters of an answer that is as short as the evidence's own words."""

_OPENING = re.compile(
    r"^\s*(?:(?:final )?answer(?: is)?\s*[:：]|the answer is"
    r"|(?:最终)?答案(?:是|为)?\s*[:：]?|答\s*[:：])\s*",
    re.I,
)
_WRAPPING = "\"'“”‘’`*「」《》"
_ENDING = re.compile(r"[\s.。!！,，;；]+$")
_CLAUSES = re.compile(
    r"[.。!！?？;；\n]+|,\s+(?=which|because|since|as|so|but|and)|，(?=因为|所以|但|而)"
)
_ITEMS = re.compile(r"\s*(?:,|，|、|;|；|\n|\band\b|以及|和)\s*")
_SPACES = re.compile(r"\s+")

_VALUES: Mapping[Answer, re.Pattern[str]] = {
    "time": re.compile(
        r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}(?:st|nd|rd|th)? (?:of )?[A-Z][a-z]{2,8},? \d{4}\b"
        r"|\b[A-Z][a-z]{2,8} \d{1,2}(?:st|nd|rd|th)?,? \d{4}\b|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]"
        r"|\b(?:19|20)\d\d\b"
    ),
    "number": re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?![\w.]*\d)"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """An answer after calibration: what was done, and whether the evidence holds it."""

    text: str
    action: Action
    supported: bool


def calibrate(answer: str, evidence: Sequence[str], *, question: str = "") -> Calibrated:
    """Tidy a reader's answer by the evidence it was given.

    In this order: keep it if it is short and the evidence holds it; else take its wrapping off
    ("The answer is …"); else shorten it to the one clause that is supported; else drop the
    items of a list that are not; else, where it is one date or number that the evidence does
    not have, replace it by the evidence's only one; else keep it.

    Args:
        answer: What the reader said.
        evidence: The texts it had read.
        question: What was asked; it decides whether a date or a number is wanted.

    Source:
        arXiv:2607.29377, answer calibration.
    """
    held = _Evidence(evidence)
    if held.supports(answer) and len(answer) <= LONGEST:
        return Calibrated(text=answer, action="kept", supported=True)
    bare = normalised(answer)
    if bare != answer and held.supports(bare):
        return Calibrated(text=bare, action="normalised", supported=True)
    for action, found in _attempts(bare, held, question):
        if found:
            return Calibrated(text=found, action=action, supported=True)
    supported = held.supports(answer)
    return Calibrated(text=answer, action="kept", supported=supported)


def normalised(answer: str) -> str:
    """Take the wrapping of an answer off: an opening phrase, quotation marks, a full stop."""
    text = _ENDING.sub("", _OPENING.sub("", answer).strip()).strip(_WRAPPING)
    return _SPACES.sub(" ", text)


class _Evidence:
    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._folded = [_SPACES.sub(" ", fold(text)) for text in texts]

    def supports(self, text: str) -> bool:
        """Tell whether a text stands in the evidence as it is, bounded by no letter or digit."""
        wanted = _SPACES.sub(" ", fold(text)).strip()
        if not wanted:
            return False
        before = r"(?<!\w)" if wanted[0].isascii() and wanted[0].isalnum() else ""
        after = r"(?!\w)" if wanted[-1].isascii() and wanted[-1].isalnum() else ""
        pattern = re.compile(before + re.escape(wanted) + after)
        return any(pattern.search(text) for text in self._folded)


def _attempts(answer: str, held: _Evidence, question: str) -> Iterator[tuple[Action, str]]:
    yield "shortened", _shortened(answer, held)
    yield "pruned", _pruned(answer, held)
    yield "replaced", _replaced(answer, held, question)


def _shortened(answer: str, held: _Evidence) -> str:
    """Give the only clause that the evidence holds, where there are several clauses."""
    clauses = [clause.strip() for clause in _CLAUSES.split(answer) if clause.strip()]
    found = [clause for clause in clauses if held.supports(clause)]
    return found[0] if len(clauses) > 1 and len(found) == 1 else ""


def _pruned(answer: str, held: _Evidence) -> str:
    """Drop the items of a list that the evidence does not hold, where it holds others."""
    items = [item for item in _ITEMS.split(answer) if item]
    found = [item for item in items if held.supports(item)]
    if len(items) < 2 or not 0 < len(found) < len(items) or max(map(len, items)) > LONGEST:
        return ""
    return ("、" if "、" in answer else ", ").join(found)


def _replaced(answer: str, held: _Evidence, question: str) -> str:
    """Give the evidence's only value of the wanted kind, for an answer that is one such value."""
    pattern = _VALUES.get(answer_type(question))
    if pattern is None or pattern.fullmatch(answer) is None:
        return ""
    values = {match.group() for text in held.texts for match in pattern.finditer(text)}
    return values.pop() if len(values) == 1 else ""


_FITTING: Mapping[Answer, re.Pattern[str]] = {
    **_VALUES,
    "person": re.compile(r"\b[A-Z][a-z]+|[\u4e00-\u9fff]{2,3}(?:先生|女士|老师|医生)"),
    "place": re.compile(r"\b(?:in|at|from|to) [A-Z]|[市省区县路街店馆]"),
}


def fits(answer: Answer, text: str) -> bool:
    """Tell whether a text holds a value of the kind that a question wants."""
    pattern = _FITTING.get(answer)
    return pattern is None or pattern.search(text) is not None
