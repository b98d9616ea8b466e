"""A progress bar for people, on stderr, where the work is long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from zero_mem.cli.session import on_terminal

Step: TypeAlias = Callable[[int], None]

LONG_BYTES: Final = 1 << 20


@contextmanager
def bar(what: str, total: int, *, long: int = LONG_BYTES) -> Iterator[Step]:
    """Show a bar while something is done; it takes how much is done so far.

    Args:
        what: What is done, in a word or two.
        total: All there is to do.
        long: The amount from which a bar is worth it.
    """
    if total < long or not on_terminal():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)
