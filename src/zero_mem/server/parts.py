"""What is served beside the API, as the settings choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

from zero_mem.errors import MissingExtra
from zero_mem.server.host import Host, Part
from zero_mem.server.settings import Settings


def chosen(settings: Settings) -> list[Callable[[Host], Part]]:
    """Give what makes each part that the settings ask for and whose extra is installed."""
    return [*_console(settings), *_mcp(settings)]


def _console(settings: Settings) -> Iterator[Callable[[Host], Part]]:
    if settings.console and find_spec("jinja2") is not None:
        from zero_mem.console.app import Console

        yield Console


def _mcp(settings: Settings) -> Iterator[Callable[[Host], Part]]:
    if not settings.mcp:
        return
    try:
        from zero_mem.mcp.endpoint import Endpoint
    except MissingExtra:
        return
    yield Endpoint
