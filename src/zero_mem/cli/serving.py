"""The command that serves the store over HTTP: serve."""

from __future__ import annotations

import inspect
import logging
import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from zero_mem.cli.streams import whisper
from zero_mem.environment import keys
from zero_mem.errors import MissingExtra
from zero_mem.memory import Memory
from zero_mem.models import embedder_named
from zero_mem.server.settings import PREFIX, Settings, flag, load

app = typer.Typer()

_OURS: Final = ("starlette", "uvicorn")
_FILE: Final = PREFIX + "CONFIG"
_HELP: Final = """Serve the store over HTTP, until a signal stops it.

A setting is taken from its flag, else from the environment (ZERO_MEM_SERVER_MAX_BODY for
--max-body), else from the TOML file. Without a key it serves this machine only.
"""


def _serve(config: Path | None = None, **flags: str | None) -> None:
    settings = load(flags=flags, environment=os.environ, file=config)
    try:
        from zero_mem.server.serving import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _OURS:
            raise
        raise MissingExtra("serving over HTTP", "server") from error
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    memory = Memory.open(
        settings.store or None,
        durability=settings.durability,
        actor="server",
        # Made once: every key has a view of its own, and they share it.
        embedder=embedder_named(settings.embedder) if settings.embedder else None,
        **keys(),
    )
    try:
        serve(memory, settings, whisper)
    finally:
        memory.close()


def _parameters() -> list[inspect.Parameter]:
    """Make an option of each setting."""
    file = typer.Option("--config", envvar=_FILE, metavar="FILE", help="A TOML file of settings.")
    found: list[tuple[str, Any]] = [("config", Annotated[Path | None, file])]
    for each in fields(Settings):
        text = (
            f"{each.metadata['text']} ({each.default})"
            if each.default != ""
            else each.metadata["text"]
        )
        option = typer.Option(flag(each.name), metavar="VALUE", help=text)
        found.append((each.name, Annotated[str | None, option]))
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in found
    ]


_serve.__doc__ = _HELP
_serve.__annotations__ = {each.name: each.annotation for each in _parameters()}
_serve.__signature__ = inspect.Signature(_parameters())  # type: ignore[attr-defined]
app.command("serve")(_serve)
