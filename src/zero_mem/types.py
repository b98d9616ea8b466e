"""The values that go in and come out of Zero-Mem: immutable, keyword-only, typed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

Form: TypeAlias = Literal["working", "episodic", "semantic", "procedural"]
State: TypeAlias = Literal["active", "archived", "deleted"]
Source: TypeAlias = Literal["user", "tool", "model", "import"]
Path: TypeAlias = tuple[str, ...]


class Unset(Enum):
    """The type of `UNSET`, which is not `None`: None clears a value, UNSET leaves it."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> Literal[False]:
        return False


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON body, kept apart from text: `save('{"a": 1}')` stays text."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A binary body with its media type; it is stored, never rendered into a prompt."""

    data: bytes
    media_type: str = "application/octet-stream"


Body: TypeAlias = str | Json | Blob


def body_text(body: Body) -> str:
    """Give the text of a body as a prompt or a search sees it; a blob gives only its label."""
    if isinstance(body, str):
        return body
    if isinstance(body, Json):
        return json.dumps(body.value, ensure_ascii=False, separators=(", ", ": "))
    return f"({body.media_type}, {len(body.data)} bytes)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """One memory as the store holds it.

    `uid` never changes and is global; `memory_id` is unique in the namespace and is what
    handles name. All times are aware UTC datetimes with microseconds. *Expired* is not a
    state: it is an active record with `expires_at` at or before now.
    """

    uid: str
    memory_id: str
    namespace: Path
    form: Form
    kind: str
    key: str | None
    content: Body
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    task: str | None = None
    session: str | None = None
    speaker: str | None = None
    source: Source = "user"
    created_at: datetime
    recorded_at: datetime
    updated_at: datetime
    accessed_at: datetime
    access_count: int = 0
    expires_at: datetime | None = None
    invalidated_by: tuple[str, ...] = ()
    version: int = 1
    state: State = "active"

    @property
    def text(self) -> str:
        """The body as text (JSON compact but readable; a blob only its label)."""
        return body_text(self.content)

    def expired(self, now: datetime) -> bool:
        """Tell whether the record is expired at `now`; the instant of expiry counts."""
        return self.expires_at is not None and self.expires_at <= now


Operation: TypeAlias = Literal[
    "save", "update", "touch", "archive", "restore", "delete", "expire", "purge", "rollback"
]

_PREVIEW_UNSAFE = re.compile(r"[^\w.:\-/@+ ]", re.UNICODE)
PREVIEW_LIMIT = 64


@lru_cache(maxsize=4096)
def preview(kind: str, key: str | None = None) -> str:
    """Make a receipt's preview of the kind and key names, never of a value.

    Anything that could close the bracket or look like a handle becomes `_`.
    """
    name = kind if key is None else f"{kind}:{key}"
    return _PREVIEW_UNSAFE.sub("_", name)[:PREVIEW_LIMIT]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReceipt:
    """What an operation returns and what a prompt may carry: it has no body at all.

    `flags` is a subset of {"unchanged", "replayed", "masked", "accepted"}; `version` is 0
    for an accepted write that has not been applied yet.
    """

    memory_id: str
    operation: Operation
    version: int
    created_at: datetime
    preview: str = ""
    flags: frozenset[str] = frozenset()

    def to_context(self) -> str:
        """Render as `[memo:ID] OPERATION (PREVIEW)`; without a preview the brackets go."""
        head = f"[memo:{self.memory_id}] {self.operation}"
        return f"{head} ({self.preview})" if self.preview else head

    @property
    def unchanged(self) -> bool:
        """True when the write found the record as it should be and added no version."""
        return "unchanged" in self.flags

    @property
    def replayed(self) -> bool:
        """True when an idempotency key had been applied before."""
        return "replayed" in self.flags

    @property
    def masked(self) -> bool:
        """True when a secret was masked before the body was stored."""
        return "masked" in self.flags

    @property
    def accepted(self) -> bool:
        """True when a queued write was taken but not yet applied."""
        return "accepted" in self.flags


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """One page of a listing; `next_cursor` is None on the last one."""

    items: tuple[T, ...]
    next_cursor: str | None = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> T:
        return self.items[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One search result; `score` is in [0, 1], comparable within one namespace."""

    memory_id: str
    score: float
    record: MemoryRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallItem:
    """One recalled memory: `text` is quoted from the body and may be an extract.

    `superseded_by` is the id of a newer record that contradicts this one, "" where there is
    none. `reason` and `parts` are what explains it: each part's share of the score, or the
    factor (`x date`) that it was multiplied with.
    """

    memory_id: str
    text: str
    score: float
    record: MemoryRecord
    superseded_by: str = ""
    reason: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What a recall gives: items best first, and `text` as it would go into a prompt.

    `tokens` counts `text`; `tokens_exact` is False where only an estimate (on the safe
    side) is at hand. `left_out` is one line on what did not fit, empty when all did.
    `behind` is the number of records whose dense index is not up to date; `degraded` says
    why dense recall took no part where the store has an embedder, and is empty otherwise.
    """

    items: tuple[RecallItem, ...]
    text: str
    tokens: int
    tokens_exact: bool
    left_out: str = ""
    behind: int = 0
    degraded: str = ""
    near_misses: tuple[RecallItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A part of one body, chosen by the caller and held to a budget.

    `value` is the JSON value that was chosen (None for text); `matched` of `total` rows or
    lines were chosen, and `left_out` is one line on what of them did not fit.
    """

    memory_id: str
    text: str
    value: Any
    matched: int
    total: int
    tokens: int
    tokens_exact: bool
    left_out: str = ""
