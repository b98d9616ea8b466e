"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FakeClock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 9, 0, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def tick(self, *, seconds: float = 0, days: float = 0, microseconds: int = 0) -> datetime:
        """Go on by this much, and tell the time from then on."""
        self.now += timedelta(days=days, seconds=seconds, microseconds=microseconds)
        return self.now
