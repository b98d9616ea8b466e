"""The backups of the server, and whether the store is well."""

from __future__ import annotations

import asyncio
import logging
import shlex
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

from zero_mem.backup.reports import BackupReport, Verification
from zero_mem.backup.schedule import Schedule, made_at
from zero_mem.backup.verifying import verify_file
from zero_mem.console.visit import Page, Reply, Visit
from zero_mem.doctor import examine
from zero_mem.errors import InvalidInput, NotFound, ZeroMemError

if TYPE_CHECKING:
    from zero_mem.server.backups import Backups

LOG: Final = logging.getLogger("zero_mem.console.backup")

PATIENCE: Final = 5.0
"""Seconds that a visitor waits for a backup; a larger one goes on without them."""

_FAILURES: Final = 10
_RESTORED: Final = "sqlite:///restored.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRow:
    """A backup of the folder; a schedule only keeps what it has verified."""

    name: str
    path: FilePath
    made_at: datetime
    bytes: int


def listed(schedule: Schedule) -> list[BackupRow]:
    """List the backups of a schedule, the newest first; one that goes meanwhile is left out.

    Raises:
        StoreUnavailable: The folder can't be read.
    """
    rows: list[BackupRow] = []
    for path in reversed(schedule.backups()):
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            continue
        rows.append(BackupRow(name=path.name, path=path, made_at=made_at(path), bytes=size))
    return rows


def restoring(path: FilePath) -> str:
    """Write the command that restores a backup into a new store, as a shell takes it."""
    return f"zero-mem recover {shlex.quote(str(path.absolute()))} --to {_RESTORED}"


# The page


def _show(visit: Visit) -> Reply:
    return _page(visit)


def _page(visit: Visit, *, checked: str = "", found: Verification | None = None) -> Reply:
    backups = visit.host.backups
    problem, rows = "", list[BackupRow]()
    try:
        rows = listed(backups.schedule) if backups else []
    except ZeroMemError as error:
        problem = str(error)
    memory = visit.host.memory
    return visit.render(
        "backup.html",
        backups=backups,
        rows=rows,
        problem=problem,
        checked=checked,
        found=found,
        command=restoring(rows[0].path) if rows else "",
        failures=list(backups.failures)[: -_FAILURES - 1 : -1] if backups else [],
        health=memory.health(),
        stats=memory.stats(),
        diagnosis=examine(memory) if visit.query.get("examine") else None,
    )


def _verify(visit: Visit) -> Reply:
    """Check one of the backups that are listed; no other file can be named."""
    backups, name = visit.host.backups, visit.field("name")
    rows = listed(backups.schedule) if backups else []
    path = next((row.path for row in rows if row.name == name), None)
    if path is None:
        raise NotFound(f"no backup {name!r} is there")
    return _page(visit, checked=name, found=verify_file(path))


async def _make(visit: Visit) -> Reply:
    """Begin a backup, and wait for it a moment."""
    backups = visit.host.backups
    if backups is None:
        raise InvalidInput("the server has no folder for backups; set backup_folder")
    if backups.under_way:
        return visit.go("/backup", notice="backup-under-way")
    making = asyncio.create_task(_made(backups))
    _UNDER_WAY.add(making)
    making.add_done_callback(_UNDER_WAY.discard)
    done, _ = await asyncio.wait({making}, timeout=PATIENCE)
    if not done:
        return visit.go("/backup", notice="backup-under-way")
    if making.result() is None:
        return visit.go("/backup", failed=1)
    return visit.go("/backup", notice="backed-up")


_UNDER_WAY: Final[set[asyncio.Task[BackupReport | None]]] = set()
"""An event loop holds its tasks weakly."""


async def _made(backups: Backups) -> BackupReport | None:
    """Make a backup; what goes wrong is among the failures that the page shows."""
    try:
        return await backups.make()
    except ZeroMemError as error:
        LOG.warning("the backup failed: %s: %s", type(error).__name__, error)
        return None


PAGE = Page(
    name="backup",
    path="/backup",
    gets={"/backup": _show},
    posts={"/backup/verify": _verify},
    tasks={"/backup/make": _make},
    needs_namespace=False,
    for_owner=True,
)
