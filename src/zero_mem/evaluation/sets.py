"""Sets of evidence: namespaces of records, and questions that name the records they need.

A set is a folder with `corpus.jsonl` and `queries.jsonl`, each plain or gzipped (`.gz`); their
fields are in docs/bench.md. One space is one namespace, one line of the corpus one record.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Final

from zero_mem.errors import InvalidInput
from zero_mem.evaluation.lines import Line, json_lines
from zero_mem.index.units import Unit, label_of
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.profile import Live
from zero_mem.text.segment import content_terms

BUILT_IN: Final[Mapping[str, str]] = {"single_facts": "", "single_facts_one_session": "diary"}
"""Single facts in both languages, made for this: without threads, and all in one session."""

BEFORE: Final = 4
"""How many turns before a live one are its context."""

_STAMPS: Final = ("%I:%M %p on %d %B, %Y", "%Y-%m-%d (%A)")
_CORPUS: Final = ("corpus.jsonl.gz", "corpus.jsonl")
_QUERIES: Final = ("queries.jsonl.gz", "queries.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which questions of a set count; those without evidence never do.

    Attributes:
        only: The one category, "" for all.
        without: A category that is left out, "" for none.
        first: So many questions of each space, 0 for all.
        stale: Only questions that have an outdated answer too.
        why: The reason, for the page.
    """

    only: str = ""
    without: str = ""
    first: int = 0
    stale: bool = False
    why: str = ""

    def of(self, queries: Iterable[Line]) -> list[Line]:
        """Give the questions of one space that count."""
        found = [query for query in queries if query.texts("gold") and self._counts(query)]
        return found[: self.first or None]

    def _counts(self, query: Line) -> bool:
        category = query.text("category", "")
        if self.stale and not query.texts("stale"):
            return False
        return category != self.without if self.without else self.only in ("", category)


EVERY: Final = Selection()

SELECTIONS: Final[Mapping[str, Selection]] = {
    "locomo_audited": Selection(without="adversarial", why="all but adversarial questions"),
    "lifebench_zh": Selection(first=60, why="the first 60 questions of each person"),
    "factcons": Selection(
        only="update-single-hop", stale=True, why="single-hop questions with an outdated fact"
    ),
}
"""How the public sets are asked, as their published figures are; any other set is asked whole."""


@dataclass(slots=True, kw_only=True)
class Space:
    """One namespace: its units in order, with their ids and whole texts."""

    name: str
    corpus: Corpus
    ids: list[str]
    texts: list[str]
    last: datetime | None
    places: dict[str, int] = field(default_factory=dict)

    def session(self, name: str, until: int) -> list[int]:
        """Give the units of a session before one of them."""
        units = self.corpus.units
        return [place for place in range(until) if units[place].session == name]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question as it is put to every row.

    Attributes:
        space: Where it is asked.
        text: The question.
        answers: What would be right, any of them.
        category: Its category in the set.
        gold: The ids of its evidence.
        stale: The ids of evidence that is outdated.
        half: 0 or 1, the half of the set that it belongs to.
        moment: When it is asked.
        live: The running conversation that it continues, if it does.
        until: Only units before this place may be found.
    """

    space: Space
    text: str
    answers: tuple[str, ...]
    category: str
    gold: frozenset[str]
    stale: frozenset[str] = frozenset()
    half: int = 0
    moment: datetime | None = None
    live: Live | None = None
    session: str = ""
    until: int = sys.maxsize

    def allowed(self, index: int) -> bool:
        """A live turn sees what was before it, in other sessions: its own is in the prompt."""
        if self.live is None:
            return True
        return index < self.until and self.space.corpus.units[index].session != self.session

    @cached_property
    def evidence(self) -> frozenset[int]:
        """The places of the evidence."""
        return frozenset(self.space.places[name] for name in self.gold)


@dataclass(frozen=True, kw_only=True)
class EvidenceSet:
    """A set as it is measured; `digest` is the SHA-256 of its two files."""

    name: str
    spaces: Sequence[Space]
    questions: Sequence[Asked]
    digest: str = ""
    why: str = ""


def find(paths: Sequence[Path], names: Sequence[str] = ()) -> dict[str, Path | None]:
    """Find the sets in some folders; the built-in ones have no folder.

    Args:
        paths: Folders of sets, or of one set each.
        names: The sets that are wanted; all where there are none.

    Raises:
        InvalidInput: There is no set, two have one name, or a name stands for none.
    """
    there: dict[str, Path | None] = {}
    for path in paths:
        for folder in _folders(path):
            if folder.name in there:
                raise InvalidInput(f"two sets are called {folder.name}: {folder} is the second")
            there[folder.name] = folder
    there |= dict.fromkeys(BUILT_IN)
    for name in names:
        if name not in there:
            raise InvalidInput(f"no set {name!r}; there are {', '.join(there)}")
    return {name: there[name] for name in names or there}


def _folders(path: Path) -> list[Path]:
    if not path.is_dir():
        raise InvalidInput(f"{path}: no such folder")
    if _file(path, _CORPUS):
        return [path.resolve()]
    found = sorted(folder for folder in path.iterdir() if _file(folder, _CORPUS))
    if not found:
        raise InvalidInput(
            f"{path}: no set here; a set is a folder with corpus.jsonl and queries.jsonl, "
            "plain or gzipped"
        )
    return found


def _file(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read(name: str, folder: Path | None, *, every: bool = False, limit: int = 0) -> EvidenceSet:
    """Read a set.

    Args:
        name: Its name; of the public sets it decides which questions count.
        folder: Where it is; None for a built-in one.
        every: Ask every question that has evidence.
        limit: At most so many questions of each space, 0 for all.

    Raises:
        InvalidInput: A file is missing, or a line is not as documented.
    """
    if folder is None:
        return _single_facts(name, BUILT_IN[name], limit)
    corpus, queries = _file(folder, _CORPUS), _file(folder, _QUERIES)
    if corpus is None or queries is None:
        raise InvalidInput(f"{folder}: a set has a queries.jsonl (or .gz) beside its corpus")
    selection = EVERY if every else SELECTIONS.get(name, EVERY)
    spaces = _spaces(corpus)
    asked = _questions(spaces, list(json_lines(queries)), selection, limit)
    if not asked:
        raise InvalidInput(f"{queries}: no question names its evidence (`gold`)")
    digest = hashlib.sha256(corpus.read_bytes() + queries.read_bytes()).hexdigest()
    return EvidenceSet(
        name=name,
        spaces=list(spaces.values()),
        questions=asked,
        digest=digest,
        why=_why(selection, limit),
    )


def _why(selection: Selection, limit: int) -> str:
    why = selection.why or "every question that names its evidence"
    return f"{why}, at most {limit} of each space" if limit else why


def _spaces(path: Path) -> dict[str, Space]:
    lines: dict[str, list[Line]] = {}
    for line in json_lines(path):
        lines.setdefault(line.text("space"), []).append(line)
    if not lines:
        raise InvalidInput(f"{path}: it has no record")
    return {name: _space(name, some) for name, some in lines.items()}


def _space(name: str, lines: Sequence[Line]) -> Space:
    units = [_unit(position, line) for position, line in enumerate(lines, start=1)]
    space = Space(
        name=name,
        corpus=Corpus(units),
        ids=[line.text("id") for line in lines],
        texts=[line.text("text") for line in lines],
        last=max((unit.stamp for unit in units if unit.stamp), default=None),
    )
    for place, line in enumerate(lines):
        if space.places.setdefault(line.text("id"), place) != place:
            raise line.wrong(f"the id {line.text('id')!r} is there twice in space {name!r}")
    return space


def _unit(position: int, line: Line) -> Unit:
    text, speaker = line.text("text"), line.text("speaker", "")
    return Unit(
        position=position,
        terms=tuple(map(sys.intern, (*content_terms(text), *content_terms(speaker)))),
        text=text[:1000],
        stamp=stamp(line, "ts"),
        speaker=speaker,
        session=line.text("session", ""),
        kind=line.text("kind", "message"),
        label=label_of(text),
    )


def stamp(line: Line, field: str) -> datetime | None:
    """Read a time; None where there is none, or where it only counts (`"17"`).

    Raises:
        InvalidInput: It is in no form that is read.
    """
    written = line.text(field, "")
    if not written or written.isdecimal():
        return None
    found = _time(written)
    if found is None:
        raise line.wrong(f"{field!r} is no time; write 2026-05-03 or 2026-05-03T14:30:00+00:00")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _time(written: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(written)
    for form in _STAMPS:
        with suppress(ValueError):
            return datetime.strptime(written, form).replace(tzinfo=UTC)
    return None


def _questions(
    spaces: Mapping[str, Space], lines: Iterable[Line], selection: Selection, limit: int
) -> list[Asked]:
    by_space: dict[str, list[Line]] = {name: [] for name in spaces}
    for line in lines:
        name = line.text("space")
        if name not in by_space:
            raise line.wrong(f"the corpus has no space {name!r}")
        by_space[name].append(line)
    numbers = count()
    places = {name: place for place, name in enumerate(sorted(by_space))}
    return [
        _asked(spaces[name], line, places[name] if len(places) > 1 else next(numbers))
        for name, some in by_space.items()
        for line in selection.of(some)[: limit or None]
    ]


def _asked(space: Space, line: Line, number: int) -> Asked:
    gold, stale = line.texts("gold"), line.texts("stale")
    for name in (*gold, *stale):
        if name not in space.places:
            raise line.wrong(f"space {space.name!r} has no record {name!r}")
    moment, live, session, until = _moment(line) or space.last, None, "", sys.maxsize
    units = space.corpus.units
    if before := line.text("before", ""):
        if before not in space.places:
            raise line.wrong(f"space {space.name!r} has no record {before!r}")
        until = space.places[before]
        session, moment = units[until].session, units[until].stamp
        said = space.session(session, until)
        live = Live(speaker=units[until].speaker, before=tuple(said[-BEFORE:]), moment=moment)
    return Asked(
        space=space,
        text=line.text("question"),
        answers=tuple(line.texts("answers") or line.texts("answer")),
        category=line.text("category", "") or "all",
        gold=frozenset(gold),
        stale=frozenset(stale),
        half=number % 2,
        moment=moment,
        live=live,
        session=session,
        until=until,
    )


def _moment(line: Line) -> datetime | None:
    """Read when a question is asked; of a month without a day, near its end."""
    written = line.text("ask_time", "")
    if len(written) == len("2026-05") and written[4:5] == "-":
        return stamp(line.having("ask_time", f"{written}-28"), "ask_time")
    return stamp(line, "ask_time")


def _single_facts(name: str, session: str, limit: int) -> EvidenceSet:
    """Make a namespace of single facts, in both languages; in one session, or in none."""
    path = files("zero_mem.evaluation").joinpath("short_memories.jsonl")
    facts = list(json_lines(Path(str(path))))
    begin, apart = datetime(2026, 1, 5, 9, tzinfo=UTC), timedelta(minutes=12 if session else 1200)
    lines = [
        Line(
            fact.path,
            fact.number,
            {
                "space": name,
                "id": str(place),
                "text": fact.text("text"),
                "session": session,
                "ts": (begin + apart * place).isoformat(),
                "question": fact.text("query"),
                "gold": [str(place)],
                "category": "en" if fact.text("text").isascii() else "zh",
            },
        )
        for place, fact in enumerate(facts)
    ]
    space = _space(name, lines)
    asked = _questions({name: space}, lines, EVERY, limit)
    return EvidenceSet(name=name, spaces=[space], questions=asked, why=_why(EVERY, limit))


def each(
    found: Mapping[str, Path | None], *, every: bool = False, limit: int = 0
) -> Iterator[EvidenceSet]:
    """Read sets one after the other; one is in memory at a time."""
    for name, folder in found.items():
        yield read(name, folder, every=every, limit=limit)
