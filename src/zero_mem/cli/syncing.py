"""The command that exchanges two stores' changes: sync."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Final

import typer

from zero_mem.cli.session import Session, command
from zero_mem.environment import encryption, redaction
from zero_mem.memory import Memory
from zero_mem.storage.base import SEALED
from zero_mem.storage.opening import open_storage
from zero_mem.text.nouns import counted

if TYPE_CHECKING:
    from zero_mem.sync import Received, SyncReport

app = typer.Typer()

OTHER_CREDENTIAL: Final = "ZERO_MEM_SYNC_CREDENTIAL"
"""The environment variable with an API key of the other store."""


@command(app, "sync", shared=("store", "as_json"), creates=True)
def sync(
    session: Session,
    url: Annotated[str, typer.Argument(metavar="URL", help="The other store; it must be there.")],
    namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            "-n",
            metavar="PATTERN",
            help="Only these, such as acme/** or acme/alice; may be repeated.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be exchanged.")
    ] = False,
) -> None:
    """Exchange the changes of two stores, each change once.

    What was changed on both sides is settled alike on both: the later version stays, and the other
    one is in the memory's history. Deletes and purges travel; settings do not.
    """
    from zero_mem.sync import sync as exchange

    with _other(url) as other:
        report = exchange(session.memory, other, namespaces=namespaces or (), dry_run=dry_run)
    session.show(report.as_json(), "\n".join(_lines(report)))


def _other(url: str) -> Memory:
    """Open the other store, with the keys of the environment if it is encrypted."""
    with closing(open_storage(url, create=False)) as storage:
        sealed = storage.note(SEALED) is not None
    return Memory.open(
        url,
        create=False,
        actor="cli",
        encryption=encryption() if sealed else None,
        redaction=redaction(),
        credential=os.environ.get(OTHER_CREDENTIAL) or None,
    )


def _lines(report: SyncReport) -> list[str]:
    lines = [f"received {_summary(report.received)}", f"sent {_summary(report.sent)}"]
    lines += [
        f"conflict: memory {each.memory_id} of {'/'.join(each.namespace)} was changed on both "
        f"sides; `rollback {each.memory_id} --to-version {each.lost_version}` brings back what lost"
        for each in report.received.conflicts
    ]
    lines += [
        f"archived: memory {each.memory_id} of {'/'.join(each.namespace)}; its key belongs to "
        f"memory {each.holder} now"
        for each in report.received.displaced
    ]
    refused = len(report.received.refused) + len(report.sent.refused)
    if refused:
        lines.append(f"{counted(refused, 'purge', 'purges')} left to somebody with the right admin")
    lines += [f"left out {'/'.join(path)}: {why}" for path, why in report.stopped.items()]
    return lines


def _summary(received: Received) -> str:
    parts = [counted(received.applied, "change")]
    parts += [f"{received.created} new"] if received.created else []
    parts += [f"{received.purged} purged"] if received.purged else []
    conflicts = len(received.conflicts)
    parts += [counted(conflicts, "conflict")] if conflicts else []
    renumbered = len(received.renumbered)
    parts += [f"{renumbered} under another id"] if renumbered else []
    return ", ".join(parts)
