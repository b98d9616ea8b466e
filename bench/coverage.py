"""Decision coverage of the offloader on recorded runs, beside simple alternatives.

    python bench/coverage.py DATA_FOLDER [--set taubench|swe|claude ...] [--every 1]
                             [--json out.json] [--markdown out.md]

Every decision uses only the messages before it; figures are pooled over all runs of a set;
tokens are exact o200k counts. Exits 1 if a bound of the set is missed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from _report import command, options, report, table

from zero_mem import handles
from zero_mem.controller.compact import decode, parse
from zero_mem.controller.core import Offloader
from zero_mem.controller.definitions import PREAMBLE, READ_TOOL, read_definition
from zero_mem.controller.messages import Message, ToolCall, Transcript
from zero_mem.controller.tail import Standing, TailSelector, standing_share
from zero_mem.replay.coverage import (
    CallColumn,
    History,
    Part,
    Taken,
    Tally,
    cost,
    judge,
    price,
    read_of,
)
from zero_mem.replay.engine import run as replay
from zero_mem.replay.figures import ratio
from zero_mem.replay.strategies import (
    FullConcatenation,
    LateClearing,
    NextCallFolding,
    SlidingWindow,
    ZeroMem,
    ZeroMemTail,
)
from zero_mem.replay.transcripts import read
from zero_mem.text.tokens import tokenizer

SHARES = (0.15, 0.25, 0.35, 0.5)
COSTED = 0.25
FILES = {
    "taubench": "raw/taubench_airline.openai_chat.jsonl.gz",
    "swe": "traj_swebench_mini/steps.jsonl.gz",
    "claude": "traj_specstory_clean/steps.jsonl.gz",
}
Run = tuple[Message, ...]

_TOKENIZER = tokenizer("o200k")


@lru_cache(maxsize=1 << 17)
def count(text: str) -> int:
    """Count tokens behind a cache: the same texts come at every share."""
    return _TOKENIZER.count(text)


class Counting:
    """The tokenizer of the offloader, behind the same cache."""

    name = _TOKENIZER.name
    exact = _TOKENIZER.exact

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return count(text)


# Strategies


class Strategy(Protocol):
    """Keeps the tool results of one run as texts, in order; `live` are those with a handle."""

    texts: list[str]
    live: set[int]

    def take(self, message: Message) -> None:
        """Take the next message."""

    def tail(self) -> Sequence[tuple[int, str]]:
        """Give what stands at the end of this call's prompt alone, by the result's place."""


class Appended:
    """A strategy that adds nothing for one call alone."""

    def tail(self) -> Sequence[tuple[int, str]]:
        """Give nothing."""
        return ()


class FullText(Appended):
    """Every result as it came."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.live: set[int] = set()

    def take(self, message: Message) -> None:
        """Keep a result as it is."""
        if message.role == "tool":
            self.texts.append(message.text)


class Receipts(Appended):
    """A receipt for each result longer than one; with `raw_once`, raw on the next call."""

    def __init__(self, *, raw_once: bool) -> None:
        self.texts: list[str] = []
        self.live: set[int] = set()
        self._raw_once = raw_once
        self._raw: dict[int, str] = {}

    def take(self, message: Message) -> None:
        """Keep a result, and fold it once a call has seen it."""
        if message.role == "assistant":
            for place, receipt in self._raw.items():
                self.texts[place] = receipt
            self._raw.clear()
        if message.role == "tool":
            self._result(message.text, len(self.texts))

    def _result(self, text: str, place: int) -> None:
        receipt = f"{handles.render(place + 1)} save (tool_result)"
        short = count(text) <= count(receipt)
        if not short:
            self.live.add(place)
        if not short and self._raw_once:
            self._raw[place] = receipt
        self.texts.append(text if short or self._raw_once else receipt)


class Offloaded(Appended):
    """The offloader; `broken` counts compact forms that do not decode to the original."""

    def __init__(self, share: float) -> None:
        self.texts: list[str] = []
        self.live: set[int] = set()
        self.compact = 0
        self.broken = 0
        self._offloader = Offloader(share=share, tokenizer=Counting())

    def take(self, message: Message) -> None:
        """Keep what the offloader inserts."""
        if message.role != "tool":
            self._offloader.observe(message)
            return
        insertion = self._offloader.insert(message, str(len(self.texts) + 1))
        if insertion.receipt:
            self.live.add(len(self.texts))
        if insertion.kind == "compact":
            self.compact += 1
            body = insertion.text.removeprefix(f"{insertion.receipt}\n")
            self.broken += not _decodes(body, message.text)
        self.texts.append(insertion.text)


class WithTail(Offloaded):
    """The offloader at its part of the share, and the rest for a block that is not kept."""

    def __init__(self, share: float) -> None:
        super().__init__(standing_share(share))
        self._selector = TailSelector(share=share, tokenizer=Counting())

    def take(self, message: Message) -> None:
        """Keep what the offloader inserts."""
        super().take(message)
        standing = None
        if message.role == "tool":
            standing = Standing(memory_id=str(len(self.texts)), text=self.texts[-1])
        self._selector.take(message, standing)

    def tail(self) -> Sequence[tuple[int, str]]:
        """Select the block of this call."""
        block = self._selector.select()
        return [(span.origin, block.text[span.start : span.end]) for span in block.spans]


def _decodes(text: str, original: str) -> bool:
    return json.dumps(decode(handles.unescape(text))) == json.dumps(parse(original))


# Measuring


@dataclass(slots=True)
class Row:
    """The pooled figures of one strategy on one set."""

    set: str
    strategy: str
    share: float | None
    values: Tally = field(default_factory=Tally)
    replies: Tally = field(default_factory=Tally)
    columns: list[CallColumn] = field(default_factory=list)
    prefix_bytes: int = 0
    prefix_kept: int = 0
    compact: int = 0
    broken: int = 0

    @property
    def prefix(self) -> float:
        """Share of prompt bytes that stayed an unchanged prefix of the next prompt."""
        return self.prefix_kept / self.prefix_bytes if self.prefix_bytes else 1.0

    def figures(self) -> dict[str, Any]:
        """Give the figures by name; None where a set has nothing of the kind."""
        shares: dict[str, float] = {
            "coverage_visible": self.values.share("visible"),
            "coverage_linked": self.values.share("linked"),
            "coverage_in_line": self.values.share("in_line"),
            "coverage_reachable": self.values.share("reachable"),
            "replies_visible": self.replies.share("visible"),
            "replies_reachable": self.replies.share("reachable"),
            "tool_column_share": cost(self.columns),
            "tool_column_share_with_definitions": cost(self.columns, with_ours=True),
            "price_cached": price(self.columns),
            "prefix_unchanged_share": self.prefix,
        }
        return {
            "set": self.set,
            "strategy": self.strategy,
            "share": self.share,
            "values": self.values.values,
            "reply_values": self.replies.values,
            **{name: self._shown(name, value) for name, value in shares.items()},
            "compact_forms": self.compact,
            "compact_forms_broken": self.broken,
        }

    def _shown(self, name: str, value: float) -> float | None:
        of_lines = name == "coverage_in_line" and self.set == "taubench"
        of_replies = name.startswith("replies") and not self.replies.values
        return None if of_lines or of_replies else round(value, 4)


@dataclass(frozen=True, slots=True)
class Call:
    """One LLM call of a run: its index, and the values that it and its reply take."""

    at: int
    called: tuple[Taken, ...]
    replied: tuple[Taken, ...]


def calls_of(run: Run, *, replies: bool) -> tuple[History, dict[int, Call]]:
    """Find what each call of a run takes from memory; the same for every strategy."""
    history, calls = History(), {}
    for at, message in enumerate(run):
        if message.role == "assistant":
            replied = tuple(history.replied(message)) if replies and not message.calls else ()
            calls[at] = Call(at, tuple(history.called(message)), replied)
        history.observe(message)
    return history, calls


class Meter:
    """Measures one strategy on one run, call by call, into a row."""

    def __init__(self, row: Row, run: Run, strategy: Strategy, ours: int) -> None:
        self._row = row
        self._run = run
        self._strategy = strategy
        self._ours = ours
        self._places: list[int] = []
        self._other: list[tuple[int, str]] = []
        self._before: list[tuple[int, str]] = []
        self._full = 0

    def measure(self, history: History, calls: dict[int, Call]) -> None:
        """Replay the run."""
        for at, message in enumerate(self._run):
            if at in calls:
                self._call(calls[at], history)
            if message.role == "tool":
                self._places.append(at)
                self._full += count(message.text)
            else:
                self._other += [(at, text) for text in _texts(message)]
            self._strategy.take(message)

    def _call(self, call: Call, history: History) -> None:
        texts = list(zip(self._places, self._strategy.texts, strict=True))
        tail = self._strategy.tail()
        charged = 0
        if call.called or call.replied:
            charged = self._judge(call, [*texts, *tail], history)
        kept = self._kept(texts, tail)
        sent = sum(count(text) for _, text in (*texts, *tail))
        cached = sum(count(text) for at, text in texts if at < kept)
        self._row.columns.append(
            CallColumn(sent=sent + charged, cached=cached, full=self._full, ours=self._ours)
        )

    def _judge(self, call: Call, texts: Sequence[tuple[int, str]], history: History) -> int:
        parts = [Part(text=text, origin=at) for at, text in texts]
        parts += [Part(text=text, origin=at) for at, text in self._other]
        live = {self._places[place] for place in self._strategy.live}
        charged = 0
        for taken in call.called:
            verdict = judge(taken, parts, history, live=live)
            self._row.values.add(verdict)
            if verdict.reachable and not verdict.visible:
                charged += self._charge(taken, history)
        for taken in call.replied:
            self._row.replies.add(judge(taken, parts, history, live=live))
        return charged

    def _charge(self, taken: Taken, history: History) -> int:
        asked = read_of(taken, history, str(self._places.index(taken.newest) + 1))
        return count(READ_TOOL) + count(asked.arguments) + count(asked.text)

    def _kept(self, texts: Sequence[tuple[int, str]], tail: Sequence[tuple[int, str]]) -> int:
        """Give the index of the first message that differs from the previous prompt."""
        now = sorted((*texts, *self._other), key=lambda item: item[0])
        now += [(len(self._run), text) for _, text in tail]
        same = 0
        while same < min(len(now), len(self._before)) and now[same] == self._before[same]:
            same += 1
        self._row.prefix_bytes += sum(_size(text) for _, text in self._before)
        self._row.prefix_kept += sum(_size(text) for _, text in self._before[:same])
        kept = self._before[same - 1][0] + 1 if same else 0
        self._before = now
        return kept


def _texts(message: Message) -> list[str]:
    return [message.text, *(call.arguments for call in message.calls)]


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def rows(name: str, runs: Sequence[Run]) -> list[Row]:
    """Measure all strategies on one set."""
    ours = count(PREAMBLE) + count(json.dumps(read_definition("openai_chat")))
    table: list[tuple[Row, Callable[[], Strategy], int]] = [
        (Row(name, "full text", None), FullText, 0),
        (Row(name, "receipts only", None), lambda: Receipts(raw_once=False), ours),
        (Row(name, "raw once, then receipts", None), lambda: Receipts(raw_once=True), ours),
    ]
    for share in SHARES:
        table.append((Row(name, PLAIN, share), partial(Offloaded, share), ours))
        table.append((Row(name, TAILED, share), partial(WithTail, share), ours))
    for run in runs:
        history, calls = calls_of(run, replies=name == "taubench")
        for row, make, definitions in table:
            strategy = make()
            Meter(row, run, strategy, definitions).measure(history, calls)
            if isinstance(strategy, Offloaded):
                row.compact += strategy.compact
                row.broken += strategy.broken
    return [row for row, _, _ in table]


# Tokens and money


def costs(name: str, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Replay the set under the simple alternatives and ours, priced by the price table."""
    strategies = (
        FullConcatenation(),
        SlidingWindow(),
        LateClearing(),
        NextCallFolding(),
        ZeroMem(share=COSTED),
        ZeroMemTail(share=COSTED),
    )
    transcripts = [
        Transcript(name=f"{name} {number}", wire_format="openai_chat", messages=run)
        for number, run in enumerate(runs)
    ]
    found = replay(transcripts, strategies, tokenizer=_TOKENIZER)
    return [
        {
            "set": name,
            "strategy": outcome.label,
            "tokens": outcome.tokens.prompt + outcome.tokens.output,
            "peak": outcome.peak,
            "cost": outcome.cost.total,
            "cost_uncached": outcome.uncached.total,
            "visible": ratio(outcome.seen.visible, outcome.seen.values),
            "prefix_unchanged_share": outcome.prefix_unchanged,
            "prices": f"{found.price.model} {found.price_date}",
        }
        for outcome in found.outcomes
    ]


# Data


def load(name: str, folder: Path, every: int) -> list[Run]:
    """Read the runs of a set, or each n-th of them."""
    path = folder / FILES[name]
    if name == "taubench":
        return [transcript.messages for transcript in read(path).transcripts][::every]
    return list(_from_steps(path))[::every]


def _from_steps(path: Path) -> Iterator[Run]:
    """Make messages of steps: an assistant's texts and the calls after them are one turn."""
    runs: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            step = json.loads(line)
            runs.setdefault(step["traj"], []).append(step)
    for steps in runs.values():
        yield tuple(_turns(steps))


def _turns(steps: Sequence[dict[str, Any]]) -> Iterator[Message]:
    said: list[str] = []
    calls: list[ToolCall] = []
    for step in [*steps, {"kind": "end"}]:
        kind = step["kind"]
        if (said or calls) and (kind not in ("assistant", "tool_call") or _new_turn(kind, calls)):
            yield Message(role="assistant", text="\n".join(said), calls=tuple(calls))
            said, calls = [], []
        if kind == "assistant":
            said.append(step["text"])
        elif kind == "tool_call":
            tool = step["tool"] or ""
            calls.append(ToolCall(call_id=str(step["i"]), name=tool, arguments=step["text"]))
        elif kind == "tool_result":
            yield Message(role="tool", text=step["text"], tool=step["tool"] or "")
        elif kind in ("system", "user"):
            yield Message(role=kind, text=step["text"])


def _new_turn(kind: str, calls: Sequence[ToolCall]) -> bool:
    return kind == "assistant" and bool(calls)


# Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One figure at one share that has to be reached, and whether it is."""

    set: str
    share: float
    figure: str
    bound: str
    value: float
    met: bool


PLAIN, TAILED = "zero-mem", "zero-mem with a tail"
# Where a share has no bound of its own, its cost and price are reported and not held.
AT_LEAST: dict[tuple[str, str, float], dict[str, float]] = {
    ("taubench", PLAIN, 0.15): {"coverage_visible": 0.78},
    ("taubench", PLAIN, 0.25): {"coverage_visible": 0.97, "coverage_linked": 0.85},
    ("taubench", TAILED, 0.25): {"coverage_linked": 0.97, "replies_visible": 0.90},
    ("swe", PLAIN, 0.25): {"coverage_in_line": 0.80},
    ("claude", PLAIN, 0.25): {"coverage_in_line": 0.90},
}
MOST_PRICE = 0.12


def bounds(found: Sequence[dict[str, Any]]) -> Iterator[Bound]:
    """Hold the figures of the offloader against the bounds of their set."""
    for row in found:
        if row["share"] is None:
            continue
        name, strategy, share = row["set"], row["strategy"], row["share"]
        own = AT_LEAST.get((name, strategy, share), {})
        least = {"coverage_reachable": 1.0, **own}
        if strategy == PLAIN:
            least["prefix_unchanged_share"] = 1.0
        most: dict[str, float] = {"compact_forms_broken": 0}
        if own:
            most |= {"tool_column_share": share, "price_cached": MOST_PRICE}
        at = f"{name}, {strategy}"
        for figure, bound in least.items():
            value = row[figure]
            yield _bound(at, share, figure, f">= {bound:g}", value, met=value >= bound)
        for figure, bound in most.items():
            value = row[figure]
            yield _bound(at, share, figure, f"<= {bound:g}", value, met=value <= bound)


def _bound(name: str, share: float, figure: str, bound: str, value: float, *, met: bool) -> Bound:
    return Bound(set=name, share=share, figure=figure, bound=bound, value=value, met=met)


# Output

COLUMNS = (
    ("visible", "coverage_visible"),
    ("linked", "coverage_linked"),
    ("in line", "coverage_in_line"),
    ("reachable", "coverage_reachable"),
    ("replies", "replies_visible"),
    ("cost", "tool_column_share"),
    ("with definitions", "tool_column_share_with_definitions"),
    ("price", "price_cached"),
    ("prefix", "prefix_unchanged_share"),
)


def shown(found: Sequence[dict[str, Any]], held: Sequence[Bound]) -> str:
    """Write the tables with what is needed to repeat them."""
    head = ["set", "strategy", "share", "values", *(title for title, _ in COLUMNS)]
    rows = []
    for row in found:
        share = "" if row["share"] is None else f"{row['share']:g}"
        figures = ["" if row[name] is None else f"{row[name]:.3f}" for _, name in COLUMNS]
        rows.append([row["set"], row["strategy"], share, str(row["values"]), *figures])
    parts = [command(f"toktok-rs {version('toktok-rs')}"), table(head, rows)]
    for bound in held:
        if not bound.met:
            at = f"{bound.set} at {bound.share:g}"
            parts.append(f"MISSED: {at}: {bound.figure} {bound.value:g}, must be {bound.bound}")
    forms = sum(row["compact_forms"] for row in found)
    broken = sum(row["compact_forms_broken"] for row in found)
    parts.append(f"{forms} compact forms, {broken} of them do not decode to the original.")
    return "\n\n".join(parts)


def costs_shown(found: Sequence[dict[str, Any]]) -> str:
    """Write what the runs cost, with reads and their round trips."""
    if not found:
        return ""
    head = ["set", "strategy", "tokens", "peak", "US$", "US$ uncached", "visible", "prefix"]
    rows = []
    for row in found:
        figures = [f"{row['tokens']:,}", f"{row['peak']:,}"]
        figures += [f"{row[name]:.3f}" for name in ("cost", "cost_uncached")]
        seen = "" if row["visible"] is None else f"{row['visible']:.3f}"
        figures += [seen, f"{row['prefix_unchanged_share']:.3f}"]
        rows.append([row["set"], row["strategy"], *figures])
    return f"\n\n{table(head, rows)}\n\nPrices: {found[0]['prices']}."


def main() -> int:
    """Print the table; exit 1 when a bound is missed."""
    given = arguments()
    sets = {name: load(name, given.data, given.every) for name in given.set or FILES}
    found = [row.figures() for name, runs in sets.items() for row in rows(name, runs)]
    priced = [row for name, runs in sets.items() for row in costs(name, runs)]
    held = list(bounds(found))
    result = {"rows": found, "costs": priced, "bounds": [asdict(bound) for bound in held]}
    report(given, shown(found, held) + costs_shown(priced), result)
    return 0 if all(bound.met for bound in held) else 1


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = options(__doc__)
    parser.add_argument("data", type=Path, metavar="DATA_FOLDER", help="folder of the public data")
    parser.add_argument(
        "--set",
        action="append",
        choices=sorted(FILES),
        help="a set; may be repeated; all by default",
    )
    parser.add_argument("--every", type=int, default=1, help="take each n-th run only")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
