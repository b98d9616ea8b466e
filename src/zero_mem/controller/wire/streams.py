"""What the editors of the three vendors' streams have in common.

An editor sees the events of one upstream stream after another, as many as the rounds of one
call have, and gives those of the one stream that the host gets. It does no input or output
and decides nothing: what a handle stands for and whose a call is, it asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from zero_mem.controller.fragments import Fragments
from zero_mem.controller.wire.server_sent import Event


class Expander(Protocol):
    """Knows whose the calls of a response are, and expands its outputs."""

    def is_ours(self, tool: str) -> bool:
        """Tell whether a call to this tool is answered here."""

    def text(self) -> Fragments:
        """Expand a text for the user as it comes in."""

    def arguments(self, tool: str, *, free: bool = False) -> Fragments:
        """Expand the arguments of a call as they come in: JSON, or free text."""


class Passage:
    """One output on its way: as the model wrote it, and as the host gets it."""

    def __init__(self, fragments: Fragments) -> None:
        self._fragments = fragments
        self._written: list[str] = []
        self._shown: list[str] = []

    def feed(self, fragment: str) -> str:
        """Take a fragment; give what the host gets of it now."""
        self._written.append(fragment)
        out = self._fragments.feed(fragment)
        self._shown.append(out)
        return out

    def close(self) -> str:
        """Give what is held back, as it is."""
        out = self._fragments.close()
        self._shown.append(out)
        return out

    @property
    def written(self) -> str:
        """As the model wrote it."""
        return "".join(self._written)

    @property
    def shown(self) -> str:
        """As the host has it."""
        return "".join(self._shown)

    @property
    def held(self) -> str:
        """What is held back."""
        return self._fragments.held

    @property
    def passed_on(self) -> str:
        """As the model wrote it, less what is held back."""
        return self.written.removesuffix(self.held)


class StreamEditor(ABC):
    """Turns the streams of the rounds of one call into the one that the host gets.

    `complete` tells that the provider has ended its turn: `response` gives the whole of it,
    and the events that end it wait for `release`.
    """

    def __init__(self) -> None:
        self.complete = False
        self.rounds = 0
        self.usage: Any = None
        self._waiting: list[Event] = []
        self._swallowing = False

    def begin(self, expander: Expander) -> None:
        """Begin with the next upstream stream."""
        self.rounds += 1
        self.complete = self._swallowing = False
        self._expander = expander
        self._waiting = []
        self._begin()

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def feed(self, event: Event) -> list[Event]:
        """Take an event; give what the host gets of it now."""

    @abstractmethod
    def flush(self) -> list[Event]:
        """Give what is held back, as it is."""

    @abstractmethod
    def response(self, *, partial: bool = False) -> dict[str, Any]:
        """Give what the provider produced in this round, in its own form.

        Args:
            partial: Leave out what is not complete, but for texts, and calls that nobody
                has answered.
        """

    @abstractmethod
    def failure(self, message: str) -> list[Event]:
        """Write an error as this vendor does in a stream."""

    @abstractmethod
    def ends(self, event: Event) -> bool:
        """Tell whether an event ends the provider's turn."""

    @abstractmethod
    def _passages(self) -> Iterator[Passage]: ...

    @property
    def holds_back(self) -> bool:
        """True where the beginning of what may be a handle is held back."""
        return any(passage.held for passage in self._passages())

    def _end(self, event: Event) -> None:
        self.complete = True
        self._waiting.append(event)

    def release(self, *, swallow: bool) -> list[Event]:
        """Give the events that end the turn, or swallow them where another round follows."""
        self._swallowing = swallow
        waiting, self._waiting = self._waiting, []
        return [] if swallow else waiting


def fields_of(value: Any) -> dict[str, Any]:
    """Read an object; what is none has no fields."""
    return dict(value) if isinstance(value, Mapping) else {}


def place_of(data: Mapping[str, Any], name: str = "index") -> int:
    """Read an index, 0 where there is none; what is no number is no place."""
    value = data.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def edited(event: Event, **fields: Any) -> Event:
    """Give an event with other values in some fields; itself where none is another."""
    if all(event.data.get(name) == value for name, value in fields.items()):
        return event
    return Event(name=event.name, data={**event.data, **fields}, source=event.source)


def accumulate(own: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add the fields of a delta: texts are joined, lists go on, objects are filled.

    Names are not joined: some servers repeat them.
    """
    for name, value in delta.items():
        before = own.get(name)
        if isinstance(before, str) and isinstance(value, str):
            own[name] = (value or before) if name in _NAMES else before + value
        elif isinstance(before, list) and isinstance(value, list):
            own[name] = _with_entries(before, value)
        elif isinstance(before, Mapping) and isinstance(value, Mapping):
            inside = dict(before)
            accumulate(inside, value)
            own[name] = inside
        elif value is not None or name not in own:
            own[name] = _with_entries([], value) if isinstance(value, list) else value


_NAMES = frozenset({"role", "type", "id", "index", "object", "name"})


def _with_entries(before: list[Any], value: list[Any]) -> list[Any]:
    """Add entries to a list; those with an index go on where they began."""
    entries = list(before)
    places = {e["index"]: i for i, e in enumerate(entries) if _is_indexed(e)}
    for entry in value:
        place = places.get(entry["index"]) if _is_indexed(entry) else None
        if place is None:
            if _is_indexed(entry):
                places[entry["index"]] = len(entries)
            entries.append(entry)
        else:
            inside = dict(entries[place])
            accumulate(inside, entry)
            entries[place] = inside
    return entries


def _is_indexed(entry: Any) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("index"), int)
