"""Commands that look after indexes: reindex."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

import typer

from zero_mem.cli.progress import bar
from zero_mem.cli.session import EMBEDDER_VARIABLE, Session, command
from zero_mem.text.nouns import counted

app = typer.Typer()

_LONG_COUNT: Final = 200


@command(app, "reindex")
def reindex(
    session: Session,
    embedder: Annotated[
        str,
        typer.Option(
            "--embedder",
            "-e",
            metavar="NAME",
            envvar=EMBEDDER_VARIABLE,
            help="e5, use, sentence-transformers:NAME, or https://HOST/v1?model=NAME&dimension=N.",
        ),
    ] = "e5",
) -> None:
    """Embed what has no vector yet, for recall by meaning.

    Also after a change of embedder: the vectors of other models are removed. Without --namespace
    the whole store is re-indexed. Interrupted, it goes on where it was the next time.
    """
    session.embedder = embedder
    memory = session.memory
    assert memory.dense is not None
    paths = [session.named] if session.named else memory.subtree().namespaces()
    behind = sum(memory.dense.behind(path) for path in paths)
    with bar("embedding", behind, long=_LONG_COUNT) as step:
        done = memory.reindex(session.named, progress=lambda count, _: step(count))
    text = f"embedded {counted(done.embedded, 'memory', 'memories')} with {done.model}"
    if done.dropped:
        text += f", removed {counted(done.dropped, 'vector')} of other models"
    session.show(asdict(done), text)
