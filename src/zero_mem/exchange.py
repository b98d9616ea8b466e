"""Memories as JSON lines: written out of a store, and read into one.

One line is one record with all its fields. Reading is idempotent: a line is known by its uid
and version, so that a file can be read again after a fault, or when it has grown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, Final, Literal, TextIO, TypeAlias, get_args

from zero_mem.errors import Conflict, InvalidInput, MigrationNeeded, ZeroMemError
from zero_mem.operations.idempotency import IDEMPOTENCY
from zero_mem.space import Namespace
from zero_mem.storage.base import Stored
from zero_mem.types import Blob, Body, Json, MemoryReceipt, MemoryRecord, Path

FORMAT: Final = 1
"""Version of the lines; it rises when a field changes its meaning."""

BATCH: Final = 500
"""Most lines that are written in one transaction."""

READABLE: Final[Mapping[str, Any]] = {"state": {"in": ["active", "archived"]}}
"""The records that are written out where no filter is given: all that can be read by id."""

OnConflict: TypeAlias = Literal["refuse", "skip", "renumber"]
Progress: TypeAlias = Callable[[int], None]

_PLAIN: Final = ("form", "kind", "key", "task", "session", "speaker", "source")
_TIMES: Final = ("created_at", "recorded_at", "updated_at", "accessed_at", "expires_at")


def record_json(record: MemoryRecord) -> dict[str, Any]:
    """Give all fields of a record as JSON-ready values.

    `content` is a string for text, any value for JSON, Base64 for a blob; `content_type` says
    which ("text", "json", "blob"). Times are ISO 8601 in UTC.
    """
    fields: dict[str, Any] = {
        "uid": record.uid,
        "memory_id": record.memory_id,
        "namespace": list(record.namespace),
        **{name: getattr(record, name) for name in _PLAIN},
        **body_json(record.content),
        "metadata": dict(record.metadata),
        "tags": list(record.tags),
    }
    for name in _TIMES:
        moment = getattr(record, name)
        fields[name] = None if moment is None else moment.isoformat()
    return fields | {
        "access_count": record.access_count,
        "invalidated_by": list(record.invalidated_by),
        "version": record.version,
        "state": record.state,
    }


def body_json(body: Body) -> dict[str, Any]:
    """Give a body as `content` and `content_type`, a blob with its `media_type`."""
    if isinstance(body, Json):
        return {"content": body.value, "content_type": "json"}
    if isinstance(body, Blob):
        encoded = base64.b64encode(body.data).decode("ascii")
        return {"content": encoded, "content_type": "blob", "media_type": body.media_type}
    return {"content": body, "content_type": "text"}


def json_line(value: Any) -> str:
    """Write a value on one line, in plain characters where UTF-8 can carry them."""
    line = json.dumps(value, ensure_ascii=False)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        line = json.dumps(value)
    return line + "\n"


def export_records(
    space: Namespace,
    out: TextIO,
    *,
    where: Mapping[str, Any] | None = None,
    on_progress: Progress | None = None,
) -> int:
    """Write the records of a namespace, one JSON line each, in the order of first saving.

    Args:
        space: The namespace.
        out: Takes the lines; open it as UTF-8.
        where: A filter as in `Namespace.list`; by default active and archived records.
        on_progress: Called with the number of lines written so far.

    Returns:
        How many were written.
    """
    count = 0
    for record in space.each(where or READABLE):
        out.write(json_line({"format": FORMAT, **record_json(record)}))
        count += 1
        if on_progress is not None:
            on_progress(count)
    return count


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What became of the lines; `renumbered` maps (namespace, old id) to the new id."""

    imported: int = 0
    unchanged: int = 0
    skipped: list[str] = field(default_factory=list)
    renumbered: dict[tuple[Path, str], str] = field(default_factory=dict)


def import_records(
    place: Callable[[Path], Namespace],
    lines: Iterable[bytes],
    *,
    name: str = "input",
    on_conflict: OnConflict = "refuse",
    on_progress: Progress | None = None,
) -> ImportReport:
    """Read JSON lines into namespaces; lines that were read before change nothing.

    Ids stay, since handles name them. Times of recording are the store's, `created_at` stays;
    a line without `source` gets "import".

    Args:
        place: Gives the namespace for the one that a line names (`("default",)` without).
        lines: As a file opened for bytes gives them.
        name: The file's name, for messages.
        on_conflict: What to do where an id or key is another record's: "refuse" raises,
            "skip" leaves the line out, "renumber" gives a taken id's record a new one.
        on_progress: Called with the number of bytes read so far.

    Raises:
        InvalidInput: A line is not a record; the message has its number.
        Conflict: An id or a key is taken, or purged.
        MigrationNeeded: A newer version wrote the line.
    """
    if on_conflict not in get_args(OnConflict):
        raise InvalidInput(f"on_conflict is one of {', '.join(get_args(OnConflict))}")
    importing = _Importing(place, on_conflict)
    done = 0
    for batch in _batches(_read(lines, name)):
        importing.write(batch)
        done += sum(line.size for line in batch)
        if on_progress is not None:
            on_progress(done)
    return importing.report


@dataclass(frozen=True, slots=True)
class _Line:
    """One record as a line has it; `where` is the file and the line."""

    where: str
    size: int
    namespace: Path
    state: str
    uid: str
    version: int
    item: dict[str, Any]

    @property
    def memory_id(self) -> str | None:
        value = self.item.get("memory_id")
        return None if value is None else str(value)

    @property
    def once(self) -> str:
        """The idempotency key: this version of this record is taken once."""
        return f"{_owner(self.uid)}{self.version}"


def _owner(uid: str) -> str:
    return f"import:{uid}:"


def _read(lines: Iterable[bytes], name: str) -> Iterator[_Line]:
    for number, raw in enumerate(lines, start=1):
        text = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        if text.strip():
            yield _line(text, f"{name}:{number}", len(raw))


def _line(raw: bytes, where: str, size: int) -> _Line:
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{where}: no JSON object, or one that breaks off") from None
    if not isinstance(fields, dict) or "content" not in fields:
        raise InvalidInput(f'{where}: a line is an object with at least "content"')
    written = fields.get("format", FORMAT)
    if not isinstance(written, int) or written > FORMAT:
        raise MigrationNeeded(f"{where}: format {written!r} is of a newer zero-mem; upgrade first")
    try:
        return _Line(
            where=where,
            size=size,
            namespace=_namespace(fields.get("namespace")),
            state=_state(fields.get("state", "active")),
            uid=str(fields.get("uid") or hashlib.sha256(raw.strip()).hexdigest()),
            version=_version(fields.get("version", 1)),
            item=_item(fields),
        )
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def _namespace(value: object) -> Path:
    if value is None:
        return ("default",)
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise InvalidInput("namespace is a list of strings")


def _state(value: object) -> str:
    if value in ("active", "archived", "deleted"):
        return str(value)
    raise InvalidInput("state is active, archived or deleted")


def _version(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise InvalidInput("version is a whole number from 1")


def _item(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Give the arguments of a save."""
    item = {name: fields.get(name) for name in (*_PLAIN, "memory_id", "metadata")}
    return item | {
        "content": body_from(fields),
        "source": fields.get("source") or "import",
        "metadata": fields.get("metadata") or {},
        "tags": fields.get("tags") or (),
        "invalidated_by": fields.get("invalidated_by") or (),
        "created_at": _moment(fields, "created_at"),
        "expires_at": _moment(fields, "expires_at"),
    }


def body_from(fields: Mapping[str, Any]) -> Body:
    """Read a body that `body_json` wrote; without a type, a string is text and all else JSON.

    Raises:
        InvalidInput: The content does not fit its type.
    """
    content = fields.get("content")
    kind = fields.get("content_type") or ("text" if isinstance(content, str) else "json")
    if kind == "json":
        return Json(content)
    if kind not in ("text", "blob"):
        raise InvalidInput("content_type is text, json or blob")
    if not isinstance(content, str):
        raise InvalidInput(f"content of type {kind} is a string")
    if kind == "text":
        return content
    try:
        found = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("content of type blob is Base64") from None
    return Blob(data=found, media_type=str(fields.get("media_type") or Blob(data=b"").media_type))


def _moment(fields: Mapping[str, Any], name: str) -> datetime | None:
    value = fields.get(name)
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} is a time such as 2026-11-29T12:00:00+00:00") from None


def _batches(lines: Iterable[_Line]) -> Iterator[list[_Line]]:
    """Cut into runs of one namespace and at most `BATCH` lines."""
    for _, run in groupby(lines, key=lambda line: line.namespace):
        batch: list[_Line] = []
        for line in run:
            batch.append(line)
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


class _Importing:
    """Writes batches, each in one transaction, and counts what became of them."""

    def __init__(self, place: Callable[[Path], Namespace], on_conflict: OnConflict) -> None:
        self._place = place
        self._on_conflict = on_conflict
        self._known: dict[Path, dict[str, str]] = {}
        self.report = ImportReport()

    def write(self, batch: Sequence[_Line]) -> None:
        """Write the lines of a batch that are new, then bring them to their states."""
        space = self._place(batch[0].namespace)
        space.memory.flush()
        there = _in_any_state(space, {line.memory_id for line in batch})
        wanted: list[tuple[_Line, dict[str, Any]]] = []
        written: list[_Written] = []
        for line in batch:
            before = space.decision(IDEMPOTENCY, line.once)
            if before is not None or _has(line, there):
                self.report.unchanged += 1
                written += [_Written.before(line, before)] if before is not None else []
                continue
            item = self._placed(space, line, there)
            if item is not None:
                wanted.append((line, item))
        written += self._save(space, wanted)
        _settle(space, written)

    def _placed(
        self, space: Namespace, line: _Line, there: Mapping[str, Stored]
    ) -> dict[str, Any] | None:
        """Give the save for a line: as a new record, or over what an earlier version became."""
        item = line.item | {"idempotency_key": line.once}
        if line.memory_id is None:
            return item
        stored = there.get(line.memory_id)
        if stored is None:
            return item | {"if_version": 0}
        same = stored.record.uid == line.uid
        earlier = line.memory_id if same else self._imported_as(space, line.uid)
        if earlier is not None:
            return _over(item, _in_any_state(space, {earlier})[earlier].record)
        if self._on_conflict == "renumber":
            return item | {"memory_id": None}
        if self._on_conflict == "skip":
            self.report.skipped.append(line.where)
            return None
        raise Conflict(
            f"{line.where}: memory {line.memory_id} of {'/'.join(space.path)} is another record; "
            "skip such lines, renumber them, or choose an empty namespace"
        )

    def _imported_as(self, space: Namespace, uid: str) -> str | None:
        """Find the id that an earlier version of a record was given here."""
        if space.path not in self._known:
            self._known[space.path] = dict(_imports(space))
        return self._known[space.path].get(_owner(uid))

    def _save(
        self, space: Namespace, wanted: Sequence[tuple[_Line, dict[str, Any]]]
    ) -> list[_Written]:
        if not wanted:
            return []
        skipping = self._on_conflict == "skip"
        try:
            batch = space.save_many(
                [item for _, item in wanted], on_error="skip" if skipping else "abort"
            )
        except ZeroMemError as error:
            raise _located(error, [line for line, _ in wanted]) from error
        written = []
        for (line, _), result in zip(wanted, batch.results, strict=True):
            if isinstance(result, MemoryReceipt):
                self._count(space, line, result)
                written.append(_Written(line, result.memory_id, result.version))
            elif isinstance(result, Conflict):
                self.report.skipped.append(line.where)
            else:
                result.args = (f"{line.where}: {result}", *result.args[1:])
                raise result
        return written

    def _count(self, space: Namespace, line: _Line, receipt: MemoryReceipt) -> None:
        old, unchanged = line.memory_id, receipt.replayed or receipt.unchanged
        self.report.unchanged += unchanged
        self.report.imported += not unchanged
        if old is not None and receipt.memory_id != old:
            self.report.renumbered[space.path, old] = receipt.memory_id
        if space.path in self._known:
            self._known[space.path][_owner(line.uid)] = receipt.memory_id


@dataclass(frozen=True, slots=True)
class _Written:
    """What a line became."""

    line: _Line
    memory_id: str
    version: int

    @classmethod
    def before(cls, line: _Line, decided: str) -> _Written:
        """Read what it became when it was first read."""
        receipt = json.loads(decided)
        return cls(line, str(receipt["memory_id"]), int(receipt["version"]))


def _in_any_state(space: Namespace, ids: Iterable[str | None]) -> dict[str, Stored]:
    """Read records by id, ended ones too."""
    named = [memory_id for memory_id in ids if memory_id is not None]
    with space.memory.transaction() as transaction:
        row = transaction.namespace(space.path)
        return dict(transaction.by_ids(row, named)) if row and named else {}


def _has(line: _Line, there: Mapping[str, Stored]) -> bool:
    """Tell whether the record itself is there, at the line's version or a later one.

    One that was purged is not there; to save it again is refused.
    """
    stored = there.get(line.memory_id or "")
    if stored is None or stored.ended_by == "purge":
        return False
    return stored.record.uid == line.uid and stored.record.version >= line.version


def _imports(space: Namespace) -> Iterator[tuple[str, str]]:
    for key, value in space.decisions(IDEMPOTENCY).items():
        if key.startswith("import:") and value is not None:
            yield key.rpartition(":")[0] + ":", str(json.loads(value)["memory_id"])


def _over(item: dict[str, Any], record: MemoryRecord) -> dict[str, Any]:
    """Make a save replace a record's metadata, where it would merge into it."""
    gone: dict[str, Any] = dict.fromkeys(record.metadata.keys() - item["metadata"].keys())
    return item | {
        "memory_id": record.memory_id,
        "metadata": gone | item["metadata"],
        "if_version": record.version,
    }


def _settle(space: Namespace, written: Sequence[_Written]) -> None:
    """Archive or delete what the lines have in that state, and clear tags they lack.

    Only records that are still as they were written: where this was cut short, reading the
    file again makes it good; what somebody changed since stays.
    """
    records = space.get_many([each.memory_id for each in written])
    for each, record in zip(written, records, strict=True):
        if record is None or record.version != each.version or record.state != "active":
            continue
        if record.tags and not each.line.item["tags"]:
            space.update(record.memory_id, tags=None)
        if each.line.state == "archived":
            space.archive(record.memory_id)
        elif each.line.state == "deleted":
            space.delete(record.memory_id)


def _located(error: ZeroMemError, lines: Sequence[_Line]) -> ZeroMemError:
    """Put the file and line in the place of a batch's "item N"."""
    head, separator, rest = str(error).partition(": ")
    index = head.removeprefix("item ")
    if separator and index.isdecimal() and int(index) < len(lines):
        error.args = (f"{lines[int(index)].where}: {rest}", *error.args[1:])
    return error
