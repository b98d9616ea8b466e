"""One record: its body, why it was or was not used, its past, and the ways back to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from zero_mem.api.text import dump
from zero_mem.console.differing import fields_between, lines_between, shown
from zero_mem.console.numbers import whole_number
from zero_mem.console.visit import Page, Reply, Visit
from zero_mem.errors import InvalidInput, NotFound
from zero_mem.operations.history import HistoryEntry
from zero_mem.types import Blob, Json, MemoryRecord
from zero_mem.why import why

SHOWN: Final = 100_000
"""Characters of a body that a page shows; the whole is a link away."""
_VERSIONS: Final = 100
_SANDBOX: Final = "default-src 'none'; sandbox; frame-ancestors 'none'"

ACTIONS: Final = ("archive", "restore", "delete", "rollback", "purge")
"""What can be done to a record, each after a page that asks for it."""


def _show(visit: Visit) -> Reply:
    identity = _identity(visit)
    entries = visit.space.history(identity)
    wanted = _number(visit.query.get("version", ""), "version")
    entry = entries[-1] if wanted is None else _version(entries, wanted)
    text = "" if entry.record is None else shown(entry.record.content)
    start = _number(visit.query.get("start", ""), "start") or 0
    newest = list(reversed(entries))
    return visit.render(
        "record.html",
        identity=identity,
        entry=entry,
        record=entry.record,
        is_blob=entry.record is not None and isinstance(entry.record.content, Blob),
        state=_state(visit, entries[-1]),
        latest=entries[-1],
        text=text[:SHOWN],
        is_cut=len(text) > SHOWN,
        length=len(text),
        entries=newest[start : start + _VERSIONS],
        older=start + _VERSIONS if len(newest) > start + _VERSIONS else None,
        explanation=why(visit.space, identity, visit.query.get("conversation") or None),
        actions=_actions(visit, entries[-1]),
    )


def _state(visit: Visit, entry: HistoryEntry) -> str:
    """Name the state that a record is in after its last change."""
    if entry.record is None:
        return "purged"
    expired = entry.record.state == "active" and entry.record.expired(visit.memory.now())
    return "expired" if expired else entry.record.state


def _actions(visit: Visit, entry: HistoryEntry) -> list[str]:
    """List what the visitor may do to a record as it is now."""
    state = _state(visit, entry)
    if state == "purged" or not visit.may("write"):
        return []
    ways = {"active": ["archive", "delete"], "archived": ["restore", "delete"]}
    found = ways.get(state, ["restore"] if state == "deleted" else [])
    return [*found, "purge"] if visit.may("admin") else found


def _body(visit: Visit) -> Reply:
    """Give a body whole: text as text, and never as anything that a browser would run."""
    identity = _identity(visit)
    wanted = _number(visit.query.get("version", ""), "version")
    entries = visit.space.history(identity)
    record = (entries[-1] if wanted is None else _version(entries, wanted)).record
    if record is None:
        raise NotFound(f"memory {identity} was purged; there is no body")
    headers = {"Content-Security-Policy": _SANDBOX}
    if isinstance(record.content, str):
        body = record.content.encode("utf-8", "backslashreplace")
        return Reply(body=body, media_type="text/plain; charset=utf-8", headers=headers)
    name = f"memo-{identity.replace(':', '-')}-v{record.version}"
    kind, content = _file(record.content)
    headers["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return Reply(body=content, media_type="application/octet-stream", headers=headers)


def _file(body: Json | Blob) -> tuple[str, bytes]:
    return ("json", dump(body.value)) if isinstance(body, Json) else ("bin", body.data)


def _diff(visit: Visit) -> Reply:
    identity = _identity(visit)
    entries = visit.space.history(identity)
    numbers = [_number(visit.query.get(name, ""), name) for name in ("a", "b")]
    if None in numbers:
        raise InvalidInput("a comparison names two versions, a and b")
    left, right = (_version(entries, number) for number in sorted(filter(None, numbers)))
    lines, fields = _differences(left.record, right.record)
    return visit.render(
        "diff.html",
        identity=identity,
        left=left,
        right=right,
        versions=sorted({entry.version for entry in entries}),
        lines=lines,
        fields=fields,
    )


def _differences(left: MemoryRecord | None, right: MemoryRecord | None) -> tuple[Any, Any]:
    if left is None or right is None:
        return None, []
    return lines_between(left.content, right.content), fields_between(left, right)


# Changes


def _ask(visit: Visit) -> Reply:
    identity = _identity(visit)
    action = _action(visit.query.get("do", ""))
    entries = visit.space.history(identity)
    target = _number(visit.query.get("version", ""), "version")
    if action == "rollback":
        _version(entries, target or 0)
    return visit.render(
        "confirm.html",
        identity=identity,
        action=action,
        latest=entries[-1],
        target=target,
        problem="",
    )


def _change(visit: Visit) -> Reply:
    identity, action = visit.field("id"), _action(visit.field("do"))
    space = visit.space
    seen = _number(visit.field("if_version"), "if_version")
    if action == "purge":
        if visit.field("typed").strip() != identity:
            raise InvalidInput("to purge a memory, type its id as it is; nothing was changed")
        space.purge(identity, if_version=seen)
    elif action == "rollback":
        space.rollback(identity, to_version=_number(visit.field("version"), "version"))
    else:
        getattr(space, action)(identity, if_version=seen)
    return visit.go("/record", notice=DONE[action], id=identity)


DONE: Final = {
    "archive": "archived",
    "restore": "restored",
    "delete": "deleted",
    "rollback": "rolled-back",
    "purge": "purged",
}
"""The notice after each change."""


def _action(name: str) -> str:
    if name in ACTIONS:
        return name
    raise InvalidInput(f"a record can be changed here by {', '.join(ACTIONS)}")


def _identity(visit: Visit) -> str:
    if not visit.query.get("id"):
        raise InvalidInput("no memory was named; the address needs ?id=")
    return visit.query["id"]


def _version(entries: Sequence[HistoryEntry], number: int) -> HistoryEntry:
    for entry in reversed(entries):
        if entry.version == number:
            return entry
    raise NotFound(f"there is no version {number}; there are 1 to {entries[-1].version}")


def _number(text: str, what: str) -> int | None:
    return whole_number(text, what) if text else None


PAGE = Page(
    name="record",
    path="/record",
    gets={
        "/record": _show,
        "/record/body": _body,
        "/record/diff": _diff,
        "/record/confirm": _ask,
    },
    posts={"/record/change": _change},
    within="records",
)
