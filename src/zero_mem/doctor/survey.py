"""One walk over a store: what the questions need to know, as counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from zero_mem.ledger.reading import overview
from zero_mem.memory import Memory
from zero_mem.operations.duplicates import group_duplicates
from zero_mem.policy.limits import Limits, limits_for
from zero_mem.policy.visibility import visibility_of
from zero_mem.redaction.making import GROUPS, redactor
from zero_mem.redaction.redactor import Redactor
from zero_mem.space import Namespace
from zero_mem.types import Json, MemoryRecord, Path, preview

SAMPLE: Final = 2000
"""Most records of a namespace whose text is looked into."""

_LONG_OVERDUE: Final = timedelta(days=1)
_ALL: Final = {"state": {"in": ["active", "archived"]}}


@dataclass(slots=True)
class Survey:
    """What was counted; names are those of kinds and namespaces.

    Attributes:
        records: Active and archived records.
        looked_into: Of these, the ones whose text was looked into.
        in_prompts: Records that enter a prompt without being asked, by kind, and their
            characters.
        telling: Receipts whose preview has what looks like a secret or personal data, by what.
        overdue: Records that expired more than a day ago and were not swept.
        keyless: Semantic records without a key, by kind.
        duplicates: Near-equal records beyond the first of their group, by kind.
        unbounded: Namespaces whose reads have wide limits, and which.
        secrets: Secrets found in texts, by kind; `personal` likewise.
        unhistoried: Records whose journal does not end in what they are.
        ledgers: Conversations with a ledger.
        calls: Their calls.
    """

    namespaces: list[Path] = field(default_factory=list)
    records: int = 0
    looked_into: int = 0
    in_prompts: Counter[str] = field(default_factory=Counter)
    prompt_characters: int = 0
    telling: Counter[str] = field(default_factory=Counter)
    overdue: int = 0
    keyless: Counter[str] = field(default_factory=Counter)
    duplicates: Counter[str] = field(default_factory=Counter)
    unbounded: list[str] = field(default_factory=list)
    secrets: Counter[str] = field(default_factory=Counter)
    personal: Counter[str] = field(default_factory=Counter)
    versions: int = 0
    unhistoried: list[str] = field(default_factory=list)
    ledgers: int = 0
    calls: int = 0


MOST_ITEMS: Final = 50
MOST_CHARACTERS: Final = 5000
"""Limits of a read beyond which a person should look."""


def survey(memory: Memory) -> Survey:
    """Walk over every namespace that can be read; nothing is written."""
    found = Survey()
    finder = redactor([{"personal": "mask"}], key=b"", engines=())
    for path in memory.subtree().namespaces():
        found.namespaces.append(path)
        _namespace(memory.namespace(*path), memory.now(), finder, found)
    return found


def _namespace(space: Namespace, now: datetime, finder: Redactor, found: Survey) -> None:
    settings = space.settings()
    sample: list[MemoryRecord] = []
    for record in space.each(_ALL):
        found.records += 1
        _shown(record, limits_for(settings, record.form, record.kind), found)
        if record.form == "semantic" and record.key is None and record.state == "active":
            found.keyless[record.kind] += 1
        if len(sample) < SAMPLE:
            sample.append(record)
    found.overdue += sum(1 for _ in space.each(_overdue(now)))
    _texts(sample, finder, found)
    _history(space, sample, found)
    _limits(space, settings, found)
    _ledgers(space, found)


def _overdue(now: datetime) -> dict[str, object]:
    return {"state": "expired", "expires_at": {"lte": (now - _LONG_OVERDUE).isoformat()}}


def _shown(record: MemoryRecord, limits: Limits, found: Survey) -> None:
    if record.state == "active" and visibility_of(record, limits) in ("pinned", "summary"):
        found.in_prompts[record.kind] += 1
        found.prompt_characters += len(record.text)


def _texts(sample: list[MemoryRecord], finder: Redactor, found: Survey) -> None:
    """Look into texts and previews; only kinds of what is found are kept."""
    found.looked_into += len(sample)
    for record in sample:
        for kind in finder.kinds(preview(record.kind, record.key)):
            found.telling[kind] += 1
        for kind in _kinds(record, finder):
            (found.personal if kind in GROUPS["personal"] else found.secrets)[kind] += 1
    kinds = {record.kind for record in sample if record.form == "semantic"}
    for kind in kinds:
        alike = (r for r in sample if (r.kind, r.key, r.state) == (kind, None, "active"))
        extra = sum(group.count - 1 for group in group_duplicates(alike))
        if extra:
            found.duplicates[kind] += extra


def _kinds(record: MemoryRecord, finder: Redactor) -> Iterator[str]:
    for text in (record.text, *record.tags):
        yield from finder.kinds(text)
    body = record.content.value if isinstance(record.content, Json) else None
    for value in (record.metadata, body):
        if value and finder.value(value) is not value:
            yield from finder.kinds(str(value)) or ["secret_field"]


def _history(space: Namespace, sample: list[MemoryRecord], found: Survey) -> None:
    """Check of some records that the journal's last version is what the record is."""
    step = max(1, len(sample) // 20)
    for record in islice(sample, 0, None, step):
        entries = space.history(record.memory_id)
        found.versions += len(entries)
        last = entries[-1].record
        if last is None or (last.version, last.content) != (record.version, record.content):
            found.unhistoried.append(f"{'/'.join(space.path)} {record.memory_id}")


def _limits(space: Namespace, settings: str, found: Survey) -> None:
    for form in ("working", "episodic", "semantic", "procedural"):
        limits = limits_for(settings, form, "")
        if limits.max_recall_items > MOST_ITEMS or limits.compaction_threshold > MOST_CHARACTERS:
            found.unbounded.append(f"{'/'.join(space.path)} ({form})")


def _ledgers(space: Namespace, found: Survey) -> None:
    entered = overview(space)
    found.ledgers += len(entered.conversations)
    found.calls += entered.total.calls
