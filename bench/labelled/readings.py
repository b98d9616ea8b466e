"""What was found in each part of the samples when it was first read, before rules were mended.

The figures are a record: a part can be read for the first time once. Each part was written after
the rules had been tuned on those before it, and read before any further change. Keys of services
are one group. What "now" gives is what the rules find today, tuned on all parts.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Reading(NamedTuple):
    """How much was marked, how much of it was found, and how many false alarms there were."""

    marked: int
    found: int
    alarms: int

    def __str__(self) -> str:
        return f"{self.found / self.marked:.1%}, {self.alarms} false"


FIRST_READINGS: Final[dict[str, Reading]] = {
    "first": Reading(129, 110, 7),
    "second": Reading(133, 122, 2),
    "third": Reading(54, 51, 0),
    "fourth": Reading(53, 51, 0),
    "fifth": Reading(344, 273, 7),
    "sixth": Reading(358, 308, 6),
    "seventh": Reading(334, 325, 2),
    "eighth": Reading(321, 319, 2),
}

BY_KIND: Final[dict[str, dict[str, Reading]]] = {
    "fifth": {
        "bearer_token": Reading(6, 6, 0),
        "card": Reading(14, 14, 0),
        "chinese_id": Reading(7, 6, 0),
        "cookie": Reading(4, 4, 0),
        "email": Reading(18, 12, 2),
        "iban": Reading(3, 3, 0),
        "jwt": Reading(4, 4, 0),
        "keys of services": Reading(87, 75, 2),
        "password": Reading(154, 110, 2),
        "phone": Reading(25, 20, 1),
        "private_key": Reading(4, 4, 0),
        "signed_url": Reading(8, 6, 0),
        "ssn": Reading(3, 3, 0),
        "url_password": Reading(7, 6, 0),
    },
    "sixth": {
        "bearer_token": Reading(3, 3, 0),
        "card": Reading(10, 10, 0),
        "chinese_id": Reading(7, 7, 0),
        "cookie": Reading(5, 4, 0),
        "email": Reading(21, 21, 3),
        "iban": Reading(3, 3, 0),
        "jwt": Reading(4, 4, 0),
        "keys of services": Reading(60, 56, 0),
        "password": Reading(188, 147, 2),
        "phone": Reading(28, 25, 0),
        "private_key": Reading(5, 5, 0),
        "signed_url": Reading(3, 3, 0),
        "ssn": Reading(3, 3, 0),
        "url_password": Reading(11, 11, 1),
        "webhook": Reading(7, 6, 0),
    },
    "seventh": {
        "bearer_token": Reading(3, 3, 0),
        "card": Reading(13, 13, 0),
        "chinese_id": Reading(6, 6, 0),
        "cookie": Reading(4, 3, 0),
        "email": Reading(31, 31, 0),
        "iban": Reading(3, 3, 0),
        "jwt": Reading(2, 2, 0),
        "keys of services": Reading(56, 56, 0),
        "password": Reading(159, 151, 1),
        "phone": Reading(39, 39, 1),
        "private_key": Reading(3, 3, 0),
        "signed_url": Reading(2, 2, 0),
        "ssn": Reading(3, 3, 0),
        "url_password": Reading(9, 9, 0),
        "webhook": Reading(1, 1, 0),
    },
    "eighth": {
        "bearer_token": Reading(4, 4, 0),
        "card": Reading(14, 14, 0),
        "chinese_id": Reading(5, 5, 0),
        "cookie": Reading(3, 3, 0),
        "email": Reading(21, 21, 0),
        "iban": Reading(5, 5, 0),
        "jwt": Reading(3, 3, 0),
        "keys of services": Reading(63, 63, 0),
        "password": Reading(146, 144, 2),
        "phone": Reading(35, 35, 0),
        "private_key": Reading(3, 3, 0),
        "signed_url": Reading(2, 2, 0),
        "ssn": Reading(4, 4, 0),
        "url_password": Reading(9, 9, 0),
        "webhook": Reading(4, 4, 0),
    },
}
"""Of the parts of which it was recorded."""
