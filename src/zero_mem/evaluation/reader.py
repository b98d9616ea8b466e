"""A reader answers each question from what was recalled, and its answers are scored.

The reader is a model behind an OpenAI-compatible endpoint that a person names; nothing else here
calls one. Its answers are scored as they are and after `calibrate`.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from zero_mem.errors import EndpointUnavailable
from zero_mem.evaluation.figures import Figures, Outcome
from zero_mem.evaluation.prompt import Prompt, PromptLine
from zero_mem.evaluation.rows import Row
from zero_mem.evaluation.scores import best, bleu1, f1
from zero_mem.evaluation.sets import Asked, EvidenceSet
from zero_mem.evaluation.vectors import Progress
from zero_mem.models.endpoint import Endpoint
from zero_mem.recall.calibrate import calibrate
from zero_mem.text.fence import fence
from zero_mem.text.tokens import Tokenizer

KEY_VARIABLES: Final = ("ZERO_MEM_READER_KEY", "OPENAI_API_KEY")
"""The environment variables that may hold the key, where none is named."""

INSTRUCTION: Final = (
    "Answer the question from the stored memories below. Give the answer alone, as briefly as "
    "you can, with the words of the memories and in the language of the question. Where they do "
    "not say it outright, give what follows from them most likely."
)

GIVE_UP: Final = 5
"""After so many answers in a row that did not come, a run ends."""

_MISUSED: Final = frozenset({400, 401, 403, 404, 405, 410, 422})
"""Statuses that every further request would get too: the address, the key, the model's name."""

_THOUGHT: Final = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How questions are put to a model.

    Attributes:
        endpoint: Where it is.
        model: Its name there.
        budget: Most tokens of the recalled lines.
        concurrency: How many questions are out at a time.
        extra: More fields of each request, such as {"max_tokens": 64}; null leaves one out.
    """

    endpoint: Endpoint
    model: str
    budget: int = 1000
    concurrency: int = 4
    extra: Mapping[str, Any] = field(default_factory=dict)

    def request(self, question: Asked, lines: Sequence[PromptLine]) -> dict[str, Any]:
        """Make the request for one question."""
        asked = f"Asked on {question.moment:%Y-%m-%d}. " if question.moment else ""
        memories = fence(line.text for line in lines)
        content = f"{memories}\n\n{asked}Question: {question.text}"
        fields = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": INSTRUCTION},
                {"role": "user", "content": content},
            ],
            "temperature": 0,
            **self.extra,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def answer(self, question: Asked, lines: Sequence[PromptLine]) -> Answer:
        """Ask the model.

        Raises:
            EndpointUnavailable: It gave no answer.
        """
        found = self.endpoint.post("chat/completions", self.request(question, lines))
        try:
            text = found["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError) as error:
            raise _broken(self.endpoint) from error
        if not isinstance(text, str):
            raise _broken(self.endpoint)
        return Answer(text=_THOUGHT.sub("", text).strip(), usage=_usage(found.get("usage")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model said, and the tokens that the server counted."""

    text: str
    usage: Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class Reading:
    """What a reader reached with one row on one set.

    Attributes:
        figures: `f1` and `bleu1`, and both after calibration (`f1_calibrated`, …).
        failed: Questions without an answer; they are in no mean.
        first_failure: Why the first of them had none.
        actions: How often calibration did what.
        memory_tokens: Tokens of the recalled lines, by our tokenizer.
        usage: Tokens as the server counted them.
    """

    figures: Figures
    failed: int = 0
    first_failure: str = ""
    actions: Counter[str] = field(default_factory=Counter)
    memory_tokens: int = 0
    usage: Counter[str] = field(default_factory=Counter)


def read(
    found: EvidenceSet, row: Row, reader: Reader, *, tokenizer: Tokenizer, progress: Progress
) -> Reading:
    """Let a reader answer the questions of a set that have a right answer.

    Raises:
        EndpointUnavailable: The server refuses every request, or has gone.
    """
    reading = Reading(figures=Figures(set=found.name, row=row.name))
    asked = [question for question in found.questions if question.answers]
    failing = 0
    with progress(f"reading {found.name}, {row.name}", len(asked)) as step:
        for number, (question, lines, answer) in enumerate(
            _answers(asked, row, reader, tokenizer), start=1
        ):
            if isinstance(answer, EndpointUnavailable):
                failing += 1
                _fail(reading, answer, failing)
            else:
                failing = 0
                _score(reading, question, lines, answer)
            step(number)
    return reading


def _answers(
    asked: Sequence[Asked], row: Row, reader: Reader, tokenizer: Tokenizer
) -> Iterator[tuple[Asked, list[PromptLine], Answer | EndpointUnavailable]]:
    """Ask in order, a few at a time; the next question goes out when an answer was taken."""
    remaining = iter(asked)
    waiting: deque[tuple[Asked, list[PromptLine], Future[Answer | EndpointUnavailable]]] = deque()
    with ThreadPoolExecutor(reader.concurrency, thread_name_prefix="zero-mem-reader") as pool:
        while True:
            # Ranking stays on this thread: a corpus is used by one at a time.
            for question in islice(remaining, reader.concurrency - len(waiting)):
                lines = lines_of(question, row, reader.budget, tokenizer)
                waiting.append((question, lines, pool.submit(_asked, reader, question, lines)))
            if not waiting:
                return
            question, lines, future = waiting.popleft()
            yield question, lines, future.result()


def _asked(
    reader: Reader, question: Asked, lines: Sequence[PromptLine]
) -> Answer | EndpointUnavailable:
    try:
        return reader.answer(question, lines)
    except EndpointUnavailable as error:
        return error


def lines_of(question: Asked, row: Row, budget: int, tokenizer: Tokenizer) -> list[PromptLine]:
    """Give the lines that a reader gets: who said each and when, and whole bodies."""
    prompt = Prompt(question=question, tokenizer=tokenizer, dated=True)
    order = row.ranker(question)
    return list(prompt.filled(order, budget, threshold=budget * 8, limit=row.items))


def _fail(reading: Reading, error: EndpointUnavailable, failing: int) -> None:
    if error.status in _MISUSED or failing == GIVE_UP:
        raise error
    reading.failed += 1
    reading.first_failure = reading.first_failure or str(error)


def _score(reading: Reading, question: Asked, lines: Sequence[PromptLine], answer: Answer) -> None:
    calibrated = calibrate(answer.text, [line.shown for line in lines], question=question.text)
    values = {
        f"{name}{suffix}": best(score, text, question.answers)
        for suffix, text in (("", answer.text), ("_calibrated", calibrated.text))
        for name, score in (("f1", f1), ("bleu1", bleu1))
    }
    reading.figures.outcomes.append(
        Outcome(category=question.category, half=question.half, values=values, seconds=0.0)
    )
    reading.actions[calibrated.action] += 1
    reading.memory_tokens += sum(line.tokens for line in lines)
    reading.usage.update(answer.usage)


def _usage(found: object) -> dict[str, int]:
    if not isinstance(found, dict):
        return {}
    names = ("prompt_tokens", "completion_tokens")
    return {name: found[name] for name in names if isinstance(found.get(name), int)}


def _broken(endpoint: Endpoint) -> EndpointUnavailable:
    return EndpointUnavailable(
        f"{endpoint.name}: the answer is no chat completion as OpenAI's API gives it", status=200
    )
