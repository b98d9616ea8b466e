"""Commands that move memories between stores and files: export, import."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

import typer

from zero_mem.cli import inputs
from zero_mem.cli.failures import PartlyDone
from zero_mem.cli.files import STREAM, check_targets, written
from zero_mem.cli.progress import Step, bar
from zero_mem.cli.replaying import defect_lines, named_files
from zero_mem.cli.session import Session, command
from zero_mem.cli.streams import stdin, whisper
from zero_mem.cli.tracing import traces_json, traces_text
from zero_mem.errors import InvalidInput
from zero_mem.exchange import ImportReport, OnConflict, export_records, import_records, json_line
from zero_mem.space import Namespace
from zero_mem.text.nouns import counted
from zero_mem.types import Path as NamespacePath

if TYPE_CHECKING:
    from zero_mem.traces import TraceReport

app = typer.Typer()

FROM: Final = ("auto", "transcript", "lines", "export")
_CHOICES = ", ".join(get_args(OnConflict))
_LONG_COUNT = 5_000
_GZIP = b"\x1f\x8b"


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
        spaces = counted(done["namespaces"], "namespace")
        session.note(f"exported {memories} of {spaces}")


def _further(step: Step, before: int, done: int) -> None:
    step(before + done)


@command(app, "import", creates=True)
def import_(
    session: Session,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files, plain or gzip; - reads stdin."),
    ],
    origin: Annotated[
        str,
        typer.Option("--from", metavar="WHAT", help=f"What the files are: {', '.join(FROM)}."),
    ] = "auto",
    mapping: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="MAPPING",
            help="Which field of a line is which of a memory: content=text,speaker=who.name, "
            "created_at=ts:ms,metadata.order=order_id. May be repeated.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be imported; not of exports.")
    ] = False,
    on_conflict: Annotated[
        str,
        typer.Option(metavar="CHOICE", help=f"Where an id or key is another memory's: {_CHOICES}."),
    ] = "refuse",
) -> None:
    """Read transcripts, JSON lines, or what export wrote.

    What a file is, is told by its content: OpenAI chat messages, OpenAI Responses items, Anthropic
    messages, Claude Code and Codex sessions, logs of requests; or an export, whose memories keep
    their ids and go to the namespace that they came from, or all to --namespace. With --map any
    JSON lines are read. A file that was imported, or has grown since, adds only what is new. What
    can't be read is said on stderr and left out; where that is a file or a mapped line, it ends
    with 7.
    """
    choice, maps = _on_conflict(on_conflict), tuple(mapping or ())
    with ExitStack() as stack:
        paths = _named(files, origin, stack)
        found = _sorted(paths, _origin(origin, maps))
        if dry_run and found["export"]:
            raise InvalidInput(f"{found['export'][0]} is an export, and has no dry run")
        if dry_run:
            session.rehearse()
        report = ImportReport()
        for file in found["export"]:
            _add(report, _import_file(session, file, choice))
        traces = _import_traces(session, found, maps, dry_run=dry_run)
    shown = [*_report_texts(report, bool(found["export"])), *map(traces_text, traces)]
    session.show(_report_json(report, traces), "\n".join(shown))
    _tell_defects(session, traces)


def _origin(text: str, maps: Sequence[str]) -> str:
    if text not in FROM:
        raise InvalidInput(f"--from is one of {', '.join(FROM)}")
    if maps and text not in ("auto", "lines"):
        raise InvalidInput(f"--map is for JSON lines, not for --from {text}")
    return "lines" if maps else text


def _named(files: Sequence[Path], origin: str, stack: ExitStack) -> Sequence[Path]:
    """Give files that can be read twice: once to tell what they are; an export needs it not."""
    return files if origin == "export" else stack.enter_context(named_files(files))


def _sorted(paths: Sequence[Path], origin: str) -> dict[str, list[Path]]:
    """Sort files by what they are."""
    found: dict[str, list[Path]] = {"export": [], "transcript": [], "lines": []}
    for path in paths:
        found[_detected(path) if origin == "auto" else origin].append(path)
    return found


def _detected(path: Path) -> str:
    """Tell what a file is; one that can't be read is told with the others that can't."""
    from zero_mem.traces.detect import origin_of

    try:
        return origin_of(path)
    except InvalidInput:
        return "transcript"


def _import_traces(
    session: Session, found: Mapping[str, Sequence[Path]], maps: Sequence[str], *, dry_run: bool
) -> list[TraceReport]:
    from zero_mem.traces import import_lines, import_transcripts, parse_mapping
    from zero_mem.traces.mapping import SAME_NAMES

    reports = []
    with _watched([*found["transcript"], *found["lines"]]) as tell:
        if found["transcript"]:
            paths = found["transcript"]
            with _hinting_at_maps():
                reports.append(
                    import_transcripts(session.space, paths, dry_run=dry_run, on_progress=tell)
                )
        if found["lines"]:
            chosen = parse_mapping(maps) if maps else SAME_NAMES
            reports.append(
                import_lines(
                    session.space, found["lines"], chosen, dry_run=dry_run, on_progress=tell
                )
            )
    return reports


@contextmanager
def _hinting_at_maps() -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        error.add_note("for JSON lines of another shape, name their fields: --map content=FIELD")
        raise


@contextmanager
def _watched(paths: Sequence[Path]) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar over the bytes of some files, which are read one after another."""
    sizes = [path.stat().st_size if path.is_file() else 0 for path in paths]
    done = {"before": 0}
    with bar("importing", sum(sizes)) as step:

        def tell(name: str, read: int, size: int) -> None:
            step(done["before"] + read)
            if read == size:
                done["before"] += size

        yield tell


def _tell_defects(session: Session, reports: Sequence[TraceReport]) -> None:
    defects = [defect for report in reports for defect in report.defects]
    for line in defect_lines(defects):
        session.note(line)
    if lost := sum(report.lost for report in reports):
        raise PartlyDone(f"{counted(lost, 'file or line', 'files or lines')} could not be read")


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
def _opened(file: Path) -> Iterator[tuple[Iterable[bytes], int]]:
    """Open a file, plain or gzip, or stdin for `-`, and tell its size."""
    try:
        if file == STREAM:
            yield stdin(), 0
            return
        with file.open("rb") as lines:
            size = os.fstat(lines.fileno()).st_size
            zipped = lines.peek(2)[:2] == _GZIP
            yield (gzip.GzipFile(fileobj=lines) if zipped else lines), size
    except OSError as error:
        raise InvalidInput(f"{file}: can't be read: {error.strerror}") from error


def _add(report: ImportReport, more: ImportReport) -> None:
    report.imported += more.imported
    report.unchanged += more.unchanged
    report.skipped += more.skipped
    report.renumbered |= more.renumbered


def _report_json(report: ImportReport, traces: Sequence[TraceReport]) -> dict[str, Any]:
    renumbered = [
        {"namespace": list(path), "from": old, "to": new}
        for (path, old), new in report.renumbered.items()
    ]
    return {
        "imported": report.imported + sum(each.imported for each in traces),
        "unchanged": report.unchanged + sum(each.unchanged for each in traces),
        "skipped": report.skipped,
        "renumbered": renumbered,
        **traces_json(traces),
    }


def _report_texts(report: ImportReport, was_read: bool) -> list[str]:
    if not was_read:
        return []
    parts = [f"imported {report.imported:,}", f"unchanged {report.unchanged:,}"]
    if report.skipped:
        parts.append(f"skipped {len(report.skipped):,}")
    lines = [", ".join(parts)]
    lines += [f"skipped {where}: its id or key is another memory's" for where in report.skipped]
    lines += [
        f"{'/'.join(path)}: {old} is now {new}" for (path, old), new in report.renumbered.items()
    ]
    return lines
