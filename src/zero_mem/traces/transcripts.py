"""Importing transcripts: each run is a thread, and each message is taken once.

A record is known by its session and its place in it. So a file that was imported before, or
has grown since, adds only what is new. A run that begins like a thread and goes on otherwise
(a fork, or another file's run of the same name) becomes a thread of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from zero_mem.controller.messages import Defect, Transcript
from zero_mem.operations.idempotency import IDEMPOTENCY, fingerprint
from zero_mem.operations.redacted import redacted_save
from zero_mem.operations.requests import save_request
from zero_mem.redaction import of_namespace
from zero_mem.redaction.redactor import Redactor
from zero_mem.replay.said import Said, said
from zero_mem.replay.transcripts import iter_read
from zero_mem.space import Namespace
from zero_mem.storage.base import NamespaceRow, Transaction
from zero_mem.storage.codec import purged_key
from zero_mem.traces.records import completes, digest
from zero_mem.traces.report import TraceItem, TraceReport
from zero_mem.traces.writing import Progress, Writer, Written, read_files
from zero_mem.types import MemoryRecord

COMPLETED: Final = "trace:completed"
"""The decision scope of messages that grew after they were first imported."""


def import_transcripts(
    space: Namespace,
    paths: Iterable[str | Path],
    *,
    dry_run: bool = False,
    on_progress: Progress | None = None,
    on_written: Written | None = None,
) -> TraceReport:
    """Import transcript files as episodic records: `message`, `tool_call`, `tool_result`.

    The format is told by the content: OpenAI chat messages, OpenAI Responses items, Anthropic
    messages, Claude Code and Codex sessions, logs of requests; plain or gzip. Bodies are kept
    whole and never de-duplicated. Session, speaker, time and place come from the transcript; a
    side chain is a session of its own. What can't be read is reported, and the rest goes on.

    Args:
        space: The namespace that the trace goes to.
        paths: The files.
        dry_run: Write nothing; the report says what would be written and shows the first.
        on_progress: Called with a file's name, the bytes read of it and its size.
        on_written: Called with the number of records written so far.

    Raises:
        InvalidInput: No file held a run.
        ZeroMemError: The store failed; a note says how far it got.
    """
    writer = Writer(space, dry_run=dry_run, on_written=on_written)
    return read_files(writer, paths, lambda path: _read(writer, path, on_progress))


def _read(writer: Writer, path: Path, on_progress: Progress | None) -> None:
    def tell(done: int, size: int) -> None:
        if on_progress is not None:
            on_progress(path.name, done, size)

    for found in iter_read(path, progress=tell):
        if isinstance(found, Defect):
            writer.report.defects.append(found)
        else:
            roles = [message.role for message in found.messages]
            writer.report.instructions += roles.count("system")
            _Thread(writer, path.name, found).write()


@dataclass(frozen=True, slots=True)
class _Taken:
    """A place of a thread that was imported: what was asked for, and the memory it became."""

    fingerprints: frozenset[str]
    memory_id: str


class _Thread:
    """One run on its way into its session."""

    def __init__(self, writer: Writer, file: str, transcript: Transcript) -> None:
        self._writer = writer
        self._space = writer.space
        self._file = file
        self._name = transcript.name
        self._said = list(said(transcript))

    def write(self) -> None:
        """Write what is new of the thread."""
        items, taken = self._placed(self._name)
        differing = self._first_difference(items, taken)
        if differing is not None and not self._is_cut_off(items[differing], differing, taken):
            fork = f"{self._name}~{digest(self._said[: differing + 1])}"
            items, taken = self._placed(fork)
            differing = self._first_difference(items, taken)
        for place, item in enumerate(items):
            if place == differing:
                self._complete(item, taken[place])
            elif place in taken:
                self._writer.report.unchanged += 1
            else:
                self._writer.add(item)

    def _placed(self, session: str) -> tuple[list[TraceItem], dict[int, _Taken | None]]:
        """Give the records of the thread in a session, and which places of it are taken."""
        if self._writer.holds(session):
            self._writer.write()
        items = [self._item(session, one) for one in self._said]
        with self._space.memory.transaction() as transaction:
            row = transaction.namespace(self._space.path)
            found = [
                _taken(transaction, row, item.once) if row else (False, None) for item in items
            ]
        return items, {place: was for place, (taken, was) in enumerate(found) if taken}

    def _first_difference(
        self, items: Sequence[TraceItem], taken: Mapping[int, _Taken | None]
    ) -> int | None:
        """Find the first place whose message is not the one that was imported there."""
        redactor = _redactor(self._space) if taken else None
        for place, was in taken.items():
            if was is not None and redactor is not None:
                asked = _asked_ever(items[place], redactor)
                if was.fingerprints.isdisjoint(asked) and not self._holds(items[place], was):
                    return place
        return None

    def _holds(self, item: TraceItem, was: _Taken) -> bool:
        """Tell whether a record holds a message, though by now other secrets are taken out."""
        redactor, record = _redactor(self._space), self._record(was)
        if record is None:
            return False
        clean = redacted_save(save_request(**item.fields), redactor)
        calls = redactor.value(dict(record.metadata)).get("calls")
        asked = (clean.metadata or {}).get("calls")
        return redactor.body(record.content) == clean.content and calls == asked

    def _is_cut_off(self, item: TraceItem, place: int, taken: Mapping[int, _Taken | None]) -> bool:
        """Tell whether the last message taken was still being written when it was imported."""
        was = taken[place]
        record = self._record(was) if was is not None and place == max(taken) else None
        if record is None:
            return False
        clean = redacted_save(save_request(**item.fields), _redactor(self._space))
        whole = (clean.content, clean.metadata or {})
        return completes(whole, (record.content, record.metadata))

    def _record(self, was: _Taken) -> MemoryRecord | None:
        return self._space.get_many([was.memory_id])[0]

    def _complete(self, item: TraceItem, was: _Taken | None) -> None:
        """Bring a message that had been cut off to its end, as a new version of its record."""
        self._writer.report.completed += 1
        if was is None or self._writer.report.dry_run:
            return
        self._space.update(
            was.memory_id, content=item.content, metadata=dict(item.fields["metadata"])
        )
        asked = _asked(item, _redactor(self._space))
        self._space.decide(COMPLETED, item.once, asked, memory_id=was.memory_id)

    def _item(self, session: str, one: Said) -> TraceItem:
        fields: dict[str, Any] = {
            "content": one.content,
            "kind": one.kind,
            "form": "episodic",
            "session": session,
            "speaker": one.speaker,
            "source": "import",
            "created_at": one.created_at,
            "metadata": dict(one.metadata),
        }
        once = _once(session, one.position)
        return TraceItem(file=self._file, line=one.line, once=once, fields=fields)


def _redactor(space: Namespace) -> Redactor:
    """Give what takes secrets out of what is saved here."""
    with space.memory.transaction() as transaction:
        row = transaction.namespace(space.path)
    return space.memory.redactors.of(of_namespace(row.settings if row else ""))


def _asked(item: TraceItem, redactor: Redactor, **changes: Any) -> str:
    """Give the fingerprint under which the store knows what was asked for."""
    return fingerprint(redacted_save(save_request(**{**item.fields, **changes}), redactor))


def _asked_ever(item: TraceItem, redactor: Redactor) -> Iterator[str]:
    """Give what asks for a record, and what did before its run told any time."""
    yield _asked(item, redactor)
    yield _asked(item, redactor, created_at=None)


def _taken(transaction: Transaction, row: NamespaceRow, once: str) -> tuple[bool, _Taken | None]:
    """Tell whether a place of a thread is taken, and by what; None where that was purged."""
    found = transaction.decision(row, IDEMPOTENCY, once)
    if found is None or found.value is None:
        return transaction.decision(row, IDEMPOTENCY, purged_key(once)) is not None, None
    first = json.loads(found.value)
    whole = transaction.decision(row, COMPLETED, once)
    asked = {first["request"], whole.value if whole is not None and whole.value else ""}
    return True, _Taken(frozenset(asked), str(first["memory_id"]))


def _once(session: str, position: int) -> str:
    """Give the key under which a place of a thread is taken once."""
    named = hashlib.blake2b(session.encode("utf-8", "replace"), digest_size=12).hexdigest()
    return f"trace:{named}:{position}"
