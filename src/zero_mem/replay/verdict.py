"""The verdict: worth it or not for runs like these, and from which call on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from zero_mem.replay.figures import Outcome, Replay, RunFigures, ratio
from zero_mem.replay.wording import money, percent

DEFAULT_BUDGET: Final = 0.25
WORTH_FROM: Final = 0.02
"""Share of the cost that must be saved; less than this is within what output length moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DearerRun:
    """A run that costs more with Zero-Mem than without, by so many dollars."""

    name: str
    extra: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The comparison of one outcome with full concatenation at the same cache states.

    `saved` and `saved_uncached` are shares of the full cost, negative where it costs more.
    `from_call` is the call from which the runs, taken together, have cost less for good; None
    where they never do. `dearer` holds the runs that cost more, the worst first. `unsendable`
    counts the calls at which everything is longer than the model's window: what they would
    cost is arithmetic, not an alternative.
    """

    worth_it: bool
    sentence: str
    label: str = ""
    saved: float = 0.0
    saved_uncached: float = 0.0
    from_call: int | None = None
    runs: int = 0
    dearer: tuple[DearerRun, ...] = ()
    unsendable: int = 0


def verdict(replay: Replay, *, budget: float | None = None) -> Verdict:
    """Judge Zero-Mem against full concatenation.

    Args:
        replay: A replay that ran both.
        budget: Which budget to judge; by default 0.25, else the nearest that was run.

    Returns:
        A verdict with its sentence; one that says what is missing where either was not run or
        no run holds a tool result.
    """
    full, ours = replay.outcome("full"), _ours(replay, budget)
    if full is None or ours is None:
        return Verdict(worth_it=False, sentence="No verdict: full and zero_mem must both be run.")
    if not any(full.calls()):
        return Verdict(worth_it=False, sentence="No verdict: the input holds no model call.")
    if full.tokens.tool_results == 0:
        reason = "they hold no tool results, so there is nothing to keep out of the prompt"
        return Verdict(worth_it=False, sentence=f"Not worth it for runs like these: {reason}.")
    return _judge(replay, full, ours)


def _judge(replay: Replay, full: Outcome, ours: Outcome) -> Verdict:
    saved = _saved(full.cost.total, ours.cost.total)
    dearer = dearer_runs(full.runs, ours.runs)
    from_call = break_even(full.runs, ours.runs)
    worth_it = saved >= WORTH_FROM and from_call is not None
    found = Verdict(
        worth_it=worth_it,
        sentence="",
        label=ours.label,
        saved=saved,
        saved_uncached=_saved(full.uncached.total, ours.uncached.total),
        from_call=from_call if worth_it else None,
        runs=len(ours.runs),
        dearer=dearer,
        unsendable=full.too_long(replay.price.window),
    )
    parts = [
        _cost_clause(replay, full, ours, found),
        _window_clause(replay, ours, found),
        _coverage_clause(ours),
        _runs_clause(found),
    ]
    return replace(found, sentence="; ".join(filter(None, parts)) + ".")


def break_even(full: Sequence[RunFigures], ours: Sequence[RunFigures]) -> int | None:
    """Find the first call from which the runs together have cost less, and stay so.

    A run adds to every call number up to its own length, and its total from there on.
    """
    longest = max((len(run.calls) for run in full), default=0)
    steps = [0.0] * longest
    for there, here in zip(full, ours, strict=True):
        for at, (before, after) in enumerate(zip(there.calls, here.calls, strict=True)):
            steps[at] += after.cost.total - before.cost.total
    first, difference = None, 0.0
    for at, step in enumerate(steps, start=1):
        difference += step
        if difference >= 0:
            first = None
        elif first is None:
            first = at
    return first


def dearer_runs(full: Sequence[RunFigures], ours: Sequence[RunFigures]) -> tuple[DearerRun, ...]:
    """List the runs that cost more than under full concatenation, the worst first."""
    extra = [
        DearerRun(name=here.name, extra=here.cost - there.cost)
        for there, here in zip(full, ours, strict=True)
        if here.cost > there.cost
    ]
    return tuple(sorted(extra, key=lambda run: (-run.extra, run.name)))


def _ours(replay: Replay, budget: float | None) -> Outcome | None:
    wanted = DEFAULT_BUDGET if budget is None else budget
    run = [found for found in replay.outcomes if found.strategy == "zero_mem"]
    return min(run, key=lambda found: abs((found.budget or 0) - wanted), default=None)


def _saved(full: float, ours: float) -> float:
    return 1 - (ratio(ours, full) or 0.0) if full else 0.0


def _cost_clause(replay: Replay, full: Outcome, ours: Outcome, found: Verdict) -> str:
    change = f"{percent(abs(found.saved))} {'less' if found.saved >= 0 else 'more'}"
    if abs(found.saved) < 0.005:
        change = "as much as, and not less"
    head = "Worth it" if found.worth_it else "Not worth it"
    start = f", from call {found.from_call} on" if found.from_call else ""
    return (
        f"{head} for runs like these{start}: {ours.label} costs {change} than sending everything "
        f"({money(ours.cost.total)} instead of {money(full.cost.total)} at {replay.price.model} "
        f"prices of {replay.price_date}, same cache states, definitions and reads included)"
    )


def _window_clause(replay: Replay, ours: Outcome, found: Verdict) -> str:
    if not found.unsendable:
        return ""
    calls = sum(len(run.calls) for run in ours.runs)
    window = replay.price.window
    said = (
        f"at {found.unsendable:,} of {calls:,} calls everything would not fit the model's window "
        f"of {window:,} tokens"
    )
    also = ours.too_long(window)
    return f"{said}, nor would {ours.label} at {also:,}" if also else said


def _coverage_clause(ours: Outcome) -> str:
    seen = ours.seen
    if not seen.values:
        return "no later call needed a value from a tool result"
    visible, reachable = seen.visible / seen.values, seen.reachable / seen.values
    return (
        f"of {seen.values} values that calls took from earlier results {percent(visible)} "
        f"stood in the prompt and {percent(reachable)} were at most one read away"
    )


def _runs_clause(found: Verdict) -> str:
    if not found.dearer or found.runs == 1:
        return ""
    return f"{len(found.dearer)} of {found.runs} runs cost more"
