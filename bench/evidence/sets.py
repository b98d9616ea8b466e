"""The sets of `bench/recall.py`: namespaces of records, and questions with their evidence."""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from zero_mem.index.units import Unit, label_of
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.profile import Live
from zero_mem.text.segment import content_terms
from zero_mem.text.tokens import tokenizer

SHORT = Path(__file__).parent.with_name("short_memories.jsonl")

FIRST_QUESTIONS = 60
"""Of each person of LifeBench so many are asked, as in the published figures; `--all` asks all."""

STAMPS = ("%I:%M %p on %d %B, %Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d", "%Y-%m-%d (%A)")

COUNT = tokenizer("o200k").count

Query: TypeAlias = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Space:
    """One namespace: its units in order, their ids, whole texts, and questions."""

    name: str
    corpus: Corpus
    ids: list[str]
    texts: list[str]
    queries: list[Query] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    tokens: dict[int, int] = field(default_factory=dict)

    def size(self, index: int) -> int:
        """Count the tokens of a whole text."""
        if index not in self.tokens:
            self.tokens[index] = max(1, COUNT(self.texts[index]))
        return self.tokens[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question as it is put to every row."""

    space: Space
    text: str
    category: str
    gold: frozenset[str]
    moment: datetime | None
    live: Live | None = None
    session: str = ""
    until: int = sys.maxsize

    def allowed(self, index: int) -> bool:
        """A live turn sees what was before it, in other sessions: its own is in the prompt."""
        if self.live is None:
            return True
        return index < self.until and self.space.corpus.units[index].session != self.session


def json_lines(path: Path) -> Iterator[Any]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def stamp(written: str | None) -> datetime | None:
    """Read a time as the sets write it; None where there is none."""
    for form in STAMPS if written else ():
        try:
            return datetime.strptime(str(written), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def unit(position: int, line: Mapping[str, Any]) -> Unit:
    text, speaker = line["text"], line["speaker"] or ""
    return Unit(
        position=position,
        terms=tuple(map(sys.intern, (*content_terms(text), *content_terms(speaker)))),
        text=text[:1000],
        stamp=stamp(line["ts"]),
        speaker=speaker,
        session=line["session"] or "",
        kind="message",
        label=label_of(text),
    )


def spaces(folder: Path) -> list[Space]:
    """Read a set."""
    lines: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for line in json_lines(folder / "corpus.jsonl.gz"):
        lines[line["space"]].append(line)
    found = {
        name: Space(
            name=name,
            corpus=Corpus(unit(place, line) for place, line in enumerate(some, start=1)),
            ids=[line["id"] for line in some],
            texts=[line["text"] for line in some],
        )
        for name, some in lines.items()
    }
    for query in json_lines(folder / "queries.jsonl.gz"):
        found[query["space"]].queries.append(query)
    return list(found.values())


def short_space(session: str) -> Space:
    """Make a namespace of single facts, in both languages; in one session, or in none."""
    facts = list(json_lines(SHORT))
    begin, apart = datetime(2026, 1, 5, 9, tzinfo=UTC), timedelta(minutes=12 if session else 1200)
    lines = [
        {"text": f["text"], "speaker": None, "session": session, "ts": str(begin + apart * n)[:19]}
        for n, f in enumerate(facts)
    ]
    space = Space(
        name=session or "none",
        corpus=Corpus(unit(place, line) for place, line in enumerate(lines, start=1)),
        ids=[str(n) for n in range(len(facts))],
        texts=[f["text"] for f in facts],
    )
    space.queries = [
        {
            "question": f["query"],
            "gold": [str(n)],
            "category": "en" if f["text"].isascii() else "zh",
        }
        for n, f in enumerate(facts)
    ]
    return space


def questions(name: str, found: Sequence[Space], *, every: bool) -> list[Asked]:
    """Give the questions of a set that have evidence and count for its figures."""
    return [
        asked(space, query)
        for space in found
        for query in (space.queries if every else _counted(name, space.queries))
        if query["gold"]
    ]


def _counted(name: str, queries: Sequence[Query]) -> Sequence[Query]:
    if name == "locomo_audited":
        return [q for q in queries if q["category"] != "adversarial"]
    if name == "lifebench_zh":
        return [q for q in queries if q["gold"]][:FIRST_QUESTIONS]
    if name == "factcons":
        return [q for q in queries if q["category"] == "update-single-hop" and q["stale"]]
    return queries


def asked(space: Space, query: Query) -> Asked:
    moment, live, session, until = _last(space), None, "", sys.maxsize
    if month := query.get("ask_time"):
        moment = datetime.strptime(month, "%Y-%m").replace(day=28, tzinfo=UTC)
    units = space.corpus.units
    if before := query.get("before"):
        space.places = space.places or {name: n for n, name in enumerate(space.ids)}
        until = space.places[before]
        session, moment = units[until].session, units[until].stamp
        said = [n for n in range(until) if units[n].session == session]
        live = Live(speaker=units[until].speaker, before=tuple(said[-4:]), moment=moment)
    return Asked(
        space=space,
        text=query["question"],
        category=query["category"],
        gold=frozenset(query["gold"]),
        moment=moment,
        live=live,
        session=session,
        until=until,
    )


def _last(space: Space) -> datetime | None:
    stamps = [unit.stamp for unit in space.corpus.units if unit.stamp]
    return max(stamps, default=None)


def sets(data: Path, names: Sequence[str], *, every: bool) -> Iterator[tuple[str, list[Asked]]]:
    """Give each set with its questions; a set that is not in the folder is passed over."""
    for name in names:
        if (data / name / "corpus.jsonl.gz").exists():
            yield name, questions(name, spaces(data / name), every=every)
    for title, session in (("short, no session", ""), ("short, one session", "diary")):
        yield title, questions(title, [short_space(session)], every=True)
