"""Putting every question of a set to every row."""

from __future__ import annotations

import time
from collections.abc import Sequence

from zero_mem.evaluation.figures import Figures, outcome
from zero_mem.evaluation.prompt import Prompt
from zero_mem.evaluation.rows import Row
from zero_mem.evaluation.sets import EvidenceSet
from zero_mem.evaluation.vectors import Progress, Vectors
from zero_mem.text.tokens import Tokenizer


def measure(
    found: EvidenceSet,
    rows: Sequence[Row],
    *,
    tokenizer: Tokenizer,
    progress: Progress,
    vectors: Vectors | None = None,
) -> list[Figures]:
    """Measure a set.

    Args:
        found: The set.
        rows: What ranks it.
        tokenizer: Counts the tokens of prompts.
        progress: Shows how many rankings are done.
        vectors: Of the rows that need them; made before a ranking is timed.

    Raises:
        EmbedderUnavailable: There are no vectors.
    """
    figures = [Figures(set=found.name, row=row.name) for row in rows]
    if vectors is not None and any(row.dense for row in rows):
        for question in found.questions:
            vectors.scores(question)
    with progress(f"measuring {found.name}", len(found.questions)) as step:
        for number, question in enumerate(found.questions, start=1):
            prompt = Prompt(question=question, tokenizer=tokenizer)
            for row, one in zip(rows, figures, strict=True):
                begun = time.thread_time()
                order = row.ranker(question)
                seconds = time.thread_time() - begun
                one.outcomes.append(outcome(question, prompt, order, seconds))
            step(number)
    return figures
