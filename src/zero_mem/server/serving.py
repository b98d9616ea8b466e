"""Running the application: one process, stopped by a signal, that loses nothing."""

from __future__ import annotations

import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import uvicorn

from zero_mem.errors import NotAllowed, StoreUnavailable
from zero_mem.memory import Memory
from zero_mem.server.app import CONSOLE, App
from zero_mem.server.parts import chosen
from zero_mem.server.patience import patient
from zero_mem.server.settings import Settings

MCP: Final = "/mcp"
"""Where the protocol is, with its extra."""

LOG: Final = logging.getLogger("zero_mem.server")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_KEEP_ALIVE: Final = 75
"""Seconds that an idle connection stays open: longer than clients keep theirs."""


class Server(uvicorn.Server):
    """The server; as soon as it is told to stop, the feeds end."""

    def __init__(self, app: App, settings: Settings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="on",
                access_log=False,  # a query may hold what a log must not
                log_config=None,
                server_header=False,
                date_header=False,  # a proxied answer has its own
                http=patient(settings.body_timeout),
                ws="none",
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=max(1, round(settings.grace)),
            )
        )
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal."""
        super().handle_exit(sig, frame)
        self._app.stop()

    def end(self) -> None:
        """Stop as on a signal."""
        self.should_exit = True
        self._app.stop()


def serve(memory: Memory, settings: Settings, say: Callable[[str], None]) -> None:
    """Serve a store until a signal ends it; the store is closed then.

    Args:
        memory: The store.
        settings: How to serve it.
        say: Told where it listens and who may come in.

    Raises:
        NotAllowed: Others could reach it, and no key keeps them out; or the store was opened with
            a key, which is not for others to use.
        StoreUnavailable: The address can't be listened on.
    """
    if memory.key is not None:
        raise NotAllowed("a store is served as a whole: open it without a credential")
    is_local = is_loopback(settings.host)
    keys = memory.keyring.every()
    if not keys and not is_local:
        raise NotAllowed(
            f"{settings.host} can be reached by others and the store has no key; make one first: "
            "zero-mem key create NAME --grant admin:**"
        )
    app = App(memory, settings, is_open=is_local, parts=chosen(settings))
    listening = listen(settings)
    host, port = listening.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    say(url)
    for line in pointers(app, url, with_token=bool(keys)):
        say(line)
    if not keys:
        say(
            "OPEN ACCESS: there is no key, so whoever can use this machine may read and write "
            "everything. `zero-mem key create` closes it"
        )
    with _signals_done():
        Server(app, settings).run(sockets=[listening])


def pointers(app: App, url: str, *, with_token: bool) -> Iterator[str]:
    """Say where each part is, those alone that are served.

    Raises:
        InvalidInput: The proxy would lead to itself.
    """
    served = {part.prefix for part in app.parts}
    if CONSOLE in served:
        yield f"console {url}{CONSOLE}"
    if MCP in served:
        yield f"MCP {url}{MCP}, with a namespace {url}{MCP}/NAMESPACE"
    if app.host.settings.proxy_upstream:
        yield proxy_pointer(app, url, with_token=with_token)


def proxy_pointer(app: App, url: str, *, with_token: bool) -> str:
    """Say where the proxy and its live page are.

    Raises:
        InvalidInput: The proxy would lead to itself.
    """
    from zero_mem.server.proxying import ProxyPart

    (part,) = (each for each in app.parts if isinstance(each, ProxyPart))
    part.check_no_loop(url)
    return f"proxy {url}{part.prefix}, live page {part.page(url, with_token=with_token)}"


@contextmanager
def _signals_done() -> Iterator[None]:
    """Take the signals that the server raises again when it has stopped: they were obeyed."""
    before = {each: signal.signal(each, lambda *_: None) for each in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(settings: Settings) -> socket.socket:
    """Take the address.

    Raises:
        StoreUnavailable: It is taken, or is none of this machine.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With its protocol named, asyncio sends small packets at once; without, each waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise StoreUnavailable(
            f"can't listen on {settings.host} port {settings.port}: {error.strerror}"
        ) from error
    return listening
