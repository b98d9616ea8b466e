"""Ways to fill a prompt from a run's history, each deciding on what came before the call.

A strategy is a value; `start` gives a session for one run. The session observes messages in
order and is asked for a prompt before each call, so it cannot look ahead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from zero_mem import handles
from zero_mem.controller.core import Insertion, Offloader
from zero_mem.controller.folding import folds_after
from zero_mem.controller.messages import Message
from zero_mem.controller.tail import Standing, Tail, TailSelector, standing_share
from zero_mem.errors import InvalidInput
from zero_mem.replay.figures import LeftOut
from zero_mem.replay.prompt import INJECTED, Entry, Grown, Span
from zero_mem.text.compress import compress
from zero_mem.text.tokens import Tokenizer

Count = Callable[[str], int]


class Session(ABC):
    """One run under one strategy."""

    @abstractmethod
    def observe(self, message: Message, origin: int, memory_id: str) -> None:
        """Take the next message.

        Args:
            message: The message as the transcript has it.
            origin: Its index in the transcript.
            memory_id: The memory that holds a tool result; empty for other messages.
        """

    @abstractmethod
    def prompt(self) -> Sequence[Entry]:
        """Give the prompt of the call that comes now; it stays as it is."""


class Strategy(ABC):
    """A named way to fill prompts.

    `uses_handles` says that its prompts hold receipts a model can follow, so that a value
    not shown is one read away, and that the read tool's definition has to be sent.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    uses_handles: ClassVar[bool] = False

    @property
    def budget(self) -> float | None:
        """The share of the tool results' tokens that it may show, where it has one."""
        return None

    def start(self, tokenizer: Tokenizer) -> Session:
        """Begin one run."""
        return self._session(tokenizer)

    @abstractmethod
    def _session(self, tokenizer: Tokenizer) -> Session: ...

    def note(self, *, prefix_unchanged: float) -> str:
        """Say what a reader of its figures should know, given the share of prefix it kept."""
        return ""


class _Growing(Session):
    """A session whose prompt is its list of entries; subclasses decide what goes in.

    One that changes an entry later gives a copy instead.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def observe(self, message: Message, origin: int, memory_id: str) -> None:
        self.entries.append(Entry(message=message, origin=origin))

    def prompt(self) -> Sequence[Entry]:
        return Grown(self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class FullConcatenation(Strategy):
    """Send every message as it is."""

    name: ClassVar[str] = "full"
    title: ClassVar[str] = "Full concatenation"

    def _session(self, tokenizer: Tokenizer) -> Session:
        return _Growing()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow(Strategy):
    """Send the system messages and the last `messages` others; a result keeps its call."""

    name: ClassVar[str] = "window"
    title: ClassVar[str] = "Sliding window"
    messages: int = 20

    def _session(self, tokenizer: Tokenizer) -> Session:
        return _Window(self.messages)


class _Window(_Growing):
    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._system: list[Entry] = []

    def observe(self, message: Message, origin: int, memory_id: str) -> None:
        if message.role == "system":
            self._system.append(Entry(message=message, origin=origin))
        else:
            super().observe(message, origin, memory_id)

    def prompt(self) -> list[Entry]:
        start = _pair_start(self.entries, max(0, len(self.entries) - self._size))
        return self._system + self.entries[start:]


def _pair_start(entries: list[Entry], start: int) -> int:
    """Move a cut back to the assistant message whose results it would orphan."""
    while start > 0 and entries[start].message.role == "tool":
        start -= 1
    return start


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractiveSummary(Strategy):
    """Keep the latest messages and replace older ones by an extract of each.

    The cut moves in steps of `keep` messages, as summary buffers do, so that the prefix
    breaks once a step and not at every call. A message gives a line of `line_limit`
    characters, from its first `reading` ones; lines past `limit` characters leave oldest first.
    """

    name: ClassVar[str] = "summary"
    title: ClassVar[str] = "Summary (extractive)"
    keep: int = 10
    line_limit: int = 200
    limit: int = 4_000
    reading: int = 20_000

    def _session(self, tokenizer: Tokenizer) -> Session:
        return _Summary(self)


class _Summary(_Window):
    def __init__(self, settings: ExtractiveSummary) -> None:
        super().__init__(settings.keep)
        self._settings = settings
        self._lines: list[str] = []

    def prompt(self) -> list[Entry]:
        if len(self.entries) > 2 * self._settings.keep:
            self._fold(_pair_start(self.entries, len(self.entries) - self._settings.keep))
        return self._system + self._summary() + self.entries

    def _fold(self, cut: int) -> None:
        self._lines += [self._line(entry.message) for entry in self.entries[:cut]]
        del self.entries[:cut]
        while len(self._lines) > 1 and sum(map(len, self._lines)) > self._settings.limit:
            del self._lines[0]

    def _line(self, message: Message) -> str:
        calls = "; ".join(f"{call.name}({call.arguments})" for call in message.calls)
        said = compress(
            message.text[: self._settings.reading], limit=self._settings.line_limit
        ).text
        who = f"{message.role} {message.tool}".rstrip()
        return f"{who}: {' '.join(filter(None, (said, calls[: self._settings.line_limit])))}"

    def _summary(self) -> list[Entry]:
        if not self._lines:
            return []
        text = "Extract of the earlier conversation:\n" + "\n".join(self._lines)
        return [injected(text, "extract of messages that left the window")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalState(Strategy):
    """Keep tool results outside: the newest of each tool is shown, and one state line."""

    name: ClassVar[str] = "external_state"
    title: ClassVar[str] = "External state"

    def _session(self, tokenizer: Tokenizer) -> Session:
        return _State()


class _State(_Growing):
    OUTSIDE: Final = "(superseded; kept in the state record)"

    def __init__(self) -> None:
        super().__init__()
        self._newest: dict[str, int] = {}
        self._results: Counter[str] = Counter()

    def observe(self, message: Message, origin: int, memory_id: str) -> None:
        if message.role == "tool":
            self._supersede(message.tool)
            self._newest[message.tool] = len(self.entries)
            self._results[message.tool] += 1
        super().observe(message, origin, memory_id)

    def _supersede(self, tool: str) -> None:
        at = self._newest.get(tool)
        if at is not None:
            self.entries[at] = rewritten(self.entries[at], self.OUTSIDE, "superseded")

    def prompt(self) -> list[Entry]:
        if not self._results:
            return list(self.entries)
        seen = ", ".join(f"{tool} x{times}" for tool, times in self._results.items())
        line = f"Task state: {self._results.total()} results so far ({seen})"
        return [*self.entries, injected(line, "state of the task")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LateClearing(Strategy):
    """Clear old tool results when the prompt passes `trigger` tokens; `keep` stay."""

    name: ClassVar[str] = "late_clearing"
    title: ClassVar[str] = "Late clearing"
    trigger: int = 100_000
    keep: int = 3

    def _session(self, tokenizer: Tokenizer) -> Session:
        return _Clearing(self, tokenizer.count)

    def note(self, *, prefix_unchanged: float) -> str:
        """Say so where nothing was ever cleared."""
        if prefix_unchanged < 1:
            return ""
        return f"no prompt passed {self.trigger:,} tokens, so it is full concatenation here"


class _Clearing(_Growing):
    CLEARED: Final = "[old tool result content cleared]"

    def __init__(self, settings: LateClearing, count: Count) -> None:
        super().__init__()
        self._settings = settings
        self._count = count
        self._tokens = 0
        self._standing: list[int] = []

    def observe(self, message: Message, origin: int, memory_id: str) -> None:
        if message.role == "tool":
            self._standing.append(len(self.entries))
        self._tokens += message_tokens(message, self._count)
        super().observe(message, origin, memory_id)

    def prompt(self) -> list[Entry]:
        if self._tokens > self._settings.trigger:
            self._clear()
        return list(self.entries)

    def _clear(self) -> None:
        stop = max(0, len(self._standing) - self._settings.keep)
        for at in self._standing[:stop]:
            old = self.entries[at]
            self.entries[at] = rewritten(old, self.CLEARED, "cleared")
            self._tokens += self._count(self.CLEARED) - self._count(old.message.text)
        del self._standing[:stop]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptsOnly(Strategy):
    """Show a receipt for every result that is longer than its receipt."""

    name: ClassVar[str] = "receipts"
    title: ClassVar[str] = "Receipts only"
    uses_handles: ClassVar[bool] = True

    def _session(self, tokenizer: Tokenizer) -> Session:
        return _Receipts(tokenizer.count)


class _Receipts(_Growing):
    def __init__(self, count: Count) -> None:
        super().__init__()
        self._count = count

    def observe(self, message: Message, origin: int, memory_id: str) -> None:
        entry = Entry(message=message, origin=origin)
        self.entries.append(self._receipt(entry, memory_id) if memory_id else entry)

    def _receipt(self, entry: Entry, memory_id: str) -> Entry:
        receipt = receipt_line(memory_id)
        if self._count(entry.message.text) <= self._count(receipt):
            return entry
        span = Span(
            start=0, end=len(receipt), column="memory_receipts", reason="receipt of the result"
        )
        folded = rewritten(entry, receipt, "folded to its receipt")
        return replace(folded, receipt=receipt, spans=(span,))


@dataclass(frozen=True, slots=True, kw_only=True)
class NextCallFolding(Strategy):
    """Show a result in full on the very next call, then fold it to its receipt."""

    name: ClassVar[str] = "folding"
    title: ClassVar[str] = "Next-call folding"
    uses_handles: ClassVar[bool] = True

    def _session(self, tokenizer: Tokenizer) -> Session:
        return _Folding(tokenizer.count)


class _Folding(_Receipts):
    def __init__(self, count: Count) -> None:
        super().__init__(count)
        self._fresh: list[tuple[int, str]] = []

    def observe(self, message: Message, origin: int, memory_id: str) -> None:
        if memory_id:
            self._fresh.append((len(self.entries), memory_id))
        elif message.role == "assistant":
            if folds_after(message):
                self._fold()
            self._fresh = []
        self.entries.append(Entry(message=message, origin=origin))

    def _fold(self) -> None:
        for at, memory_id in self._fresh:
            self.entries[at] = self._receipt(self.entries[at], memory_id)

    def prompt(self) -> list[Entry]:
        return list(self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroMem(Strategy):
    """Decide once, when a result comes in: whole, or a receipt with what it quotes of it."""

    name: ClassVar[str] = "zero_mem"
    title: ClassVar[str] = "Zero-Mem"
    uses_handles: ClassVar[bool] = True
    share: float = 0.25

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidInput(f"a budget is above 0 and at most 1, not {self.share:g}")

    @property
    def budget(self) -> float:
        """The share of the tool results' tokens that may be shown."""
        return self.share

    def _session(self, tokenizer: Tokenizer) -> Session:
        return _Offloading(Offloader(share=self.share, tokenizer=tokenizer))


class _Offloading(_Growing):
    HOW: Final = {"verbatim": "escaped", "compact": "compact form, lossless", "extract": "extract"}

    def __init__(self, offloader: Offloader) -> None:
        super().__init__()
        self._offloader = offloader

    def observe(self, message: Message, origin: int, memory_id: str) -> None:
        entry = Entry(message=message, origin=origin)
        if memory_id:
            entry = self._inserted(entry, self._offloader.insert(message, memory_id))
        elif message.role == "tool":
            self._offloader.adopt(message, message.text)
        else:
            self._offloader.observe(message)
        self.entries.append(entry)

    def _inserted(self, entry: Entry, insertion: Insertion) -> Entry:
        if insertion.text == entry.message.text:
            return entry
        receipt = insertion.text.partition("\n")[0] if insertion.receipt else ""
        spans = tuple(
            Span(
                start=span.start + insertion.text.startswith("\n", span.start),
                end=span.end,
                column="memory_receipts" if span.end <= len(receipt) else "tool_results",
                reason=span.reason,
            )
            for span in insertion.spans
        )
        folded = rewritten(entry, insertion.text, self.HOW[insertion.kind])
        return replace(folded, receipt=receipt, spans=spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroMemTail(ZeroMem):
    """Decide with a part of the budget; the rest is a block that is selected at each call.

    The block stands at the end and is kept out of the history, so no cache ever holds it.
    """

    name: ClassVar[str] = "zero_mem_tail"
    title: ClassVar[str] = "Zero-Mem with a tail"

    def _session(self, tokenizer: Tokenizer) -> Session:
        offloader = Offloader(share=standing_share(self.share), tokenizer=tokenizer)
        return _Tailing(offloader, TailSelector(share=self.share, tokenizer=tokenizer))


class _Tailing(_Offloading):
    def __init__(self, offloader: Offloader, selector: TailSelector) -> None:
        super().__init__(offloader)
        self._selector = selector

    def observe(self, message: Message, origin: int, memory_id: str) -> None:
        super().observe(message, origin, memory_id)
        shown = self.entries[-1].message.text
        standing = Standing(memory_id=memory_id, text=shown) if memory_id else None
        self._selector.take(message, standing)

    def prompt(self) -> list[Entry]:
        block = self._selector.select()
        return [*self.entries, self._entry(block)] if block.text else self.entries[:]

    def _entry(self, block: Tail) -> Entry:
        spans = tuple(
            Span(
                start=span.start,
                end=span.end,
                column="conversation",
                reason=span.reason,
                origin=self.entries[span.origin].origin,
            )
            for span in block.spans
        )
        entry = injected(block.text, "block for this call alone")
        return replace(entry, spans=spans)


BUDGETS: Final = (0.15, 0.25, 0.35, 0.5)

NOT_RUN: Final = (
    LeftOut(
        strategy="vector_rag",
        title="Vector RAG",
        reason="it needs an embedder; name one, such as --embedder e5 of the extra `dense`",
    ),
)


def every_strategy(budgets: Iterable[float] = BUDGETS) -> tuple[Strategy, ...]:
    """Give every strategy that needs no extra; Zero-Mem, plain and with a tail, once per budget.

    Raises:
        InvalidInput: A budget is not above 0 and at most 1.
    """
    budgets = tuple(budgets)
    return (
        FullConcatenation(),
        SlidingWindow(),
        ExtractiveSummary(),
        ExternalState(),
        LateClearing(),
        NextCallFolding(),
        ReceiptsOnly(),
        *(ZeroMem(share=share) for share in budgets),
        *(ZeroMemTail(share=share) for share in budgets),
    )


def injected(text: str, reason: str) -> Entry:
    """Make an entry that stands for no message of the transcript."""
    span = Span(start=0, end=len(text), column="conversation", reason=reason)
    message = Message(role="user", text=text)
    return Entry(message=message, origin=INJECTED, changed=reason, spans=(span,))


def rewritten(entry: Entry, text: str, how: str) -> Entry:
    """Give the entry with another text; what pairs it with its call stays."""
    return replace(entry, message=replace(entry.message, text=text), changed=how, spans=())


def receipt_line(memory_id: str) -> str:
    """Render the receipt of a saved tool result, without a preview: its shortest form."""
    return f"{handles.render(memory_id)} save"


def message_tokens(message: Message, count: Count) -> int:
    """Count everything of a message that the model reads."""
    calls = sum(count(call.name) + count(call.arguments) for call in message.calls)
    return count(message.text) + calls + count(message.tool)
