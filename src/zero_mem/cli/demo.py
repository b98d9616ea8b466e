"""The first thing to look at: three operations and a read, then a replay with its report."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Final

import typer

from zero_mem.cli.files import check_targets
from zero_mem.cli.replaying import Options, Result, finish, run
from zero_mem.cli.session import Session, command
from zero_mem.cli.streams import say

app = typer.Typer()

REPORT: Final = Path("zero-mem-report.html")

_OWN: Final = "Your own runs"
_BEFORE: Final = """\
== Three operations, one read ==

No operation calls a model, and none puts a body into the prompt: each leaves a receipt.
"""


@command(app, "demo", shared=())
def demo(
    session: Session,
    transcripts: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...",
            help="Your own runs, in the place of the samples.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path, typer.Option("--html", metavar="FILE", help="Where the report goes.")
    ] = REPORT,
) -> None:
    """Show what Zero-Mem does, in a minute.

    A walk-through of three operations and a read, then a replay with its report. It stores nothing,
    sends nothing and calls no model. It is for people and has no --json: replay has.
    """
    check_targets(html)
    say(f"{_BEFORE}\n")
    walk_through()
    results = _replayed(session, transcripts)
    say("\n== Is memory worth it? ==\n")
    for title, result in results.items():
        say(f"\n{title}\n{result.sentence()}\n")
    last = list(results.values())[-1]
    last.write_page(html)
    say(f"\nThe report, turn by turn: {html.resolve()}\n")
    finish(session, last)


def walk_through() -> None:
    """Print the design's three lines, each with what it means."""
    from zero_mem import MemoryStore, ZeroMemRuntime

    runtime = ZeroMemRuntime(MemoryStore())
    saved = runtime.on_task_start("task-001", "用户正在申请退款，流程到第二步")
    updated = runtime.on_tool_success("task-001", "退款状态: 审核通过")
    recalled = runtime.recall_for_prompt(["task-001"])
    lines = (
        (f"save receipt: {saved.to_context()}", "the state of the task is stored, not shown"),
        (f"update receipt: {updated.to_context()}", "a tool's result has replaced it"),
        (f"recall context: {recalled}", "only now, asked for, does the body enter the prompt"),
    )
    for line, meaning in lines:
        say(f"{line}\n    {meaning}\n")


def _replayed(session: Session, transcripts: list[Path] | None) -> dict[str, Result]:
    """Replay the reader's runs, or the samples, and show the tables; give results by title."""
    runs = {_OWN: transcripts} if transcripts else _samples()
    results = {}
    for title, paths in runs.items():
        say(f"\n== {title} ==\n\n")
        results[title] = run(session, paths, Options(), inspect=True)
        say(f"{results[title].figures()}\n")
    return results


def _samples() -> dict[str, list[Path]]:
    return {
        "A short chat": [_sample("short.json")],
        "An agent handles a refund over some 30 calls": [_sample("refund.json")],
    }


def _sample(name: str) -> Path:
    with as_file(files("zero_mem.replay").joinpath("samples", name)) as path:
        return path
