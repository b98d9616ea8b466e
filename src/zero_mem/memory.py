"""The store as its users see it: opened by URL, seen through namespaces."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path as FilePath
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from zero_mem.errors import (
    InvalidInput,
    MissingExtra,
    NotAllowed,
    StoreUnavailable,
    ZeroMemError,
)
from zero_mem.loop_watch import warned_of_loop
from zero_mem.metrics import Metrics, Snapshot
from zero_mem.operations.requests import check_path, check_text
from zero_mem.operations.sizes import Sizes
from zero_mem.operations.sweep import Ending, SweepReport
from zero_mem.queued import QueuedWrites
from zero_mem.redaction import Redaction, Redactors
from zero_mem.space import Namespace
from zero_mem.storage.base import Storage, Transaction
from zero_mem.storage.memory import MemoryStorage
from zero_mem.storage.opening import URL_VARIABLE, open_storage, unlocked
from zero_mem.storage.times import to_micros
from zero_mem.subtree import Subtree
from zero_mem.text.tokens import Tokenizer, tokenizer

if TYPE_CHECKING:
    from zero_mem.access.keys import Keyring
    from zero_mem.backup import BackupReport, Verification
    from zero_mem.dense import Progress, Reindexed
    from zero_mem.dense.index import DenseIndex
    from zero_mem.models.date_parsers import DateParser
    from zero_mem.models.embedder import Embedder
    from zero_mem.recall.corpora import Corpora
    from zero_mem.storage.data_keys import Encryption
    from zero_mem.text.entities import EntityExtractor

Clock: TypeAlias = Callable[[], datetime]
FileName: TypeAlias = str | os.PathLike[str]

SWEPT = "swept"
"""The note of when the whole store was last swept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What a store holds.

    `by_state` counts records as active, archived, deleted, or expired and not swept yet;
    `by_form` counts all of them. `bytes` is the size of the store's files.
    """

    namespaces: int
    records: int
    by_state: dict[str, int]
    by_form: dict[str, int]
    journal: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Whether a store answers: `ready` to serve, and if not, the `problem`.

    `seconds` is how long it took to answer; `queued` writes wait to be applied,
    `queue_failures` could not be; `scrub_pending` says that purged bytes may still be there.
    """

    ready: bool
    problem: str = ""
    seconds: float = 0.0
    queued: int = 0
    queue_failures: int = 0
    scrub_pending: bool = False


class Memory:
    """A store of memories; reads and writes go through its namespaces.

    Safe to share between threads. A context manager: leaving it closes the store.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        clock: Clock | None = None,
        tokens: Tokenizer | str = "o200k",
        actor: str = "",
        embedder: Embedder | str | None = None,
        patience: float = 5.0,
        redaction: Redaction | None = None,
        extractor: EntityExtractor | str | None = None,
        date_parser: DateParser | str | None = None,
    ) -> None:
        self._storage = storage
        self._clock = clock or _utc_now
        self._actor = check_text(actor, "actor")
        self._tokens = tokens
        self._embedder = embedder
        self._patience = patience
        self._redaction = redaction or Redaction()
        self.redactors = Redactors(self._redaction)
        self.metrics = Metrics()
        self.sizes = Sizes()
        self._watches_loop = True
        self._dense = None if embedder is None else _dense(self, embedder, patience)
        self._extractor = _extractor(extractor)
        self._date_parser = _date_parser(date_parser)
        self.queued = QueuedWrites(self)

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        clock: Clock | None = None,
        durability: str = "full",
        create: bool = True,
        tokens: Tokenizer | str = "o200k",
        actor: str = "",
        embedder: Embedder | str | None = None,
        patience: float = 5.0,
        redaction: Redaction | None = None,
        encryption: Encryption | None = None,
        credential: str | None = None,
        extractor: EntityExtractor | str | None = None,
        date_parser: DateParser | str | None = None,
    ) -> Memory:
        """Open a store, making it where there is none.

        Args:
            url: `sqlite:///relative.db`, `sqlite:////absolute.db`, `memory://`,
                `postgresql://user@host/database` (extra `postgres`), `routes:///table.json`
                (several such, see `storage.routing`); by default the environment's
                ZERO_MEM_URL, else the file that `default_path` gives.
            create: False refuses a store that is not there.
            durability: "full" or "normal"; see `SQLiteStorage` and `PostgresStorage`.
            credential: An API key of the store; only what it grants can be reached then.
            encryption: Encrypts every value on its way into the store; see `Encryption`.
            redaction: What is taken out before anything is stored; by default secrets are
                masked. A namespace may set more (`Namespace.configure`).
            actor: Who writes, for the journal.
            tokens: Counts tokens: an encoding or model name, or a `Tokenizer`.
            embedder: Makes recall dense too: an `Embedder`, or a name that
                `models.embedder_named` knows, such as "e5". No save ever waits for it.
            patience: Seconds that a recall waits for the embedder before it goes on without.
            extractor: Finds names beside those that the rules find: an `EntityExtractor`, or
                "jieba", "spacy" or "spacy:MODEL".
            date_parser: Reads time phrases that the rules do not know: a `DateParser`, or
                "dateparser".
            clock: Gives the current time as an aware datetime; the system's by default.

        Raises:
            InvalidInput: The URL names no store this version knows, or a name stands for nothing.
            MissingExtra: What the store, the embedder or the extractor needs is not installed.
            StoreUnavailable, StoreCorrupt, MigrationNeeded: See `SQLiteStorage`.
            NotAllowed: The store is encrypted and no key was given, or the other way round; or
                the credential is not valid.
        """
        if url is None:
            url = os.environ.get(URL_VARIABLE) or None
        if encryption is not None and encryption.vectors == "refuse" and embedder is not None:
            raise InvalidInput('an embedder needs vectors, which Encryption(vectors="refuse") bars')
        storage = unlocked(open_storage(url, durability=durability, create=create), encryption)
        memory = cls(
            storage,
            clock=clock,
            tokens=tokens,
            actor=actor,
            embedder=embedder,
            patience=patience,
            redaction=redaction,
            extractor=extractor,
            date_parser=date_parser,
        )
        return memory if credential is None else memory._guard(credential, closes=True)

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Apply queued writes and close the store."""
        self.queued.close()
        self._storage.close()

    @property
    def actor(self) -> str:
        """Who writes, for the journal, where a namespace's view does not say."""
        return self._actor

    @property
    def tokenizer(self) -> Tokenizer:
        """What counts tokens for budgets."""
        if isinstance(self._tokens, str):
            self._tokens = tokenizer(self._tokens)
        return self._tokens

    @cached_property
    def corpora(self) -> Corpora:
        """What recall keeps of namespaces between reads."""
        # What ranks is loaded on first use.
        from zero_mem.recall import corpora
        from zero_mem.text.entities import RuleEntities

        extractor = RuleEntities(self._extractor)
        return corpora.Corpora(extractor=extractor, date_parser=self._date_parser)

    @property
    def storage(self) -> Storage:
        """The store beneath."""
        return self._storage

    @property
    def dense(self) -> DenseIndex | None:
        """The dense index, None where the store was opened without an embedder."""
        return self._dense

    @property
    def keyring(self) -> Keyring:
        """The store's API keys; not there for who came with one."""
        from zero_mem.access.keys import Keyring

        return Keyring(self._storage, self.now)

    def guarded(self, credential: str) -> Memory:
        """Give the store as far as an API key opens it.

        The view shares this store, which has to stay open; what it writes bears the key's name
        in the journal. A key that is revoked later ends with the next call of this method.

        Raises:
            NotAllowed: The credential is not valid.
        """
        return self._guard(credential, closes=False)

    def _guard(self, credential: str, *, closes: bool) -> Memory:
        from zero_mem.access.guard import GuardedStorage

        try:
            key = self.keyring.verify(check_text(credential, "credential"))
        except BaseException:
            if closes:
                self.close()
            raise
        return Memory(
            GuardedStorage(self._storage, key.grants, closes=closes),
            clock=self._clock,
            tokens=self._tokens,
            actor=self._actor or f"key:{key.name}",
            embedder=self._embedder,
            patience=self._patience,
            redaction=self._redaction,
            extractor=self._extractor,
            date_parser=self._date_parser,
        )

    def now(self) -> datetime:
        """Read the clock, in UTC."""
        moment = self._clock()
        if moment.tzinfo is None:
            raise InvalidInput("the clock gives a time without a zone; it must be aware")
        return moment if moment.tzinfo is UTC else moment.astimezone(UTC)

    def namespace(self, *segments: str, actor: str | None = None) -> Namespace:
        """Give the view of one namespace, such as `namespace("acme", "alice")`.

        Raises:
            InvalidInput: No segment was given, or one is not a name.
        """
        path = check_path(segments)
        writer = self._actor if actor is None else check_text(actor, "actor")
        return Namespace(self, path, actor=writer)

    def subtree(self, *segments: str) -> Subtree:
        """Give reads over every namespace at and below a path; no segment means all."""
        return Subtree(self, check_path(segments) if segments else ())

    def expire(self, *, action: Ending = "expire", dry_run: bool = False) -> SweepReport:
        """Sweep every namespace: what is past its time, its task's lease or its retention.

        Args:
            action: What happens to expired records; see `Namespace.end_task`.
            dry_run: Only say what would happen.
        """
        if not dry_run and self._storage.scrub_pending():
            with contextlib.suppress(StoreUnavailable):
                self._storage.scrub(wait=False)
        reports = [
            self.namespace(*path).expire(action=action, dry_run=dry_run)
            for path in self.subtree().namespaces()
        ]
        if not dry_run:
            # Who came with a key sweeps what is theirs; only a sweep of all is noted.
            with contextlib.suppress(NotAllowed):
                self._storage.keep_note(SWEPT, self.now().isoformat())
        return SweepReport(
            swept=tuple(swept for report in reports for swept in report.swept),
            tasks=tuple(task for report in reports for task in report.tasks),
            dry_run=dry_run,
        )

    def stats(self) -> Stats:
        """Count what the store holds."""
        self.flush()
        states: Counter[str] = Counter()
        forms: Counter[str] = Counter()
        live, now = 0, to_micros(self.now())
        with self.transaction() as transaction:
            rows = transaction.namespaces(())
            for row in rows:
                for (state, form), count in transaction.tally(row).items():
                    states[state] += count
                    forms[form] += count
                live += transaction.count_active(row, now=now, form=None, kind=None)
        if states["active"] > live:
            states["expired"] = states["active"] - live
            states["active"] = live
        return Stats(
            namespaces=len(rows),
            records=states.total(),
            by_state=dict(sorted(states.items())),
            by_form=dict(sorted(forms.items())),
            journal=sum(row.sequence for row in rows),
            bytes=self._storage.size(),
        )

    def snapshot(self) -> Snapshot:
        """Read what this process did with the store, as counters, and how its pool stands."""
        queued = self.queued
        return self.metrics.snapshot(
            queued=queued.depth,
            queue_failures=len(queued.failures),
            pools=self._storage.pools(),
        )

    def health(self) -> Health:
        """Ask the store whether it answers, and what waits to be done; nothing is written."""
        begun = perf_counter()
        try:
            with self.transaction() as transaction:
                transaction.namespaces(("health",))
        except ZeroMemError as error:
            return Health(ready=False, problem=f"{type(error).__name__}: {error}")
        return Health(
            ready=True,
            seconds=perf_counter() - begun,
            queued=self.queued.depth,
            queue_failures=len(self.queued.failures),
            scrub_pending=self._storage.scrub_pending(),
        )

    def reindex(
        self, namespace: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> Reindexed:
        """Embed every record that lacks a vector, and remove those of other models.

        Args:
            namespace: The segments of one namespace; without it the whole store.
            progress: Called with how many of how many records are done.

        Raises:
            InvalidInput: The store was opened without an embedder.
            EmbedderUnavailable: The embedder fails; what was done stays done.
        """
        if self._dense is None:
            raise InvalidInput('re-indexing needs an embedder; open the store with embedder="e5"')
        from zero_mem.dense.reindex import reindex

        paths = self.subtree().namespaces() if namespace is None else [check_path(namespace)]
        self.flush()
        return reindex(self, self._dense, paths, progress)

    def backup(
        self,
        path: FileName,
        *,
        portable: bool = False,
        since: FileName | None = None,
    ) -> BackupReport:
        """Write the store into a new file, as it is at this moment; writers go on.

        Args:
            path: The file; it is its owner's only, and there whole or not at all.
            portable: Write an archive, which every kind of store can be restored from. An
                SQLite store is copied as a file otherwise, and others always give archives.
            since: An earlier backup of this store: only what came after it is written.

        Raises:
            InvalidInput: The file is there already, or `since` is of another store.
            NotAllowed: The store was opened with a credential.
            StoreUnavailable: The file can't be written.
        """
        from zero_mem.backup import back_up

        self.flush()
        base = None if since is None else FilePath(since)
        return back_up(self._storage, FilePath(path), now=self.now(), portable=portable, since=base)

    def verify(self) -> Verification:
        """Check the store: its files, its journal's digests, its index against a new one.

        Raises:
            NotAllowed: The store was opened with a credential.
        """
        from zero_mem.backup import verify

        self.flush()
        return verify(self._storage)

    # For the views

    def transaction(
        self, *, write: bool = False, durable: bool = True
    ) -> AbstractContextManager[Transaction]:
        """Open a transaction of the store beneath."""
        if self._watches_loop and "asyncio" in sys.modules:
            self._watches_loop = not warned_of_loop()
        return self._storage.transaction(write=write, durable=durable)

    def scrub(self) -> None:
        """Overwrite what purged bodies left in files and memory; a purge calls this."""
        if self._dense is not None:
            self._dense.forget()
        self._storage.scrub()

    def flush(self) -> None:
        """Apply every queued write before returning."""
        self.queued.flush()


class MemoryStore(Namespace):
    """An in-memory store seen through its namespace `default`: the shortest way to begin."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(Memory(MemoryStorage(), clock=clock), ("default",))


def _dense(memory: Memory, embedder: Embedder | str, patience: float) -> DenseIndex:
    # Imported here: what recalls by words alone needs neither numpy nor an embedder.
    try:
        from zero_mem.dense.index import DenseIndex
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise MissingExtra("an embedder", "vectors") from error
    from zero_mem.models import embedder_named

    chosen = embedder_named(embedder) if isinstance(embedder, str) else embedder
    return DenseIndex(memory, chosen, patience=patience)


def _extractor(extractor: EntityExtractor | str | None) -> EntityExtractor | None:
    if not isinstance(extractor, str):
        return extractor
    from zero_mem.models.extractors import extractor_named

    return extractor_named(extractor)


def _date_parser(parser: DateParser | str | None) -> DateParser | None:
    if not isinstance(parser, str):
        return parser
    from zero_mem.models.date_parsers import date_parser_named

    return date_parser_named(parser)


def _utc_now() -> datetime:
    return datetime.now(UTC)
