"""Who asks: the view of the store that a credential opens, and how often it may ask."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final

from zero_mem.api.problems import Refusal
from zero_mem.errors import NotAllowed
from zero_mem.memory import Memory

_MOST_VIEWS: Final = 256
_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
_WANTED: Final = (
    "this store needs a key: send it as `Authorization: Bearer zm_…`; connect takes it as "
    "credential=, a command from ZERO_MEM_CREDENTIAL"
)


@dataclass(slots=True)
class _View:
    """A view, when its key was last looked up, and the requests it may still make."""

    memory: Memory
    checked: float
    tokens: float
    counted: float


class Doors:
    """The views of one store by credential.

    A view is kept while it is used, since what recall keeps of a namespace is the view's; its
    key is looked up again after `recheck` seconds, so that a revoked one ends by then.

    Args:
        memory: The store as a whole.
        is_open: Whether the store as a whole may be used without a key as long as there is none.
        recheck: Seconds.
        rate: Requests a second of one key; 0 is no limit.
        burst: Requests at once above the rate.
        clock: Tells seconds.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        is_open: bool,
        recheck: float,
        rate: float,
        burst: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._memory = memory
        self._is_open = is_open
        self._recheck = recheck
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._views: OrderedDict[str, _View] = OrderedDict()
        self._keyless_until = 0.0
        self._lock = threading.Lock()

    def known(self, credential: str | None) -> Memory | None:
        """Give the view of a credential that was looked up a moment ago; this reads no store."""
        now = self._clock()
        if credential is None:
            return self._memory if now < self._keyless_until else None
        view = self._views.get(_digest(credential))
        return view.memory if view is not None and now < view.checked + self._recheck else None

    def opened(self, credential: str | None) -> Memory:
        """Look a credential up and give its view.

        Raises:
            Refusal: None was given where one is needed, or it is not valid.
        """
        if credential is None:
            return self._without_key()
        with self._lock:
            return self._with_key(credential)

    def _with_key(self, credential: str) -> Memory:
        name, now = _digest(credential), self._clock()
        try:
            view = self._views.get(name)
            if view is None:
                view = _View(self._guarded(credential), now, float(self._burst), now)
            else:
                self._memory.keyring.verify(credential)
        except NotAllowed as error:
            self._views.pop(name, None)
            raise Refusal("no-credential", str(error), _CHALLENGE) from None
        view.checked = now
        self._views[name] = view
        self._views.move_to_end(name)
        while len(self._views) > _MOST_VIEWS:
            self._views.popitem(last=False)
        return view.memory

    def _without_key(self) -> Memory:
        if self._is_open and not self._memory.keyring.every():
            self._keyless_until = self._clock() + self._recheck
            return self._memory
        self._keyless_until = 0.0
        raise Refusal("no-credential", _WANTED, _CHALLENGE)

    def _guarded(self, credential: str) -> Memory:
        view = self._memory.guarded(credential)
        # One process counts once, and what waits to be written is seen by every reader.
        view.metrics, view.queued = self._memory.metrics, self._memory.queued
        return view

    def admit(self, credential: str | None) -> None:
        """Count a request of a key.

        Raises:
            Refusal: The key asks too often.
        """
        view = None if credential is None else self._views.get(_digest(credential))
        if view is None or not self._rate:
            return
        now = self._clock()
        gained = (now - view.counted) * self._rate
        view.tokens, view.counted = min(float(self._burst), view.tokens + gained), now
        if view.tokens < 1:
            wait = (1 - view.tokens) / self._rate
            detail = f"this key may make {self._rate:g} requests a second; wait and try again"
            raise Refusal("too-many", detail, {"Retry-After": str(max(1, round(wait)))})
        view.tokens -= 1


def _digest(credential: str) -> str:
    return hashlib.sha256(credential.encode("utf-8", "surrogatepass")).hexdigest()


def bearer(header: str | None) -> str | None:
    """Give the credential of an Authorization header, None where there is no header.

    Raises:
        Refusal: The header is no bearer token.
    """
    if header is None:
        return None
    scheme, _, credential = header.partition(" ")
    if scheme.lower() != "bearer" or not credential.strip():
        raise Refusal("no-credential", "Authorization reads `Bearer zm_…`", _CHALLENGE)
    return credential.strip()
