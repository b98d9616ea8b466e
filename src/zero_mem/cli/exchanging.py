"""Commands that move memories between stores: export, import."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from zero_mem.cli import inputs
from zero_mem.cli.files import written
from zero_mem.cli.progress import Step, bar
from zero_mem.cli.session import Session, command
from zero_mem.errors import InvalidInput
from zero_mem.exchange import ImportReport, OnConflict, export_records, import_records
from zero_mem.space import Namespace
from zero_mem.types import Path as NamespacePath

app = typer.Typer()

_CHOICES = ", ".join(get_args(OnConflict))
_LONG_COUNT = 5_000


@command(app, "export", shared=("store", "namespace"))
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
    ] = Path("-"),
) -> None:
    """Write memories as JSON lines, for import.

    One line is one memory with all its fields. Without --namespace every namespace of the store is
    written; without a filter, active and archived memories.
    """
    found = inputs.conditions(where, kind=kind, tag=tag, session=of_session, task=task, state=state)
    memory = session.memory
    paths = [session.named] if session.named else memory.subtree().namespaces()
    total = memory.stats().records
    count = 0
    with written(out) as lines, bar("exporting", total, long=_LONG_COUNT) as step:
        for path in paths:
            tell = partial(_further, step, count)
            count += export_records(memory.namespace(*path), lines, where=found, on_progress=tell)
    session.note(f"exported {count:,} memories of {len(paths)} namespaces")


def _further(step: Step, before: int, done: int) -> None:
    step(before + done)


@command(app, "import")
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

    if str(file) == "-":
        return read(sys.stdin.buffer, 0)
    try:
        with file.open("rb") as lines:
            return read(lines, os.fstat(lines.fileno()).st_size)
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
