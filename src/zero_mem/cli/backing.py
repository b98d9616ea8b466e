"""Commands for whole stores: backup, verify, recover."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zero_mem.cli import inputs
from zero_mem.cli.session import CREDENTIAL_VARIABLE, Session, command
from zero_mem.environment import encryption
from zero_mem.errors import NotAllowed, StoreCorrupt
from zero_mem.text.nouns import counted

if TYPE_CHECKING:
    from zero_mem.backup import Counts, Verification

app = typer.Typer()

Backup = Annotated[
    Path, typer.Argument(metavar="FILE", help="The file to write; it may not be there yet.")
]


@command(app, "backup", shared=("store", "as_json"))
def backup(
    session: Session,
    file: Backup,
    portable: Annotated[
        bool,
        typer.Option("--portable", help="Write an archive, to restore into any kind of store."),
    ] = False,
    since: Annotated[
        Path | None,
        typer.Option(metavar="BACKUP", help="Write only what came after an earlier backup."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--verify", help="Check the backup when it is written.")
    ] = False,
) -> None:
    """Write the whole store into a file, while others go on writing.

    All namespaces with their history, settings, and what is kept beside them; an encrypted store
    stays encrypted. The file is there whole or not at all, and readable by its owner only.
    """
    report = session.memory.backup(file, portable=portable, since=since)
    if check:
        _check_written(session, file, report.made_at)
    value = {
        "file": str(report.path),
        "form": report.form,
        "made_at": report.made_at.isoformat(),
        "bytes": report.bytes,
        **_json(report.counts),
    }
    session.show(value, f"{report.form} of {_text(report.counts)}, {report.bytes} bytes")


def _check_written(session: Session, file: Path, made_at: datetime) -> None:
    from zero_mem.backup import verify_file
    from zero_mem.backup.schedule import BACKED_UP

    found = verify_file(file, encryption())
    if not found.sound:
        raise StoreCorrupt(f"{file} is not sound: {found.faults[0]}")
    session.memory.storage.keep_note(BACKED_UP, made_at.isoformat())


@command(app, "verify", shared=("store", "as_json"))
def verify(
    session: Session,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A backup; without it the store.", show_default=False),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="First rebuild the store's lexical index.")
    ] = False,
) -> None:
    """Check a store or a backup for damage.

    Every record is compared with its journal and the index with one made anew. Ends with 5 where
    something is wrong. A backup is restored into a folder that goes away again.
    """
    found = _verified(session, file, rebuild)
    value = {"sound": found.sound, "faults": list(found.faults), "sealed": found.sealed}
    lines = list(found.faults) or [f"sound: {_text(found.counts)}"]
    if found.sealed:
        lines.append("it is encrypted: without its keys, digests and terms were not compared")
    session.show({**value, **_json(found.counts)}, "\n".join(lines))
    if not found.sound:
        raise StoreCorrupt(f"{counted(len(found.faults), 'fault', 'faults')} found")


def _verified(session: Session, file: Path | None, rebuild: bool) -> Verification:
    if file is None:
        if rebuild:
            session.memory.scrub()
        return session.memory.verify()
    from zero_mem.backup import verify_file

    return verify_file(file, encryption())


@command(app, "recover", shared=("as_json",))
def recover(
    session: Session,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="BACKUP...", help="A backup, and those that continue it, in order."),
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="URL", help="The store to make, sqlite:///agent.db.")
    ],
    until: Annotated[
        str | None,
        typer.Option(metavar="MOMENT", help="Leave out what was recorded after a time."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Check the store before it is used.")
    ] = True,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace a store file; it stays as *.before-restore."),
    ] = False,
) -> None:
    """Make a store of a backup, whole or not at all.

    The new store has an origin of its own: others go on syncing with it as with a store that was
    never theirs, and nothing is taken twice.
    """
    from zero_mem.restore import restore

    if os.environ.get(CREDENTIAL_VARIABLE):
        raise NotAllowed("a store is restored without a credential")
    moment: datetime | None = None if until is None else inputs.moment(until, "--until")
    report = restore(
        list(files),
        to,
        until=moment,
        verify=check,
        overwrite=overwrite,
        encryption=encryption(),
    )
    value = {
        **_json(report.counts),
        "until": None if report.until is None else report.until.isoformat(),
        "cut": [list(path) for path in report.cut],
        "verified": report.verified,
    }
    text = f"restored {_text(report.counts)}" + (", verified" if report.verified else "")
    session.show(value, text)


def _json(counts: Counts) -> dict[str, Any]:
    return {
        "namespaces": counts.namespaces,
        "records": counts.records,
        "entries": counts.entries,
    }


def _text(counts: Counts) -> str:
    records = counted(counts.records, "memory", "memories")
    spaces = counted(counts.namespaces, "namespace")
    return f"{records} in {spaces}, {counted(counts.entries, 'journal entry', 'journal entries')}"
