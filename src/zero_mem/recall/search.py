"""Finding records: a ranking of units, and the store's own word on each of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache, partial
from itertools import islice

from zero_mem.index.document import index_terms, searched_text
from zero_mem.index.units import unit_of
from zero_mem.recall.arithmetic import arithmetic
from zero_mem.recall.corpora import Corpora, fits, units_of
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.events import Event
from zero_mem.recall.lexical import StoredLexicon, rank
from zero_mem.recall.pipeline import HEAD, Ranking, newest_first
from zero_mem.recall.pipeline import rank as rank_units
from zero_mem.recall.profile import Live
from zero_mem.recall.request import Explanation, Finding, Request, visible
from zero_mem.storage.base import NamespaceRow, Stored, Transaction
from zero_mem.text.segment import content_terms, fold
from zero_mem.types import Hit, MemoryRecord

_CHUNK = 30

CANDIDATES = 200
"""Of a namespace too large to rank as a whole so many are ranked: by their words the best, and
half as many by their meaning."""

PREVIOUS = 4
"""How many turns before a live one are its context."""

NEAR = 0.5
"""Of the dense score of the record that is nearest, this much says that a record is near too."""

_REACH = 2
"""How many rows each side are read for a record's neighbours."""

_FAR = 16
"""And how many where those are of other threads, as tool results are between two messages."""


def search(
    transaction: Transaction, row: NamespaceRow, request: Request, corpora: Corpora
) -> Iterator[Finding]:
    """Find the records of a namespace that match a query, best first, lazily.

    The index holds active records; a filter that names another state reads them all.
    """
    if request.where.names_state:
        records = [stored.record for stored in transaction.scan(row, request.where.equalities())]
        yield from search_listed(records, request)
    elif not content_terms(request.query):
        equalities = {**request.where.equalities(), "state": ("active",)}
        yield from _literal((s.record for s in transaction.scan(row, equalities)), request)
    elif fits(row):
        with corpora.corpus(transaction, row) as corpus:
            ranking = _ranked(corpus, request)
            order = ranking.order()
        yield from _found(ranking, order, request, _reader(transaction, row, corpus))
    else:
        yield from _among_candidates(transaction, row, request, corpora)


def _ranked(corpus: Corpus, request: Request) -> Ranking:
    units, session = corpus.units, request.session
    live, similarities = None, request.similarities
    if session:
        before = tuple(corpus.threads.of_session(session)[-PREVIOUS:])
        live = Live(speaker=request.speaker, before=before, moment=request.asked_at)
    if similarities:
        similarities = arithmetic(dense=True).placed(corpus, similarities)
    return rank_units(
        corpus,
        request.query,
        config=request.config,
        asked_at=request.asked_at,
        live=live,
        similarities=similarities,
        allowed=(lambda index: units[index].session != session) if session else None,
    )


_Reader = Callable[[Sequence[int]], Mapping[int, MemoryRecord]]


def _reader(transaction: Transaction, row: NamespaceRow, corpus: Corpus) -> _Reader:
    """Give a function that reads the records at some places of a corpus from the store."""

    def read(indices: Sequence[int]) -> Mapping[int, MemoryRecord]:
        by_position = {corpus.units[index].position: index for index in indices}
        found = transaction.by_positions(row, list(by_position))
        return {by_position[position]: stored.record for position, stored in found.items()}

    return read


def _found(
    ranking: Ranking, order: Iterable[int], request: Request, read: _Reader
) -> Iterator[Finding]:
    """Give the visible records of a ranking; of its head, the newer version of a fact first."""
    shown = _visible(ranking, order, request, read)
    head = dict(islice(shown, HEAD))
    indices, replacing = newest_first(ranking.corpus, list(head), request.config)
    notes = cache(lambda: _notes(ranking, request, read))
    scores = sorted((ranking.score(index) for index in indices), reverse=True)
    for index, score in zip(indices, scores, strict=True):
        newer = head[replacing[index]].memory_id if index in replacing else ""
        yield _finding(ranking, index, head[index], score, newer, notes)
    for index, record in shown:
        yield _finding(ranking, index, record, ranking.score(index), "", notes)


def _finding(
    ranking: Ranking,
    index: int,
    record: MemoryRecord,
    score: float,
    newer: str,
    notes: Callable[[], Mapping[Event, str]],
) -> Finding:
    def why() -> Explanation:
        parts = ranking.parts(index)
        return Explanation(parts, "; ".join(notes().values()) if "x event" in parts else "")

    return Finding(Hit(memory_id=record.memory_id, score=score, record=record), why, newer)


def _notes(ranking: Ranking, request: Request, read: _Reader) -> Mapping[Event, str]:
    """Say which memory told when an event was, unless it may not be shown."""
    events = ranking.question.events
    records = read([event.unit for event in events]) if events else {}
    notes: dict[Event, str] = {}
    for event in events:
        record = records.get(event.unit)
        if record and visible(record, request.where, request.now) and request.shown(record):
            days = " to ".join(date.fromordinal(day).isoformat() for day in sorted({*event.span}))
            notes[event] = f"{event.phrase!r} means {days}, by memory {record.memory_id}"
    return notes


def _visible(
    ranking: Ranking, order: Iterable[int], request: Request, read: _Reader
) -> Iterator[tuple[int, MemoryRecord]]:
    wanted = (i for i in order if not request.own_words or _matches(ranking, i, request))
    while chunk := list(islice(wanted, _CHUNK)):
        records = read(chunk)
        for index in chunk:
            record = records.get(index)
            if record is not None and visible(record, request.where, request.now):
                yield index, record


def _matches(ranking: Ranking, index: int, request: Request) -> bool:
    """Tell whether a unit holds a word of the query, or is near it in meaning."""
    dense = ranking.view.added.get("dense")
    near = dense is not None and dense(index) >= NEAR * request.config.dense
    return near or ranking.view.own(index) > 0


def search_listed(records: Iterable[MemoryRecord], request: Request) -> Iterator[Finding]:
    """Find among given records, with their own statistics (the past, the archive)."""
    shown = [record for record in records if visible(record, request.where, request.now)]
    if not content_terms(request.query):
        yield from _literal(shown, request)
        return
    corpus = Corpus(unit_of(r, place, index_terms(r)) for place, r in enumerate(shown))
    ranking = _ranked(corpus, request)
    yield from _found(
        ranking,
        ranking.order(),
        request,
        lambda indices: {index: shown[index] for index in indices},
    )


def _among_candidates(
    transaction: Transaction, row: NamespaceRow, request: Request, corpora: Corpora
) -> Iterator[Finding]:
    """Rank the best candidates and their neighbours; then go on by words alone."""
    terms = list(dict.fromkeys(content_terms(request.query)))
    lexicon = StoredLexicon(transaction, row)
    ranked = rank(lexicon, terms)
    near = request.similarities or {}
    by_meaning = heapq.nlargest(CANDIDATES // 2, near, key=near.__getitem__)
    by_words = (scored.position for scored in islice(ranked, CANDIDATES))
    first = list(dict.fromkeys([*by_words, *by_meaning]))
    stored = _with_neighbours(transaction, row, first)
    units = units_of(transaction, row, [stored[position] for position in sorted(stored)])
    corpus = Corpus(
        units,
        frequencies=lexicon.frequencies(terms),
        total=row.documents,
        coherent=corpora.coherent(transaction, row),
        extractor=corpora.extractor,
        date_parser=corpora.date_parser,
    )
    ranking = _ranked(corpus, request)
    lowest = 1.0
    for finding in _found(ranking, ranking.order(), request, _reader(transaction, row, corpus)):
        lowest = finding.hit.score
        yield finding
    while chunk := list(islice(ranked, _CHUNK)):
        found = transaction.by_positions(row, [position for position, _ in chunk])
        for position, score in chunk:
            record = found[position].record
            if position not in stored and visible(record, request.where, request.now):
                hit = Hit(memory_id=record.memory_id, score=min(score, lowest), record=record)
                yield Finding(hit, partial(Explanation, {"own": score}))


def _with_neighbours(
    transaction: Transaction, row: NamespaceRow, positions: Sequence[int]
) -> Mapping[int, Stored]:
    """Read records and, of those in a session, the ones beside them in the same session."""
    found = transaction.by_positions(row, positions)
    talking = [position for position, stored in found.items() if stored.record.session]
    near = _around(transaction, row, talking, found, _REACH)
    apart = [p for p in talking if _interrupted(near, p)]
    near = _around(transaction, row, apart, near, _FAR)
    sessions = {stored.record.session for stored in found.values()}
    beside = {p: s for p, s in near.items() if s.record.state == "active"}
    return {**found, **{p: s for p, s in beside.items() if s.record.session in sessions}}


def _around(
    transaction: Transaction,
    row: NamespaceRow,
    positions: Iterable[int],
    known: Mapping[int, Stored],
    reach: int,
) -> Mapping[int, Stored]:
    """Read the rows up to `reach` from some positions, beside those that are known."""
    wanted = {near for p in positions for near in range(p - reach, p + reach + 1)}
    return {**known, **transaction.by_positions(row, sorted(wanted.difference(known)))}


def _interrupted(near: Mapping[int, Stored], position: int) -> bool:
    """Tell whether a row beside a record is of another thread, so that its own goes on behind."""
    record = near[position].record
    thread = (record.session, record.kind)
    beside = (near.get(position + step) for step in range(-_REACH, _REACH + 1))
    return any(s is not None and (s.record.session, s.record.kind) != thread for s in beside)


def _literal(records: Iterable[MemoryRecord], request: Request) -> Iterator[Finding]:
    """Find a query that no index knows (`*`, `to be or not`) as it stands, newest first."""
    wanted = fold(request.query).strip()
    for record in reversed([r for r in records if visible(r, request.where, request.now)]):
        if wanted in fold(searched_text(record)):
            yield Finding(Hit(memory_id=record.memory_id, score=1.0, record=record))
