"""Why a memory was or was not used: one walk from the write to the prompt (`prod:why`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from zero_mem import prompts
from zero_mem.errors import NotFound
from zero_mem.handles import check_memory_id, find
from zero_mem.operations.history import HistoryEntry
from zero_mem.operations.rules import same_body
from zero_mem.space import Namespace
from zero_mem.text.fence import HANDLE_OPENING, escape_handles
from zero_mem.types import MemoryRecord, preview

Answer: TypeAlias = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One question of the walk; evidence and advice name ids, versions and times, no bodies."""

    question: str
    answer: Answer
    evidence: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The steps in the order in which to look; `advice` is that of the first that has any."""

    memory_id: str
    steps: tuple[Step, ...]

    @property
    def advice(self) -> str:
        """What to do first, "" where nothing is wrong."""
        return next((step.advice for step in self.steps if step.advice), "")


def why(
    space: Namespace,
    memory_id: str | int,
    conversation: str | None = None,
    prompt_text: str | None = None,
) -> Explanation:
    """Walk from a memory's write to its use, and say where it stopped.

    Args:
        space: The namespace to look in.
        memory_id: The memory that was, or was not, used.
        conversation: A conversation whose prompts `ZeroMemRuntime.build_prompt` made.
        prompt_text: A prompt as it was sent, as text.

    Returns:
        Five steps: was it written; can it be read now; is its receipt in the prompt; was its
        body read; did a later write bring an older value back.
    """
    identity = check_memory_id(memory_id)
    entries = _history(space, identity)
    record = _readable(space, identity)
    shown = _shown(space, conversation, identity)
    steps = (
        _written(space, identity, entries),
        _readable_now(space, identity, record, entries),
        _receipt_in_prompt(identity, shown, conversation, prompt_text),
        _body_read(record, shown, prompt_text),
        _older_value(entries),
    )
    return Explanation(memory_id=identity, steps=steps)


def _history(space: Namespace, memory_id: str) -> list[HistoryEntry]:
    try:
        return space.history(memory_id)
    except NotFound:
        return []


def _readable(space: Namespace, memory_id: str) -> MemoryRecord | None:
    try:
        return space.get(memory_id)
    except NotFound:
        return None


def _shown(
    space: Namespace, conversation: str | None, memory_id: str
) -> list[tuple[prompts.Block, prompts.Shown]]:
    if conversation is None:
        return []
    blocks = prompts.blocks_of(space, conversation)
    return [
        (block, shown) for block in blocks for shown in block.shown if shown.memory_id == memory_id
    ]


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _told(entry: HistoryEntry) -> str:
    actor = f" by {entry.actor}" if entry.actor else ""
    reason = f" ({entry.reason})" if entry.reason else ""
    return f"version {entry.version}: {entry.operation}{reason} at {_time(entry.at)}{actor}"


def _written(space: Namespace, memory_id: str, entries: Sequence[HistoryEntry]) -> Step:
    question = "Did the operation happen?"
    failed = [failure for failure in space.failures() if failure.memory_id == memory_id]
    if failed:
        return Step(
            question=question,
            answer="no",
            evidence=f"a queued write failed at {_time(failed[-1].at)}: {failed[-1].error}",
            advice="mend what the error says and save again",
        )
    if not entries:
        return Step(
            question=question,
            answer="no",
            evidence=f"the journal of {'/'.join(space.path)} has no memory {memory_id}",
            advice="look at the id and the namespace that the hook writes to",
        )
    return Step(question=question, answer="yes", evidence=_told(entries[-1]))


def _readable_now(
    space: Namespace, memory_id: str, record: MemoryRecord | None, entries: Sequence[HistoryEntry]
) -> Step:
    question = "Can it be read now?"
    if record is None:
        return Step(
            question=question,
            answer="no",
            evidence=_reason_unreadable(space, memory_id, entries),
            advice=_revival(entries),
        )
    if record.state == "archived":
        return Step(
            question=question,
            answer="no",
            evidence=f"archived; {_told(entries[-1])}; only its id and handle read it",
            advice="restore it, so that search, recall and prompts see it",
        )
    until = f", until {_time(record.expires_at)}" if record.expires_at else ""
    return Step(question=question, answer="yes", evidence=f"version {record.version}{until}")


def _reason_unreadable(space: Namespace, memory_id: str, entries: Sequence[HistoryEntry]) -> str:
    try:
        space.get(memory_id)
    except NotFound as error:
        return f"{error}; {_told(entries[-1])}" if entries else str(error)
    return ""


def _receipt_in_prompt(
    memory_id: str,
    shown: Sequence[tuple[prompts.Block, prompts.Shown]],
    conversation: str | None,
    prompt_text: str | None,
) -> Step:
    question = "Is its receipt in the prompt, in a form that the model is told about?"
    if prompt_text is not None:
        return _receipt_in_text(question, memory_id, prompt_text)
    if shown:
        block, _ = shown[-1]
        evidence = f"conversation {conversation!r} shows it before message {block.anchor}"
        return Step(question=question, answer="yes", evidence=evidence)
    if conversation is not None:
        return Step(
            question=question,
            answer="unknown",
            evidence=f"no block of conversation {conversation!r} shows it; what its host put "
            "into the messages is not stored",
            advice="give the prompt's text, or put receipt.to_context() into the messages",
        )
    return Step(
        question=question,
        answer="unknown",
        evidence="no prompt was given",
        advice="give the conversation, or the prompt's text",
    )


def _receipt_in_text(question: str, memory_id: str, text: str) -> Step:
    named = [h for h in find(text) if memory_id in {r.memory_id for r in h.references}]
    if named:
        count = "1 handle names" if len(named) == 1 else f"{len(named)} handles name"
        evidence = f"{count} it, the last at character {named[-1].start}"
        return Step(question=question, answer="yes", evidence=evidence)
    if escape_handles(f"{HANDLE_OPENING}{memory_id}") in text:
        evidence = "it stands there only escaped, as text that came from a body or a tool"
    elif memory_id in text:
        evidence = f"the characters {memory_id!r} stand there, but not as [memo:{memory_id}]"
    else:
        evidence = "no handle there names it"
    advice = "put receipt.to_context() of its last write into the messages, unchanged"
    return Step(question=question, answer="no", evidence=evidence, advice=advice)


def _body_read(
    record: MemoryRecord | None,
    shown: Sequence[tuple[prompts.Block, prompts.Shown]],
    prompt_text: str | None,
) -> Step:
    question = "Was the body read explicitly when a decision needed it?"
    advice = "name it in build_prompt(require=[…]), or recall or read it before the decision"
    if record is not None and shown and shown[-1][1].version != record.version:
        evidence = f"the prompt shows version {shown[-1][1].version}, now it is {record.version}"
        return Step(question=question, answer="no", evidence=evidence, advice=advice)
    if shown:
        evidence = f"version {shown[-1][1].version} is in the prompt ({shown[-1][1].reason})"
        return Step(question=question, answer="yes", evidence=evidence)
    if record is not None and prompt_text is not None:
        line = f"{HANDLE_OPENING}{record.memory_id}] {preview(record.kind, record.key)}: "
        if line in prompt_text:
            return Step(question=question, answer="yes", evidence="a recalled line is there")
        evidence = "no recalled line of it is there"
        return Step(question=question, answer="no", evidence=evidence, advice=advice)
    if record is not None and record.access_count == 0:
        evidence = "no prompt has ever shown it"
        return Step(question=question, answer="no", evidence=evidence, advice=advice)
    return Step(question=question, answer="unknown", evidence=_used(record))


def _used(record: MemoryRecord | None) -> str:
    if record is None:
        return "it can't be read now"
    times = "once" if record.access_count == 1 else f"{record.access_count} times"
    return f"used {times}, last at {_time(record.accessed_at)}"


def _older_value(entries: Sequence[HistoryEntry]) -> Step:
    question = "Did a later write bring an older value back?"
    for place in range(len(entries) - 1, 1, -1):
        entry = entries[place]
        earlier = _same_earlier(entries[:place], entry)
        if earlier is not None:
            return Step(
                question=question,
                answer="yes",
                evidence=f"{_told(entry)} has the body of version {earlier.version} again; "
                f"between them: {_told(entries[place - 1])}",
                advice="write with if_version=, so that the slower writer gets a Conflict",
            )
    count = "1 change" if len(entries) == 1 else f"{len(entries)} changes"
    evidence = f"{count}, no body came back"
    return Step(question=question, answer="no", evidence=evidence)


def _revival(entries: Sequence[HistoryEntry]) -> str:
    """Say how a memory that can't be read comes back, if it can."""
    if not entries:
        return ""
    if entries[-1].operation == "purge":
        return "it is gone for good; save what you need again, under another id"
    if entries[-1].operation in ("delete", "rollback"):
        return "restore it, or roll it back to a version of its history"
    return "save it again"


def _same_earlier(before: Sequence[HistoryEntry], entry: HistoryEntry) -> HistoryEntry | None:
    """Find the version whose body this change brought back, None where it did not."""
    if entry.record is None or entry.before is None:
        return None
    body = entry.record.content
    if same_body(body, entry.before):
        return None
    bodies = ((one, one.record.content) for one in before if one.record is not None)
    return next((one for one, content in bodies if same_body(content, body)), None)
