"""The command: what to watch, how often, and in which form."""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from zero_mem.cli.session import CREDENTIAL_VARIABLE, Session, command
from zero_mem.cli.streams import plain_lines, say
from zero_mem.cli.watching.rates import History
from zero_mem.cli.watching.sources import ServerSource, Source, StoreSource
from zero_mem.errors import EndpointUnavailable, InvalidInput, StoreUnavailable
from zero_mem.exchange import json_line

if TYPE_CHECKING:
    from rich.console import RenderableType

app = typer.Typer()


@command(app, "top", shared=("store", "as_json"))
def top(
    session: Session,
    server: Annotated[
        str | None,
        typer.Argument(
            metavar="URL", help="A server, such as http://127.0.0.1:8765; else the store itself."
        ),
    ] = None,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How often the figures are read.")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show them once, and end.")] = False,
) -> None:
    """Show a store or a server at work until q or Ctrl-C.

    A server tells what its process counts: changes, calls and how long they took, recalls, sweeps,
    backups, feeds. Of a store that is read directly the changes are counted in its journal,
    whoever wrote them. Without a terminal they are shown once; with --json, a line each time.
    """
    with ExitStack() as stack:
        source = _source(session, server, stack)
        watch = _Watch(source)
        watch.look()
        if session.as_json:
            _lines(watch, every=every, once=once)
        elif once or not sys.stdout.isatty():
            say(_printed(watch.picture, shutil.get_terminal_size().columns))
        else:
            from zero_mem.cli.watching.screen import show

            with suppress(KeyboardInterrupt):  # is how it is meant to end
                show(watch.next_picture, every=every)


def _source(session: Session, server: str | None, stack: ExitStack) -> Source:
    if server is None:
        return StoreSource(session.memory, session.url)
    if not server.startswith(("http://", "https://")):
        raise InvalidInput(f"a server is an http or https URL, not {server!r}; --store is a store")
    from zero_mem.client import connect

    credential = os.environ.get(CREDENTIAL_VARIABLE) or None
    return ServerSource(stack.enter_context(connect(server, credential=credential)))


class _Watch:
    """A source, what it told so far, and why it tells nothing now."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._fault = ""
        self.history = History()

    def look(self) -> None:
        """Read the figures once more."""
        self.history.add(self._source.read())

    def picture(self, width: int) -> RenderableType:
        """Draw what is known."""
        from zero_mem.cli.watching.frame import picture

        return picture(self._source.name, self.history, width=width, fault=self._fault)

    def next_picture(self, width: int) -> RenderableType:
        """Read the figures and draw them; a source that went away may come back."""
        try:
            self.look()
            self._fault = ""
        except (StoreUnavailable, EndpointUnavailable) as error:
            self._fault = f"no answer: {error}"
        return self.picture(width)

    def line(self) -> str:
        """Give what is known as a line of JSON."""
        from zero_mem.cli.watching.frame import as_json

        return json_line(as_json(self._source.name, self.history))


def _lines(watch: _Watch, *, every: float, once: bool) -> None:
    while True:
        with plain_lines() as lines:
            lines.write(watch.line())
        if once:
            return
        time.sleep(every)
        watch.look()


def _printed(draw: Callable[[int], RenderableType], width: int) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=width, highlight=False, color_system=None).print(draw(width))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
