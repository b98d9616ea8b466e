"""Commands that write memories: save, update, touch, archive, restore, delete, purge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, get_args

import typer

from zero_mem.cli import inputs, printing
from zero_mem.cli.session import Session, command
from zero_mem.errors import InvalidInput, ZeroMemError
from zero_mem.exchange import READABLE
from zero_mem.operations.batch import BatchResult
from zero_mem.operations.requests import check_source
from zero_mem.text.nouns import counted
from zero_mem.types import UNSET, Form, MemoryReceipt, Source

app = typer.Typer()

_INDEX = re.compile(r"item \d+: ")
_FORMS = ", ".join(get_args(Form))
_SOURCES = ", ".join(get_args(Source))


def _show(session: Session, receipt: MemoryReceipt) -> None:
    session.show(printing.receipt_json(receipt), printing.receipt_text(receipt))


def _show_batch(session: Session, batch: BatchResult) -> None:
    session.show(printing.batch_json(batch), printing.batch_text(batch))


@command(app, "save", creates=True)
def save(
    session: Session,
    content: inputs.Content = None,
    file: inputs.File = None,
    as_json_body: inputs.AsJsonBody = False,
    media_type: inputs.MediaType = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="What it is, such as user_pref; note by default."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Names the one fact of its kind; saving again updates it."
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option(metavar="FORM", help=f"{_FORMS}; by default the kind's.")
    ] = None,
    memory_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Your own id; by default a small number."),
    ] = None,
    metadata: inputs.Metadata = None,
    tag: inputs.Tags = None,
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="The task it belongs to.")
    ] = None,
    in_session: Annotated[
        str | None,
        typer.Option("--session", metavar="NAME", help="The conversation it comes from."),
    ] = None,
    speaker: Annotated[str | None, typer.Option(metavar="NAME", help="Who said it.")] = None,
    source: Annotated[str, typer.Option(metavar="WHO", help=f"Who wrote it: {_SOURCES}.")] = "user",
    expires_in: inputs.ExpiresIn = None,
    expires_at: inputs.ExpiresAt = None,
    invalidated_by: Annotated[
        list[str] | None,
        typer.Option(metavar="EVENT", help="A business event that ends it; may be repeated."),
    ] = None,
    created_at: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="When it happened; now by default.")
    ] = None,
    if_version: inputs.IfVersion = None,
    idempotency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="A retry with the same key is applied once.")
    ] = None,
) -> None:
    """Store a memory, or update the one of that id or key.

    With the same id, or the same kind and key, a save updates. The body is an argument, - for
    stdin, or --file. The receipt that is printed holds no body.
    """
    receipt = session.space.save(
        inputs.body(content, file, as_json=as_json_body, media_type=media_type),
        kind=kind,
        key=key,
        form=form,
        memory_id=None if memory_id is None else inputs.whole_id(memory_id),
        metadata=inputs.parse_object(metadata, "--metadata"),
        tags=tag or (),
        task=task,
        session=in_session,
        speaker=speaker,
        source=check_source(source),
        expires_in=inputs.lifetime(expires_in),
        expires_at=inputs.expiry(expires_at),
        invalidated_by=invalidated_by or (),
        created_at=None if created_at is None else inputs.moment(created_at, "--created-at"),
        if_version=if_version,
        idempotency_key=idempotency_key,
    )
    _show(session, receipt)


@command(app, "update")
def update(
    session: Session,
    memory_id: inputs.Id,
    content: inputs.Content = None,
    file: inputs.File = None,
    as_json_body: inputs.AsJsonBody = False,
    media_type: inputs.MediaType = None,
    metadata: inputs.Metadata = None,
    tag: inputs.Tags = None,
    clear_tags: Annotated[bool, typer.Option("--clear-tags", help="Remove all tags.")] = False,
    expires_in: inputs.ExpiresIn = None,
    expires_at: inputs.ExpiresAt = None,
    if_version: inputs.IfVersion = None,
) -> None:
    """Change what is named of a memory and leave the rest."""
    if tag and clear_tags:
        raise InvalidInput("--tag and --clear-tags exclude each other")
    merged = inputs.parse_object(metadata, "--metadata")
    receipt = session.space.update(
        inputs.whole_id(memory_id),
        content=inputs.optional_body(content, file, as_json=as_json_body, media_type=media_type),
        metadata=UNSET if merged is None else merged,
        tags=None if clear_tags else (tag or UNSET),
        expires_in=inputs.lifetime(expires_in),
        expires_at=inputs.expiry(expires_at),
        if_version=if_version,
    )
    _show(session, receipt)


@command(app, "touch")
def touch(session: Session, ids: inputs.Ids = None, expires_in: inputs.ExpiresIn = None) -> None:
    """Mark memories as used, or let them live longer.

    With --expires-in they live that long from now.
    """
    lifetime = inputs.lifetime(expires_in)
    with _named(ids) as named:
        _show_batch(session, session.space.touch_many(named, expires_in=lifetime))


@command(app, "archive")
def archive(session: Session, ids: inputs.Ids = None) -> None:
    """Take memories out of search; they stay readable by id."""
    with _named(ids) as named:
        _show_batch(session, session.space.archive_many(named))


@command(app, "restore")
def restore(session: Session, ids: inputs.Ids = None) -> None:
    """Make archived or deleted memories active again."""
    with _named(ids) as named:
        _show_batch(session, session.space.restore_many(named))


@command(app, "delete")
def delete(
    session: Session,
    ids: inputs.Ids = None,
    where: inputs.Where = None,
    kind: inputs.OfKind = None,
    tag: inputs.OfTag = None,
    of_session: inputs.OfSession = None,
    task: inputs.OfTask = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Delete the whole namespace; needs --yes.")
    ] = False,
    yes: inputs.Yes = False,
) -> None:
    """Delete memories; history keeps them.

    Those named, or with --yes all that a filter matches. Their history stays, and restore or
    rollback brings them back; purge erases.
    """
    found = inputs.conditions(where, kind=kind, tag=tag, session=of_session, task=task)
    space = session.space
    if _one_way(ids, found is not None or everything):
        _show_batch(session, space.delete_many(_readable(session, ids or [])))
        return
    _confirmed(yes, space.count(found), "delete")
    _show_batch(session, space.delete_many(found, everything=everything))


def _readable(session: Session, ids: list[str]) -> Mapping[str, Any]:
    """Give the filter for memories that can be read; an id of no such one fails first."""
    named = [session.space.get(memory_id).memory_id for memory_id in inputs.whole_ids(ids)]
    return {"memory_id": {"in": named}, **READABLE}


@command(app, "purge")
def purge(
    session: Session,
    ids: inputs.Ids = None,
    where: inputs.Where = None,
    kind: inputs.OfKind = None,
    tag: inputs.OfTag = None,
    of_session: inputs.OfSession = None,
    task: inputs.OfTask = None,
    state: inputs.OfState = None,
    yes: inputs.Yes = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be erased.")
    ] = False,
) -> None:
    """Erase memories for good, every version of them.

    Those named, or with --yes all that a filter matches. The journal keeps that they were there.
    --dry-run says of each how many versions and bytes that is, and erases nothing. Where another
    program still reads the old pages, it ends with 5 and says so: the memories are gone, and scrub,
    or the next command, overwrites what is left of them in the file.
    """
    found = inputs.conditions(where, kind=kind, tag=tag, session=of_session, task=task, state=state)
    space = session.space
    if _one_way(ids, found is not None):
        named = inputs.whole_ids(ids)
    else:
        named = [record.memory_id for record in space.each(found)]
        _confirmed(yes or dry_run, len(named), "purge")
    report = space.purge_many(named, dry_run=dry_run)
    session.show(printing.purge_json(report), printing.purge_text(report))


@contextmanager
def _named(ids: list[str] | None) -> Iterator[list[str]]:
    """Give the ids; an error names the memory and needs no index beside it."""
    if not ids:
        raise InvalidInput("name at least one id")
    try:
        yield inputs.whole_ids(ids)
    except ZeroMemError as error:
        error.args = (_INDEX.sub("", str(error)), *error.args[1:])
        raise


def _one_way(ids: list[str] | None, filtered: bool) -> bool:
    """Tell whether ids were given, and refuse both or neither."""
    if bool(ids) == filtered:
        raise InvalidInput("name ids, or give a filter; not both, not neither")
    return bool(ids)


def _confirmed(yes: bool, count: int, what: str) -> None:
    if not yes:
        found = counted(count, "memory matches", "memories match")
        raise InvalidInput(f"{found}; add --yes to {what} all that match")
