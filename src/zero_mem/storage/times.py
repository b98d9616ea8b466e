"""Times as the stores keep them: whole microseconds since 1970-01-01 UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from zero_mem.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Convert an aware datetime; a naive one is refused, for its zone can't be guessed."""
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidInput(
            f"the time {moment.isoformat()} has no zone; give an aware datetime, "
            "such as datetime.now(timezone.utc)"
        )
    return micros(moment)


@lru_cache(maxsize=1024)
def micros(moment: datetime) -> int:
    """Convert a datetime that is known to be aware."""
    return (moment - EPOCH) // _TICK


@lru_cache(maxsize=1024)
def from_micros(micros: int) -> datetime:
    """Convert back to an aware UTC datetime."""
    return EPOCH + timedelta(microseconds=micros)
