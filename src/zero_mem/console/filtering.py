"""The fields of the filter form as the library's `where`; this does no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, get_args

from zero_mem.api.text import parse
from zero_mem.errors import InvalidInput
from zero_mem.types import Form, Source, State

FORMS: Final = get_args(Form)
SOURCES: Final = get_args(Source)
STATES: Final = (*get_args(State), "expired")
EQUAL: Final = ("kind", "form", "key", "tag", "task", "session", "speaker", "source")
"""Fields of the form that a record's field of that name must equal."""

FIELDS: Final = (
    *EQUAL, "state", "text", "since", "until", "meta_path", "meta_value", "where",
)  # fmt: skip
"""All fields of the form."""


def where_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """Make the filter of a form's fields; those that are empty ask for nothing.

    Raises:
        InvalidInput: A time or the JSON filter is none.
    """
    given = {name: fields[name] for name in FIELDS if fields.get(name, "").strip()}
    parts: list[dict[str, Any]] = [{name: given[name]} for name in EQUAL if name in given]
    if "state" in given:
        state = given["state"]
        parts.append({"state": {"in": list(STATES)} if state == "any" else state})
    if "text" in given:
        parts.append({"text": {"contains": given["text"]}})
    for name, compare in (("since", "gte"), ("until", "lt")):
        if name in given:
            parts.append({"updated_at": {compare: moment_of(given[name], name)}})
    if "meta_path" in given:
        parts.append({"metadata": {given["meta_path"]: _literal(given.get("meta_value", ""))}})
    if "where" in given:
        parts.append(_object(given["where"]))
    return parts[0] if len(parts) == 1 else {"and": parts} if parts else {}


def moment_of(text: str, what: str) -> datetime:
    """Read a time as a form gives it; without a zone it is in UTC.

    Raises:
        InvalidInput: It is no ISO 8601 time.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(f"{what} is a time such as 2026-11-29T12:00") from None
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{what} is outside the years 1 to 9999") from None


def _literal(text: str) -> Any:
    """Read a value of metadata: JSON where it is a number, true, false or quoted, else text."""
    if not text.strip():
        return {"exists": True}
    try:
        value = parse(text)
    except InvalidInput:
        return text
    return value if isinstance(value, str | int | float | bool) else text


def _object(text: str) -> dict[str, Any]:
    found = parse(text, "the filter")
    if isinstance(found, dict):
        return found
    raise InvalidInput('the filter is a JSON object, such as {"access_count": {"gte": 3}}')
