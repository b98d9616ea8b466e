"""What is served beside the API, as the settings choose."""

from __future__ import annotations

from collections.abc import Callable

from zero_mem.server.host import Host, Part
from zero_mem.server.settings import Settings


def chosen(settings: Settings) -> list[Callable[[Host], Part]]:
    """Give what makes each part that the settings ask for."""
    return []
