"""Who has logged in: sessions by a random id, bounded in number and in time."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from zero_mem.access.grants import Grant
from zero_mem.access.keys import ApiKey
from zero_mem.api.problems import Refusal

IDLE: Final = 2 * 3600.0
"""Seconds without a request after which a session ends."""
LONGEST: Final = 12 * 3600.0
"""Seconds after which it ends in any case."""
_MOST: Final = 1000
_ATTEMPTS: Final = 10
_SECONDS_EACH: Final = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Who asks: their key, or whoever can use this machine where the store has none.

    Attributes:
        session: The session's id, "" without one.
        credential: The key as it was typed, None without one.
        name: The key's name, "" without one.
        grants: What it grants; None is everything.
    """

    session: str = field(default="", repr=False)
    credential: str | None = field(default=None, repr=False)
    name: str = ""
    grants: tuple[Grant, ...] | None = None


ANYONE: Final = Who()
"""Who came without a session."""


@dataclass(slots=True)
class _Session:
    who: Who
    began: float
    seen: float


class Sessions:
    """The sessions of one process; they end with it.

    Args:
        clock: Tells seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._secret = os.urandom(32)
        self._lock = threading.Lock()

    def begin(self, credential: str, key: ApiKey) -> Who:
        """Begin a session for a key that was verified; the oldest ends where there are too many."""
        token, now = secrets.token_urlsafe(32), self._clock()
        who = Who(session=token, credential=credential, name=key.name, grants=key.grants)
        with self._lock:
            self._sessions[token] = _Session(who, now, now)
            while len(self._sessions) > _MOST:
                self._sessions.popitem(last=False)
        return who

    def who(self, token: str) -> Who:
        """Give who a session's id stands for; `ANYONE` where there is no such session."""
        now = self._clock()
        with self._lock:
            session = self._sessions.get(token)
            if session is None:
                return ANYONE
            if now - session.seen > IDLE or now - session.began > LONGEST:
                del self._sessions[token]
                return ANYONE
            session.seen = now
            self._sessions.move_to_end(token)
            return session.who

    def end(self, who: Who) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(who.session, None)

    def form_token(self, who: Who) -> str:
        """Give what a form of this console carries, and no form of another site can know."""
        return hmac.new(self._secret, who.session.encode(), hashlib.sha256).hexdigest()

    def is_form_token(self, who: Who, token: str) -> bool:
        """Tell whether a form came from a page that was given to who sends it."""
        return hmac.compare_digest(
            self.form_token(who).encode(), token.encode("utf-8", "surrogatepass")
        )


class Attempts:
    """Counts how often each address tries to log in.

    Args:
        clock: Tells seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admit(self, address: str) -> None:
        """Count one attempt.

        Raises:
            Refusal: There were too many.
        """
        now = self._clock()
        left, at = self._left.get(address, (float(_ATTEMPTS), now))
        left = min(float(_ATTEMPTS), left + (now - at) / _SECONDS_EACH)
        if left < 1:
            wait = {"Retry-After": str(max(1, round((1 - left) * _SECONDS_EACH)))}
            raise Refusal("too-many", "too many attempts to log in; wait and try again", wait)
        self._left[address] = (left - 1, now)
        self._left.move_to_end(address)
        while len(self._left) > _MOST:
            self._left.popitem(last=False)
