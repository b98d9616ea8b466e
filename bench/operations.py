"""How fast the operations are, against a bare SQLite FTS5 table in the same run.

    python bench/operations.py [--texts FILE] [--records 100000] [--namespaces 10000]
                               [--json out.json] [--markdown out.md]

Both sides write the same texts with the same `synchronous` mode to files in the same folder,
in alternating rounds; every figure is a median, and what counts are the ratios.
"""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from _report import Comparison, options, report_rows, throughput

from zero_mem import Memory
from zero_mem.space import Namespace

WORDS_SEED = 7
ROUNDS = 5


def texts(path: Path | None, count: int) -> list[str]:
    """Give texts of the file of JSON lines with "text", or made of words by a fixed seed."""
    if path is not None:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as lines:
            found = [json.loads(line)["text"] for line in lines]
    else:
        found = list(_invented(4000))
    return [found[place % len(found)] for place in range(count)]


def _invented(count: int) -> Iterator[str]:
    """Sentences whose words follow Zipf's law, some 30 words long."""
    chosen = random.Random(WORDS_SEED)
    letters = "etaoinshrdlucmfwypvbgk"
    vocabulary = ["".join(chosen.choices(letters, k=chosen.randint(2, 9))) for _ in range(8000)]
    weights = [1 / (rank + 2) for rank in range(len(vocabulary))]
    for _ in range(count):
        yield " ".join(chosen.choices(vocabulary, weights, k=chosen.randint(10, 50)))


class Bare:
    """A bare FTS5 table, as a program without any memory system would use it."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("CREATE VIRTUAL TABLE bare USING fts5 (text)")

    def save(self, text: str) -> None:
        """Insert one text in a transaction of its own."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("INSERT INTO bare VALUES (?)", (text,))
        self.connection.execute("COMMIT")

    def save_many(self, some: list[str]) -> None:
        """Insert many texts in one transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany("INSERT INTO bare VALUES (?)", ((text,) for text in some))
        self.connection.execute("COMMIT")

    def search(self, words: list[str]) -> list[tuple[int, float]]:
        """Find the ten best for an OR of the words."""
        query = " OR ".join(f'"{word}"' for word in words)
        sql = "SELECT rowid, rank FROM bare WHERE bare MATCH ? ORDER BY rank LIMIT 10"
        return self.connection.execute(sql, (query,)).fetchall()


def clock(work: Callable[[], object]) -> float:
    """Time one run in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def alternate(
    ours: Callable[[int], object], other: Callable[[int], object], rounds: int = ROUNDS
) -> tuple[float, float, float]:
    """Run both in turn; give each side's median seconds and the median ratio of the pairs.

    The first round warms up (stems are cached, statements prepared) and does not count.
    """
    pairs = [(clock(partial(ours, n)), clock(partial(other, n))) for n in range(rounds + 1)][1:]
    return (
        statistics.median(mine for mine, _ in pairs),
        statistics.median(theirs for _, theirs in pairs),
        statistics.median(theirs / mine for mine, theirs in pairs),
    )


def save_all(save: Callable[[str], object], some: list[str]) -> None:
    for text in some:
        save(text)


def single_saves(folder: Path, given: list[str], size: int = 1000) -> Comparison:
    """One save a transaction."""
    with Memory.open(f"sqlite:///{folder}/single.db", durability="normal") as memory:
        space, bare = memory.namespace("bench"), Bare(folder / "bare-single.db")
        slices = [given[n * size : (n + 1) * size] for n in range(ROUNDS + 1)]
        found = alternate(
            lambda n: save_all(space.save, slices[n]), lambda n: save_all(bare.save, slices[n])
        )
    return throughput("one save (WAL NORMAL), saves per second", size, found, at_least=0.4)


def batch_saves(folder: Path, given: list[str], size: int = 10_000) -> Comparison:
    """Many saves in one transaction."""
    with Memory.open(f"sqlite:///{folder}/batch.db", durability="normal") as memory:
        space, bare = memory.namespace("bench"), Bare(folder / "bare-batch.db")
        slices = [given[n * size : (n + 1) * size] for n in range(ROUNDS + 1)]
        items = [[{"content": text} for text in some] for some in slices]
        found = alternate(lambda n: space.save_many(items[n]), lambda n: bare.save_many(slices[n]))
    return throughput("batch of 10,000 (WAL NORMAL), saves per second", size, found, at_least=0.15)


def queries(given: list[str], count: int = 60, words: int = 8) -> list[list[str]]:
    """Natural queries: words in a row from the texts themselves, common ones included."""
    chosen = random.Random(WORDS_SEED)
    found: list[list[str]] = []
    while len(found) < count:
        split = [word.strip(".,!?'\"()") for word in chosen.choice(given).split()]
        split = [word for word in split if word.isalnum()]
        if len(split) >= words:
            start = chosen.randrange(len(split) - words + 1)
            found.append(split[start : start + words])
    return found


def recall_large(folder: Path, given: list[str]) -> Comparison:
    """Lexical recall in one namespace of many records."""
    count = len(given)
    with Memory.open(f"sqlite:///{folder}/large.db", durability="normal") as memory:
        space, bare = memory.namespace("bench"), Bare(folder / "bare-large.db")
        for start in range(0, count, 10_000):
            some = given[start : start + 10_000]
            space.save_many([{"content": text} for text in some])
            bare.save_many(some)
        asked = queries(given)
        for words in asked[:5]:
            space.recall(" ".join(words))
            bare.search(words)
        mine = [clock(partial(space.recall, " ".join(words))) for words in asked]
        theirs = [clock(partial(bare.search, words)) for words in asked]
    ours, other = statistics.median(mine), statistics.median(theirs)
    return Comparison(
        name=f"recall among {count:,} records, p50",
        ours=ours * 1e3,
        other=other * 1e3,
        unit="ms",
        ratio=ours / other,
        must="<= 1",
        met=ours <= other,
    )


def _fill(memory: Memory, namespaces: int, given: list[str]) -> None:
    for number in range(namespaces):
        start = number * 100 % (len(given) - 100)
        space = memory.namespace("tenant", str(number))
        space.save_many([{"content": text} for text in given[start : start + 100]])


def _recall_times(spaces: list[Namespace], asked: list[list[str]]) -> float:
    pairs = zip(spaces, asked, strict=True)
    return statistics.median(clock(partial(s.recall, " ".join(words))) for s, words in pairs)


def recall_many_namespaces(folder: Path, given: list[str], namespaces: int) -> Comparison:
    """Recall in one of many small namespaces, against the same in a store of one."""
    chosen = random.Random(WORDS_SEED)
    asked = queries(given)
    with (
        Memory.open(f"sqlite:///{folder}/many.db", durability="normal") as many,
        Memory.open(f"sqlite:///{folder}/one.db", durability="normal") as one,
    ):
        _fill(many, namespaces, given)
        _fill(one, 1, given)
        numbers = [chosen.randrange(namespaces) for _ in asked]
        spread = [many.namespace("tenant", str(number)) for number in numbers]
        alone = [one.namespace("tenant", "0") for _ in asked]
        for spaces in (spread, alone):
            _recall_times(spaces, asked)
        ours, other = _recall_times(spread, asked), _recall_times(alone, asked)
    return Comparison(
        name=f"recall in one of {namespaces:,} namespaces of 100, p50 (other: the only one)",
        ours=ours * 1e3,
        other=other * 1e3,
        unit="ms",
        ratio=ours / other,
        must="<= 2",
        met=ours <= 2 * other,
    )


def langgraph(folder: Path, given: list[str], size: int = 500) -> Comparison | None:
    """One put into LangGraph's SqliteStore, where it is installed; both in WAL FULL."""
    try:
        from langgraph.store.sqlite import SqliteStore  # type: ignore[import-not-found]
    except ImportError:
        return None
    connection = sqlite3.connect(folder / "langgraph.db", isolation_level=None)
    store = SqliteStore(connection)
    store.setup()
    connection.execute("PRAGMA synchronous = FULL")
    numbers = iter(range(10**9))
    with Memory.open(f"sqlite:///{folder}/versus.db", durability="full") as memory:
        space = memory.namespace("bench")
        slices = [given[n * size : (n + 1) * size] for n in range(ROUNDS + 1)]

        def put(text: str) -> None:
            store.put(("bench",), str(next(numbers)), {"text": text})

        found = alternate(
            lambda n: save_all(space.save, slices[n]), lambda n: save_all(put, slices[n])
        )
    return throughput(
        "one save (WAL FULL) against LangGraph SqliteStore put, per second",
        size,
        found,
        at_least=1.2,
    )


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--texts", type=Path, help="JSON lines with text (may be .gz)")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--namespaces", type=int, default=10_000)
    given = parser.parse_args()
    corpus = texts(given.texts, max(given.records, 60_000))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = [
            single_saves(folder, corpus),
            batch_saves(folder, corpus),
            langgraph(folder, corpus),
            recall_large(folder, corpus[: given.records]),
            recall_many_namespaces(folder, corpus, given.namespaces),
        ]
    rows = [row for row in found if row is not None]
    return report_rows(given, rows, f"SQLite {sqlite3.sqlite_version}")


if __name__ == "__main__":
    sys.exit(main())
