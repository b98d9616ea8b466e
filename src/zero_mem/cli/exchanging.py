"""Commands that move memories between stores: export, import."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, get_args

import typer

from zero_mem.cli import inputs
from zero_mem.cli.files import STREAM, check_targets, written
from zero_mem.cli.progress import Step, bar
from zero_mem.cli.session import Session, command
from zero_mem.cli.streams import stdin, whisper
from zero_mem.cli.text import counted
from zero_mem.errors import InvalidInput
from zero_mem.exchange import ImportReport, OnConflict, export_records, import_records, json_line
from zero_mem.space import Namespace
from zero_mem.types import Path as NamespacePath

app = typer.Typer()

_CHOICES = ", ".join(get_args(OnConflict))
_LONG_COUNT = 5_000


@command(app, "export")
def export(
    session: Session,
    where: inputs.Where = None,
    kind: inputs.OfKind = None,
    tag: inputs.OfTag = None,
    of_session: inputs.OfSession = None,
    task: inputs.OfTask = None,
    state: inputs.OfState = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to; - is stdout.")
    ] = STREAM,
) -> None:
    """Write memories as JSON lines, for import.

    One line is one memory with all its fields. Without --namespace every namespace of the store is
    written; without a filter, active and archived memories. A new file is readable by its owner
    only. What was done is said on stderr; with --json as one line of JSON, on stdout if the lines
    go to a file.
    """
    check_targets(out)
    found = inputs.conditions(where, kind=kind, tag=tag, session=of_session, task=task, state=state)
    memory = session.memory
    paths = [session.named] if session.named else memory.subtree().namespaces()
    total = memory.stats().records
    count = 0
    with written(out) as lines, bar("exporting", total, long=_LONG_COUNT) as step:
        for path in paths:
            tell = partial(_further, step, count)
            count += export_records(memory.namespace(*path), lines, where=found, on_progress=tell)
    _tell_export(session, out, {"exported": count, "namespaces": len(paths)})


def _tell_export(session: Session, out: Path, done: dict[str, int]) -> None:
    if session.as_json and out != STREAM:
        session.show(done, "")
    elif session.as_json:
        whisper(json_line(done).rstrip("\n"))
    else:
        memories = counted(done["exported"], "memory", "memories")
        spaces = counted(done["namespaces"], "namespace", "namespaces")
        session.note(f"exported {memories} of {spaces}")


def _further(step: Step, before: int, done: int) -> None:
    step(before + done)


@command(app, "import", creates=True)
def import_(
    session: Session,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="JSON lines; - reads stdin.")
    ],
    on_conflict: Annotated[
        str,
        typer.Option(metavar="CHOICE", help=f"Where an id or key is another memory's: {_CHOICES}."),
    ] = "refuse",
) -> None:
    """Read memories that export wrote.

    Reading a file twice changes nothing. Each goes to the namespace that it came from, or all to
    --namespace. Ids stay, unless one is taken and --on-conflict renumber is given.
    """
    report = ImportReport()
    choice = _on_conflict(on_conflict)
    for file in files:
        _add(report, _import_file(session, file, choice))
    session.show(_report_json(report), _report_text(report))


def _on_conflict(text: str) -> OnConflict:
    for known in get_args(OnConflict):
        if text == known:
            return known  # type: ignore[no-any-return]
    raise InvalidInput(f"--on-conflict is one of {_CHOICES}")


def _import_file(session: Session, file: Path, on_conflict: OnConflict) -> ImportReport:
    def place(path: NamespacePath) -> Namespace:
        return session.memory.namespace(*(session.named or path))

    def read(lines: Iterable[bytes], size: int) -> ImportReport:
        with bar(f"importing {file.name}", size) as step:
            return import_records(
                place, lines, name=str(file), on_conflict=on_conflict, on_progress=step
            )

    with _opened(file) as (lines, size):
        return read(lines, size)


@contextmanager
def _opened(file: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file, or stdin for `-`, and tell its size."""
    try:
        if file == STREAM:
            yield stdin(), 0
            return
        with file.open("rb") as lines:
            yield lines, os.fstat(lines.fileno()).st_size
    except OSError as error:
        raise InvalidInput(f"{file}: can't be read: {error.strerror}") from error


def _add(report: ImportReport, more: ImportReport) -> None:
    report.imported += more.imported
    report.unchanged += more.unchanged
    report.skipped += more.skipped
    report.renumbered |= more.renumbered


def _report_json(report: ImportReport) -> dict[str, Any]:
    renumbered = [
        {"namespace": list(path), "from": old, "to": new}
        for (path, old), new in report.renumbered.items()
    ]
    return {
        "imported": report.imported,
        "unchanged": report.unchanged,
        "skipped": report.skipped,
        "renumbered": renumbered,
    }


def _report_text(report: ImportReport) -> str:
    parts = [f"imported {report.imported:,}", f"unchanged {report.unchanged:,}"]
    if report.skipped:
        parts.append(f"skipped {len(report.skipped):,}")
    lines = [", ".join(parts)]
    lines += [f"skipped {where}: its id or key is another memory's" for where in report.skipped]
    lines += [
        f"{'/'.join(path)}: {old} is now {new}" for (path, old), new in report.renumbered.items()
    ]
    return "\n".join(lines)
