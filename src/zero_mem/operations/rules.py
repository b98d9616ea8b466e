"""The rules of writes, as pure functions: what is the same, what merges, what conflicts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from zero_mem.errors import Conflict
from zero_mem.operations.requests import Expiry, SaveRequest, canonical
from zero_mem.policy.limits import Limits
from zero_mem.storage.base import Stored
from zero_mem.storage.codec import encode_body
from zero_mem.types import Body, Json, MemoryRecord

_ENDINGS: Mapping[str, str] = {
    "expire": "expired",
    "task": "expired with its task",
    "event": "expired by an event",
    "purge": "purged",
}


def derived_key(rule: str | None, content: Body, metadata: Mapping[str, Any]) -> str | None:
    """Derive the unique key of a record that was given none (`dedupe_key` of its limits)."""
    if rule is None:
        return None
    if rule == "content":
        kind, data = encode_body(content)
        return f"content:{hashlib.blake2b(kind.encode() + data, digest_size=16).hexdigest()}"
    value = metadata.get(rule.removeprefix("metadata."))
    return None if value is None else f"{rule}:{canonical(value)}"


def missing(memory_id: str, stored: Stored | None) -> str:
    """Say that a record can't be read; one that never was reads like one deleted."""
    if stored is None or stored.ended_by not in _ENDINGS:
        return f"no memory {memory_id} in this namespace"
    return f"memory {memory_id} is {_ENDINGS[stored.ended_by]}"


def merged(old: Mapping[str, Any], new: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge metadata key by key: None removes a key, and all of them when it is the whole."""
    if new is None:
        return {}
    return {key: value for key, value in {**old, **new}.items() if value is not None}


def same_body(one: Body, other: Body) -> bool:
    """Compare two bodies; JSON numbers of different type differ."""
    if isinstance(one, Json) and isinstance(other, Json):
        return canonical(one.value) == canonical(other.value)
    return one == other


def merging(current: Stored, request: SaveRequest) -> MemoryRecord:
    """Give the record that a save of an existing one asks for (`op:merge`)."""
    record = current.record
    return replace(
        record,
        content=request.content,
        metadata=merged(record.metadata, request.metadata or {}),
        tags=record.tags if request.tags is None else request.tags,
        task=request.task or record.task,
        session=request.session or record.session,
        speaker=request.speaker or record.speaker,
        source=request.source,
        invalidated_by=request.invalidated_by or record.invalidated_by,
        created_at=request.created_at or record.created_at,
    )


def same(current: Stored, target: MemoryRecord, expiry: Expiry) -> bool:
    """Tell whether a write would leave everything as it is."""
    record = current.record
    return (
        same_body(record.content, target.content)
        and canonical(record.metadata) == canonical(target.metadata)
        and _scalars(record) == _scalars(target)
        and _same_expiry(current, expiry)
    )


def _scalars(record: MemoryRecord) -> tuple[object, ...]:
    return (
        record.tags,
        record.task,
        record.session,
        record.speaker,
        record.invalidated_by,
        record.created_at,
    )


def _same_expiry(current: Stored, expiry: Expiry) -> bool:
    if not expiry.given:
        return True
    if expiry.lifetime is not None:
        return current.lifetime == expiry.micros
    return current.lifetime is None and current.record.expires_at == expiry.at


def check_version(current: Stored | None, expected: int | None) -> None:
    """Refuse a write that was decided on another version (`op:version`)."""
    if expected is None:
        return
    version = current.record.version if current else 0
    if version != expected:
        if current is None:
            raise Conflict(f"there is no such memory yet: version 0, not {expected}")
        memory_id = current.record.memory_id
        raise Conflict(
            f"memory {memory_id} is at version {version}, not {expected}; "
            "read it again and decide anew"
        )


def is_there(current: Stored | None) -> bool:
    """Tell whether a record exists for a caller that wants to make it."""
    return current is not None and current.record.state != "deleted"


def check_same(stored: Stored | None, request: SaveRequest) -> None:
    """Refuse a save that would change what a record is, rather than what it says."""
    if stored is None or stored.record.state != "active":
        return
    record = stored.record
    if request.kind_given and request.kind != record.kind:
        raise Conflict(
            f"memory {record.memory_id} is of kind {record.kind}, not {request.kind}; "
            "update it, or save under another id"
        )
    if request.form_given and request.form != record.form:
        raise Conflict(f"memory {record.memory_id} has the form {record.form}, not {request.form}")
    if request.key is not None and request.key != record.key:
        raise Conflict(f"memory {record.memory_id} does not have the key {request.key!r}")


def retention_end(record: MemoryRecord, limits: Limits) -> datetime | None:
    """Give the moment from which a record is to be archived, None for never."""
    if limits.retention_days is None:
        return None
    return max(record.updated_at, record.accessed_at) + timedelta(days=limits.retention_days)
