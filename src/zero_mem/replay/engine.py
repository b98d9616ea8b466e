"""The replay: every strategy over the same runs, call by call, in one pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zero_mem.controller.definitions import PREAMBLE, read_definition
from zero_mem.controller.messages import Defect, Message, Transcript, WireFormat
from zero_mem.errors import InvalidInput
from zero_mem.ledger.columns import CallTokens, cache_state, usage
from zero_mem.ledger.prices import DEFAULT_TABLE, Cost, Price, PriceTable, cost
from zero_mem.replay.accounting import Measured, Meter, TokenCache, call_tokens
from zero_mem.replay.coverage import CACHE_READ
from zero_mem.replay.figures import (
    Billed,
    CallFigures,
    LeftOut,
    Outcome,
    Replay,
    RunFigures,
    Seen,
    ValueSeen,
)
from zero_mem.replay.judging import Judge, Need, Shown
from zero_mem.replay.prompt import Entry, Grown, Prompt
from zero_mem.replay.saving import MemorySaver, Saver
from zero_mem.replay.strategies import Session, Strategy
from zero_mem.text.tokens import Tokenizer

PromptSink = Callable[[Prompt], None]
Progress = Callable[[int, int], None]


def run(
    transcripts: Iterable[Transcript],
    strategies: Iterable[Strategy],
    *,
    tokenizer: Tokenizer,
    prices: PriceTable = DEFAULT_TABLE,
    model: str = "",
    overhead: str | None = None,
    saver: Saver | None = None,
    defects: Iterable[Defect] = (),
    left_out: Iterable[LeftOut] = (),
    on_prompt: Iterable[PromptSink] = (),
    on_progress: Progress | None = None,
) -> Replay:
    """Replay runs under strategies and measure every call.

    Each assistant message is the output of one call, whose prompt a strategy fills from the
    messages before it. Tool results are saved once per run, as they come.

    Args:
        transcripts: The runs; all are held, since progress names how many messages there are.
        strategies: The strategies, each name and budget once.
        tokenizer: Counts the tokens; whether it is exact goes into the result.
        prices: The price table.
        model: A row of it; by default the table's default model.
        overhead: The text that strategies with handles add to each prompt; by default the
            read tool's definition, in the transcript's format, and the preamble.
        saver: Keeps tool results and gives their memory_ids; by default an in-memory
            store.
        defects: What could not be read, to be carried into the result.
        left_out: Strategies that were not run, to be carried into the result.
        on_prompt: Each is given every prompt as it is made.
        on_progress: Called with the messages done and all there are.

    Returns:
        The figures of every strategy, in the order given.

    Raises:
        InvalidInput: A strategy and budget is given twice, or the model has no price.
    """
    transcripts, strategies = tuple(transcripts), tuple(strategies)
    _check_distinct(strategies)
    price = prices.price(model) if model else prices.price()
    setting = _Setting(tokenizer, price, overhead, tuple(on_prompt), saver or MemorySaver())
    messages = sum(len(transcript.messages) for transcript in transcripts)
    progress = _Counted(messages, on_progress)
    replayed, billed = [], Billed()
    for number, transcript in enumerate(transcripts):
        one = _Run(number, transcript, strategies, setting)
        replayed.append(one.figures(progress))
        billed += one.billed
    by_strategy = zip(*replayed, strict=True) if replayed else ((),) * len(strategies)
    return Replay(
        outcomes=tuple(
            _outcome(strategy, runs, price.window)
            for strategy, runs in zip(strategies, by_strategy, strict=True)
        ),
        price=price,
        price_date=prices.date,
        tokenizer=tokenizer.name,
        exact=tokenizer.exact,
        messages=messages,
        billed=billed,
        left_out=tuple(left_out),
        defects=tuple(defects),
    )


class _Counted:
    """Tells progress, message by message."""

    def __init__(self, total: int, tell: Progress | None) -> None:
        self._total = total
        self._tell = tell
        self._done = 0

    def step(self) -> None:
        self._done += 1
        if self._tell is not None:
            self._tell(self._done, self._total)


def _check_distinct(strategies: Sequence[Strategy]) -> None:
    seen: set[tuple[str, float | None]] = set()
    for strategy in strategies:
        if (strategy.name, strategy.budget) in seen:
            at = "" if strategy.budget is None else f" at {strategy.budget:g}"
            raise InvalidInput(f"strategy {strategy.name}{at} is given twice")
        seen.add((strategy.name, strategy.budget))


def _outcome(strategy: Strategy, runs: tuple[RunFigures, ...], window: int) -> Outcome:
    outcome = Outcome(
        strategy=strategy.name,
        title=strategy.title,
        budget=strategy.budget,
        uses_handles=strategy.uses_handles,
        runs=runs,
    )
    notes = (
        strategy.note(prefix_unchanged=outcome.prefix_unchanged),
        _window_note(outcome, window),
    )
    return outcome.with_note("; ".join(filter(None, notes)))


def _window_note(outcome: Outcome, window: int) -> str:
    calls = outcome.too_long(window)
    if not calls:
        return ""
    which = "1 prompt is" if calls == 1 else f"{calls:,} prompts are"
    return f"{which} longer than the model's {window:,} tokens and could not be sent"


@dataclass(frozen=True, slots=True)
class _Setting:
    """What is the same for every run."""

    tokenizer: Tokenizer
    price: Price
    overhead: str | None
    sinks: tuple[PromptSink, ...]
    saver: Saver


class _Run:
    """One run under all strategies in step, so that each result is saved and judged once."""

    def __init__(
        self,
        number: int,
        transcript: Transcript,
        strategies: Sequence[Strategy],
        setting: _Setting,
    ) -> None:
        self._transcript = transcript
        self.billed = Billed()
        self._cache = TokenCache(setting.tokenizer)
        self._saver = setting.saver.run(transcript.name)
        self._judge = Judge(self._cache)
        self._original = Meter(self._cache)
        self._history: list[Entry] = []
        self._definitions = self._cache.count(_definitions(transcript.tools))
        ours = setting.overhead
        if ours is None:
            ours = our_overhead(transcript.wire_format)
        self._tracks = [
            _Track(strategy, number, transcript, setting, self._cache, self._cache.count(ours))
            for strategy in strategies
        ]

    def figures(self, progress: _Counted) -> tuple[RunFigures, ...]:
        """Replay the run and give its figures, strategy by strategy."""
        for at, message in enumerate(self._transcript.messages):
            if message.role == "assistant":
                self._call(at, message)
            self._observe(at, message)
            progress.step()
        return tuple(
            RunFigures(name=self._transcript.name, calls=tuple(track.calls))
            for track in self._tracks
        )

    def _observe(self, at: int, message: Message) -> None:
        memory_id = self._saver.save(message.text, message.tool) if message.role == "tool" else ""
        self._judge.observe(message, memory_id)
        self._history.append(Entry(message=message, origin=at))
        for track in self._tracks:
            track.session.observe(message, at, memory_id)

    def _call(self, at: int, answer: Message) -> None:
        original = self._original.measure(Grown(self._history))
        self._bill(at, original.weight.tokens + self._definitions)
        need = self._judge.need(answer)
        for track in self._tracks:
            track.call(at, answer, original, need, self._judge, self._definitions)

    def _bill(self, at: int, counted: int) -> None:
        billed = usage(self._transcript.usage.get(at, {}))
        if billed is not None:
            self.billed += Billed(calls=1, counted=counted, billed=billed.prompt)


class _Track:
    """One run under one strategy."""

    def __init__(
        self,
        strategy: Strategy,
        number: int,
        transcript: Transcript,
        setting: _Setting,
        cache: TokenCache,
        ours: int,
    ) -> None:
        self._number = number
        self._strategy = strategy
        self._transcript = transcript
        self._setting = setting
        self._cache = cache
        self._meter = Meter(cache)
        self._shown = Shown()
        self._ours = ours if strategy.uses_handles else 0
        self.session: Session = strategy.start(cache)
        self.calls: list[CallFigures] = []

    def call(
        self,
        at: int,
        answer: Message,
        original: Measured,
        need: Need,
        judge: Judge,
        definitions: int,
    ) -> None:
        """Fill the prompt, show it to the sinks, and note its figures."""
        entries = self.session.prompt()
        measured = self._meter.measure(entries)
        self._shown.update(entries, measured.kept)
        seen, values = judge.see(need, self._shown)
        figures = self._figures(at, answer, measured, original, seen, definitions)
        self.calls.append(figures)
        for sink in self._setting.sinks:
            sink(self._prompt(entries, measured.kept, figures, answer, values))

    def _figures(
        self,
        at: int,
        answer: Message,
        measured: Measured,
        original: Measured,
        seen: Seen,
        definitions: int,
    ) -> CallFigures:
        output = self._output(answer)
        plain = call_tokens(
            measured.weight, definitions=definitions, ours=self._ours, output=output
        )
        head = plain.tool_definitions + plain.our_definitions if self.calls else 0
        unchanged = measured.unchanged.tokens + head
        charged = seen.read_tokens + seen.control_tokens
        column = measured.weight.tokens - original.weight.beside_results + charged
        return CallFigures(
            call=len(self.calls) + 1,
            answer=at,
            columns=plain
            + CallTokens(memory_reads=seen.read_tokens, tool_control=seen.control_tokens),
            state=cache_state(prompt=plain.prompt, unchanged=unchanged),
            cost=self._cost(plain, unchanged, seen, caching=True),
            uncached=self._cost(plain, 0, seen, caching=False),
            column=column,
            priced=_priced(measured, original) + charged,
            ours_priced=self._ours * (CACHE_READ if self.calls else 1.0),
            full_column=original.weight.tool_results,
            size_before=measured.before.size,
            size_kept=measured.unchanged.size,
            seen=seen,
        )

    def _output(self, answer: Message) -> int:
        calls = sum(
            self._cache.count(call.name) + self._cache.count(call.arguments)
            for call in answer.calls
        )
        return self._cache.count(answer.text) + calls

    def _cost(self, tokens: CallTokens, unchanged: int, seen: Seen, *, caching: bool) -> Cost:
        """Price the call; a read that it needs first is a round trip of its own."""
        price, prompt = self._setting.price, tokens.prompt
        state = cache_state(prompt=prompt, unchanged=unchanged, caching=caching)
        if not seen.reads:
            return cost(price, state, output=tokens.output)
        longer = prompt + seen.control_tokens + seen.read_tokens
        again = cache_state(prompt=longer, unchanged=prompt if caching else 0, caching=caching)
        asking = cost(price, state, output=seen.control_tokens)
        return asking + cost(price, again, output=tokens.output)

    def _prompt(
        self,
        entries: Sequence[Entry],
        kept: int,
        figures: CallFigures,
        answer: Message,
        values: tuple[ValueSeen, ...],
    ) -> Prompt:
        return Prompt(
            run=self._number,
            trajectory=self._transcript.name,
            call=figures.call,
            strategy=self._strategy.name,
            budget=self._strategy.budget,
            entries=entries,
            kept=kept,
            tokens=figures.columns.prompt,
            index=figures.answer,
            answer=answer,
            charged=figures.seen.read_tokens + figures.seen.control_tokens,
            tools=self._transcript.tools,
            wire_format=self._transcript.wire_format,
            uses_handles=self._strategy.uses_handles,
            values=values,
        )


def _priced(measured: Measured, original: Measured) -> float:
    """Weigh memory's tokens with cache reads at a tenth of fresh input.

    Source: the rule of `CallFigures.column`, with each side at its own cache state.
    """
    ours, kept = measured.weight.tokens, measured.unchanged.tokens
    beside, beside_kept = original.weight.beside_results, original.unchanged.beside_results
    saved = 1.0 - CACHE_READ
    return (ours - saved * kept) - (beside - saved * beside_kept)


def our_overhead(wire_format: WireFormat) -> str:
    """Give what every request carries so that the model can read handles."""
    return f"{json.dumps(read_definition(wire_format))}\n{PREAMBLE}"


def _definitions(tools: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps([dict(tool) for tool in tools], ensure_ascii=False) if tools else ""
