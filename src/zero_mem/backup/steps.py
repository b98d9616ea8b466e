"""Long work that can be ended in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Step: TypeAlias = Callable[[], None]
"""Called again and again while something goes on; what it raises ends it."""


def go_on() -> None:
    """Let it go on."""


def stepping(values: Iterable[T], step: Step) -> Iterator[T]:
    """Give values, with a step before each."""
    for value in values:
        step()
        yield value
