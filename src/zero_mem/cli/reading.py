"""Commands that read memories: get, list, search, recall, read, stats."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from zero_mem.cli import inputs, printing
from zero_mem.cli.evidence import explained
from zero_mem.cli.failures import NOTHING
from zero_mem.cli.session import Session, command
from zero_mem.cli.streams import say_bytes
from zero_mem.errors import InvalidInput
from zero_mem.exchange import record_json
from zero_mem.storage.codec import encode_body

app = typer.Typer()

Query = Annotated[str, typer.Argument(metavar="QUERY", help="Any text; no character is special.")]


@command(app, "get")
def get(
    session: Session,
    memory_id: inputs.Id,
    body: Annotated[
        bool, typer.Option("--body", help="Print the body alone, byte for byte.")
    ] = False,
) -> None:
    """Show a memory, active or archived, by its id."""
    record = session.space.get(inputs.reference(memory_id).memory_id)
    if body:
        say_bytes(encode_body(record.content)[1])
        return
    session.show(record_json(record), printing.record_text(record))


@command(app, "list")
def list_(
    session: Session,
    where: inputs.Where = None,
    kind: inputs.OfKind = None,
    tag: inputs.OfTag = None,
    of_session: inputs.OfSession = None,
    task: inputs.OfTask = None,
    state: inputs.OfState = None,
    limit: Annotated[int | None, inputs.most("100")] = None,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="next_cursor of the page before.")
    ] = None,
) -> None:
    """List memories in the order of first saving, a page at a time."""
    found = inputs.conditions(where, kind=kind, tag=tag, session=of_session, task=task, state=state)
    page = session.space.list(found, limit=100 if limit is None else limit, cursor=cursor)
    value = {"items": [record_json(r) for r in page], "next_cursor": page.next_cursor}
    session.show(value, printing.records_text(page) if page.items else "no memories")
    if page.next_cursor:
        session.note(f"(more: --cursor {page.next_cursor})")


@command(app, "search")
def search(
    session: Session,
    query: Query,
    where: inputs.Where = None,
    kind: inputs.OfKind = None,
    tag: inputs.OfTag = None,
    of_session: inputs.OfSession = None,
    task: inputs.OfTask = None,
    state: inputs.OfState = None,
    limit: Annotated[int | None, inputs.most("10")] = None,
) -> None:
    """Find memories by their words, best first.

    It ends with 1 where there is none.
    """
    found = inputs.conditions(where, kind=kind, tag=tag, session=of_session, task=task, state=state)
    hits = session.space.search(query, where=found, limit=10 if limit is None else limit)
    session.show(printing.hits_json(hits), printing.hits_text(hits) if hits else "nothing found")
    _end(bool(hits))


@command(app, "recall")
def recall(
    session: Session,
    query: Query,
    where: inputs.Where = None,
    kind: inputs.OfKind = None,
    tag: inputs.OfTag = None,
    of_session: inputs.OfSession = None,
    task: inputs.OfTask = None,
    limit: Annotated[int | None, inputs.most("the namespace's max_recall_items")] = None,
    budget: inputs.Budget = None,
    asked_at: Annotated[
        str | None,
        typer.Option(
            metavar="MOMENT", help='When the question is asked; "last week" counts from it.'
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(help="The weights of recall: default, paper or bm25.")
    ] = "default",
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why each is there, and what just missed.")
    ] = False,
) -> None:
    """Recall what a query needs, in few tokens.

    The result is what a prompt would carry: compact lines under a budget of tokens. It ends with 1
    where nothing is recalled.
    """
    found = inputs.conditions(where, kind=kind, tag=tag, session=of_session, task=task)
    result = session.space.recall(
        query,
        limit=limit,
        budget=budget,
        where=found,
        asked_at=None if asked_at is None else inputs.moment(asked_at, "--asked-at"),
        profile=profile,
        explain=explain,
    )
    text = "\n\n".join(filter(None, (printing.recall_text(result), explained(result))))
    session.show(printing.recall_json(result), text)
    _end(bool(result.items))


@command(app, "read")
def read(
    session: Session,
    memory_id: inputs.Id,
    pointer: Annotated[
        str | None, typer.Option(metavar="POINTER", help="A JSON Pointer, such as /items/0/price.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option(metavar="JSON", help='A filter on rows: {"status": "late"}.')
    ] = None,
    lines: Annotated[str | None, typer.Option(metavar="A-B", help="Lines, such as 10-40.")] = None,
    pattern: Annotated[
        str | None, typer.Option(metavar="REGEX", help="A regular expression.")
    ] = None,
    budget: inputs.Budget = None,
) -> None:
    """Read a part of one body under a budget of tokens.

    A handle with a pointer, such as "[memo:7#/items/0]", names the part by itself. It ends with 1
    where no row, line or element matches.
    """
    named = inputs.reference(memory_id)
    if pointer and named.pointer:
        raise InvalidInput("the handle names a part already; leave --pointer out")
    result = session.space.read(
        named.memory_id,
        pointer=pointer or named.pointer,
        rows=inputs.parse_object(rows, "--rows"),
        lines=lines,
        pattern=pattern,
        budget=budget,
    )
    session.show(printing.read_json(result), printing.read_text(result))
    _end(result.matched > 0 or not (rows or pattern))


@command(app, "stats", shared=("store", "as_json"))
def stats(session: Session) -> None:
    """Count what the store holds."""
    found = asdict(session.memory.stats())
    lines = [
        f"{name:<12} {', '.join(f'{k} {n}' for k, n in value.items()) or '-'}"
        if isinstance(value, dict)
        else f"{name:<12} {value:,}"
        for name, value in found.items()
    ]
    session.show(found, "\n".join(lines))


def _end(found: bool) -> None:
    if not found:
        raise typer.Exit(NOTHING)
