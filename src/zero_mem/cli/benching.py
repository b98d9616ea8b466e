"""The command that measures recall, on public sets or your own: `bench recall`."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from zero_mem.cli.files import STREAM, check_targets, written
from zero_mem.cli.progress import bar
from zero_mem.cli.session import EMBEDDER_VARIABLE, Session, command
from zero_mem.cli.streams import say
from zero_mem.errors import InvalidInput

if TYPE_CHECKING:
    from zero_mem.evaluation.reader import Reader
    from zero_mem.evaluation.result import Result
    from zero_mem.evaluation.vectors import Vectors

app = typer.Typer()
bench = typer.Typer(help="Measure recall, on the public sets or on your own.", no_args_is_help=True)
app.add_typer(bench, name="bench")

READ_BY_DEFAULT: Final = ("zero-mem", "zero-mem-dense")
_LONG: Final = 20


@command(bench, "recall", shared=())
def recall(
    session: Session,
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA...", help="Folders of sets, or of one set each."),
    ],
    sets: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Which sets, with commas or repeated; by default all."),
    ] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Which rows (bm25, zero-mem …), likewise; by default all."
        ),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            "-e",
            metavar="NAME",
            envvar=EMBEDDER_VARIABLE,
            help="Measure the rows with vectors too, by this embedder; see reindex.",
        ),
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep vectors in this file, and take from it what it has."
        ),
    ] = None,
    limit_questions: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="At most so many questions of each space."),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Of the public sets too, ask every question that names its evidence."
        ),
    ] = False,
    json_out: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Every figure as JSON; - is stdout."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The tables; by default, and as -, to stdout."),
    ] = None,
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Let a model answer from what is recalled: an OpenAI-compatible API's root. "
            "Questions and records are sent there.",
        ),
    ] = None,
    reader_model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The reader's name at that address.")
    ] = None,
    reader_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="VAR",
            help="The environment variable that has its key; by default ZERO_MEM_READER_KEY or "
            "OPENAI_API_KEY.",
        ),
    ] = None,
    reader_budget: Annotated[
        int, typer.Option(metavar="N", min=50, help="Most recalled tokens that the reader gets.")
    ] = 1000,
    reader_concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, max=16, help="Questions that are out at a time.")
    ] = 4,
    reader_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long an answer may take.")
    ] = 60.0,
    reader_extra: Annotated[
        str | None,
        typer.Option(
            metavar="JSON", help='More fields of its requests, such as {"max_tokens": 64}.'
        ),
    ] = None,
) -> None:
    """Measure how much of the evidence recall finds.

    Each set is a folder with corpus.jsonl and queries.jsonl (see docs/bench.md). The rows are
    simple alternatives, Zero-Mem, and Zero-Mem less each part, by rank and by tokens of a prompt.
    With --reader, a model answers each question from what Zero-Mem recalls (or the rows that --rows
    names), and its answers are scored; without it nothing is sent anywhere.
    """
    check_targets(json_out, markdown)
    if json_out == markdown == STREAM:
        raise InvalidInput("--json and --markdown can't both go to stdout")
    wanted = Wanted(
        data=data,
        sets=_names(sets),
        rows=_names(rows),
        every=every,
        limit=limit_questions or 0,
        embedder=embedder,
        vectors=vectors,
        reader=_reader(
            reader,
            reader_model,
            reader_key_env,
            budget=reader_budget,
            concurrency=reader_concurrency,
            timeout=reader_timeout,
            extra=reader_extra,
        ),
    )
    result = run(wanted)
    _write(result, json_out, markdown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be measured."""

    data: Sequence[Path]
    sets: Sequence[str] = ()
    rows: Sequence[str] = ()
    every: bool = False
    limit: int = 0
    embedder: str | None = None
    vectors: Path | None = None
    reader: Reader | None = field(default=None, repr=False)


def run(wanted: Wanted) -> Result:
    """Measure.

    Raises:
        InvalidInput: A set, a row or a line of a file is not as it should be.
        EndpointUnavailable: The reader refuses every request, or has gone.
    """
    from zero_mem.evaluation import measure, reader, sets
    from zero_mem.evaluation.result import Result, SetFacts
    from zero_mem.evaluation.rows import chosen, rows
    from zero_mem.text.tokens import tokenizer

    folders = sets.find(wanted.data, wanted.sets)
    with _vectors(wanted) as vectors:
        found = chosen(rows(vectors), wanted.rows)
        counter = tokenizer()
        asked = wanted.reader
        result = Result(
            command=shlex.join(["zero-mem", *sys.argv[1:]]),
            rows=found,
            tokenizer=counter.name,
            embedder=vectors.name if vectors else "",
            reader=asked.endpoint.name if asked else "",
            complete=not (wanted.every or wanted.limit),
        )
        for one in sets.each(folders, every=wanted.every, limit=wanted.limit):
            result.sets.append(SetFacts.of(one))
            result.figures += measure.measure(
                one, found, tokenizer=counter, progress=_progress, vectors=vectors
            )
            if asked:
                result.readings += [
                    reader.read(one, row, asked, tokenizer=counter, progress=_progress)
                    for row in found
                    if row.name in (wanted.rows or READ_BY_DEFAULT)
                ]
            if vectors:
                vectors.forget()
    return result


def _progress(what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    return bar(what, total, long=_LONG)


@contextmanager
def _vectors(wanted: Wanted) -> Iterator[Vectors | None]:
    """Open the embedder and, where they are kept, its vectors."""
    if not wanted.embedder:
        if wanted.vectors:
            raise InvalidInput("--vectors keeps what an embedder makes: name one with --embedder")
        yield None
        return
    from zero_mem.evaluation.cache import CachedEmbedder
    from zero_mem.evaluation.vectors import Vectors
    from zero_mem.models import embedder_named

    embedder = embedder_named(wanted.embedder)
    if wanted.vectors is None:
        yield Vectors(embedder, _progress)
        return
    with closing(CachedEmbedder(embedder, wanted.vectors)) as cached:
        yield Vectors(cached, _progress)


def _names(given: Sequence[str] | None) -> list[str]:
    """Read names that are repeated, or in one option with commas between."""
    return [name.strip() for some in given or () for name in some.split(",") if name.strip()]


def _reader(
    url: str | None,
    model: str | None,
    variable: str | None,
    *,
    budget: int,
    concurrency: int,
    timeout: float,
    extra: str | None,
) -> Reader | None:
    """Make the reader that the options name.

    Raises:
        InvalidInput: The options do not fit together, or the key would be sent in the clear.
    """
    if url is None:
        if model or variable or extra:
            raise InvalidInput("--reader names the address of the model; give it too")
        return None
    if not model:
        raise InvalidInput("--reader-model names the model at that address; give it too")
    from zero_mem.evaluation.reader import KEY_VARIABLES, Reader
    from zero_mem.models.endpoint import Endpoint

    if variable and not os.environ.get(variable):
        raise InvalidInput(f"the environment has no {variable}, which --reader-key-env names")
    endpoint = Endpoint(
        url, model=model, variables=(variable,) if variable else KEY_VARIABLES, timeout=timeout
    )
    if variable and not endpoint.private:
        raise InvalidInput("a key goes over https only, or to this machine; use an https address")
    return Reader(
        endpoint=endpoint,
        model=model,
        budget=budget,
        concurrency=concurrency,
        extra=_fields(extra),
    )


def _fields(extra: str | None) -> dict[str, Any]:
    if extra is None:
        return {}
    try:
        found = json.loads(extra)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInput('--reader-extra is a JSON object, such as {"max_tokens": 64}')
    return found


def _write(result: Result, json_out: Path | None, markdown: Path | None) -> None:
    from zero_mem.evaluation.page import page
    from zero_mem.evaluation.result import as_json

    if json_out is not None:
        with written(json_out) as file:
            json.dump(as_json(result), file, ensure_ascii=False, allow_nan=False)
            file.write("\n")
    if markdown is not None:
        with written(markdown) as file:
            file.write(page(result))
    elif json_out != STREAM:
        say(page(result))
