"""The messages that two stores exchange: a run of journal entries as JSON-ready values.

What is read may come from anybody: every value is checked as a caller's own would be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeVar, get_args

from zero_mem.errors import InvalidInput, MigrationNeeded
from zero_mem.exchange import body_from, body_json
from zero_mem.handles import check_memory_id
from zero_mem.operations.requests import (
    check_body,
    check_metadata,
    check_name,
    check_path,
    check_source,
    check_tags,
    check_text,
    optional_name,
)
from zero_mem.policy.limits import FORMS
from zero_mem.storage.base import EndedBy, Stored
from zero_mem.storage.codec import decode_fields, encode_fields
from zero_mem.sync.causality import Cause, Stamp, cause_json
from zero_mem.types import Operation, Path, State

FORMAT: Final = 1
"""Version of the messages; it rises when a field changes its meaning."""

_UID: Final = re.compile(r"[0-9a-f]{32}")
_ORIGIN: Final = re.compile(r"[0-9a-zA-Z_-]{8,64}")
_LAST_MICROS: Final = 253_402_300_799_999_999  # 9999-12-31, where datetime ends
_MOST: Final = 2**53

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change of one record; a purge has neither record nor cause.

    `home` is the record's id in the store where it was made. `version` of a purge is that of
    the tombstone.
    """

    sequence: int
    group: int
    at: int
    actor: str
    operation: Operation
    reason: str
    uid: str
    home: str
    version: int
    record: Stored | None
    cause: Cause | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Entries of one namespace of one store: all that others may need after `since`.

    `until` is how far the run goes, `last` how far the store's journal goes.
    """

    origin: str
    namespace: Path
    since: int
    until: int
    last: int
    entries: Sequence[Entry]


def message_json(message: Message) -> dict[str, Any]:
    """Write a message as JSON-ready values."""
    return {
        "format": FORMAT,
        "origin": message.origin,
        "namespace": list(message.namespace),
        "since": message.since,
        "until": message.until,
        "last": message.last,
        "entries": [_entry_json(entry) for entry in message.entries],
    }


def _entry_json(entry: Entry) -> dict[str, Any]:
    value: dict[str, Any] = {
        "sequence": entry.sequence,
        "group": entry.group,
        "at": entry.at,
        "actor": entry.actor,
        "operation": entry.operation,
        "reason": entry.reason,
        "uid": entry.uid,
        "home": entry.home,
        "version": entry.version,
    }
    if entry.record is None or entry.cause is None:
        return value
    fields = json.loads(encode_fields(entry.record))
    fields.pop("parent", None)
    body = body_json(entry.record.record.content)
    return {**value, "fields": fields, **body, "cause": cause_json(entry.cause)}


def read_message(value: object) -> Message:
    """Read and check a message.

    Raises:
        InvalidInput: It is none; the message says which value is wrong.
        MigrationNeeded: A newer version wrote it.
    """
    fields = _object(value, "a message")
    written = fields.get("format")
    if not isinstance(written, int) or isinstance(written, bool) or written > FORMAT:
        raise MigrationNeeded(f"the message has format {written!r} of a newer zero-mem; upgrade")
    since, until = _count(fields, "since"), _count(fields, "until")
    namespace = check_path(_list(fields.get("namespace"), "namespace"))
    message = Message(
        origin=_matching(_ORIGIN, fields.get("origin"), "origin"),
        namespace=namespace,
        since=since,
        until=until,
        last=_count(fields, "last"),
        entries=[_entry(each, namespace) for each in _list(fields.get("entries"), "entries")],
    )
    order = [since, *(entry.sequence for entry in message.entries)]
    if any(later <= earlier for earlier, later in pairwise(order)) or order[-1] > until:
        raise InvalidInput("the entries of a message go up, from since to until")
    return message


def _entry(value: object, namespace: Path) -> Entry:
    fields = _object(value, "an entry")
    operation = _one_of(fields.get("operation"), get_args(Operation), "operation")
    purged = operation == "purge"
    entry = Entry(
        sequence=_count(fields, "sequence"),
        group=_count(fields, "group"),
        at=_moment(fields, "at"),
        actor=check_text(fields.get("actor"), "actor"),
        operation=operation,
        reason=check_text(fields.get("reason"), "reason"),
        uid=_matching(_UID, fields.get("uid"), "uid"),
        home=check_memory_id(check_text(fields.get("home"), "home")),
        version=_positive(fields, "version"),
        record=None if purged else _record(fields, namespace),
        cause=None if purged else _cause(_object(fields.get("cause"), "cause")),
    )
    if entry.record is not None and entry.record.record.uid != entry.uid:
        raise InvalidInput("an entry's uid is that of its record")
    return entry


def _record(entry: Mapping[str, Any], namespace: Path) -> Stored:
    fields = _object(entry.get("fields"), "fields")
    checked = {**_names(fields), **_times(fields), **_lists(fields)}
    return decode_fields(
        json.dumps(checked),
        namespace=namespace,
        content=check_body(body_from(entry)),
        accessed_at=checked["recorded"],
        access_count=0,
    )


def _names(fields: Mapping[str, Any]) -> dict[str, Any]:
    optional = {
        name: optional_name(fields.get(name), name)
        for name in ("key", "task", "session", "speaker")
    }
    dedupe = fields.get("dedupe")
    return optional | {
        "uid": _matching(_UID, fields.get("uid"), "uid"),
        "id": check_memory_id(check_text(fields.get("id"), "id")),
        "form": _one_of(fields.get("form"), FORMS, "form"),
        "kind": check_name(fields.get("kind"), "kind"),
        "source": check_source(fields.get("source")),
        "state": _one_of(fields.get("state"), get_args(State), "state"),
        "ended_by": _one_of(fields.get("ended_by", ""), get_args(EndedBy), "ended_by"),
        "dedupe": None if dedupe is None else check_text(dedupe, "dedupe"),
        "version": _positive(fields, "version"),
    }


def _times(fields: Mapping[str, Any]) -> dict[str, Any]:
    times: dict[str, Any] = {
        name: _moment(fields, name) for name in ("created", "recorded", "updated")
    }
    expires, lifetime = fields.get("expires"), fields.get("lifetime")
    if expires is not None:
        if not isinstance(expires, str) or not expires.removeprefix("-").isdecimal():
            raise InvalidInput("expires is a time in microseconds, written as a string")
        times["expires"] = str(_moment({"expires": int(expires[:20])}, "expires"))
    if lifetime is not None:
        times["lifetime"] = _positive(fields, "lifetime", most=_LAST_MICROS)
    return times


def _lists(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "meta": check_metadata(fields.get("meta") or {}),
        "tags": check_tags(fields.get("tags") or ()),
        "invalidated_by": check_tags(fields.get("invalidated_by") or (), "invalidated_by"),
    }


def _cause(value: Mapping[str, Any]) -> Cause:
    seen = _object(value.get("seen"), "seen")
    heads = frozenset(_dot(each) for each in _list(value.get("heads"), "heads"))
    stamp = _list(value.get("stamp"), "stamp")
    if not seen or not heads or len(stamp) != 4:
        raise InvalidInput("a cause has what it has seen, its heads and a stamp of four values")
    recorded, changes, store, sequence = stamp
    last = {"changes": changes, "sequence": sequence, "recorded": recorded}
    return Cause(
        seen={_matching(_ORIGIN, s, "a store"): _positive(seen, s) for s in seen},
        heads=heads,
        base=_positive(value, "base"),
        stamp=Stamp(
            _moment(last, "recorded"),
            _positive(last, "changes", most=_MOST),
            _matching(_ORIGIN, store, "a store"),
            _positive(last, "sequence"),
        ),
    )


def _dot(value: object) -> tuple[str, int]:
    pair = _list(value, "a head")
    if len(pair) != 2:
        raise InvalidInput("a head is a store and a sequence")
    return _matching(_ORIGIN, pair[0], "a store"), _positive({"sequence": pair[1]}, "sequence")


def _object(value: object, what: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return value
    raise InvalidInput(f"{what} is an object")


def _list(value: object, what: str) -> list[Any]:
    if isinstance(value, list):
        return value
    raise InvalidInput(f"{what} is a list")


def _whole(fields: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidInput(f"{name} is a whole number from {least} to {most}")
    return value


def _count(fields: Mapping[str, Any], name: str) -> int:
    return _whole(fields, name, 0, 2**32)


def _positive(fields: Mapping[str, Any], name: str, *, most: int = 2**32) -> int:
    return _whole(fields, name, 1, most)


def _moment(fields: Mapping[str, Any], name: str) -> int:
    return _whole(fields, name, -62_135_596_800_000_000, _LAST_MICROS)


def _matching(pattern: re.Pattern[str], value: object, what: str) -> str:
    if isinstance(value, str) and pattern.fullmatch(value):
        return value
    raise InvalidInput(f"{what} reads as {pattern.pattern}")


def _one_of(value: object, known: Sequence[T], what: str) -> T:
    for each in known:
        if value == each:
            return each
    raise InvalidInput(f"{what} is one of {', '.join(map(str, known))}")
