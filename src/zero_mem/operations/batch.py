"""Batch forms: many steps in one transaction, a result for each (`op:*`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias, TypeVar

from zero_mem.errors import InvalidInput, ZeroMemError
from zero_mem.types import MemoryReceipt

OnError: TypeAlias = Literal["abort", "skip"]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """What a batch did: at each index a receipt, or with `on_error="skip"` the error."""

    results: tuple[MemoryReceipt | ZeroMemError, ...]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[MemoryReceipt | ZeroMemError]:
        return iter(self.results)

    def __getitem__(self, index: int) -> MemoryReceipt | ZeroMemError:
        return self.results[index]

    @property
    def receipts(self) -> tuple[MemoryReceipt, ...]:
        """The receipts of the items that were applied, in order."""
        return tuple(r for r in self.results if isinstance(r, MemoryReceipt))

    @property
    def errors(self) -> dict[int, ZeroMemError]:
        """The errors of the items that were not, by index."""
        found = enumerate(self.results)
        return {place: r for place, r in found if isinstance(r, ZeroMemError)}

    @property
    def count(self) -> int:
        """How many items were applied."""
        return len(self.receipts)


def check_on_error(on_error: object) -> OnError:
    """Accept "abort" or "skip"."""
    if on_error == "abort":
        return "abort"
    if on_error == "skip":
        return "skip"
    raise InvalidInput(f'on_error is "abort" or "skip", not {on_error!r}')


CHUNK = 250
"""Items decided before they are written: few enough to stay in the processor's cache."""


def chunks(items: Iterable[T]) -> Iterator[tuple[int, list[T]]]:
    """Cut items into chunks, each with the index of its first item."""
    remaining, start = iter(items), 0
    while chunk := list(islice(remaining, CHUNK)):
        yield start, chunk
        start += len(chunk)


def attempt(
    items: Iterable[T], step: Callable[[T], R], on_error: OnError, *, start: int = 0
) -> list[R | ZeroMemError]:
    """Run a step for each item; the first error ends all, or takes its item's place.

    Args:
        items: What to work on.
        step: Does it.
        on_error: "abort" or "skip".
        start: The index of the first item, for the error's message.

    Raises:
        ZeroMemError: With `on_error="abort"`, the error naming the index of its item.
    """
    results: list[R | ZeroMemError] = []
    for place, item in enumerate(items, start):
        try:
            results.append(step(item))
        except ZeroMemError as error:
            if on_error == "abort":
                error.args = (f"item {place}: {error}", *error.args[1:])
                raise
            results.append(error)
    return results
