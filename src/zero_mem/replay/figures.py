"""What a replay found: figures per call, and their sums per strategy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add

from zero_mem.controller.messages import Defect
from zero_mem.ledger.columns import CacheState, CallTokens
from zero_mem.ledger.prices import Cost, Price


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Values that a call took from memory, and how many of them its prompt gave.

    `lines` counts the values that a text result holds, of which `in_line` stand in their whole
    line. A value that is not visible but reachable charges a read: `control_tokens` to ask for
    it and `read_tokens` to be shown it.
    """

    values: int = 0
    visible: int = 0
    linked: int = 0
    lines: int = 0
    in_line: int = 0
    reachable: int = 0
    reads: int = 0
    read_tokens: int = 0
    control_tokens: int = 0

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            values=self.values + other.values,
            visible=self.visible + other.visible,
            linked=self.linked + other.linked,
            lines=self.lines + other.lines,
            in_line=self.in_line + other.in_line,
            reachable=self.reachable + other.reachable,
            reads=self.reads + other.reads,
            read_tokens=self.read_tokens + other.read_tokens,
            control_tokens=self.control_tokens + other.control_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSeen:
    """One value that a call took from memory, and how its prompt showed it.

    `read` is the memory that is one read away and holds it, where the prompt does not show it.
    """

    value: str
    visible: bool
    linked: bool
    read: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFigures:
    """One call under one strategy.

    `columns` holds the charged reads; `cost` prices them as the extra round trip they are.
    `uncached` is the same call at a provider that caches nothing. `column` is the tokens that
    memory took in the prompt (all but what is no tool result in the full transcript) and
    `full_column` what the tool results take there; `priced` is `column` with cache reads at
    a tenth of fresh input. Sizes are bytes, of the previous prompt and of its part that stayed.
    """

    call: int
    answer: int
    columns: CallTokens
    state: CacheState
    cost: Cost
    uncached: Cost
    column: int
    priced: float
    ours_priced: float
    full_column: int
    size_before: int
    size_kept: int
    seen: Seen = Seen()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """One run under one strategy."""

    name: str
    calls: tuple[CallFigures, ...]

    @property
    def cost(self) -> float:
        """US dollars of the run."""
        return sum(call.cost.total for call in self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All runs under one strategy at one budget; shares are pooled over all of them."""

    strategy: str
    title: str
    budget: float | None
    uses_handles: bool
    runs: tuple[RunFigures, ...]
    note: str = ""

    def with_note(self, note: str) -> Outcome:
        """Give the same with a note for its reader."""
        return replace(self, note=note)

    @property
    def label(self) -> str:
        """The strategy's title, with its budget where it has one."""
        return self.title if self.budget is None else f"{self.title} {self.budget:g}"

    def calls(self) -> Iterator[CallFigures]:
        """All calls, run by run."""
        return (call for run in self.runs for call in run.calls)

    @property
    def tokens(self) -> CallTokens:
        """Tokens by column, summed."""
        return reduce(add, (call.columns for call in self.calls()), CallTokens())

    @property
    def state(self) -> CacheState:
        """Prompt tokens by cache state, summed."""
        return reduce(add, (call.state for call in self.calls()), CacheState())

    @property
    def cost(self) -> Cost:
        """US dollars by cache state, reads with their round trips."""
        return reduce(add, (call.cost for call in self.calls()), Cost())

    @property
    def uncached(self) -> Cost:
        """US dollars where nothing is cached."""
        return reduce(add, (call.uncached for call in self.calls()), Cost())

    @property
    def seen(self) -> Seen:
        """Decision coverage in counts."""
        return reduce(add, (call.seen for call in self.calls()), Seen())

    @property
    def peak(self) -> int:
        """The longest prompt in tokens."""
        return max((call.columns.prompt for call in self.calls()), default=0)

    def too_long(self, window: int) -> int:
        """Count the calls whose prompt is longer than a model's window, in tokens."""
        return sum(call.columns.prompt > window for call in self.calls())

    @property
    def share(self) -> float | None:
        """Memory's tokens over the tool results' in the full transcript."""
        return ratio(self._sum("column"), self._full)

    @property
    def share_with_definitions(self) -> float | None:
        """The same with the read tool's definition and the preamble on every call."""
        ours = sum(call.columns.our_definitions for call in self.calls())
        return ratio(self._sum("column") + ours, self._full)

    @property
    def price(self) -> float | None:
        """The share with cache reads at a tenth of fresh input."""
        return ratio(self._sum("priced"), self._full)

    @property
    def price_with_definitions(self) -> float | None:
        """The same with the read tool's definition and the preamble."""
        return ratio(self._sum("priced") + self._sum("ours_priced"), self._full)

    @property
    def prefix_unchanged(self) -> float:
        """Share of prompt bytes that the next call re-sent as an unchanged prefix."""
        kept = ratio(self._sum("size_kept"), self._sum("size_before"))
        return 1.0 if kept is None else kept

    @property
    def _full(self) -> float:
        return self._sum("full_column")

    def _sum(self, name: str) -> float:
        return float(sum(getattr(call, name) for call in self.calls()))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A strategy that was not run, and why."""

    strategy: str
    title: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """Prompt tokens as counted here and as the provider billed them, for the same calls.

    Only transcripts that carry usage figures add to it; the difference is framing, images,
    hidden reasoning, and the tokenizer where it is an estimate.
    """

    calls: int = 0
    counted: int = 0
    billed: int = 0

    def __add__(self, other: Billed) -> Billed:
        return Billed(
            calls=self.calls + other.calls,
            counted=self.counted + other.counted,
            billed=self.billed + other.billed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A whole comparison, with all that is needed to say what its figures mean."""

    outcomes: tuple[Outcome, ...]
    price: Price
    price_date: str
    tokenizer: str
    exact: bool
    messages: int
    billed: Billed = Billed()
    left_out: tuple[LeftOut, ...] = ()
    defects: tuple[Defect, ...] = field(default=())

    def outcome(self, strategy: str, budget: float | None = None) -> Outcome | None:
        """Find one strategy's outcome; None when it was not run."""
        for found in self.outcomes:
            if found.strategy == strategy and found.budget == budget:
                return found
        return None


def ratio(part: float, whole: float) -> float | None:
    """Divide, or None where there is nothing to divide by."""
    return part / whole if whole else None


def mean_by_call(outcome: Outcome) -> list[float]:
    """Average the prompt's tokens at each call over the runs that got as far."""
    sums: list[list[int]] = []
    for run in outcome.runs:
        for at, call in enumerate(run.calls):
            if at == len(sums):
                sums.append([])
            sums[at].append(call.columns.prompt)
    return [sum(tokens) / len(tokens) for tokens in sums]
