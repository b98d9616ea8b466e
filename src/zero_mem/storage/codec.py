"""How bodies and records are written down, the same in every store."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from zero_mem.storage.times import from_micros, micros
from zero_mem.types import Blob, Body, Json, MemoryRecord, Path

EndedBy: TypeAlias = Literal["", "expire", "task", "event", "delete", "purge", "rollback"]
TEXT, JSON = "text", "json"
quote = json.encoder.encode_basestring_ascii
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Stored(NamedTuple):
    """A record and what only the store and the operations need of it.

    `position` is the order of first insertion in its namespace, unique in the store.
    `sequence` is that of the record's last journal entry, `body` the store's own number of
    the body (0: not stored yet). `dedupe` is the key that is unique with (namespace, kind)
    among active records. `lifetime` is the duration in microseconds that `expires_in` set.
    `parent` is the digest of the version before, "" for the first.
    """

    record: MemoryRecord
    position: int = 0
    sequence: int = 0
    body: int = 0
    dedupe: str | None = None
    lifetime: int | None = None
    ended_by: EndedBy = ""
    parent: str = ""

    @property
    def digest(self) -> str:
        """The hash of this version, its body and its parent: equal ones have equal histories."""
        kind, body = encode_body(self.record.content)
        digest = hashlib.blake2b(f"{encode_fields(self)}{kind}".encode(), digest_size=16)
        digest.update(body)
        return digest.hexdigest()


def last_use(stored: Stored) -> tuple[datetime, int, int]:
    """Order records by last use, then by how often they were recalled, then by age."""
    record = stored.record
    last = max(record.updated_at, record.accessed_at)
    return last, record.access_count, stored.position


def encode_body(body: Body) -> tuple[str, bytes]:
    """Give a body's type (`text`, `json` or a media type) and its bytes, exactly."""
    if isinstance(body, str):
        return TEXT, body.encode("utf-8", "surrogatepass")
    if isinstance(body, Json):
        return JSON, _encode(body.value).encode()
    return f"blob:{body.media_type}", body.data


def decode_body(kind: str, data: bytes) -> Body:
    """Give back what `encode_body` wrote."""
    if kind == TEXT:
        return data.decode("utf-8", "surrogatepass")
    if kind == JSON:
        return Json(json.loads(data))
    return Blob(data=data, media_type=kind.removeprefix("blob:"))


@lru_cache(maxsize=1024)
def encode_path(path: Path) -> str:
    """Write a namespace path so that no two paths collide (a JSON list)."""
    return json.dumps(path, ensure_ascii=False, separators=(",", ":"))


@lru_cache(maxsize=1024)
def decode_path(text: str) -> Path:
    """Read a namespace path back."""
    return tuple(json.loads(text))


def below(prefix: Path, path: Path) -> bool:
    """Tell whether a path is the prefix or lies below it."""
    return path[: len(prefix)] == prefix


def encode_fields(stored: Stored) -> str:
    """Write all of a record but its body and access counters as compact JSON."""
    record = stored.record
    written = (
        f'{{"uid":"{record.uid}","id":"{record.memory_id}","form":"{record.form}"'
        f',"kind":{quote(record.kind)},"source":"{record.source}","state":"{record.state}"'
        f',"version":{record.version},"created":{micros(record.created_at)}'
        f',"recorded":{micros(record.recorded_at)},"updated":{micros(record.updated_at)}'
    )
    expires = record.expires_at
    optional = (
        ("key", record.key),
        ("meta", record.metadata),
        ("tags", record.tags),
        ("task", record.task),
        ("session", record.session),
        ("speaker", record.speaker),
        ("expires", None if expires is None else str(micros(expires))),
        ("invalidated_by", record.invalidated_by),
        ("dedupe", stored.dedupe),
        ("lifetime", stored.lifetime),
        ("ended_by", stored.ended_by),
        ("parent", stored.parent),
    )
    for name, value in optional:
        if value:
            written += f',"{name}":{_encode(value)}'
    return written + "}"


def decode_fields(
    text: str,
    *,
    namespace: Path,
    content: Body,
    accessed_at: int,
    access_count: int,
    position: int = 0,
    sequence: int = 0,
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
        expires_at=None if expires is None else from_micros(int(expires)),
        invalidated_by=tuple(get("invalidated_by", ())),
        version=fields["version"],
        state=fields["state"],
    )
    return Stored(
        record=record,
        position=position,
        sequence=sequence,
        body=body,
        dedupe=get("dedupe"),
        lifetime=get("lifetime"),
        ended_by=ended_by,
        parent=get("parent", ""),
    )


def purged_key(key: str) -> str:
    """Give what stands for a decision's key once the memory it belongs to was purged."""
    return f"purged:{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}"


def erase_fields(text: str) -> str:
    """Keep of a written record only what a tombstone may show."""
    fields = json.loads(text)
    kept = ("uid", "id", "form", "version", "created", "recorded", "updated")
    tombstone = {name: fields[name] for name in kept}
    tombstone |= {
        "kind": "purged",
        "source": "user",
        "state": "deleted",
        "ended_by": "purge",
    }
    return _encode(tombstone)
