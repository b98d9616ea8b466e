"""Commands on the past: history, as-of, rollback."""

from __future__ import annotations

from typing import Annotated

import typer

from zero_mem.cli import inputs, printing
from zero_mem.cli.session import Session, command
from zero_mem.errors import InvalidInput
from zero_mem.exchange import record_json

app = typer.Typer()


@command(app, "history")
def history(session: Session, memory_id: inputs.Id) -> None:
    """List every change of a memory, the oldest first."""
    entries = session.space.history(inputs.reference(memory_id).memory_id)
    session.show(printing.history_json(entries), printing.history_text(entries))


@command(app, "as-of")
def as_of(
    session: Session,
    moment: Annotated[
        str, typer.Argument(metavar="MOMENT", help="A time, such as 2026-11-29T12:00:00Z.")
    ],
    memory_id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="One memory; without it all.", show_default=False),
    ] = None,
    query: Annotated[
        str | None, typer.Option(metavar="QUERY", help="Search by words, as it was then.")
    ] = None,
    where: inputs.Where = None,
    kind: inputs.OfKind = None,
    tag: inputs.OfTag = None,
    of_session: inputs.OfSession = None,
    task: inputs.OfTask = None,
    limit: Annotated[int | None, inputs.most("10 with --query, all")] = None,
) -> None:
    """Show a memory, a search, or all, as of a past moment."""
    past = session.space.as_of(inputs.moment(moment, "MOMENT"))
    found = inputs.conditions(where, kind=kind, tag=tag, session=of_session, task=task)
    if memory_id is not None:
        if query is not None or found is not None:
            raise InvalidInput("an id needs no --query and no filter")
        record = past.get(inputs.reference(memory_id).memory_id)
        session.show(record_json(record), printing.record_text(record))
    elif query is not None:
        hits = past.search(query, where=found, limit=10 if limit is None else limit)
        text = printing.hits_text(hits) if hits else "nothing found"
        session.show(printing.hits_json(hits), text)
    else:
        records = past.list(found).items[:limit]
        value = {"items": [record_json(r) for r in records], "next_cursor": None}
        session.show(value, printing.records_text(records) if records else "no memories")


@command(app, "rollback")
def rollback(
    session: Session,
    memory_id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="One memory.", show_default=False),
    ] = None,
    to_version: Annotated[
        int | None, typer.Option(metavar="N", help="A version of that memory.")
    ] = None,
    to_moment: Annotated[
        str | None, typer.Option("--to", metavar="MOMENT", help="A time to go back to.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="The memories of a task, with --to.")
    ] = None,
    operation: Annotated[
        int | None,
        typer.Option(metavar="N", help="An operation of the history: to before it."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Roll the whole namespace back, with --to.")
    ] = False,
) -> None:
    """Bring a memory, a task or more back to what it was.

    To a version or a moment, or to before an operation; it is a new change. Going back can be
    undone by another rollback. The whole namespace needs --yes.
    """
    if memory_id is None and task is None and operation is None and not yes:
        raise InvalidInput("this rolls the whole namespace back; add --yes, or name an id")
    batch = session.space.rollback(
        None if memory_id is None else inputs.whole_id(memory_id),
        task=task,
        operation=operation,
        to_version=to_version,
        to_moment=None if to_moment is None else inputs.moment(to_moment, "--to"),
    )
    session.show(printing.batch_json(batch), printing.batch_text(batch))
