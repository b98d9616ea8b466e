"""What an examination says: for each question what was looked at, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["good", "look", "bad"]
"""`look` asks for a person's judgement, `bad` is something to mend before a release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one question.

    Attributes:
        number: Of the question, 1 to 10.
        question: In words.
        verdict: How it stands.
        evidence: What was looked at and found: counts and names, never a body.
        mend: What to do, one line each; empty where it is good.
    """

    number: int
    question: str
    verdict: Verdict
    evidence: tuple[str, ...]
    mend: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All answers about one store."""

    answers: tuple[Answer, ...]

    @property
    def healthy(self) -> bool:
        """Tell whether nothing is bad."""
        return all(answer.verdict != "bad" for answer in self.answers)
