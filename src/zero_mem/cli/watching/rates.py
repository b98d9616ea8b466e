"""How fast figures change, from the samples of the last minute; pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from zero_mem.cli.watching.sources import MINUTE, Sample
from zero_mem.metrics.registry import BOUNDS, Durations

if TYPE_CHECKING:
    from zero_mem.metrics.registry import Timed

SHORT: Final = 10.0
"""Seconds over which a rate per second is taken."""


class History:
    """The samples of the last minute."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()

    @property
    def last(self) -> Sample:
        """The newest sample."""
        return self._samples[-1]

    def add(self, sample: Sample) -> None:
        """Take a sample in; after a restart of what is counted, begin anew."""
        if self._samples and _fell(self.last, sample):
            self._samples.clear()
        if not self._samples and sample.since is not None:
            self._samples.append(replace(sample, at=sample.since, operations={}))
        self._samples.append(sample)
        while len(self._samples) > 2 and self._samples[1].at <= sample.at - MINUTE:
            self._samples.popleft()

    def rate(self, figure: Callable[[Sample], float], *, seconds: float = SHORT) -> float | None:
        """Give how much a figure rises a second, over the last seconds; None with one sample."""
        old = self._before(seconds)
        if old is None:
            return None
        return (figure(self.last) - figure(old)) / (self.last.at - old.at)

    def durations(self, call: Timed) -> Durations | None:
        """Give how long calls of a kind took in the last minute; None where that is not known.

        With one sample these are all calls so far.
        """
        old, new = self._before(MINUTE), self.last
        if new.snapshot is None:
            return None
        if old is None or old.snapshot is None:
            return new.snapshot.durations[call]
        before, after = old.snapshot.durations[call], new.snapshot.durations[call]
        classes = [a - b for a, b in zip(after.classes, before.classes, strict=True)]
        return Durations(classes, after.seconds - before.seconds)

    def _before(self, seconds: float) -> Sample | None:
        """Give the newest sample that is as old as that, or the oldest."""
        earlier = list(self._samples)[:-1]
        old = [sample for sample in earlier if sample.at <= self.last.at - seconds]
        return old[-1] if old else (earlier[0] if earlier else None)


def _fell(before: Sample, after: Sample) -> bool:
    return sum(after.operations.values()) < sum(before.operations.values())


def quantile(durations: Durations, share: float) -> float | None:
    """Give the upper bound of the class in which a quantile lies, in seconds.

    Returns:
        None where there was no call; infinity beyond the last bound.
    """
    if not durations.count:
        return None
    wanted = share * durations.count
    sums = accumulate(durations.classes)
    return next(
        bound
        for bound, so_far in zip((*BOUNDS, float("inf")), sums, strict=True)
        if so_far >= wanted
    )
