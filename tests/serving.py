"""A real server on loopback, in a thread of the tests' process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace

from starlette.types import Receive, Scope, Send

from zero_mem import Memory
from zero_mem.server.app import App
from zero_mem.server.host import Host, Part
from zero_mem.server.serving import Server, listen
from zero_mem.server.settings import Settings


class Switch:
    """An application that passes requests on to the one of the test that runs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.app: App | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.started = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            self.loop = asyncio.get_running_loop()
            await send({"type": "lifespan.startup.complete"})
            self.started.set()
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        assert self.app is not None
        await self.app(scope, receive, send)

    def stop(self) -> None:
        if self.app is not None:
            self.app.stop()


@dataclass
class Loopback:
    """A server that serves one store after the other, each by an application of its own."""

    switch: Switch
    url: str

    @contextmanager
    def serving(
        self,
        memory: Memory,
        settings: Settings | None = None,
        *,
        is_open: bool = True,
        parts: Sequence[Callable[[Host], Part]] = (),
    ) -> Iterator[str]:
        """Serve a store; at the end it is closed, as when a server stops."""
        # The tests sweep by themselves.
        given = replace(settings or Settings(), sweep_every=0.0)
        living = _Living(lambda: App(memory, given, is_open=is_open, parts=parts))
        assert self.switch.loop is not None
        ended = asyncio.run_coroutine_threadsafe(living.run(), self.switch.loop)
        self.switch.app = living.app()
        try:
            yield self.url
        finally:
            self.switch.app = None
            self.switch.loop.call_soon_threadsafe(living.stop.set)
            ended.result()


class _Living:
    """An application that lives in one task, as under a server that drives its lifespan."""

    def __init__(self, make: Callable[[], App]) -> None:
        self._make = make
        self._started: Future[App] = Future()
        self.stop = asyncio.Event()

    async def run(self) -> None:
        try:
            app = self._make()
            async with app.living():
                self._started.set_result(app)
                await self.stop.wait()
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    def app(self) -> App:
        return self._started.result()


@contextmanager
def loopback() -> Iterator[Loopback]:
    """Run a server on a free port until the end of the block."""
    settings = Settings(port=0)
    switch = Switch(settings)
    listening = listen(settings)
    port = listening.getsockname()[1]
    server = Server(switch, settings)  # type: ignore[arg-type]
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), name="test-server")
    thread.start()
    try:
        switch.started.wait()
        yield Loopback(switch, f"http://127.0.0.1:{port}")
    finally:
        server.end()
        thread.join()
