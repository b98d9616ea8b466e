"""A picture that is drawn again and again, on a terminal that is left as it was."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from rich.console import Console, RenderableType
from rich.live import Live

_ENDS: Final = b"qQ\x03\x04"
_MOST_KEYS: Final = 1024


@contextmanager
def keys_at_once() -> Iterator[Callable[[float], bool]]:
    """Give what waits for a time, or until somebody wants to leave, and tells which it was.

    Where stdin is a terminal its keys come at once and unseen; it is put back at the end.
    """
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield _only_waits
        return
    if sys.stdin is None or not sys.stdin.isatty():
        yield _only_waits
        return
    stream = sys.stdin.fileno()
    before = termios.tcgetattr(stream)
    try:
        tty.setcbreak(stream)
        yield partial(_wants_to_leave, stream)
    finally:
        termios.tcsetattr(stream, termios.TCSADRAIN, before)


def _only_waits(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _wants_to_leave(stream: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([stream], [], [], left)[0]:
            # Past Python's buffer, in which keys that come together would stay unseen.
            keys = os.read(stream, _MOST_KEYS)
            if not keys or any(key in _ENDS for key in keys):
                return True
    return False


def show(draw: Callable[[int], RenderableType], *, every: float) -> None:
    """Draw until somebody presses q or Ctrl-C.

    Args:
        draw: Gives the picture for a width.
        every: Seconds between two pictures.
    """
    console = Console(highlight=False)
    first = draw(console.width)
    with (
        keys_at_once() as leaving,
        Live(first, console=console, screen=True, auto_refresh=False) as live,
    ):
        while not leaving(every):
            live.update(draw(console.width), refresh=True)
