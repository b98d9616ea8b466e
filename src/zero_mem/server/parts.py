"""What is served beside the API, as the settings choose."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from zero_mem.server.host import Host, Part
from zero_mem.server.settings import Settings


def chosen(settings: Settings) -> list[Callable[[Host], Part]]:
    """Give what makes each part that the settings ask for."""
    parts: list[Callable[[Host], Part]] = []
    if settings.console and find_spec("jinja2") is not None:
        from zero_mem.console.app import Console

        parts.append(Console)
    return parts
