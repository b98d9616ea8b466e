"""Checking and normalising what callers give, before any transaction opens."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, get_args

from zero_mem.errors import InvalidInput
from zero_mem.handles import check_memory_id
from zero_mem.policy.limits import FORMS, default_form
from zero_mem.storage.times import to_micros
from zero_mem.types import UNSET, Blob, Body, Form, Json, Path, Source, Unset

DEFAULT_KIND: Final = "note"
_SOURCES: Final = get_args(Source)
_LONGEST_NAME: Final = 512
_DEEPEST: Final = 200  # far below where Python's own recursion limit would cut in
_LONGEST_INTEGER: Final = 13_288  # bits; Python refuses to write out 4,300 digits and more
_PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def check_name(value: object, what: str, *, longest: int = _LONGEST_NAME) -> str:
    """Accept a one-line name without control characters, in NFC."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is a string, not {type(value).__name__}")
    if _UNPRINTABLE.search(value):
        raise InvalidInput(f"{what} has a control character, a line break or a lone surrogate")
    if len(value) > longest:
        raise InvalidInput(f"{what} is {len(value)} characters long; at most {longest}")
    if not value.strip():
        raise InvalidInput(f"{what} is empty")
    return unicodedata.normalize("NFC", value)


def name_of(text: str) -> str:
    """Make a name of any text: one line, of bounded length; "" where nothing is left."""
    printable = _UNPRINTABLE.sub(" ", text)
    return unicodedata.normalize("NFC", " ".join(printable.split()))[:_LONGEST_NAME].strip()


def optional_name(value: object, what: str) -> str | None:
    """Accept a name, or None; an empty string counts as not given."""
    return None if value is None or value == "" else check_name(value, what)


def check_text(value: object, what: str) -> str:
    """Accept any text that every store can keep: one without lone surrogates."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is a string, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} has a lone surrogate; encode it first") from None
    return value


def check_path(segments: Sequence[object]) -> Path:
    """Accept a namespace: 1 to 16 segments, each a name."""
    if not segments:
        raise InvalidInput("name a namespace, such as memory.namespace('acme', 'alice')")
    if len(segments) > 16:
        raise InvalidInput(f"a namespace has at most 16 segments, not {len(segments)}")
    return tuple(check_name(segment, "a namespace segment") for segment in segments)


def check_body(content: object) -> Body:
    """Accept text, `Json(value)` or `Blob`; JSON is checked and copied."""
    if isinstance(content, str):
        if not content.strip():
            raise InvalidInput("content is empty or only white space")
        return content
    if isinstance(content, Json):
        return Json(check_json(content.value, "content"))
    if isinstance(content, Blob):
        check_name(content.media_type, "media_type")
        if not content.data:
            raise InvalidInput("content is an empty blob")
        return content
    hint = "; wrap data as Json(value)" if isinstance(content, Mapping | list | int) else ""
    raise InvalidInput(f"content is text, Json or Blob, not {type(content).__name__}{hint}")


def check_json(value: object, where: str) -> Any:
    """Give a copy of a JSON value; refuse NaN, other types and keys that are not strings."""
    return _json(value, where, 0)


def _json(value: object, where: str, depth: int) -> Any:
    if depth > _DEEPEST:
        raise InvalidInput(f"{where[:80]}… is nested deeper than {_DEEPEST} levels")
    if isinstance(value, str):
        return _paired(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value, where)
    if isinstance(value, list | tuple):
        return [_json(item, f"{where}[{place}]", depth + 1) for place, item in enumerate(value)]
    if isinstance(value, Mapping):
        items = value.items()
        return {_key(key, where): _json(item, f"{where}.{key}", depth + 1) for key, item in items}
    raise InvalidInput(f"{where} is a {type(value).__name__}, which JSON does not have")


def _paired(text: str) -> str:
    """Join surrogates that stand as a pair: JSON can't tell them from the character they name."""
    if text.isascii() or not _PAIR.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _number(value: float, where: str) -> float:
    if isinstance(value, int):
        if value.bit_length() > _LONGEST_INTEGER:
            raise InvalidInput(f"{where} is an integer of more than 4,000 digits")
    elif not math.isfinite(value):
        raise InvalidInput(f"{where} is {value}, which JSON does not have")
    return value


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise InvalidInput(f"{where} has the key {key!r}; JSON keys are strings")
    return _paired(key)


def check_metadata(metadata: object) -> dict[str, Any]:
    """Accept a JSON object."""
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata is a mapping, not {type(metadata).__name__}")
    copied: dict[str, Any] = check_json(metadata, "metadata")
    return copied


def check_tags(tags: object, what: str = "tags") -> tuple[str, ...]:
    """Accept a sequence of names; repeats go, order stays."""
    if tags == ():
        return ()
    if isinstance(tags, str) or not isinstance(tags, Sequence | set | frozenset):
        raise InvalidInput(f"{what} is a sequence of strings")
    ordered = sorted(tags) if isinstance(tags, set | frozenset) else tags
    return tuple(dict.fromkeys(check_name(tag, f"one of {what}") for tag in ordered))


def check_moment(moment: object, what: str) -> datetime:
    """Accept an aware datetime, in UTC."""
    if not isinstance(moment, datetime):
        raise InvalidInput(f"{what} is an aware datetime, not {type(moment).__name__}")
    to_micros(moment)
    return moment.astimezone(UTC)


def check_version(version: object) -> int | None:
    """Accept a version number, or None; 0 means that no record may be there yet."""
    if version is None or (isinstance(version, int) and not isinstance(version, bool)):
        if version is not None and version < 0:
            raise InvalidInput(f"if_version is a version from 0, not {version}")
        return version
    raise InvalidInput(f"if_version is a whole number, not {type(version).__name__}")


@dataclass(frozen=True, slots=True)
class Expiry:
    """An expiry as the caller gave it: at a time, after a duration, never, or not given."""

    given: bool = False
    at: datetime | None = None
    lifetime: timedelta | None = None

    def moment(self, now: datetime) -> datetime | None:
        """Give the time of expiry for a write at `now`."""
        return self.at if self.lifetime is None else now + self.lifetime

    @property
    def micros(self) -> int | None:
        """The duration in microseconds, None where none was given."""
        return None if self.lifetime is None else self.lifetime // timedelta(microseconds=1)


NOT_GIVEN: Final = Expiry()


def check_expiry(expires_in: object, expires_at: object) -> Expiry:
    """Accept seconds or a timedelta, or an aware datetime; None clears, UNSET leaves."""
    if isinstance(expires_in, Unset):
        if isinstance(expires_at, Unset):
            return NOT_GIVEN
        at = None if expires_at is None else check_moment(expires_at, "expires_at")
        return Expiry(given=True, at=at)
    if not isinstance(expires_at, Unset) and expires_at is not None:
        raise InvalidInput("give expires_in or expires_at, not both")
    return Expiry(given=True, lifetime=check_lifetime(expires_in))


def check_lifetime(expires_in: object) -> timedelta | None:
    """Accept seconds or a timedelta, above 0; None is no end."""
    if expires_in is None:
        return None
    if isinstance(expires_in, timedelta):
        lifetime = expires_in
    elif isinstance(expires_in, int | float) and not isinstance(expires_in, bool):
        try:
            lifetime = timedelta(seconds=expires_in)
        except (OverflowError, ValueError):
            raise InvalidInput(f"expires_in can't be {expires_in} seconds") from None
    else:
        raise InvalidInput("expires_in is a number of seconds or a timedelta")
    if not timedelta(0) < lifetime < timedelta(days=36500):
        raise InvalidInput("expires_in is a duration above 0 and below 100 years")
    return lifetime


class SaveRequest(NamedTuple):
    """A checked save; None means "not given"."""

    content: Body
    kind: str
    kind_given: bool
    form: Form
    form_given: bool
    key: str | None
    memory_id: str | None
    metadata: dict[str, Any] | None
    tags: tuple[str, ...] | None
    task: str | None
    session: str | None
    speaker: str | None
    source: Source
    expiry: Expiry
    invalidated_by: tuple[str, ...] | None
    created_at: datetime | None
    if_version: int | None
    idempotency_key: str | None
    hold: str | None
    reserved: str | None = None
    """The number that was promised to the record, should it be a new one."""


_PLAIN: Final = SaveRequest(
    content="",
    kind=DEFAULT_KIND,
    kind_given=False,
    form=default_form(DEFAULT_KIND),
    form_given=False,
    key=None,
    memory_id=None,
    metadata=None,
    tags=None,
    task=None,
    session=None,
    speaker=None,
    source="user",
    expiry=NOT_GIVEN,
    invalidated_by=None,
    created_at=None,
    if_version=None,
    idempotency_key=None,
    hold=None,
)


def save_request(content: object, **given: object) -> SaveRequest:
    """Check the arguments of a save; None and empty strings and sequences are not given.

    Raises:
        InvalidInput: Naming the argument, what is wrong with it and what is accepted.
    """
    body = check_body(content)
    if not given:
        return SaveRequest._make((body, *_PLAIN[1:]))
    fields: dict[str, Any] = {"content": body}
    for name, value in given.items():
        if name not in _SAVE_CHECKS:
            raise InvalidInput(f"save has no argument {name!r}")
        if value is not None and value != "" and value != ():
            check = _SAVE_CHECKS[name]
            fields.update(check(value))
    if "expires_in" in given or "expires_at" in given:
        # Here None is given: it clears the expiry.
        ends = given.get("expires_in", UNSET), given.get("expires_at", UNSET)
        fields["expiry"] = check_expiry(*ends)
    if "kind" in fields and "form" not in fields:
        fields["form"] = default_form(fields["kind"])
    return _PLAIN._replace(**fields)


def _named(field: str) -> Callable[[object], Mapping[str, Any]]:
    return lambda value: {field: check_name(value, field)}


_SAVE_CHECKS: Final[Mapping[str, Callable[[object], Mapping[str, Any]]]] = {
    "kind": lambda value: {"kind": check_name(value, "kind"), "kind_given": True},
    "form": lambda value: {"form": _form(value), "form_given": True},
    "key": _named("key"),
    "memory_id": lambda value: {"memory_id": check_memory_id(value)},  # type: ignore[arg-type]
    "metadata": lambda value: {"metadata": check_metadata(value)},
    "tags": lambda value: {"tags": check_tags(value) or None},
    "task": _named("task"),
    "session": _named("session"),
    "speaker": _named("speaker"),
    "source": lambda value: {"source": check_source(value)},
    "expires_in": lambda _: {},
    "expires_at": lambda _: {},
    "invalidated_by": lambda value: {"invalidated_by": check_tags(value, "invalidated_by") or None},
    "created_at": lambda value: {"created_at": check_moment(value, "created_at")},
    "if_version": lambda value: {"if_version": check_version(value)},
    "idempotency_key": _named("idempotency_key"),
    "hold": _named("hold"),
}


def _form(form: object) -> Form:
    for known in FORMS:
        if form == known:
            return known
    raise InvalidInput(f"form is one of {', '.join(FORMS)}, not {form!r}")


def check_source(source: object) -> Source:
    """Accept who a body comes from."""
    for known in _SOURCES:
        if source == known:
            return known  # type: ignore[no-any-return]
    raise InvalidInput(f"source is one of {', '.join(_SOURCES)}, not {source!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """A checked update; UNSET means "leave as it is"."""

    memory_id: str
    content: Body | Unset = UNSET
    metadata: dict[str, Any] | Unset | None = UNSET
    tags: tuple[str, ...] | Unset = UNSET
    expiry: Expiry = NOT_GIVEN
    source: Source | None = None
    if_version: int | None = None


def update_request(
    memory_id: object,
    *,
    content: object = UNSET,
    metadata: object = UNSET,
    tags: object = UNSET,
    expires_in: object = UNSET,
    expires_at: object = UNSET,
    source: object = None,
    if_version: object = None,
) -> UpdateRequest:
    """Check the arguments of an update; metadata=None clears it, tags=() or None too."""
    return UpdateRequest(
        memory_id=check_memory_id(memory_id),  # type: ignore[arg-type]
        content=UNSET if isinstance(content, Unset) else check_body(content),
        metadata=metadata
        if isinstance(metadata, Unset) or metadata is None
        else check_metadata(metadata),
        tags=UNSET if isinstance(tags, Unset) else check_tags(tags or ()),
        expiry=check_expiry(expires_in, expires_at),
        source=None if source is None else check_source(source),
        if_version=check_version(if_version),
    )


def canonical(value: object) -> str:
    """Write a value so that equal ones are equal text (and 1, 1.0 and true are not)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
