"""A real server on loopback, in a thread of the tests' process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from zero_mem import Memory
from zero_mem.server.app import App
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
        self, memory: Memory, settings: Settings | None = None, *, is_open: bool = True
    ) -> Iterator[str]:
        """Serve a store; at the end it is closed, as when a server stops."""
        assert self.switch.loop is not None
        app = self.on_loop(lambda: App(memory, settings or Settings(), is_open=is_open))
        self.switch.app = app
        try:
            yield self.url
        finally:
            self.switch.app = None
            asyncio.run_coroutine_threadsafe(app.close(), self.switch.loop).result()

    def on_loop(self, make: Callable[[], App]) -> App:
        """Make an application where it will live."""

        async def made() -> App:
            return make()

        assert self.switch.loop is not None
        return asyncio.run_coroutine_threadsafe(made(), self.switch.loop).result()


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
