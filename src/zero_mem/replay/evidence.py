"""What `recall` would have chosen at each user turn of a run, from the trace so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.controller.messages import Transcript
from zero_mem.memory import Memory
from zero_mem.operations.requests import name_of
from zero_mem.replay.said import Said, said
from zero_mem.space import Namespace
from zero_mem.text.compress import compress
from zero_mem.types import RecallItem, body_text

CHOSEN: Final = 5
"""So many records a turn is given, as the paper has it."""

DEFAULT_CAP: Final = 500_000
"""Characters of evidence on a page."""

_WHO: Final = {"message": "{}", "tool_call": "{}, a call", "tool_result": "result of {}"}
_QUESTION: Final = 400
_LEAF: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One record that was found, or just missed: which message it is, and why it is there.

    `place` counts the run's messages from 1. `parts` say what its score is made of: addends, and
    factors (`x date`); the score itself is scaled below 1.
    """

    place: int
    speaker: str
    kind: str
    text: str
    score: float
    parts: tuple[tuple[str, float], ...]
    outcome: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One user turn: what was asked, what would have been recalled, and what just missed."""

    place: int
    question: str
    tokens: int
    earlier: int
    chosen: tuple[Evidence, ...]
    missed: tuple[Evidence, ...]


def turns(transcript: Transcript, *, limit: int = CHOSEN) -> Iterator[Turn]:
    """Give the user turns of a run; each sees only the messages before it.

    Args:
        transcript: The run.
        limit: Most records for a turn; up to as many that just missed are given beside them.
    """
    with Memory.open("memory://") as memory:
        trace = _Trace(memory.namespace("replay"), transcript.name)
        for one in said(transcript):
            if one.kind == "message" and transcript.messages[one.position].role == "user":
                yield trace.turn(one, limit)
            trace.add(one)


class _Trace:
    """The messages so far, as records."""

    def __init__(self, space: Namespace, name: str) -> None:
        self._space = space
        self._name = name_of(name) or "run"
        self._waiting: list[Said] = []
        self._places: dict[str, int] = {}

    def add(self, one: Said) -> None:
        self._waiting.append(one)

    def turn(self, one: Said, limit: int) -> Turn:
        self._save()
        question = body_text(one.content)
        asked = question.strip()
        found = (
            self._space.recall(asked, limit=limit, asked_at=one.created_at, explain=True)
            if asked and self._places
            else None
        )
        return Turn(
            place=one.position + 1,
            question=question,
            tokens=found.tokens if found else 0,
            earlier=len(self._places),
            chosen=self._evidence(found.items) if found else (),
            missed=self._evidence(found.near_misses[:limit]) if found else (),
        )

    def _save(self) -> None:
        items = [
            {
                "content": one.content,
                "kind": one.kind,
                "form": "episodic",
                "session": self._name,
                "speaker": one.speaker,
                "created_at": one.created_at,
            }
            for one in self._waiting
        ]
        receipts = self._space.save_many(items).receipts if items else ()
        for one, receipt in zip(self._waiting, receipts, strict=True):
            self._places[receipt.memory_id] = one.position + 1
        self._waiting.clear()

    def _evidence(self, items: Sequence[RecallItem]) -> tuple[Evidence, ...]:
        return tuple(
            Evidence(
                place=self._places[item.memory_id],
                speaker=item.record.speaker or "",
                kind=item.record.kind,
                text=item.text,
                score=item.score,
                parts=tuple(item.parts.items()),
                outcome=item.reason.rpartition(", over ")[2] if ", over " in item.reason else "",
            )
            for item in items
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceBook:
    """The evidence that a page carries, ready to be written into it; `closed` if it is cut."""

    runs: tuple[dict[str, Any], ...] = ()
    closed: bool = False


def collect(transcripts: Iterable[Transcript], *, cap: int = DEFAULT_CAP) -> EvidenceBook:
    """Collect the evidence of the first runs, up to a size.

    Args:
        transcripts: The runs.
        cap: Characters after which nothing more is collected.
    """
    runs, size = list[dict[str, Any]](), 0
    for transcript in transcripts:
        found: dict[str, Any] = {"name": transcript.name, "turns": []}
        for turn in turns(transcript):
            if size >= cap:
                return EvidenceBook(runs=(*runs, *([found] if found["turns"] else [])), closed=True)
            leaf = _leaf(turn)
            found["turns"].append(leaf)
            size += _LEAF + len(leaf["q"]) + _size(leaf["in"]) + _size(leaf["out"])
        if found["turns"]:
            runs.append(found)
    return EvidenceBook(runs=tuple(runs))


def _leaf(turn: Turn) -> dict[str, Any]:
    return {
        "at": turn.place,
        "q": compress(turn.question, limit=_QUESTION).text,
        "tokens": turn.tokens,
        "of": turn.earlier,
        "in": [_item(each) for each in turn.chosen],
        "out": [_item(each) for each in turn.missed],
    }


def _item(found: Evidence) -> list[Any]:
    parts = [[name, round(value, 3)] for name, value in found.parts]
    named = _WHO[found.kind].format(found.speaker)
    return [found.place, named, round(found.score, 3), parts, found.text, found.outcome]


def _size(items: Sequence[Sequence[Any]]) -> int:
    return sum(_LEAF + len(item[4]) + 20 * len(item[3]) for item in items)
