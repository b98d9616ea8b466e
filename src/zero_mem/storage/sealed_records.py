"""Records, changes and decisions as an encrypted store holds them, and back."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from zero_mem.index.document import index_terms
from zero_mem.storage.base import Change, Decision, JournalEntry
from zero_mem.storage.codec import Stored, decode_body, encode_body, encode_fields
from zero_mem.storage.seal import Seal
from zero_mem.types import Blob, Body, MemoryRecord

MEDIA_TYPE: Final = "application/x-zero-mem-sealed"
"""The media type of a sealed body; whoever opens the store without its keys sees this."""

_METADATA: Final = "sealed"
_NAMED: Final = frozenset({"key", "task", "session", "speaker"})


def sealed_equalities(
    seal: Seal, equalities: Mapping[str, Collection[object]]
) -> dict[str, Collection[object]]:
    """Seal the names in a filter's equalities, as records hold them."""
    return {
        field: [seal.name(str(value), field) for value in values] if field in _NAMED else values
        for field, values in equalities.items()
    }


def sealed_change(seal: Seal, change: Change, contents: dict[str, Body]) -> Change:
    """Seal a change; `contents` has the sealed body that each record has so far."""
    record = change.after.record
    before = change.before
    if before is not None and record.memory_id not in contents:
        # A stand-in: an old body is named by its number, and only its identity is looked at.
        contents[record.memory_id] = Blob(data=b"sealed", media_type=MEDIA_TYPE)
    old = contents.get(record.memory_id)
    if change.body_changed:
        contents[record.memory_id] = sealed_body(seal, record)
    after = sealed(seal, change.after, contents[record.memory_id])
    return change._replace(
        before=None if before is None or old is None else sealed(seal, before, old),
        after=after,
        reason=seal.seal_text(change.reason, f"reason {record.uid}") if change.reason else "",
        fields=encode_fields(after),
        terms=seal.term_list(index_terms(record)) if record.state == "active" else (),
    )


def sealed_body(seal: Seal, record: MemoryRecord) -> Blob:
    """Seal a record's body with its type."""
    kind, data = encode_body(record.content)
    head = kind.encode()
    whole = len(head).to_bytes(2, "big") + head + data
    return Blob(data=seal.seal(whole, f"body {record.uid}"), media_type=MEDIA_TYPE)


def opened_body(seal: Seal, body: Body, uid: str) -> Body:
    """Give a body back; one that was never sealed as it is."""
    if not isinstance(body, Blob) or body.media_type != MEDIA_TYPE:
        return body
    whole = seal.open(body.data, f"body {uid}")
    end = 2 + int.from_bytes(whole[:2], "big")
    return decode_body(whole[2:end].decode(), whole[end:])


def sealed(seal: Seal, stored: Stored, content: Body) -> Stored:
    """Seal all of a record that could tell what it says."""
    record = stored.record
    names: dict[str, Any] = {
        field: seal.name(value, field)
        for field in _NAMED
        if (value := getattr(record, field)) is not None
    }
    private = json.dumps([record.metadata, stored.parent])
    metadata = {_METADATA: seal.seal_text(private, f"metadata {record.uid}")}
    return stored._replace(
        record=replace(
            record,
            content=content,
            metadata=metadata,
            tags=tuple(seal.name(tag, "tags") for tag in record.tags),
            invalidated_by=tuple(seal.name(each, "event") for each in record.invalidated_by),
            **names,
        ),
        dedupe=None if stored.dedupe is None else seal.name(stored.dedupe, "dedupe"),
        parent="",
    )


def opened(seal: Seal, stored: Stored) -> Stored:
    """Give a record back; what was never sealed as it is."""
    record = stored.record
    text = record.metadata.get(_METADATA)
    if not isinstance(text, str) or len(record.metadata) != 1:
        return stored
    metadata, parent = json.loads(seal.open_text(text, f"metadata {record.uid}"))
    names: dict[str, Any] = {
        field: seal.open_name(value, field)
        for field in _NAMED
        if (value := getattr(record, field)) is not None
    }
    return stored._replace(
        record=replace(
            record,
            content=opened_body(seal, record.content, record.uid),
            metadata=metadata,
            tags=tuple(seal.open_name(tag, "tags") for tag in record.tags),
            invalidated_by=tuple(seal.open_name(each, "event") for each in record.invalidated_by),
            **names,
        ),
        dedupe=None if stored.dedupe is None else seal.open_name(stored.dedupe, "dedupe"),
        parent=parent,
    )


def opened_entry(seal: Seal, entry: JournalEntry) -> JournalEntry:
    """Give a journal entry back with its record and the body before."""
    record = None if entry.record is None else opened(seal, entry.record)
    reason = seal.open_text(entry.reason, f"reason {entry.uid}") if entry.reason else ""
    return replace(
        entry,
        record=record,
        reason=reason,
        parent=entry.parent if record is None else record.parent,
        before=None if entry.before is None else opened_body(seal, entry.before, entry.uid),
    )


def opened_decision(seal: Seal, decision: Decision) -> Decision:
    """Give a decision's key and value back."""
    key, value = decision.key, decision.value
    if value is not None:
        value = seal.open_text(value, f"{decision.scope} {key}")
    return replace(decision, key=seal.open_name(key, decision.scope), value=value)
