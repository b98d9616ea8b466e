"""Commands that bound what is kept: expire, duplicates, configure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, get_args

import typer

from zero_mem.cli import inputs, printing
from zero_mem.cli.session import Session, command
from zero_mem.errors import InvalidInput
from zero_mem.operations.duplicates import DuplicateGroup
from zero_mem.operations.sweep import Ending, check_ending
from zero_mem.policy.limits import SETTINGS

app = typer.Typer()


@command(app, "expire")
def expire(
    session: Session,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    action: Annotated[
        str,
        typer.Option(
            metavar="ACTION", help=f"What becomes of them: {', '.join(get_args(Ending))}."
        ),
    ] = "expire",
) -> None:
    """Sweep what is past its time or its retention.

    Also what belongs to a task whose lease ran out. Without --namespace the whole store is swept.
    """
    swept = session.memory if session.named is None else session.space
    report = swept.expire(action=check_ending(action), dry_run=dry_run)
    session.show(printing.sweep_json(report), printing.sweep_text(report))


@command(app, "duplicates")
def duplicates(
    session: Session,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="The kind to look at.")],
    merge: Annotated[
        bool, typer.Option("--merge", help="Keep the newest of each group, archive the others.")
    ] = False,
) -> None:
    """Group near-equal memories of a kind that have no key."""
    groups = session.space.duplicates(kind, merge=merge)
    value = {"groups": [_group_json(group) for group in groups], "merged": merge}
    lines = [f"{group.memory_id}: {', '.join(group.others)}" for group in groups]
    session.show(value, "\n".join(lines) or "no duplicates")


def _group_json(group: DuplicateGroup) -> dict[str, Any]:
    return {"memory_id": group.memory_id, "others": list(group.others), "count": group.count}


@command(app, "configure")
def configure(
    session: Session,
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE...",
            help=f"{', '.join(sorted(SETTINGS))}; null lifts a limit.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[str | None, typer.Option(metavar="FORM", help="Only for this form.")] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only for this kind.")] = None,
) -> None:
    """Set or show the limits of a namespace, form or kind."""
    changes = dict(_setting(text) for text in settings or ())
    if changes:
        limits = session.space.configure(form=form, kind=kind, **changes)
    else:
        limits = session.space.limits(form or "semantic", kind or "")
    shown = {name: value for name, value in asdict(limits).items() if name in SETTINGS}
    session.show(shown, "\n".join(f"{name:<22} {value}" for name, value in shown.items()))


def _setting(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or name not in SETTINGS:
        known = ", ".join(sorted(SETTINGS))
        raise InvalidInput(f"a setting is NAME=VALUE, with NAME one of {known}")
    try:
        return name, inputs.parse_json(value, name)
    except InvalidInput:
        return name, value
