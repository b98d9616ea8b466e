"""Stand-ins for what a test must be able to set: the clock and the tokenizer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from zero_mem.errors import InvalidInput

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class FakeClock:
    """A clock that stands still until it is moved; give it as `clock=`.

    Args:
        start: The first moment it tells, an aware datetime.
    """

    def __init__(self, start: datetime = START) -> None:
        self.set(start)

    def __call__(self) -> datetime:
        """Tell the moment that the clock stands at."""
        return self._now

    def set(self, moment: datetime) -> None:
        """Move to a moment, back or forth.

        Raises:
            InvalidInput: The moment has no zone.
        """
        if moment.tzinfo is None:
            raise InvalidInput("a clock tells aware datetimes; give the moment its zone")
        self._now = moment

    def advance(self, by: float | timedelta = 1.0) -> datetime:
        """Move on by seconds or a timedelta, and tell the new moment."""
        self._now += by if isinstance(by, timedelta) else timedelta(seconds=by)
        return self._now


class CountingTokenizer:
    """Counts one token a word, and keeps what it was asked to count in `counted`."""

    name = "words"
    exact = True

    def __init__(self) -> None:
        self.counted: list[str] = []

    def count(self, text: str) -> int:
        """Count the words of a text, split at white space."""
        self.counted.append(text)
        return len(text.split())
