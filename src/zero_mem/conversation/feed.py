"""An offloader that goes on where the last request of a conversation ended.

What an offloader decides is a function of the messages and the inserted texts that it was fed.
So one that was fed a history can go on with any longer one; every other history starts anew.
Both ways give the same decisions; the first costs only what is new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from zero_mem.controller.core import Insertion, Offloader
from zero_mem.controller.messages import Message

Make = Callable[[], Offloader]


class Feed:
    """Keeps the offloader of one conversation between its requests, and digests of what it saw."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._kept: tuple[Offloader, list[bytes]] = (make(), [])

    def start(self) -> Fed:
        """Begin to feed a history from its first message on."""
        kept, self._kept = self._kept, (self._make(), [])
        return Fed(self._make, *kept)

    def keep(self, fed: Fed) -> None:
        """Go on from here next time; a history that was not fed to its end is not kept."""
        self._kept = fed.state()


class Fed:
    """A history that is being fed, with the interface of the offloader behind it.

    Messages are held back for as long as they are those that the kept offloader has seen.
    """

    def __init__(self, make: Make, kept: Offloader, seen: list[bytes]) -> None:
        self._make = make
        self._kept = kept
        self._expected = seen
        self._seen: list[bytes] = []
        self._held: list[tuple[Message, str | None]] = []
        self._open: Offloader | None = None

    def observe(self, message: Message) -> None:
        """Take a message that is no tool result."""
        self._take(message, None)

    def adopt(self, message: Message, text: str) -> None:
        """Take a result whose insertion was decided before."""
        self._take(message, text)

    def insert(self, message: Message, memory_id: str) -> Insertion:
        """Decide what stands in the place of a new result."""
        offloader = self._opened()
        insertion = offloader.insert(message, memory_id)
        self._seen.append(_digest(message, insertion.text))
        return insertion

    def state(self) -> tuple[Offloader, list[bytes]]:
        """Give the offloader as it is now, and the digests of all that it was fed."""
        return self._opened(), self._seen

    def _take(self, message: Message, text: str | None) -> None:
        place, digest = len(self._seen), _digest(message, text)
        self._seen.append(digest)
        if self._open is not None:
            _feed(self._open, message, text)
            return
        self._held.append((message, text))
        if self._expected[place : place + 1] != [digest]:
            self._opened()

    def _opened(self) -> Offloader:
        """Stop to hold back: go on with the kept offloader, or feed a new one all there was."""
        if self._open is None:
            known = len(self._expected)
            goes_on = self._seen[:known] == self._expected
            self._open = self._kept if goes_on else self._make()
            for message, text in self._held[known if goes_on else 0 :]:
                _feed(self._open, message, text)
            self._held.clear()
        return self._open


def _feed(offloader: Offloader, message: Message, text: str | None) -> None:
    if text is None:
        offloader.observe(message)
    else:
        offloader.adopt(message, text)


def _digest(message: Message, inserted: str | None) -> bytes:
    calls = [part for call in message.calls for part in (call.call_id, call.name, call.arguments)]
    parts = [message.role, message.text, message.tool, inserted or "", str(inserted is None)]
    named = hashlib.blake2b(digest_size=16)
    for part in (*parts, *calls):
        written = part.encode("utf-8", "surrogatepass")
        named.update(b"%d:" % len(written))
        named.update(written)
    return named.digest()
