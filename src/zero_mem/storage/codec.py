"""How bodies and records are written down, the same in every store."""

from __future__ import annotations

import json
from typing import Any

from zero_mem.storage.base import EndedBy, Stored
from zero_mem.storage.times import from_micros, to_micros
from zero_mem.types import Blob, Body, Json, MemoryRecord, Path

TEXT, JSON = "text", "json"


def encode_body(body: Body) -> tuple[str, bytes]:
    """Give a body's type (`text`, `json` or a media type) and its bytes, exactly."""
    if isinstance(body, str):
        return TEXT, body.encode("utf-8", "surrogatepass")
    if isinstance(body, Json):
        return JSON, json.dumps(body.value, separators=(",", ":")).encode()
    return f"blob:{body.media_type}", body.data


def decode_body(kind: str, data: bytes) -> Body:
    """Give back what `encode_body` wrote."""
    if kind == TEXT:
        return data.decode("utf-8", "surrogatepass")
    if kind == JSON:
        return Json(json.loads(data))
    return Blob(data=data, media_type=kind.removeprefix("blob:"))


def encode_path(path: Path) -> str:
    """Write a namespace path so that no two paths collide (a JSON list)."""
    return json.dumps(path, ensure_ascii=False, separators=(",", ":"))


def decode_path(text: str) -> Path:
    """Read a namespace path back."""
    return tuple(json.loads(text))


def below(prefix: Path, path: Path) -> bool:
    """Tell whether a path is the prefix or lies below it."""
    return path[: len(prefix)] == prefix


def encode_fields(stored: Stored) -> str:
    """Write all of a record but its body and its access counters as compact JSON."""
    record = stored.record
    fields: dict[str, Any] = {
        "uid": record.uid,
        "id": record.memory_id,
        "form": record.form,
        "kind": record.kind,
        "source": record.source,
        "state": record.state,
        "version": record.version,
        "created": to_micros(record.created_at),
        "recorded": to_micros(record.recorded_at),
        "updated": to_micros(record.updated_at),
        "digest": stored.digest,
    }
    optional = {
        "key": record.key,
        "meta": record.metadata or None,
        "tags": record.tags or None,
        "task": record.task,
        "session": record.session,
        "speaker": record.speaker,
        "expires": None if record.expires_at is None else to_micros(record.expires_at),
        "invalidated_by": record.invalidated_by or None,
        "dedupe": stored.dedupe,
        "lifetime": stored.lifetime,
        "ended_by": stored.ended_by or None,
    }
    fields.update((name, value) for name, value in optional.items() if value is not None)
    return json.dumps(fields, separators=(",", ":"))


def decode_fields(
    text: str,
    *,
    namespace: Path,
    content: Body,
    accessed_at: int,
    access_count: int,
    position: int = 0,
    body: int = 0,
) -> Stored:
    """Read a record back."""
    fields = json.loads(text)
    get = fields.get
    expires = get("expires")
    ended_by: EndedBy = get("ended_by", "")
    record = MemoryRecord(
        uid=fields["uid"],
        memory_id=fields["id"],
        namespace=namespace,
        form=fields["form"],
        kind=fields["kind"],
        key=get("key"),
        content=content,
        metadata=get("meta") or {},
        tags=tuple(get("tags", ())),
        task=get("task"),
        session=get("session"),
        speaker=get("speaker"),
        source=fields["source"],
        created_at=from_micros(fields["created"]),
        recorded_at=from_micros(fields["recorded"]),
        updated_at=from_micros(fields["updated"]),
        accessed_at=from_micros(accessed_at),
        access_count=access_count,
        expires_at=None if expires is None else from_micros(expires),
        invalidated_by=tuple(get("invalidated_by", ())),
        version=fields["version"],
        state=fields["state"],
    )
    return Stored(
        record=record,
        position=position,
        body=body,
        dedupe=get("dedupe"),
        lifetime=get("lifetime"),
        ended_by=ended_by,
        digest=fields["digest"],
    )


def erase_fields(text: str) -> str:
    """Keep of a written record only what a tombstone may show."""
    fields = json.loads(text)
    kept = ("uid", "id", "form", "version", "created", "recorded", "updated")
    tombstone = {name: fields[name] for name in kept}
    tombstone |= {
        "kind": "purged",
        "source": "user",
        "state": "deleted",
        "digest": "",
        "ended_by": "purge",
    }
    return json.dumps(tombstone, separators=(",", ":"))
