"""The ten questions, each a function from what was counted to an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from zero_mem.access.grants import BELOW
from zero_mem.doctor.answers import Answer, Diagnosis, Verdict
from zero_mem.doctor.survey import Survey, survey
from zero_mem.errors import NotAllowed
from zero_mem.memory import SWEPT, Memory
from zero_mem.storage.base import SEALED, Storage
from zero_mem.storage.memory import MemoryStorage
from zero_mem.text.nouns import counted
from zero_mem.types import MemoryReceipt

BACKED_UP: Final = "backed-up"
"""The note of when the store was last backed up and the backup verified."""

_OFTEN: Final = timedelta(days=2)


def examine(memory: Memory) -> Diagnosis:
    """Answer the release questions for a store, from evidence; nothing is written.

    Args:
        memory: The store; with a credential only what it may read is looked at.
    """
    found = survey(memory)
    return Diagnosis(
        answers=tuple(
            Answer(number=number, question=question, verdict=verdict, evidence=evidence, mend=mend)
            for number, (question, answer) in enumerate(_QUESTIONS, start=1)
            for verdict, evidence, mend in [answer(memory, found)]
        )
    )


_Found = tuple[Verdict, tuple[str, ...], tuple[str, ...]]


def _bodies(memory: Memory, found: Survey) -> _Found:
    evidence = (
        f"in a prompt unasked: {_tally(found.in_prompts)} of {counted(found.records, 'record')}, "
        f"{counted(found.prompt_characters, 'character')} in all",
    )
    others = found.in_prompts.total() > 20 or found.prompt_characters > 8000
    if others:
        return (
            "look",
            evidence,
            ("`zero-mem configure --kind KIND visibility=handle` for what need not be known",),
        )
    return "good", evidence, ()


def _receipts(memory: Memory, found: Survey) -> _Found:
    fields = sorted(MemoryReceipt.__dataclass_fields__)
    evidence = (
        f"a receipt has the fields {', '.join(fields)}: no body",
        f"previews of {counted(found.looked_into, 'record')}: {_tally(found.telling)} look private",
    )
    if found.telling:
        return "bad", evidence, ("keep names and numbers of people out of kinds and keys",)
    return "good", evidence, ()


def _sweep(memory: Memory, found: Survey) -> _Found:
    swept = _note(memory.storage, SWEPT)
    last = "never" if swept is None else swept.isoformat(timespec="minutes")
    overdue = f"{counted(found.overdue, 'record')} overdue by a day"
    evidence = (f"last sweep of the store: {last}", overdue)
    mend = (
        "run `zero-mem expire` daily, or a server with its sweeper; what it did is in `changes`",
    )
    if found.overdue:
        return "bad", evidence, mend
    late = swept is None or memory.now() - swept > _OFTEN
    return ("look", evidence, mend) if late and found.records else ("good", evidence, ())


def _repeats(memory: Memory, found: Survey) -> _Found:
    evidence = (
        f"semantic records without a key: {_tally(found.keyless)}",
        f"near-equal ones among them: {_tally(found.duplicates)}",
    )
    if found.duplicates:
        kinds = ", ".join(sorted(found.duplicates))
        return (
            "bad",
            evidence,
            (
                f"`zero-mem duplicates KIND --merge` for {kinds}",
                "save with key=…, or `zero-mem configure --kind KIND dedupe_key=content`",
            ),
        )
    return "good", evidence, ()


def _reads(memory: Memory, found: Survey) -> _Found:
    evidence = (
        f"limits of {counted(len(found.namespaces), 'namespace')}: {len(found.unbounded)} let a "
        "read show more than 50 items or 5,000 characters of one body",
        *found.unbounded[:5],
    )
    mend = ("`zero-mem configure max_recall_items=10 compaction_threshold=200`",)
    return ("look", evidence, mend) if found.unbounded else ("good", evidence, ())


def _isolation(memory: Memory, found: Survey) -> _Found:
    probe = _probe(memory, found)
    try:
        keys = [key for key in memory.keyring.every() if key.is_valid(memory.now())]
    except NotAllowed:
        return "good", (*probe, "opened with a credential, which is checked for every call"), ()
    wide = [key.name for key in keys if any(grant.pattern == (BELOW,) for grant in key.grants)]
    evidence = (
        *probe,
        f"{counted(len(found.namespaces), 'namespace')}, {counted(len(keys), 'valid key')}, "
        f"{len(wide)} of them for all",
    )
    if len(found.namespaces) > 1 and not keys:
        return (
            "look",
            evidence,
            ("`zero-mem key create NAME --grant write:TENANT/**`, one for each tenant",),
        )
    return "good", evidence, ()


def _probe(memory: Memory, found: Survey) -> tuple[str, ...]:
    """Ask for a record of one namespace in another, by its immutable id."""
    if len(found.namespaces) < 2:
        return ()
    one, other = (memory.namespace(*path) for path in found.namespaces[:2])
    uids = {record.uid for record in one.list(limit=5)}
    seen = {record.uid for record in other.list(limit=100)}
    shown = counted(len(uids & seen), "record")
    return (f"a probe of {'/'.join(other.path)} showed {shown} of another",)


def _persistence(memory: Memory, found: Survey) -> _Found:
    storage = _beneath(memory.storage)
    kept = _note(memory.storage, BACKED_UP)
    evidence = (
        f"{_kind(storage)}, {storage.size():,} bytes",
        f"last verified backup: {'never' if kept is None else kept.isoformat(timespec='minutes')}",
        f"{counted(found.versions, 'version')} in the journals looked at, for rollback",
    )
    if isinstance(storage, MemoryStorage):
        return "bad", evidence, ("open sqlite:///FILE or postgresql://…: memory:// ends here",)
    late = kept is None or memory.now() - kept > 7 * _OFTEN
    mend = ("`zero-mem backup FILE --verify` regularly, and try `zero-mem recover` once",)
    return ("look", evidence, mend) if late else ("good", evidence, ())


def _history(memory: Memory, found: Survey) -> _Found:
    evidence = (
        f"{counted(found.versions, 'version')} of {counted(found.looked_into, 'record')} "
        f"looked into; {counted(len(found.unhistoried), 'record')} whose journal says otherwise",
        *found.unhistoried[:5],
    )
    if found.unhistoried:
        return "bad", evidence, ("`zero-mem verify` says what is damaged; restore a backup",)
    return "good", evidence, ()


def _privacy(memory: Memory, found: Survey) -> _Found:
    encrypted = _is_encrypted(memory)
    evidence = (
        f"encrypted at rest: {'yes' if encrypted else 'no'}",
        f"secrets in {counted(found.looked_into, 'record')}: {_tally(found.secrets)}",
        f"personal data in them: {_tally(found.personal)}",
    )
    if found.secrets:
        return (
            "bad",
            evidence,
            (
                "revoke what was stored, purge it, and leave redaction of secrets on (the default)",
                "`zero-mem search` with the kind's words finds where they are",
            ),
        )
    if found.personal and not encrypted:
        return (
            "look",
            evidence,
            ('encrypt the store (docs/encryption.md), or `configure redact={"personal":"mask"}`',),
        )
    return "good", evidence, ()


def _cost(memory: Memory, found: Survey) -> _Found:
    evidence = (
        f"ledgers of {counted(found.ledgers, 'conversation')} and {counted(found.calls, 'call')}; "
        "their columns tell receipts, reads and control apart",
    )
    if not found.ledgers:
        return (
            "look",
            evidence,
            ("run the agent through MemoryController or `zero-mem proxy`, or replay a run",),
        )
    return "good", evidence, ()


_QUESTIONS: Final[tuple[tuple[str, Callable[[Memory, Survey], _Found]], ...]] = (
    ("Is there no body in the prompt by default?", _bodies),
    ("Does every operation give a receipt without a sensitive body?", _receipts),
    ("Does an expiry sweep run, and log what it did?", _sweep),
    ("Are dedupe keys set, and do repeats merge?", _repeats),
    ("Are reads bounded by items and length?", _reads),
    ("Do namespaces isolate agents and tenants?", _isolation),
    ("Do persistence, backup and rollback work?", _persistence),
    ("Is the history of memory_id → content kept?", _history),
    ("Is redaction or encryption there where it is needed?", _privacy),
    ("Does cost tell operations from decision reads?", _cost),
)


def _tally(counts: Counter[str]) -> str:
    if not counts:
        return "0"
    named = ", ".join(f"{kind} {count}" for kind, count in counts.most_common(5))
    return f"{counts.total()} ({named})"


def _note(storage: Storage, name: str) -> datetime | None:
    try:
        text = storage.note(name)
    except NotAllowed:
        return None
    return None if text is None else datetime.fromisoformat(text)


def _is_encrypted(memory: Memory) -> bool:
    try:
        return memory.storage.note(SEALED) is not None
    except NotAllowed:
        return False


def _kind(storage: Storage) -> str:
    names = {
        "SQLiteStorage": "an SQLite file",
        "PostgresStorage": "a PostgreSQL database",
        "RoutedStorage": "several PostgreSQL nodes",
        "MemoryStorage": "the memory of one process",
    }
    return f"the store is {names.get(type(storage).__name__, 'seen through a credential')}"


def _beneath(storage: Storage) -> Storage:
    while isinstance(inner := getattr(storage, "inner", None), Storage):
        storage = inner
    return storage
