"""Commands that bound what is kept: expire, scrub, duplicates, configure."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Annotated, Any, Final, get_args

import typer

from zero_mem.cli import inputs, printing
from zero_mem.cli.session import Session, command
from zero_mem.errors import InvalidInput
from zero_mem.operations.duplicates import DuplicateGroup
from zero_mem.operations.sweep import Ending, check_ending
from zero_mem.policy.limits import FORMS, SETTINGS, Overflow, Visibility, default_form

app = typer.Typer()

_REDACT: Final = "redact"
_NONE: Final = re.compile(r"\bNone\b")
_VALUES: Final = {
    "dedupe_key": "content, metadata.NAME or null",
    "overflow": " or ".join(get_args(Overflow)),
    "visibility": " or ".join(get_args(Visibility)),
}
_SETTINGS_HELP: Final = "; ".join(
    f"{name} ({_VALUES[name]})" if name in _VALUES else name for name in sorted(SETTINGS)
)


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


@command(app, "scrub", shared=("store", "as_json"))
def scrub(session: Session) -> None:
    """Overwrite what purged memories left in the store's files.

    A purge does this itself. It is left to do where purge said that another program still reads the
    old pages: end that program and run this. It ends with 5 while there is one.
    """
    memory = session.memory
    memory.scrub()
    session.show({"scrubbed": True}, "nothing of purged memories is left in the files")


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
            help=f"{_SETTINGS_HELP}. null lifts a limit. For a whole namespace also {_REDACT}="
            'JSON such as {"personal": "mask"}. Without any they are shown.',
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option(metavar="FORM", help=f"Only for this form: {', '.join(FORMS)}.")
    ] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only for this kind.")] = None,
) -> None:
    """Set or show limits, and what is redacted.

    Limits hold for a namespace, a form or a kind; redaction for a whole namespace.
    """
    changes = dict(_setting(text) for text in settings or ())
    session.creates = bool(changes)
    if changes:
        _configure(session, changes, form=form, kind=kind)
    limits = session.space.limits(_form(form, kind), kind or "")
    shown = {name: value for name, value in asdict(limits).items() if name in SETTINGS}
    if (form, kind) == (None, None):
        shown[_REDACT] = session.space.redaction()
    session.show(shown, "\n".join(f"{name:<22} {_typed(value)}" for name, value in shown.items()))


def _form(form: str | None, kind: str | None) -> str:
    if form is not None and form not in FORMS:
        raise InvalidInput(f"--form is one of {', '.join(FORMS)}")
    return form or default_form(kind or "")


def _configure(
    session: Session, changes: dict[str, Any], *, form: str | None, kind: str | None
) -> None:
    try:
        session.space.configure(form=form, kind=kind, **changes)
    except InvalidInput as error:
        # What is accepted comes last; None is Python's word for what is typed here as null.
        what, separator, accepted = str(error).rpartition("; ")
        raise InvalidInput(what + separator + _NONE.sub("null", accepted)) from None


def _typed(value: Any) -> str:
    """Write a value as it would be typed."""
    return value if isinstance(value, str) else json.dumps(value)


def _setting(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or name not in (*SETTINGS, _REDACT):
        known = ", ".join(sorted([*SETTINGS, _REDACT]))
        raise InvalidInput(f"a setting is NAME=VALUE, with NAME one of {known}")
    try:
        return name, inputs.parse_json(value, name)
    except InvalidInput:
        return name, value
