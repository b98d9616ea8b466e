"""The command that says why a memory was or was not used."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from zero_mem.cli import inputs
from zero_mem.cli.session import Session, command
from zero_mem.cli.text import clean

app = typer.Typer()


@command(app, "why")
def why(
    session: Session,
    memory_id: inputs.Id,
    conversation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The conversation whose prompts the runtime built."),
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The prompt as it was sent; - reads stdin."),
    ] = None,
) -> None:
    """Say step by step why a memory was or was not used.

    Was it written; can it be read; is its receipt in the prompt; was its body read; did a later
    write bring an older value back?
    """
    from zero_mem.why import why as explain

    named = inputs.reference(memory_id).memory_id
    text = None if prompt is None else inputs.read_file(prompt).decode("utf-8", "replace")
    found = explain(session.space, named, conversation=conversation, prompt_text=text)
    lines = []
    for number, step in enumerate(found.steps, start=1):
        lines += [f"{number}. {step.question} {step.answer}", f"   {clean(step.evidence)}"]
    lines += ["", f"What to do: {clean(found.advice)}" if found.advice else "Nothing is wrong."]
    session.show(asdict(found) | {"advice": found.advice}, "\n".join(lines))
