"""Writing a trace in batches: each is one transaction, and what is there already stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from zero_mem.controller.messages import Defect
from zero_mem.errors import Conflict, InvalidInput, LimitReached, NotAllowed, ZeroMemError
from zero_mem.space import Namespace
from zero_mem.text.nouns import counted
from zero_mem.traces.report import TraceItem, TraceReport
from zero_mem.types import Body, Json, MemoryReceipt

BATCH: Final = 500
"""Most records of one transaction."""

BATCH_CHARACTERS: Final = 4_000_000
"""And most characters of bodies, but for one body alone."""

SAMPLE: Final = 5
"""So many records a dry run shows."""

_LEFT_OUT: Final = (InvalidInput, Conflict, LimitReached, NotAllowed)
"""Errors of one record, which the others need not share."""

Written: TypeAlias = Callable[[int], None]
Progress: TypeAlias = Callable[[str, int, int], None]


class Writer:
    """Takes records in order and writes them a batch at a time.

    Args:
        space: Where to.
        dry_run: Only count, and keep the first few.
        on_written: Called with the number of records written so far.
    """

    def __init__(
        self, space: Namespace, *, dry_run: bool = False, on_written: Written | None = None
    ) -> None:
        self.space = space
        self.report = TraceReport(dry_run=dry_run)
        self._on_written = on_written
        self._batch: list[TraceItem] = []
        self._size = 0
        self._sessions: set[str | None] = set()

    def holds(self, session: str) -> bool:
        """Tell whether records of a session wait to be written."""
        return session in self._sessions

    def add(self, item: TraceItem) -> None:
        """Take a record that is to be written."""
        size = _size(item.content)
        if self._batch and (len(self._batch) == BATCH or self._size + size > BATCH_CHARACTERS):
            self.write()
        self._batch.append(item)
        self._size += size
        self._sessions.add(item.fields.get("session"))

    def write(self) -> None:
        """Write what was taken, in one transaction."""
        batch, self._batch, self._size = self._batch, [], 0
        self._sessions.clear()
        if self.report.dry_run:
            self.report.sample += batch[: max(0, SAMPLE - len(self.report.sample))]
            for item in batch:
                self._count(item)
        elif batch:
            self._save(batch)
        if batch and self._on_written is not None:
            self._on_written(self.report.imported)

    def refuse(self, file: str, line: int, problem: str) -> None:
        """Note that a record was left out."""
        self._defect(file, line, f"{problem}: left out")
        self.report.left_out += 1

    def unread(self, path: Path, error: InvalidInput) -> None:
        """Note that a file gave nothing."""
        self._defect(path.name, 0, str(error).removeprefix(f"{path}: "))
        self.report.unread += 1

    def _defect(self, file: str, line: int, problem: str) -> None:
        self.report.defects.append(Defect(file=file, line=line, record="", problem=problem))

    def _save(self, batch: Sequence[TraceItem]) -> None:
        items = [{**item.fields, "idempotency_key": item.once} for item in batch]
        results = self.space.save_many(items, on_error="skip").results
        for item, result in zip(batch, results, strict=True):
            if isinstance(result, MemoryReceipt):
                self._count(item, unchanged=result.replayed or result.unchanged)
            elif isinstance(result, _LEFT_OUT):
                self.refuse(item.file, item.line, str(result))
            else:
                raise result

    def _count(self, item: TraceItem, *, unchanged: bool = False) -> None:
        if unchanged:
            self.report.unchanged += 1
            return
        self.report.imported += 1
        session = item.fields.get("session")
        if session is not None:
            self.report.sessions[session] = self.report.sessions.get(session, 0) + 1


def read_files(
    writer: Writer, paths: Iterable[str | Path], read: Callable[[Path], None]
) -> TraceReport:
    """Read files one after another into a writer; one that gives nothing is a defect.

    Raises:
        InvalidInput: None of them gave anything.
        ZeroMemError: The store failed; a note says how far it got.
    """
    files, problems = [Path(path) for path in paths], list[str]()
    writer.space.memory.flush()
    for path in files:
        with _telling_how_far(writer.report, path.name):
            try:
                read(path)
            except InvalidInput as error:
                problems.append(str(error))
                writer.unread(path, error)
            writer.write()
    if files and len(problems) == len(files):
        raise InvalidInput("; ".join(problems))
    return writer.report


@contextmanager
def _telling_how_far(report: TraceReport, file: str) -> Iterator[None]:
    """Let an error that ends an import say what was written and how to go on."""
    try:
        yield
    except ZeroMemError as error:
        if report.imported or report.completed:
            error.add_note(
                f"in {file}: {counted(report.imported, 'record')} had been written; "
                "import the same files again to go on from there"
            )
        raise


def _size(content: Body) -> int:
    if isinstance(content, str):
        return len(content)
    return len(str(content.value)) if isinstance(content, Json) else len(content.data)
