"""Which view of the memory a question goes to first, by its form."""

from __future__ import annotations

from typing import Literal, TypeAlias

from zero_mem.recall.profile import Question

Route: TypeAlias = Literal["relational", "local"]


def route(question: Question) -> Route:
    """Choose the graph first for questions about relations between names, else the hierarchy.

    A question about a time, or one that counts or lists what happened, is local: what answers
    it stands together. Source: arXiv:2607.29377 names the signs, not the rules.
    """
    if question.spans or question.aggregate or question.answer == "time":
        return "local"
    if question.relational and question.names:
        return "relational"
    return "local"
