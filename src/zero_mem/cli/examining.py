"""Commands that tell how a store stands: doctor, changes, metrics."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from zero_mem.cli import inputs
from zero_mem.cli.failures import UNHEALTHY
from zero_mem.cli.session import Session, command

if TYPE_CHECKING:
    from zero_mem.doctor.answers import Answer
    from zero_mem.operations.history import HistoryEntry

app = typer.Typer()

_MARKS: Final = {"good": "ok  ", "look": "look", "bad": "BAD "}


@command(app, "doctor", shared=("store", "as_json"))
def doctor(session: Session) -> None:
    """Answer ten questions about the store, from what is in it.

    Each answer says what was looked at and how to mend it. It ends with 8 where something is bad.
    """
    from zero_mem.doctor.questions import examine

    diagnosis = examine(session.memory)
    answers = [asdict(answer) for answer in diagnosis.answers]
    text = "\n".join(line for answer in diagnosis.answers for line in _lines(answer))
    session.show({"healthy": diagnosis.healthy, "answers": answers}, text)
    if not diagnosis.healthy:
        raise typer.Exit(UNHEALTHY)


def _lines(answer: Answer) -> list[str]:
    head = f"{_MARKS[answer.verdict]}  {answer.number:2}. {answer.question}"
    seen = [f"          {line}" for line in answer.evidence]
    return [head, *seen, *(f"        → {line}" for line in answer.mend)]


@command(app, "changes")
def changes(
    session: Session,
    after: Annotated[
        int, typer.Option(metavar="N", help="A position in the journal; 0 is the beginning.")
    ] = 0,
    limit: Annotated[int | None, inputs.most("100")] = None,
) -> None:
    """List the changes of a namespace, without bodies.

    It is the log of all operations, sweeps included; --after the last position follows it.
    """
    most = 100 if limit is None else limit
    entries = session.space.changes(after=after, limit=most)
    value = {"changes": [_change(entry) for entry in entries]}
    session.show(value, "\n".join(map(_change_text, entries)) or "no changes")
    if len(entries) == most:
        session.note(f"(more: --after {entries[-1].sequence})")


def _change(entry: HistoryEntry) -> dict[str, Any]:
    fields = asdict(entry)
    del fields["record"], fields["before"]
    return {**fields, "at": entry.at.isoformat()}


def _change_text(entry: HistoryEntry) -> str:
    who = f"  by {entry.actor}" if entry.actor else ""
    why = f"  ({entry.reason})" if entry.reason else ""
    at = entry.at.isoformat(timespec="seconds")
    return f"{entry.sequence}  {at}  [memo:{entry.memory_id}] {entry.operation}{why}{who}"
