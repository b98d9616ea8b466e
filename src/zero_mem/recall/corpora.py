"""The corpora of a store's namespaces, kept while the process runs and brought up to date.

A corpus is valid for one journal position. What it is used for is only the order of records:
their state, expiry and content are read from the store again, in the reader's transaction.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from zero_mem.index.document import index_terms
from zero_mem.index.units import Unit, unit_of
from zero_mem.models.date_parsers import DateParser
from zero_mem.recall.corpus import Corpus
from zero_mem.storage.base import LARGEST, MOST_TERMS, NamespaceRow, Stored, Transaction
from zero_mem.text.entities import RULES, EntityExtractor
from zero_mem.types import Path

CACHED_UNITS = 60_000
"""How many units of all namespaces are kept; those used least recently go first."""

SAMPLED = 64
"""So many places of a large namespace show whether its threads hold together."""

FOLLOWING = 6
"""At each of them so many records are read, since between two messages may be tool results."""

FOLLOWED = 500
"""How many journal entries are followed; beyond, a corpus is made anew."""


@dataclass(slots=True)
class _Kept:
    lock: threading.RLock = field(default_factory=threading.RLock)
    corpus: Corpus | None = None
    sequence: int = 0
    count: int = 0
    """How many units of it the total has."""


class Corpora:
    """The corpora of one store; safe to share between threads.

    Args:
        most: How many units of all namespaces are kept; the attribute may be set at any time.
        extractor: Finds names, in records and in questions.
        date_parser: Reads time phrases that the rules do not know.
    """

    def __init__(
        self,
        *,
        most: int = CACHED_UNITS,
        extractor: EntityExtractor = RULES,
        date_parser: DateParser | None = None,
    ) -> None:
        self.extractor = extractor
        self.date_parser = date_parser
        self._kept: OrderedDict[Path, _Kept] = OrderedDict()
        self._coherent: dict[Path, tuple[int, bool]] = {}
        self._lock = threading.Lock()
        self._units = 0
        self.most = most

    @contextmanager
    def corpus(self, transaction: Transaction, row: NamespaceRow) -> Iterator[Corpus]:
        """Give the corpus of a namespace as of its row; nobody else uses it meanwhile."""
        with self._lock:
            kept = self._kept.setdefault(row.path, _Kept())
            self._kept.move_to_end(row.path)
        with kept.lock:
            corpus = self._current(transaction, row, kept)
            kept.corpus, kept.sequence = corpus, max(row.sequence, kept.sequence)
            self._weigh(row.path, kept)
            yield corpus

    def _current(self, transaction: Transaction, row: NamespaceRow, kept: _Kept) -> Corpus:
        corpus = kept.corpus
        # An older snapshot than the cached one still finds its own rows; what it lacks, it drops.
        if corpus is not None and row.sequence <= kept.sequence:
            return corpus
        if corpus is not None and _follow(transaction, row, kept.sequence, corpus):
            return corpus
        return Corpus(
            _units(transaction, row), extractor=self.extractor, date_parser=self.date_parser
        )

    def coherent(self, transaction: Transaction, row: NamespaceRow) -> bool:
        """Tell by a sample whether the threads of a large namespace hold together."""
        known = self._coherent.get(row.path)
        if known is None or row.positions > 1.5 * known[0]:
            positions = [row.position(n) for n in _sampled(row.positions)]
            found = transaction.by_positions(row, positions)
            stored = [found[position] for position in sorted(found)]
            sample = Corpus(units_of(transaction, row, stored))
            known = self._coherent[row.path] = (row.positions, sample.coherent)
        return known[1]

    @property
    def units(self) -> int:
        """How many units of all namespaces are kept now."""
        return self._units

    def forget(self, path: Path) -> None:
        """Forget a namespace's corpus at once, as a purge has to."""
        with self._lock:
            kept = self._kept.pop(path, None)
            self._units -= kept.count if kept else 0

    def _weigh(self, path: Path, kept: _Kept) -> None:
        """Count a corpus as large as it is now, and let the least recently used go."""
        count = kept.corpus.count if kept.corpus else 0
        with self._lock:
            # It may have been forgotten while it was made.
            if self._kept.get(path) is kept:
                self._units += count - kept.count
                kept.count = count
            while self._units > self.most and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._units -= oldest.count


def _sampled(count: int) -> list[int]:
    """Choose the counts of some records at even steps, each with the few after it."""
    step = max(FOLLOWING, count // SAMPLED)
    starts = range(1, count + 1, step)
    return [n + more for n in starts for more in range(FOLLOWING) if n + more <= count]


def fits(row: NamespaceRow) -> bool:
    """Tell whether a namespace is ranked as a whole."""
    return row.documents <= LARGEST and row.length <= MOST_TERMS


def _units(transaction: Transaction, row: NamespaceRow) -> list[Unit]:
    stored = list(transaction.scan(row, {"state": ("active",)}))
    return units_of(transaction, row, [one for one in stored if one.record.state == "active"])


def units_of(transaction: Transaction, row: NamespaceRow, stored: Sequence[Stored]) -> list[Unit]:
    """Make the units of records, their terms as the index has them."""
    terms = transaction.documents(row, [one.position for one in stored])
    return [
        unit_of(one.record, one.position, terms.get(one.position) or index_terms(one.record))
        for one in stored
    ]


def _follow(transaction: Transaction, row: NamespaceRow, sequence: int, corpus: Corpus) -> bool:
    """Apply what the journal says has changed; False where making it anew is better."""
    entries = list(islice(transaction.journal(row, after=sequence), FOLLOWED + 1))
    if len(entries) > FOLLOWED:
        return False
    changed = transaction.by_ids(row, {entry.memory_id for entry in entries}).values()
    active = [one for one in changed if one.record.state == "active"]
    for one in changed:
        if one.record.state != "active":
            corpus.remove(one.position)
    units = sorted(units_of(transaction, row, active), key=lambda unit: unit.position)
    return all(corpus.put(unit) for unit in units)
