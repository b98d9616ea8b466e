"""Times as transcripts write them: ISO 8601, or a number since 1970."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

Unit: TypeAlias = Literal["s", "ms", "us", "ns"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PER_SECOND: Final[Mapping[Unit, int]] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LARGEST_SECONDS: Final = 10**11
"""Read as seconds this is the year 5138; a larger number counts something smaller."""

NAMES: Final = ("timestamp", "created_at", "created")
"""The fields in which a message, an entry or a response says when it was made."""


def read_moment(value: Any, unit: Unit | None = None) -> datetime | None:
    """Read a time; one that names no zone is in UTC.

    Args:
        value: ISO 8601 text, or a number (or its digits) since 1970.
        unit: What the number counts; by default its size tells.

    Returns:
        The time in UTC, to the microsecond, or None where the value is none.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _from_epoch(value, unit)
    if not isinstance(value, str):
        return None
    try:
        return _from_epoch(float(value) if "." in value else int(value), unit)
    except ValueError:
        return None if unit else _from_iso(value)


def moment_of(record: Any) -> datetime | None:
    """Give the time that a message or an entry bears, if it does."""
    if not isinstance(record, dict):
        return None
    for name in NAMES:
        found = read_moment(record.get(name))
        if found is not None:
            return found
    return None


def in_utc(moment: datetime) -> datetime:
    """Give a time in UTC; one without a zone is taken as UTC."""
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)


def _from_iso(text: str) -> datetime | None:
    try:
        return in_utc(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return None


def _from_epoch(number: float, unit: Unit | None) -> datetime | None:
    if not math.isfinite(number):
        return None
    per = _PER_SECOND[unit or _unit_of(number)]
    try:
        whole, rest = divmod(number, per)
        return _EPOCH + timedelta(seconds=whole, microseconds=rest * 10**6 / per)
    except OverflowError:
        return None


def _unit_of(number: float) -> Unit:
    """Tell what a number since 1970 counts: the largest unit that keeps it near our time."""
    for unit, per in _PER_SECOND.items():
        if abs(number) < _LARGEST_SECONDS * per:
            return unit
    return "ns"
