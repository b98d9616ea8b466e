"""A proxy that runs beside a test, on loopback."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from zero_mem import Memory
from zero_mem.proxy.app import Proxy
from zero_mem.proxy.serving import bound
from zero_mem.proxy.settings import Settings
from zero_mem.proxy.targets import upstreams


@dataclass
class Response:
    """A response as bytes; `complete` is False where it was cut off."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes
    complete: bool = True

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    """A proxy, and a client that sends exact bytes to it."""

    url: str

    def send(
        self,
        path: str,
        body: bytes | None = None,
        *fields: tuple[str, str],
        method: str = "POST",
    ) -> Response:
        return send(self.url, path, body, *fields, method=method)


def send(
    url: str, path: str, body: bytes | None = None, *fields: tuple[str, str], method: str = "POST"
) -> Response:
    """Send one request to any server and read all that comes."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        named = any(name.lower() == "host" for name, _ in fields)
        connection.putrequest(method, path, skip_host=named, skip_accept_encoding=True)
        for name, value in fields:
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        got = connection.getresponse()
        try:
            read, complete = got.read(), True
        except http.client.IncompleteRead as cut:
            read, complete = cut.partial, False
        return Response(got.status, got.getheaders(), read, complete)
    finally:
        connection.close()


@contextmanager
def running_proxy(memory: Memory, *urls: str, **options: Any) -> Iterator[Running]:
    """Serve a proxy over an open store until the block ends."""
    proxy = Proxy(memory, Settings(upstreams=upstreams(urls), **options))
    config = uvicorn.Config(
        proxy.app, lifespan="on", ws="none", proxy_headers=False, access_log=False, log_config=None,
        server_header=False, date_header=False, timeout_graceful_shutdown=5,
    )  # fmt: skip
    server = uvicorn.Server(config)
    listening = bound("127.0.0.1", 0)
    started = threading.Event()
    inner = server.startup

    async def startup(*args: Any, **kwargs: Any) -> None:
        await inner(*args, **kwargs)
        started.set()

    server.startup = startup  # type: ignore[method-assign]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    started.wait()
    try:
        yield Running(f"http://127.0.0.1:{listening.getsockname()[1]}")
    finally:
        proxy.stop()
        server.should_exit = True
        thread.join()
        listening.close()


def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread will do."""
    waited = threading.Event()
    for _ in range(6000):
        if condition():
            return
        waited.wait(0.01)
    raise AssertionError("it never happened")
