"""What became of the entries that a store received."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from zero_mem.types import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncConflict:
    """A record that was changed on both sides; the version that lost is in its history.

    Attributes:
        namespace: Where it is.
        memory_id: Its id in the store that reports.
        uid: Its id everywhere.
        version: The version that it has now, on both sides.
        lost_version: The version that lost; `rollback(memory_id, to_version=…)` brings it back.
        kept_from: The origin of the store whose content it shows.
    """

    namespace: Path
    memory_id: str
    uid: str
    version: int
    lost_version: int
    kept_from: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Displaced:
    """A record whose key another one holds since; it was archived.

    Attributes:
        namespace: Where it is.
        memory_id: Its id in the store that reports.
        holder: The record that holds the key: the one that was changed later.
    """

    namespace: Path
    memory_id: str
    holder: str


@dataclass(slots=True, kw_only=True)
class Received:
    """What a store did with what another one sent.

    Attributes:
        entries: How many journal entries came.
        applied: Those that changed something here.
        known: Those that were here already, in whatever way they had come.
        created: The records that are new here.
        agreed: Both sides had made the same change.
        redacted: Records of which this store's own rules took something out.
        purged: Records that were erased here.
        refused: The uids of records whose purge the caller has no right to; it is still owed.
        conflicts: What both sides had changed.
        displaced: What lost its key to another record.
        renumbered: By namespace and uid: the id of a record whose own was taken.
    """

    entries: int = 0
    applied: int = 0
    known: int = 0
    created: int = 0
    agreed: int = 0
    redacted: int = 0
    purged: int = 0
    refused: list[str] = field(default_factory=list)
    conflicts: list[SyncConflict] = field(default_factory=list)
    displaced: list[Displaced] = field(default_factory=list)
    renumbered: dict[tuple[Path, str], str] = field(default_factory=dict)

    def add(self, other: Received) -> None:
        """Count another report in."""
        for name in ("entries", "applied", "known", "created", "agreed", "redacted", "purged"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.refused += other.refused
        self.conflicts += other.conflicts
        self.displaced += other.displaced
        self.renumbered |= other.renumbered

    def as_json(self) -> dict[str, Any]:
        """Give the report as JSON-ready values."""
        renumbered = [
            {"namespace": list(path), "uid": uid, "memory_id": memory_id}
            for (path, uid), memory_id in self.renumbered.items()
        ]
        value = {**asdict(self), "renumbered": renumbered}
        for each in (*value["conflicts"], *value["displaced"]):
            each["namespace"] = list(each["namespace"])
        return value


@dataclass(slots=True, kw_only=True)
class SyncReport:
    """What two stores did with each other's changes.

    Attributes:
        received: At the first store.
        sent: At the other one.
        namespaces: Those that were looked at.
        stopped: By namespace, why it could not be exchanged; the others were.
        dry_run: Whether nothing was written.
    """

    received: Received = field(default_factory=Received)
    sent: Received = field(default_factory=Received)
    namespaces: list[Path] = field(default_factory=list)
    stopped: dict[Path, str] = field(default_factory=dict)
    dry_run: bool = False

    def as_json(self) -> dict[str, Any]:
        """Give the report as JSON-ready values."""
        return {
            "received": self.received.as_json(),
            "sent": self.sent.as_json(),
            "namespaces": [list(path) for path in self.namespaces],
            "stopped": {"/".join(path): why for path, why in self.stopped.items()},
            "dry_run": self.dry_run,
        }
