"""Which memories a prompt is to show without being asked: pinned, required, summaries, found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.errors import NotFound, RequiredMemoryMissing
from zero_mem.policy.limits import FORMS, limits_for
from zero_mem.policy.visibility import visibility_of
from zero_mem.prompts import Reason, Shown
from zero_mem.space import Namespace
from zero_mem.text.fence import memory_line
from zero_mem.types import MemoryRecord, RecallItem

_SHOWN: Final = frozenset({"pinned", "summary"})
# No record can have a kind with a control character: this stands for all that no rule names.
_UNNAMED_KIND: Final = "\x00"
_LONGEST_QUESTION: Final = 2000  # characters; of a longer one both ends are searched for


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A memory that a prompt is to show; `line` is what matched, "" where the rule says it."""

    reason: Reason
    record: MemoryRecord
    line: str = ""

    def shown(self, settings: str, *, superseding: bool) -> Shown:
        """Give the reference that a block keeps."""
        limit = 0
        if self.reason in ("summary", "found"):
            limit = limits_for(settings, self.record.form, self.record.kind).compaction_threshold
        return Shown(
            memory_id=self.record.memory_id,
            version=self.record.version,
            reason=self.reason,
            limit=limit,
            supersedes=superseding,
        )


def required(space: Namespace, require: Sequence[str]) -> list[Candidate]:
    """Read what a prompt must hold.

    Raises:
        RequiredMemoryMissing: One can't be read.
    """
    found = []
    for memory_id in require:
        try:
            record = space.get(memory_id)
        except NotFound as error:
            raise RequiredMemoryMissing(f"the prompt must hold it, but {error}") from error
        if record.state != "active":
            raise RequiredMemoryMissing(f"memory {memory_id} is archived; restore it first")
        found.append(Candidate(reason="required", record=record))
    return found


def by_visibility(space: Namespace, settings: str) -> dict[str, list[Candidate]]:
    """List the records that a prompt shows without being asked, the newest summaries first."""
    found: dict[str, list[Candidate]] = {"pinned": [], "summary": []}
    for where in shown_filters(settings):
        for record in space.each(where):
            visibility = visibility_of(record, limits_for(settings, record.form, record.kind))
            if visibility == "pinned" or visibility == "summary":
                found[visibility].append(Candidate(reason=visibility, record=record))
    most = limits_for(settings, "semantic", "").max_recall_items
    newest = sorted(found["summary"], key=lambda c: c.record.updated_at, reverse=True)
    found["summary"] = newest[:most]
    return found


def shown_filters(settings: str) -> list[dict[str, Any]]:
    """Give filters for the records that a prompt may show without being asked.

    They name no more than the rules do: a form, or some kinds of one.
    """
    rules = json.loads(settings) if settings else []
    kinds = sorted({rule["kind"] for rule in rules if rule["kind"] is not None})
    filters: list[dict[str, Any]] = []
    for form in FORMS:
        shown = [kind for kind in kinds if limits_for(settings, form, kind).visibility in _SHOWN]
        if limits_for(settings, form, _UNNAMED_KIND).visibility in _SHOWN:
            filters.append({"form": form})
        elif shown:
            filters.append({"form": form, "kind": {"in": shown}})
    return filters


def found_for(
    space: Namespace, question: str, *, session: str, budget: int, most: int
) -> Iterator[Candidate]:
    """Find what the index knows on a question, the best first.

    Results of tools are not among them: of those a model is shown receipts, and it can search.
    """
    if not question.strip():
        return
    if len(question) > _LONGEST_QUESTION:
        half = _LONGEST_QUESTION // 2
        question = f"{question[:half]} {question[-half:]}"
    others = {"kind": {"ne": "tool_result"}}
    recall = space.recall(question, limit=most, budget=budget, where=others, session=session)
    for item in recall.items:
        yield Candidate(reason="found", record=item.record, line=_line(item))


def _line(item: RecallItem) -> str:
    record = item.record
    return memory_line(record.memory_id, record.kind, record.key, item.text)
