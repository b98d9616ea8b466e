"""Vector RAG: the latest messages, and the earlier passages nearest to them by their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from zero_mem.controller.messages import Message
from zero_mem.models.embedder import Embedder
from zero_mem.replay.prompt import INJECTED, Entry, Span
from zero_mem.replay.strategies import Session, Strategy
from zero_mem.text.tokens import Tokenizer

if TYPE_CHECKING:
    from zero_mem.dense.guard import Guard
    from zero_mem.index.nearest import Matrix

_HEAD: Final = "Passages of the earlier conversation that are nearest to this turn:"
_PATIENCE: Final = 600.0
"""Seconds for one question; a replay can wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRag(Strategy):
    """Keep the latest messages; of what left them, show the passages nearest to the turn.

    The cut moves in steps of `keep` messages, so that the prefix breaks once a step. What
    leaves is cut into passages of up to `passage` characters and embedded. The `top` nearest to
    the last user message and the last message are put at the end, in the order of time.
    """

    name: ClassVar[str] = "vector_rag"
    title: ClassVar[str] = "Vector RAG"
    embedder: Embedder = field(repr=False)
    keep: int = 10
    top: int = 5
    passage: int = 1_000

    def _session(self, tokenizer: Tokenizer) -> Session:
        from zero_mem.dense.guard import Guard

        return _Retrieving(self, Guard(self.embedder, _PATIENCE))

    def note(self, *, prefix_unchanged: float) -> str:
        """Say what its figures leave out."""
        return f"vectors by {self.embedder.name}; making them is not priced"


class _Passage(NamedTuple):
    """A part of a message that left the window."""

    origin: int
    message: Message
    text: str


class _Retrieving(Session):
    def __init__(self, settings: VectorRag, guard: Guard) -> None:
        self._settings = settings
        self._index = _Index(guard)
        self._system: list[Entry] = []
        self._latest: list[Entry] = []
        self._question = ""

    def observe(self, message: Message, origin: int, memory_id: str) -> None:
        entry = Entry(message=message, origin=origin)
        (self._system if message.role == "system" else self._latest).append(entry)
        if message.role == "user":
            self._question = message.text

    def prompt(self) -> list[Entry]:
        if len(self._latest) > 2 * self._settings.keep:
            self._leave(len(self._latest) - self._settings.keep)
        return [*self._system, *self._latest, *self._found()]

    def _leave(self, cut: int) -> None:
        """Move what is older than the cut out of the prompt; a result keeps its call."""
        while cut > 0 and self._latest[cut].message.role == "tool":
            cut -= 1
        for entry in self._latest[:cut]:
            for text in _cut(_told(entry.message), self._settings.passage):
                self._index.add(_Passage(entry.origin, entry.message, text))
        del self._latest[:cut]

    def _found(self) -> list[Entry]:
        last = self._latest[-1].message.text if self._latest else ""
        asked = "\n".join(dict.fromkeys(filter(str.strip, (self._question, last))))
        found = self._index.nearest(asked, self._settings.top) if asked else []
        return [_shown(found)] if found else []


class _Index:
    """The passages of one run; each is embedded once, when it may first be found."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._passages: list[_Passage] = []
        self._rows: list[Matrix] = []

    def add(self, passage: _Passage) -> None:
        self._passages.append(passage)

    def nearest(self, question: str, count: int) -> list[tuple[_Passage, float]]:
        """Give the passages with the highest cosine, in the order of time."""
        import numpy as np

        if not self._passages:
            return []
        done = sum(len(rows) for rows in self._rows)
        if new := self._passages[done:]:
            self._rows.append(self._guard.texts([_embedded(each) for each in new], patient=True))
        scores = np.concatenate(self._rows) @ self._guard.query(question)
        best = sorted(range(len(scores)), key=lambda at: (-scores[at], -at))[:count]
        return [(self._passages[at], float(scores[at])) for at in sorted(best)]


def _embedded(passage: _Passage) -> str:
    from zero_mem.index.vectors import safe_text

    return safe_text(passage.text)


def _told(message: Message) -> str:
    calls = (f"{call.name}({call.arguments})" for call in message.calls)
    return "\n".join(filter(str.strip, (message.text, *calls)))


def _cut(text: str, size: int) -> Iterator[str]:
    """Cut a text into passages of whole lines; a longer line is cut where it has to be."""
    passage = ""
    for line in text.splitlines(keepends=True):
        if passage and len(passage) + len(line) > size:
            yield passage.strip()
            passage = ""
        while len(line) > size:
            yield line[:size]
            line = line[size:]
        passage += line
    if passage.strip():
        yield passage.strip()


def _shown(found: Sequence[tuple[_Passage, float]]) -> Entry:
    """Make the message that holds the passages, each marked with where it is from."""
    text, spans = _HEAD, list[Span]()
    for passage, score in found:
        message = passage.message
        text += f"\n{' '.join(filter(None, (message.role, message.tool)))}: "
        spans.append(
            Span(
                start=len(text),
                end=len(text) + len(passage.text),
                column="tool_results" if message.role == "tool" else "conversation",
                reason=f"passage of message {passage.origin + 1}, cosine {score:.2f}",
            )
        )
        text += passage.text
    message = Message(role="user", text=text)
    changed = "passages found by their vectors"
    return Entry(message=message, origin=INJECTED, changed=changed, spans=tuple(spans))
