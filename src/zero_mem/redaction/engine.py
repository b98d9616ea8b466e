"""What finds something in a text: the contract of rules and of engines from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Found(NamedTuple):
    """A stretch of a text, and the kind of thing that stands there."""

    start: int
    end: int
    kind: str


class Engine(Protocol):
    """Finds what the rules here can't, such as names of people.

    `kinds` are the kinds that it may find; `find` is deterministic and keeps nothing of the
    text.
    """

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of what is found."""
        ...

    def find(self, text: str) -> Iterable[Found]:
        """Find stretches of a text, in any order; they may overlap."""
        ...
