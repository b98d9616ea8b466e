"""How long one question takes, encoders apart: Zero-Mem beside txtai's hybrid search, in one run.

    python bench/query_time.py [--size 6000] [--questions 200] [--set FOLDER]
                               [--json out.json] [--markdown out.md]

Both have the same records and the same vectors, drawn around centres as those of texts lie; the
questions' vectors are made beforehand. Texts are chats of invented words, or with `--set` the
records and questions of a set as in docs/bench.md. Systems take turns question by question, on one
thread; times are medians, and ratios of processor time are those to trust on a shared machine.
txtai is measured where it is installed (`pip install txtai`), by its own defaults: `hybrid=True`,
that is BM25 and faiss, half and half, with texts kept in its database as ours are.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
from _report import command, options, report, table
from dense import DIMENSION, as_rows, random_rows

from zero_mem import Memory
from zero_mem.evaluation import sets
from zero_mem.models.embedder import Rows
from zero_mem.recall.configuration import DEFAULT, PLAIN, Configuration
from zero_mem.space import Namespace

BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
LIMIT = 10
WARM_UP = 20
THEIRS = "txtai, hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record; all but the text is what Zero-Mem makes use of, and txtai does not ask for."""

    text: str
    session: str
    speaker: str
    at: datetime | None

    def saved(self) -> dict[str, Any]:
        """Give it as `save_many` takes it."""
        known = {"session": self.session, "speaker": self.speaker, "created_at": self.at}
        return {"content": self.text, **{name: value for name, value in known.items() if value}}


@dataclass(slots=True, kw_only=True)
class Timed:
    """One system, and what its questions took in seconds."""

    name: str
    ask: Callable[[str], object]
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def time(self, question: str) -> None:
        """Put one question."""
        wall, processor = time.perf_counter(), time.process_time()
        self.ask(question)
        self.processor.append(time.process_time() - processor)
        self.wall.append(time.perf_counter() - wall)


class Known:
    """An embedder that costs nothing: it knows the vector of every text beforehand."""

    name = "known"
    dimension = DIMENSION

    def __init__(self, texts: Sequence[str], questions: Sequence[str]) -> None:
        self._texts = dict(zip(texts, random_rows(len(texts)), strict=True))
        self._questions = dict(zip(questions, random_rows(len(questions), seed=1), strict=True))

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        """Give the rows; a text with the turn before it has the vector of its last line."""
        known = self._questions if query else self._texts
        return as_rows(np.stack([known[self._own(text, known)] for text in texts]))

    @staticmethod
    def _own(text: str, known: dict[str, Any]) -> str:
        bare = text.rsplit("\n", 1)[-1]
        return next(
            each for each in (text, bare, bare.partition(": ")[2], text.partition(": ")[2])
            if each in known
        )  # fmt: skip

    def transform(self, texts: Sequence[str]) -> Any:
        """Give the same rows to txtai, which asks for texts and questions alike."""
        return np.stack([self._either(text) for text in texts])

    def _either(self, text: str) -> Any:
        return self._texts[text] if text in self._texts else self._questions[text]


def chats(size: int, questions: int) -> tuple[list[Record], list[str]]:
    """Invent chats of two speakers with words as frequent as in a language, and questions."""
    chance = random.Random(7)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er")]
    vocabulary = ["".join(chance.sample(syllables, chance.choice((1, 2, 3)))) for _ in range(9000)]
    weights = [1 / (place + 3) for place in range(len(vocabulary))]
    records: list[Record] = []
    while len(records) < size:
        session, topic = f"session {len(records)}", chance.sample(vocabulary, 12)
        for turn in range(20):
            said = chance.choices(vocabulary, weights, k=chance.randint(6, 24))
            said += chance.sample(topic, 2)
            text = f"{' '.join(said).capitalize()} {len(records)}."
            at = BEGIN + timedelta(hours=9 * len(records) // 20, minutes=turn)
            speaker = ("Ann", "Bo")[turn % 2]
            records.append(Record(text=text, session=session, speaker=speaker, at=at))
    asked = [
        f"What did {one.speaker} say about {' '.join(chance.sample(one.text.lower().split(), 4))}?"
        for one in chance.sample(records[:size], questions)
    ]
    return records[:size], asked


def of_set(folder: Path, size: int, questions: int) -> tuple[list[Record], list[str]]:
    """Take the records and questions of a set, from its first spaces."""
    found = sets.read(folder.name, folder)
    records = {
        text: Record(text=text, session=unit.session, speaker=unit.speaker, at=unit.stamp)
        for space in found.spaces
        for text, unit in zip(space.texts, space.corpus.units, strict=True)
        if "\n" not in text and text.strip()
    }
    asked = list(dict.fromkeys(question.text for question in found.questions))
    return list(islice(records.values(), size)), list(islice(cycle(asked), questions))


def ours(records: Sequence[Record], known: Known) -> list[Timed]:
    """Save the records, and give the ways to ask Zero-Mem."""
    memory = Memory.open("memory://", embedder=known, patience=60)
    space = memory.namespace("bench")
    space.save_many(one.saved() for one in records)
    memory.reindex()
    core = Memory.open("memory://").namespace("bench")
    core.save_many(one.saved() for one in records)
    return [
        Timed(name="Zero-Mem, dense", ask=_recall(space, DEFAULT)),
        Timed(name="Zero-Mem, core", ask=_recall(core, DEFAULT)),
        Timed(name="Zero-Mem, BM25 alone", ask=_recall(core, PLAIN)),
    ]


def _recall(space: Namespace, config: Configuration) -> Callable[[str], object]:
    return lambda question: space.recall(question, limit=LIMIT, profile=config)


def theirs(records: Sequence[Record], known: Known) -> list[Timed]:
    """Index the records with txtai, where it is installed."""
    if find_spec("txtai") is None:
        return []
    from txtai import Embeddings

    def transform(texts: Sequence[str]) -> Any:  # txtai takes plain functions only
        return known.transform(texts)

    index = Embeddings(hybrid=True, method="external", transform=transform, content=True, gpu=False)
    index.index([(place, one.text, None) for place, one in enumerate(records)])
    return [Timed(name=THEIRS, ask=lambda question: index.search(question, LIMIT))]


def measure(systems: Sequence[Timed], questions: Sequence[str]) -> None:
    """Put every question to every system in turn."""
    for question in questions[:WARM_UP]:
        for system in systems:
            system.ask(question)
    for question in questions:
        for system in systems:
            system.time(question)


def lines(systems: Sequence[Timed]) -> list[dict[str, Any]]:
    """Give the medians in milliseconds and, where txtai is there, the ratios to it."""
    base = next((system for system in systems if system.name == THEIRS), None)
    found = []
    for system in systems:
        line: dict[str, Any] = {
            "system": system.name,
            "wall_ms": 1000 * statistics.median(system.wall),
            "cpu_ms": 1000 * statistics.median(system.processor),
        }
        if base is not None:
            line["wall_ratio"] = statistics.median(system.wall) / statistics.median(base.wall)
            line["cpu_ratio"] = statistics.median(system.processor) / statistics.median(
                base.processor
            )
        found.append(line)
    return found


def shown(found: Sequence[dict[str, Any]], size: int, questions: int) -> str:
    """Write the figures with what is needed to repeat them."""
    there = any(line["system"] == THEIRS for line in found)
    peer = f"txtai {version('txtai')}" if there else "txtai is not installed: not compared"
    rows = (
        [
            line["system"],
            f"{line['wall_ms']:.2f}",
            f"{line['cpu_ms']:.2f}",
            *(f"{line[name]:.2f}" if name in line else "–" for name in ("wall_ratio", "cpu_ratio")),
        ]
        for line in found
    )
    parts = [
        command(f"numpy {np.__version__}", peer),
        f"{size:,} records, {questions} questions, ten results; medians, encoders apart.",
        table(["system", "ms", "CPU ms", "÷ txtai", "CPU ÷ txtai"], rows),
    ]
    return "\n\n".join(parts)


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--size", type=int, default=6000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--set", type=Path, help="the folder of a set")
    given = parser.parse_args()
    records, questions = (
        of_set(given.set, given.size, given.questions)
        if given.set
        else chats(given.size, given.questions)
    )
    known = Known([one.text for one in records], questions)
    systems = [*ours(records, known), *theirs(records, known)]
    measure(systems, questions)
    found = lines(systems)
    report(given, shown(found, len(records), len(questions)), found)
    return 0


if __name__ == "__main__":
    if os.environ.get("OMP_NUM_THREADS") != "1":  # libraries read it when they are loaded
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | one)
    sys.exit(main())
