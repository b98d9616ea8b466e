"""The command that replays real runs under every strategy and ends in a verdict."""

from __future__ import annotations

import json
import shutil
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from zero_mem.cli.failures import PartlyDone
from zero_mem.cli.files import STREAM, check_targets, written
from zero_mem.cli.progress import bar
from zero_mem.cli.session import Session, command
from zero_mem.cli.streams import read_stdin, say
from zero_mem.cli.text import clean
from zero_mem.errors import InvalidInput
from zero_mem.text.nouns import counted

if TYPE_CHECKING:
    from zero_mem.controller.messages import Defect, Transcript
    from zero_mem.ledger.prices import PriceTable
    from zero_mem.replay.book import PromptBook
    from zero_mem.replay.engine import PromptSink
    from zero_mem.replay.evidence import EvidenceBook
    from zero_mem.replay.figures import Replay
    from zero_mem.replay.strategies import Strategy
    from zero_mem.replay.verdict import Verdict

app = typer.Typer()

STRATEGIES: Final = (
    "full", "window", "summary", "external_state", "late_clearing", "folding", "receipts",
    "zero_mem", "zero_mem_tail",
)  # fmt: skip
"""What `--strategy` takes; named here so that no other command loads the replay for its help."""

WITH_EMBEDDER: Final = "vector_rag"
"""And what it takes where there is an embedder."""

_LONG_MESSAGES: Final = 400
_DEFECTS_SHOWN: Final = 20
_RESULT: Final = b'{"format": '
"""How a result that `--json FILE` wrote begins; a transcript does not."""


class _ReplayCommand(TyperCommand):
    """Lets `--json` stand alone, or before the file that it goes to."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_json_target(args))


def with_json_target(args: Sequence[str]) -> list[str]:
    """Write a bare `--json` as `--json=-`: one that no output file follows.

    A file that is there already is an output only if an earlier replay wrote it: a transcript
    is never overwritten.
    """
    given: list[str] = []
    for place, argument in enumerate(args):
        following = args[place + 1] if place + 1 < len(args) else None
        bare = argument == "--json" and not _is_target(following)
        given.append("--json=-" if bare else argument)
    return given


def _is_target(argument: str | None) -> bool:
    if argument is None or (argument.startswith("-") and argument != "-"):
        return False
    path = Path(argument)
    if not path.is_file():
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_RESULT)) == _RESULT
    except OSError:
        return False


@command(app, "replay", shared=(), creates=True, cls=_ReplayCommand)
def replay(
    session: Session,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Transcripts, JSON or JSON lines, plain or gzip; - is stdin."
        ),
    ],
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Only this strategy; may be repeated. All by default: {', '.join(STRATEGIES)}; "
            f"with an embedder also {WITH_EMBEDDER}.",
        ),
    ] = None,
    budget: Annotated[
        list[float] | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the tool results' tokens that Zero-Mem may show; may be repeated. "
            "By default 0.15, 0.25, 0.35 and 0.5.",
        ),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Compare with vector RAG by this embedder: e5, use, sentence-transformers:NAME, "
            "or an OpenAI-compatible endpoint.",
        ),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="A model of the price table, or a price file (FILE:NAME for one of its models). "
            "By default Sonnet 5.5.",
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "--encoding",
            metavar="NAME",
            help="Whose tokens to count: o200k, cl100k, gpt-4o … Others are estimated.",
        ),
    ] = "o200k",
    json_out: Annotated[
        Path | None,
        typer.Option("--json", metavar="[FILE]", help="The result as JSON; alone, to stdout."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="The report as one page to look at."),
    ] = None,
    prompts: Annotated[
        Path | None,
        typer.Option("--prompts", metavar="FILE", help="Every prompt, whole, as JSON lines."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Keep the memories in this store, a namespace below `replay` for each run; by "
            "default nowhere.",
        ),
    ] = None,
) -> None:
    """Replay your agent's runs: tokens, cost, verdict.

    Each run goes through every strategy, and one table compares tokens by column, cost, the longest
    prompt and decision coverage. Reads OpenAI chat messages, OpenAI Responses items, Anthropic
    messages, Claude Code and Codex sessions; the format is detected. What can't be read is said on
    stderr and left out; where that is a whole file, it ends with 7. No model is called, and nothing
    is sent anywhere, unless --embedder names an endpoint.
    """
    check_targets(json_out, html, prompts)
    session.url, session.as_json = store, json_out is not None
    options = Options(
        strategies=tuple(strategy or ()),
        budgets=tuple(budget or ()),
        embedder=embedder,
        prices=prices,
        model=model,
        prompts=prompts,
    )
    result = run(session, files, options, inspect=html is not None)
    if json_out is not None:
        _write_json(json_out, result)
    if html is not None:
        result.write_page(html)
    if STREAM not in (json_out, html, prompts):
        say(f"{result.text()}\n")
    finish(session, result)


def finish(session: Session, result: Result) -> None:
    """Say what is to be said beside the result; end with 7 where a file could not be read."""
    for line in (*defect_lines(result.replay.defects), *result.notes):
        session.note(line)
    if result.unread:
        raise PartlyDone(f"{counted(result.unread, 'file', 'files')} could not be read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to replay; empty means all there is, or the default."""

    strategies: tuple[str, ...] = ()
    budgets: tuple[float, ...] = ()
    embedder: str | None = None
    prices: str | None = None
    model: str = "o200k"
    prompts: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a replay gave, ready to be shown."""

    replay: Replay
    verdict: Verdict
    book: PromptBook | None = field(repr=False)
    evidence: EvidenceBook | None = field(repr=False)
    source: str
    unread: int = 0
    namespaces: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """Write the table, the notes and the verdict, which a terminal then shows."""
        return f"{self.figures()}\n\n{self.sentence()}"

    def figures(self) -> str:
        """Write the table and the notes."""
        from zero_mem.replay import output

        table = output.plain(output.table(self.replay), width=_width())
        return clean("\n\n".join([table, *self._notes()]))

    def sentence(self) -> str:
        """Write the verdict."""
        return textwrap.fill(clean(self.verdict.sentence), width=min(_width(), 100))

    def as_json(self) -> dict[str, Any]:
        """Give the figures and, where a store kept the memories, their namespaces."""
        from zero_mem.replay import output

        kept = {"namespaces": list(self.namespaces)} if self.namespaces else {}
        return output.as_json(self.replay, self.verdict) | kept

    def _notes(self) -> list[str]:
        price = self.replay.price
        exact = "exact" if self.replay.exact else "estimated, on the safe side"
        lines = [
            f"{counted(self.replay.messages, 'message')}; tokens: {self.replay.tokenizer}, "
            f"{exact}; prices: {price.model}, {self.replay.price_date}"
        ]
        lines += [f"{o.label}: {o.note}" for o in self.replay.outcomes if o.note]
        lines += [f"{left.title}: not run; {left.reason}" for left in self.replay.left_out]
        return ["\n".join(lines)]

    def write_page(self, path: Path) -> None:
        """Write the report as one HTML page."""
        from zero_mem.replay.report import report

        page = report(
            self.replay,
            self.verdict,
            book=self.book,
            evidence=self.evidence,
            source=self.source,
        )
        with written(path) as file:
            file.write(page)


def _width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def run(session: Session, files: Sequence[Path], options: Options, *, inspect: bool) -> Result:
    """Read the files and replay their runs.

    Args:
        session: Its store, where it has one, keeps the memories.
        files: Transcripts.
        options: How to replay.
        inspect: Collect prompts for a page.

    Raises:
        InvalidInput: No file held a run, or an option is wrong.
    """
    from zero_mem.replay.book import PromptBook
    from zero_mem.replay.evidence import collect
    from zero_mem.replay.verdict import verdict

    book = PromptBook() if inspect else None
    prices, strategies = price_table(options.prices), chosen(options)
    with named_files(files) as paths:
        reading = read(paths)
    before = set(_kept(session))
    with _sinks(options, book) as sinks:
        found = _replayed(session, reading, options, prices, strategies, sinks)
    kept = tuple(path for path in _kept(session) if path not in before)
    return Result(
        replay=found,
        verdict=verdict(found),
        book=book,
        evidence=collect(reading.runs) if inspect else None,
        source=", ".join(path.name for path in paths),
        unread=reading.unread,
        namespaces=kept,
        notes=tuple(_notes(options, exact=found.exact, url=session.url, kept=kept)),
    )


@contextmanager
def _sinks(options: Options, book: PromptBook | None) -> Iterator[list[PromptSink]]:
    """Give what takes each prompt: the page's book, and the file of all prompts."""
    from zero_mem.replay.output import PromptWriter

    with ExitStack() as stack:
        sinks: list[PromptSink] = [book] if book is not None else []
        if options.prompts is not None:
            sinks.append(PromptWriter(stack.enter_context(written(options.prompts))))
        yield sinks


def _replayed(
    session: Session,
    reading: Reading,
    options: Options,
    prices: tuple[PriceTable, str],
    strategies: Sequence[Strategy],
    sinks: Sequence[PromptSink],
) -> Replay:
    from zero_mem.replay import engine
    from zero_mem.replay.saving import MemorySaver
    from zero_mem.replay.strategies import NOT_RUN
    from zero_mem.text.tokens import tokenizer

    total = sum(len(transcript.messages) for transcript in reading.runs)
    with bar("replaying", total, long=_LONG_MESSAGES) as step:
        return engine.run(
            reading.runs,
            strategies,
            tokenizer=tokenizer(options.model),
            prices=prices[0],
            model=prices[1],
            saver=MemorySaver(session.memory) if session.url else None,
            defects=reading.defects,
            left_out=() if options.embedder else NOT_RUN,
            on_prompt=sinks,
            on_progress=lambda done, _: step(done),
        )


def _kept(session: Session) -> list[str]:
    """Name the namespaces of replays in the store, where there is one."""
    from zero_mem.replay.saving import ROOT

    if not session.url:
        return []
    return ["/".join(path) for path in session.memory.subtree(*ROOT).namespaces()]


def _notes(options: Options, *, exact: bool, url: str | None, kept: Sequence[str]) -> Iterator[str]:
    if not exact:
        yield f"tokens of {options.model!r} can't be counted here: estimates, on the safe side"
    if kept:
        last = f" to {kept[-1]}" if len(kept) > 1 else ""
        spaces = counted(len(kept), "namespace")
        yield f"the memories are in {url}, {spaces}: {kept[0]}{last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the files gave; `unread` of them gave nothing."""

    runs: Sequence[Transcript]
    defects: Sequence[Defect]
    unread: int = 0


@contextmanager
def named_files(files: Sequence[Path]) -> Iterator[list[Path]]:
    """Give files that can be opened by name: what stdin holds becomes one, for as long."""
    if files.count(STREAM) > 1:
        raise InvalidInput("stdin can be read once; give - once")
    with ExitStack() as stack:
        paths = list(files)
        if STREAM in paths:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zero-mem-")))
            piped = folder / "stdin"
            piped.write_bytes(read_stdin())
            paths[paths.index(STREAM)] = piped
            stack.enter_context(_called(piped, "stdin"))
        yield paths


@contextmanager
def _called(path: Path, name: str) -> Iterator[None]:
    """Let errors name a file as the caller knows it."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(str(error).replace(str(path), name)) from None


def read(files: Sequence[Path]) -> Reading:
    """Read the runs of all files; a file that holds none is a defect if another holds some.

    Raises:
        InvalidInput: None of them held a run.
    """
    from zero_mem.controller.messages import Defect
    from zero_mem.replay import transcripts

    runs: list[Transcript] = []
    defects: list[Defect] = []
    unread: list[str] = []
    names: set[str] = set()
    for path in files:
        try:
            size = path.stat().st_size if path.is_file() else 0
            with bar(f"reading {path.name}", size) as step:
                reading = transcripts.read(path, names=names, progress=lambda done, _: step(done))
        except InvalidInput as error:
            problem = str(error).removeprefix(f"{path}: ")
            defects.append(Defect(file=path.name, line=0, record="", problem=problem))
            unread.append(f"{path}: {problem}")
            continue
        runs += reading.transcripts
        defects += reading.defects
    if not runs:
        before = "" if len(files) == 1 else "no run in any file: "
        raise InvalidInput(before + "; ".join(unread))
    return Reading(runs=runs, defects=defects, unread=len(unread))


def defect_lines(defects: Sequence[Defect]) -> Iterator[str]:
    """Say what could not be read, each with file and line."""
    for defect in defects[:_DEFECTS_SHOWN]:
        place = f"{defect.file}:{defect.line}" if defect.line else defect.file
        yield f"{place}: {defect.problem}"
    if len(defects) > _DEFECTS_SHOWN:
        yield f"… and {len(defects) - _DEFECTS_SHOWN} more; --json lists them all"


def chosen(options: Options) -> tuple[Strategy, ...]:
    """Give the strategies asked for, all by default.

    Raises:
        InvalidInput: A name is unknown, or a budget is not above 0 and at most 1.
        MissingExtra: The embedder's package is not installed.
    """
    from zero_mem.replay.strategies import BUDGETS, every_strategy

    every: tuple[Strategy, ...] = every_strategy(options.budgets or BUDGETS)
    if options.embedder is not None:
        every += (_vector_rag(options.embedder),)
    known = dict.fromkeys(strategy.name for strategy in every)
    wanted = [name.replace("-", "_") for name in options.strategies]
    unknown = [name for name in wanted if name not in known]
    if WITH_EMBEDDER in unknown:
        raise InvalidInput(f"{WITH_EMBEDDER} needs an embedder: add --embedder NAME, such as e5")
    if unknown:
        raise InvalidInput(f"no strategy {unknown[0]!r}; there are {', '.join(STRATEGIES)}")
    return tuple(s for s in every if not wanted or s.name in wanted)


def _vector_rag(name: str) -> Strategy:
    from zero_mem.models.names import embedder_named
    from zero_mem.replay.vector import VectorRag

    return VectorRag(embedder=embedder_named(name))


def price_table(text: str | None) -> tuple[PriceTable, str]:
    """Give the price table and the row of it that `--prices` names ("" for the default row).

    Raises:
        InvalidInput: There is no such row, or the file is not a price file.
    """
    from zero_mem.ledger.prices import DEFAULT_TABLE, load

    if text is None:
        return DEFAULT_TABLE, ""
    name, _, row = text.rpartition(":")
    path = Path(text) if Path(text).is_file() or not name else Path(name)
    if path.is_file() or path.suffix in (".json", ".toml"):
        table = load(path)
        own = [each for each in table.rows if each not in DEFAULT_TABLE.rows]
        row = row if name and path == Path(name) else (own[0] if len(own) == 1 else "")
        return table, table.price(row).model if row else ""
    return DEFAULT_TABLE, DEFAULT_TABLE.price(text).model


def _write_json(path: Path, result: Result) -> None:
    with written(path) as file:
        json.dump(result.as_json(), file, allow_nan=False)
        file.write("\n")
