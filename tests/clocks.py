"""A clock that a test sets."""

from __future__ import annotations

from datetime import datetime


class Clock:
    """Gives `now`, which changes only when a test changes it."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now
