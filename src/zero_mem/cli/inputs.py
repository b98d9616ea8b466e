"""Reading what is typed: bodies, filters, durations, times, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from zero_mem import handles
from zero_mem.cli.streams import read_stdin
from zero_mem.errors import InvalidInput
from zero_mem.recall.render import DEFAULT_BUDGET
from zero_mem.types import UNSET, Blob, Body, Json, Unset

NEVER: Final = "never"

Ids: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="Ids, handles or receipts.", show_default=False),
]
Id: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="The memory's id, its handle or its receipt.")
]
Content: TypeAlias = Annotated[
    str | None,
    typer.Argument(metavar="CONTENT", help="The body; - reads it from stdin.", show_default=False),
]
File: TypeAlias = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the body from a file.")
]
AsJsonBody: TypeAlias = Annotated[
    bool, typer.Option("--as-json", help="The body is JSON, not text.")
]
MediaType: TypeAlias = Annotated[
    str | None,
    typer.Option("--media-type", metavar="TYPE", help="The body is binary, such as image/png."),
]
Metadata: TypeAlias = Annotated[
    str | None,
    typer.Option("--metadata", metavar="JSON", help="A JSON object; null removes a key."),
]
Tags: TypeAlias = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="A label; may be repeated.")
]
ExpiresIn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--expires-in", metavar="TIME", help="Seconds, or 90s, 15m, 2h, 7d, 2w; or never."
    ),
]
ExpiresAt: TypeAlias = Annotated[
    str | None,
    typer.Option("--expires-at", metavar="MOMENT", help="A time with its zone; or never."),
]
IfVersion: TypeAlias = Annotated[
    int | None,
    typer.Option("--if-version", metavar="N", help="Write only if it is at this version."),
]
Where: TypeAlias = Annotated[
    str | None,
    typer.Option("--where", metavar="JSON", help='A filter, such as {"kind": "user_pref"}.'),
]
OfKind: TypeAlias = Annotated[
    str | None, typer.Option("--kind", metavar="KIND", help="Only of this kind.")
]
OfTag: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Only with this tag; may be repeated."),
]
OfSession: TypeAlias = Annotated[
    str | None, typer.Option("--session", metavar="NAME", help="Only of this session.")
]
OfTask: TypeAlias = Annotated[
    str | None, typer.Option("--task", metavar="NAME", help="Only of this task.")
]
OfState: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="STATE", help="active, archived, deleted or expired, not only live."
    ),
]
Budget: TypeAlias = Annotated[
    int | None,
    typer.Option("--budget", metavar="N", help=f"Most tokens; {DEFAULT_BUDGET} by default."),
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do it to all that match.")]

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw]?)")
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def reference(text: str) -> handles.Reference:
    """Read what names one memory: an id, a handle such as `[memo:7]`, or a whole receipt.

    Raises:
        InvalidInput: It names none, or several.
    """
    found = handles.named(text)
    if len(found) > 1:
        raise InvalidInput(f"the handle names {len(found)} memories; give one of them")
    return found[0]


def whole_id(text: str) -> str:
    """Read what names one memory as a whole.

    Raises:
        InvalidInput: It names none, several, or a part of one.
    """
    return _whole(reference(text))


def whole_ids(texts: list[str] | None) -> list[str]:
    """Read what names memories as a whole; a handle may name several.

    Raises:
        InvalidInput: One names none, or a part of one.
    """
    return [_whole(found) for text in texts or () for found in handles.named(text)]


def _whole(found: handles.Reference) -> str:
    if found.pointer:
        raise InvalidInput(f"the handle names a part; give [memo:{found.memory_id}] for the whole")
    return found.memory_id


def most(default: str) -> Any:
    """Make the option `--limit`, with the words on what holds without it."""
    return typer.Option(
        "--limit", metavar="N", help=f"Most records; {default} by default.", show_default=False
    )


def body(content: str | None, file: Path | None, *, as_json: bool, media_type: str | None) -> Body:
    """Read a body from an argument, stdin (`-`) or a file.

    Raises:
        InvalidInput: None or two of them are given, or it is not what the options say.
    """
    if (content is None) == (file is None):
        raise InvalidInput("give the body once: as an argument, - for stdin, or --file")
    if as_json and media_type:
        raise InvalidInput("--as-json and --media-type exclude each other")
    raw = content if content not in (None, "-") else _bytes(file)
    if media_type:
        given = raw.encode("utf-8", "surrogateescape") if isinstance(raw, str) else raw
        return Blob(data=given or b"", media_type=media_type)
    text = raw if isinstance(raw, str) else _text(raw or b"")
    return Json(parse_json(text, "the body")) if as_json else text


def optional_body(
    content: str | None, file: Path | None, *, as_json: bool, media_type: str | None
) -> Body | Unset:
    """Read a body as `body` does, UNSET where none is given."""
    if content is None and file is None:
        return UNSET
    return body(content, file, as_json=as_json, media_type=media_type)


def _bytes(file: Path | None) -> bytes:
    return read_stdin() if file is None else read_file(file)


def read_file(file: Path) -> bytes:
    """Read a file, or stdin for `-`.

    Raises:
        InvalidInput: It can't be read.
    """
    if str(file) == "-":
        return read_stdin()
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file}: can't be read: {error.strerror}") from error


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"the body is not UTF-8 text at byte {error.start}; --media-type keeps it as binary"
        ) from None


def parse_json(text: str, what: str) -> Any:
    """Read JSON.

    Raises:
        InvalidInput: Saying where it is wrong, and quoting nothing of it.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise InvalidInput(f"{what} is no JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise InvalidInput(f"{what} is nested too deeply") from None


def parse_object(text: str | None, what: str) -> dict[str, Any] | None:
    """Read a JSON object, or None where nothing is given."""
    if text is None:
        return None
    value = parse_json(text, what)
    if not isinstance(value, dict):
        raise InvalidInput(f"{what} is a JSON object, in braces")
    return value


def conditions(
    where: str | None,
    *,
    kind: str | None = None,
    tag: list[str] | None = None,
    session: str | None = None,
    task: str | None = None,
    state: str | None = None,
) -> Mapping[str, Any] | None:
    """Join a JSON filter and the shortcuts; all must hold. None where nothing is given."""
    named = {"kind": kind, "session": session, "task": task, "state": state}
    parts: list[Mapping[str, Any]] = [{name: value} for name, value in named.items() if value]
    parts += [{"tag": each} for each in tag or ()]
    given = parse_object(where, "--where")
    if given:
        parts.append(given)
    if len(parts) < 2:
        return parts[0] if parts else None
    return {"and": parts}


def lifetime(text: str | None) -> timedelta | Unset | None:
    """Read a duration; UNSET where none is given, None for `never`."""
    if text is None:
        return UNSET
    if text == NEVER:
        return None
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise InvalidInput("--expires-in is seconds, or a number with s, m, h, d or w; or never")
    try:
        return timedelta(seconds=float(found[1]) * _UNITS[found[2]])
    except OverflowError:
        raise InvalidInput("--expires-in is a duration below 100 years") from None


def expiry(text: str | None) -> datetime | Unset | None:
    """Read a time of expiry; UNSET where none is given, None for `never`."""
    if text is None:
        return UNSET
    return None if text == NEVER else moment(text, "--expires-at")


def moment(text: str, what: str) -> datetime:
    """Read a time with its zone, such as 2026-11-29T12:00:00Z."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise InvalidInput(f"{what} is a time with its zone, such as 2026-11-29T12:00:00Z")
    return found
