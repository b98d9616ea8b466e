"""Where the units of a namespace stand: their threads, neighbours, episodes and sessions.

Kept up to date change by change: one unit more regroups its own thread and nothing else.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from zero_mem.index.units import Unit
from zero_mem.recall import thread
from zero_mem.recall.levels import Shares

OWN_WEIGHT = 4
"""How often a unit's own text counts in its window's."""

NEXT_WEIGHT = 2
"""And how often in the window of the next unit, which may be its answer."""

FEWEST_LABELS = 2
"""What a text begins with is the name of a counterparty if it repeats so often at least."""

MOST_LABELS = 50
"""And in one of so many units at most; what stands before each is a form, not a name."""

Key: TypeAlias = tuple[str, str, str]


class Standing(NamedTuple):
    """Where one unit stands; an episode and a session bear the number of their first unit."""

    neighbours: tuple[int, ...] = ()
    follower: int = -1
    episode: int = -1
    session: int = -1

    def window_shares(self, index: int) -> Shares:
        """Give the windows that hold the unit's text: its own, and those of its neighbours."""
        near = ((o, NEXT_WEIGHT if o == self.follower else 1) for o in self.neighbours)
        return ((index, OWN_WEIGHT), *near)


class Threads:
    """The standing of every unit.

    Args:
        units: The units, ended ones included; the same list that later changes are made in.
        ended: The indices of those that have ended; the same set that later ones are put in.

    Attributes:
        standing: Of each unit.
        episode_of: The number of each unit's episode.
        session_of: The number of each unit's session.
        neighbours: Of each unit of a thread its neighbours.
        thread_of: Of each unit of a thread the thread's number.
        labels: The counterparty of each unit, "" where none is known.
        labelled: The units of each counterparty.
    """

    def __init__(self, units: Sequence[Unit], ended: Collection[int]) -> None:
        self._units = units
        self._ended = ended
        self._groups: dict[Key, list[int]] = {}
        self._numbers: dict[Key, int] = {}
        self._sessions: dict[str, list[int]] = defaultdict(list)
        self._by_label: dict[str, list[int]] = defaultdict(list)
        self._counts: Counter[str] = Counter()
        self.standing: list[Standing] = []
        self.episode_of: list[int] = []
        self.session_of: list[int] = []
        self.neighbours: dict[int, tuple[int, ...]] = {}
        self.thread_of: dict[int, int] = {}
        self.labels: list[str] = []
        self._labelled: Mapping[str, Sequence[int]] | None = None
        self._most = 0
        self._read(units)

    def _read(self, units: Sequence[Unit]) -> None:
        for index, unit in enumerate(units):
            self._enter(index, unit)
        self._most = self._most_labels()
        self.labels = [self._valid(unit.label) for unit in units]
        for index, unit in enumerate(units):
            if unit.session:
                key = unit.session, self.labels[index], unit.kind
                self._groups.setdefault(key, []).append(index)
        for group in self._groups.values():
            group.sort(key=self._order)
        for key in self._groups:
            self._regroup(key)

    def _enter(self, index: int, unit: Unit) -> None:
        while index >= len(self.standing):
            self.standing.append(Standing())
            self.episode_of.append(-1)
            self.session_of.append(-1)
        if unit.label:
            self._counts[unit.label] += 1
            insort(self._by_label[unit.label], index)
        if unit.session:
            insort(self._sessions[unit.session], index)
            first = self._sessions[unit.session][0]
        else:
            first = index
        self._stand(index, Standing(episode=index, session=first))

    def _order(self, index: int) -> tuple[float, int]:
        return thread.moment(self._units[index]), index

    def _most_labels(self) -> int:
        return max(FEWEST_LABELS, (len(self._units) - len(self._ended)) // MOST_LABELS)

    def _valid(self, label: str) -> str:
        return label if FEWEST_LABELS <= self._counts[label] <= self._most else ""

    def _stand(self, index: int, standing: Standing) -> None:
        self.standing[index] = standing
        self.episode_of[index], self.session_of[index] = standing.episode, standing.session

    # Reading

    @property
    def groups(self) -> Iterator[Sequence[int]]:
        """The threads: units of one session, counterparty and kind, in order of time."""
        return (group for group in self._groups.values() if len(group) > 1)

    @property
    def any(self) -> bool:
        """Whether there is a thread at all."""
        return bool(self.thread_of)

    @property
    def labelled(self) -> Mapping[str, Sequence[int]]:
        """The units of each counterparty."""
        if self._labelled is None:
            held = self._by_label.items()
            self._labelled = {label: units for label, units in held if self._valid(label)}
        return self._labelled

    @property
    def openings(self) -> Iterator[int]:
        """The first unit of each session."""
        return (held[0] for held in self._sessions.values() if held)

    def of_session(self, session: str) -> Sequence[int]:
        """Give the units of a session."""
        return self._sessions.get(session, ())

    # Changes

    def change(self, index: int, old: Unit | None, new: Unit) -> list[int]:
        """Follow a unit that came, changed or ended (and is in the list of units already).

        Returns:
            The units whose standing is another one now.
        """
        self._labelled = None
        before = {index: self.standing[index]} if old else {}
        left = self._leave(index, old) if old else set()
        self._enter(index, new)
        if index == len(self.labels):
            self.labels.append("")
        touched = self._sessions_again({old.session if old else "", new.session}, before)
        most, self._most = self._most, self._most_labels()
        relabelled = self._relabelled({old.label if old else "", new.label}, most)
        for other in relabelled - {index}:
            left |= self._out_of_group(other, self._units[other], before)
        for other in relabelled | {index}:
            unit = self._units[other]
            self.labels[other] = self._valid(unit.label)
            if unit.session:
                key = unit.session, self.labels[other], unit.kind
                insort(self._groups.setdefault(key, []), other, key=self._order)
                left.add(key)
        for key in left:
            for other in self._groups.get(key, ()):
                before.setdefault(other, self.standing[other])
            self._regroup(key)
        known = {*before, *touched}
        moved = {other for other in known if self.standing[other] != before.get(other)}
        return sorted(moved | {index})

    def _leave(self, index: int, old: Unit) -> set[Key]:
        if old.label:
            self._counts[old.label] -= 1
            self._by_label[old.label].remove(index)
        if old.session:
            self._sessions[old.session].remove(index)
        return self._out_of_group(index, old, {})

    def _out_of_group(self, index: int, unit: Unit, before: dict[int, Standing]) -> set[Key]:
        if not unit.session:
            return set()
        key = unit.session, self.labels[index], unit.kind
        self._groups[key].remove(index)
        before.setdefault(index, self.standing[index])
        self.neighbours.pop(index, None)
        self.thread_of.pop(index, None)
        return {key}

    def _sessions_again(self, sessions: Iterable[str], before: dict[int, Standing]) -> set[int]:
        """Renumber the sessions whose first unit is another one now."""
        touched: set[int] = set()
        for held in (self._sessions[session] for session in sessions if session):
            if not held or self.session_of[held[0]] == self.session_of[held[-1]] == held[0]:
                continue
            for other in held:
                before.setdefault(other, self.standing[other])
                self._stand(other, self.standing[other]._replace(session=held[0]))
                touched.add(other)
        return touched

    def _relabelled(self, labels: Iterable[str], most: int) -> set[int]:
        """Give the units whose label counts as a counterparty now and did not, or no more."""
        changed = {label for label in labels if label}
        if most != self._most:
            low, high = sorted((most, self._most))
            changed.update(label for label, n in self._counts.items() if low < n <= high)
        return {
            index
            for label in changed
            for index in self._by_label[label]
            if self.labels[index] != self._valid(label)
        }

    def _regroup(self, key: Key) -> None:
        """Find the neighbours and episodes of a thread anew."""
        group = self._groups[key]
        if not group:
            del self._groups[key]
            return
        number = self._numbers.setdefault(key, len(self._numbers))
        near = thread.neighbours(self._units, group) if len(group) > 1 else {}
        after = dict(pairwise(group))
        for episode in thread.episodes(self._units, group):
            first = min(episode)
            for index in episode:
                session = self.session_of[index]
                standing = Standing(near.get(index, ()), after.get(index, -1), first, session)
                self._stand(index, standing)
                if len(group) > 1:
                    self.neighbours[index] = standing.neighbours
                    self.thread_of[index] = number
                else:
                    self.neighbours.pop(index, None)
                    self.thread_of.pop(index, None)
