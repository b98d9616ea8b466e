"""The server under many clients, beside a bare Starlette handler that does the same write.

    python bench/server.py [--clients 500] [--seconds 10] [--minute] [--writes 0.5]
                           [--json out.json] [--markdown out.md]

Both run in a process of their own on a new SQLite file, durability "full", and are asked by the
same load: each client has one connection and sends its next request when the last was answered,
a save or a read of a record saved before. They take turns, and the median of the rounds counts.

The bare handler parses the JSON, inserts one row in one durable transaction in a thread, and
answers with JSON: what is between the two figures is the record, its journal, its index, the
checks, and the receipt.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import os
import random
import sqlite3
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from _report import command, options, report, table

REFUSALS = {409, 412, 429, 503}
WORDS = ("order", "refund", "address", "window", "seat", "Tuesday", "Berlin", "退款", "申请")


# The two servers


def serve_zero_mem(folder: str, ready: Connection) -> None:
    """Serve a new store as `zero-mem serve` does."""
    from zero_mem import Memory
    from zero_mem.server.app import App
    from zero_mem.server.serving import Server, listen
    from zero_mem.server.settings import Settings

    settings = Settings(port=0)
    listening = listen(settings)
    ready.send(listening.getsockname()[1])
    app = App(Memory.open(f"sqlite:///{folder}/store.db"), settings, is_open=True)
    Server(app, settings).run(sockets=[listening])


def serve_bare(folder: str, ready: Connection) -> None:
    """Serve one table with the least that answers."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from zero_mem.server.serving import listen
    from zero_mem.server.settings import Settings

    local, lock = threading.local(), threading.Lock()

    def connection() -> sqlite3.Connection:
        if not hasattr(local, "connection"):
            local.connection = sqlite3.connect(f"{folder}/bare.db", isolation_level=None)
            local.connection.execute("PRAGMA journal_mode = WAL")
            local.connection.execute("PRAGMA synchronous = FULL")
        found: sqlite3.Connection = local.connection
        return found

    def write(content: str) -> int:
        with lock:
            cursor = connection().execute("INSERT INTO record (content) VALUES (?)", (content,))
        return cursor.lastrowid or 0

    def read(number: int) -> str | None:
        sql = "SELECT content FROM record WHERE id = ?"
        row = connection().execute(sql, (number,)).fetchone()
        return None if row is None else str(row[0])

    async def save(request: Request) -> JSONResponse:
        fields = await request.json()
        return JSONResponse({"memory_id": str(await run_in_threadpool(write, fields["content"]))})

    async def get(request: Request) -> JSONResponse:
        content = await run_in_threadpool(read, int(request.path_params["number"]))
        return JSONResponse({"content": content}, 404 if content is None else 200)

    connection().execute("CREATE TABLE record (id INTEGER PRIMARY KEY, content TEXT NOT NULL)")
    routes = [
        Route("/v1/records", save, methods=["POST"]),
        Route("/v1/records/{number:int}", get),
    ]
    listening = listen(Settings(port=0))
    ready.send(listening.getsockname()[1])
    uvicorn.run(Starlette(routes=routes), fd=listening.fileno(), log_level="critical")


# The load


@dataclass
class Load:
    """What the clients saw."""

    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    broken: int = 0


class Client(asyncio.Protocol):
    """One connection that asks again as soon as it was answered."""

    def __init__(self, load: Load, ask: Callable[[], bytes], until: float) -> None:
        self._load = load
        self._ask = ask
        self._until = until
        self._buffer = b""
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._begun = time.perf_counter()
        if self._begun >= self._until:
            self._finish()
            return
        self._transport.write(self._ask())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = next(
            int(line.partition(b":")[2])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        )
        if len(rest) < length:
            return
        self._buffer = b""
        self._load.statuses[int(head[9:12])] += 1
        self._load.latencies.append(time.perf_counter() - self._begun)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self._load.broken += 1
            self._finish()

    def _finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
        self._transport.close()


async def drive(port: int, clients: int, seconds: float, writes: float) -> Load:
    """Ask a server with so many clients for so long."""
    loop, load, draw = asyncio.get_running_loop(), Load(), random.Random(7)
    saved = itertools.count(1)
    written = 1

    def request(method: str, path: str, body: bytes = b"") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body

    def ask() -> bytes:
        nonlocal written
        if draw.random() < writes or written < 2 * clients:
            written = next(saved)
            content = " ".join(draw.choices(WORDS, k=12))
            body = json.dumps({"content": content, "kind": "note"}).encode()
            return request("POST", "/v1/records?namespace=bench/load", body)
        number = draw.randrange(1, max(2, written - 2 * clients + 1))
        return request("GET", f"/v1/records/{number}?namespace=bench/load")

    until = time.perf_counter() + seconds
    made = []
    for _ in range(clients):
        _, client = await loop.create_connection(
            lambda: Client(load, ask, until), "127.0.0.1", port
        )
        made.append(client.done)
    await asyncio.gather(*made)
    return load


# One round


@dataclass
class Round:
    """The figures of one run of one server."""

    load: Load
    seconds: float
    cpu: float
    memory: list[float]

    @property
    def rate(self) -> float:
        return len(self.load.latencies) / self.seconds

    @property
    def cpu_each(self) -> float:
        return 1e6 * self.cpu / max(1, len(self.load.latencies))

    def at(self, share: float) -> float:
        ordered = sorted(self.load.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def run(
    serve: Callable[[str, Connection], None], clients: int, seconds: float, writes: float
) -> Round:
    """Start a server, load it, end it."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        process = context.Process(target=serve, args=(folder, theirs), daemon=True)
        process.start()
        port = mine.recv()
        assert process.pid is not None
        memory: list[float] = []
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, memory, over, seconds / 8))
        asyncio.run(drive(port, 4, 0.5, writes))  # warm
        begun, cpu = time.perf_counter(), _cpu(process.pid)
        watcher.start()
        load = asyncio.run(drive(port, clients, seconds, writes))
        found = Round(load, time.perf_counter() - begun, _cpu(process.pid) - cpu, memory)
        over.set()
        watcher.join()
        process.terminate()
        process.join(20)
    return found


def _cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _watch(process: int, memory: list[float], over: threading.Event, every: float) -> None:
    while not over.wait(every):
        with suppress(OSError):
            text = Path(f"/proc/{process}/status").read_text()
            memory.append(int(text.partition("VmRSS:")[2].split()[0]) / 1024)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--minute", action="store_true", help="one round of a full minute")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--writes", type=float, default=0.5)
    given = parser.parse_args()
    seconds, rounds = (60.0, 1) if given.minute else (given.seconds, given.rounds)
    servers = {"zero-mem": serve_zero_mem, "bare": serve_bare}
    found: dict[str, list[Round]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, serve in servers.items():
            found[name].append(run(serve, given.clients, seconds, given.writes))
    ours, bare = rows = [figures(name, each) for name, each in found.items()]
    ratios = {
        "throughput": ours["requests/s"] / bare["requests/s"],
        "requests per CPU second": bare["CPU, us each"] / ours["CPU, us each"],
    }
    shown = table(list(ours), ([written(value) for value in row.values()] for row in rows))
    said = "\n".join(f"ratio of {name}: {ratio:.2f}" for name, ratio in ratios.items())
    report(given, f"{command()}\n\n{shown}\n\n{said}", {"servers": rows, "ratios": ratios})


def figures(name: str, rounds: list[Round]) -> dict[str, Any]:
    """Give what the rounds of one server show: medians, sums, and the last round's memory."""
    statuses: Counter[int] = sum((each.load.statuses for each in rounds), Counter())
    failed = sum(n for status, n in statuses.items() if status >= 300 and status not in REFUSALS)
    return {
        "server": name,
        "requests/s": statistics.median(r.rate for r in rounds),
        "p50, ms": statistics.median(r.at(0.5) for r in rounds),
        "p99, ms": statistics.median(r.at(0.99) for r in rounds),
        "CPU, us each": statistics.median(r.cpu_each for r in rounds),
        "statuses": dict(statuses),
        "failed": failed,
        "connections broken": sum(each.load.broken for each in rounds),
        "MB": rounds[-1].memory,
    }


def written(value: Any) -> str:
    """Write one of these figures."""
    if isinstance(value, list):
        return ", ".join(f"{each:.0f}" for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count}" for name, count in value.items())
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
