"""Serving the proxy until it is told to stop, and stopping without losing anything."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from zero_mem.errors import InvalidInput, MissingExtra
from zero_mem.memory import Memory
from zero_mem.proxy.settings import Settings

_PATIENCE: Final = 30
"""Seconds that a stop waits for the calls under way."""

_WAITING: Final = 2048
"""Connections that may wait to be accepted."""

_SWITCH: Final = 0.001
"""Seconds after which a thread that counts lets the traffic go on."""


def bound(host: str, port: int) -> socket.socket:
    """Listen on an address; port 0 takes a free one.

    Raises:
        InvalidInput: It can't be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sends small packets at once; without, each waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_WAITING)
    except OSError as error:
        listening.close()
        raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listening


def serve(
    memory: Memory,
    settings: Settings,
    listening: socket.socket,
    *,
    on_start: Callable[[], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; calls under way are finished, the ledger is written.

    Args:
        memory: The store, open.
        settings: How to run.
        listening: Where to, as `bound` gives it; it is closed at the end.
        on_start: Called once requests are taken.

    Raises:
        MissingExtra: The extra `proxy` is not installed.
    """
    try:
        import uvicorn

        from zero_mem.proxy.app import Proxy
        from zero_mem.proxy.counting import CountingProcess
    except ImportError as error:
        raise MissingExtra("the proxy", "proxy") from error
    proxy = Proxy(memory, settings, counter=CountingProcess(settings.rates))
    config = uvicorn.Config(
        proxy.app,
        lifespan="on",
        ws="none",
        proxy_headers=False,
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_PATIENCE,
    )

    stack = ExitStack()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            stack.enter_context(traffic_first())
            if on_start is not None and self.started:
                on_start()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            proxy.stop()
            await super().shutdown(sockets)

    if threading.current_thread() is threading.main_thread():
        # The server gives the signal on when it has stopped; the store is still to be closed.
        signal.signal(signal.SIGTERM, _interrupt)
    with stack, listening, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(Server(config).serve([listening]))


@contextmanager
def traffic_first() -> Iterator[None]:
    """Tune this process for answers that must not wait for what is counted beside them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    # What was loaded stays: collections that looked through it would hold the traffic up.
    gc.collect()
    gc.freeze()
    # An answer that breaks off upstream is cut off on purpose.
    logger = logging.getLogger("uvicorn.error")
    logger.addFilter(_is_news)
    try:
        yield
    finally:
        logger.removeFilter(_is_news)
        gc.unfreeze()
        sys.setswitchinterval(interval)


def _is_news(record: logging.LogRecord) -> bool:
    return record.msg != "ASGI callable returned without completing response."


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Give the fast event loop where it is installed."""
    try:
        import uvloop
    except ImportError:  # as on Windows
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
