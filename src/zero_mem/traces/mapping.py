"""The mapping from the fields of JSON lines to those of records.

A mapping is a list of `TARGET=SOURCE` with commas between. `TARGET` is a field of a record, or
`metadata.NAME`, or `id`, which names the line in its session. `SOURCE` is what is read:

- `text`, `author.name`, `parts.0.text`: a path of keys and list places; `.` is all of the line;
- `'chat'` or `"chat"`: the text itself;
- `nick|author.name|'nobody'`: the first of these that is there;
- `ts:ms`, `ts:s`, `ts:iso`, `day:%d.%m.%Y`: for times, how they are written.

A backslash takes the meaning from a comma, a dot, a bar, a colon or a quote that follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, get_args

from zero_mem.controller.wire.moments import Unit, in_utc, read_moment
from zero_mem.errors import InvalidInput
from zero_mem.types import Body, Json

TIMES: Final = frozenset({"created_at", "expires_at"})
LISTS: Final = frozenset({"tags", "invalidated_by"})
NAMES: Final = frozenset({"kind", "form", "key", "session", "speaker", "task", "source"})
TARGETS: Final = ("content", *sorted(NAMES), *sorted(LISTS), *sorted(TIMES), "metadata", "id")

_METADATA: Final = "metadata."
_MISSING: Final = object()
_ESCAPED: Final = re.compile(r"\\(.)")
_QUOTES: Final = "'\""
_BEFORE_QUOTE: Final = ("", "=", "|")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value comes from: one of some paths, or a text of its own; and a time's form."""

    alternatives: tuple[tuple[str, ...] | str, ...]
    written: str = ""

    def read(self, line: Any) -> Any:
        """Give the first value that is there, None where none is."""
        for alternative in self.alternatives:
            found = alternative if isinstance(alternative, str) else _follow(line, alternative)
            if found is not _MISSING and found is not None:
                return found
        return None


@dataclass(frozen=True, slots=True)
class LineMapping:
    """Which field of a record comes from where in a line."""

    sources: tuple[tuple[str, Source], ...]

    @property
    def targets(self) -> frozenset[str]:
        """The fields that it fills."""
        return frozenset(target for target, _ in self.sources)

    def fields(self, line: Any) -> dict[str, Any]:
        """Give the fields of the record that a line stands for; what a line lacks is left out.

        Raises:
            InvalidInput: A value does not fit its field; the message names both.
        """
        found: dict[str, Any] = {}
        for target, source in self.sources:
            value = source.read(line)
            if value is None:
                continue
            if target.startswith(_METADATA):
                found.setdefault("metadata", {})[target.removeprefix(_METADATA)] = value
            elif target == "metadata":
                found["metadata"] = {**_object(target, value), **found.get("metadata", {})}
            else:
                found[target] = _fitted(target, value, source)
        return found


SAME_NAMES: Final = LineMapping(tuple((target, Source(((target,),))) for target in TARGETS))
"""The mapping where none is given: each field from the one of its own name."""


def parse_mapping(text: str | Iterable[str]) -> LineMapping:
    """Read a mapping.

    Args:
        text: `TARGET=SOURCE,…`, or several of them.

    Raises:
        InvalidInput: It can't be read; the message names the part.
    """
    texts = [text] if isinstance(text, str) else list(text)
    pairs = [_pair(part) for each in texts for part in _split(each, ",") if part.strip()]
    targets = [target for target, _ in pairs]
    twice = next((target for target in targets if targets.count(target) > 1), None)
    if twice is not None:
        raise InvalidInput(f"the mapping names {twice} twice")
    if "content" not in targets:
        raise InvalidInput("the mapping says nothing of content: add content=FIELD")
    return LineMapping(tuple(pairs))


def _pair(part: str) -> tuple[str, Source]:
    target, equals, source = (each.strip() for each in part.partition("="))
    if not equals or not source:
        raise InvalidInput(f"the mapping has {part.strip()!r}; write TARGET=SOURCE")
    named = target.startswith(_METADATA) and len(target) > len(_METADATA)
    if target not in TARGETS and not named:
        raise InvalidInput(
            f"a record has no field {target!r}; there are {', '.join(TARGETS)} and metadata.NAME"
        )
    return target, _source(target, source)


def _source(target: str, text: str) -> Source:
    written = ""
    if target in TIMES:
        text, *rest = _split(text, ":")
        written = ":".join(rest).strip()
        _check_written(target, written)
    alternatives = tuple(_alternative(each.strip()) for each in _split(text, "|"))
    return Source(alternatives, written)


def _check_written(target: str, written: str) -> None:
    if written not in ("", "iso", *get_args(Unit)) and "%" not in written:
        known = ", ".join(("iso", *get_args(Unit)))
        raise InvalidInput(
            f"{target} is written as {known}, or by a pattern such as %d.%m.%Y, not {written!r}"
        )


def _alternative(text: str) -> tuple[str, ...] | str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text == ".":
        return ()
    steps = tuple(_ESCAPED.sub(r"\1", step) for step in _split(text, "."))
    if not all(steps):
        raise InvalidInput(f"the mapping has {text!r} where a field is to be named")
    return steps


def _split(text: str, mark: str) -> list[str]:
    """Cut a text at a mark that is neither quoted nor escaped."""
    parts, quote, escaped = [""], "", False
    for char in text:
        if not (escaped or quote) and char == mark:
            parts.append("")
            continue
        if escaped or char == "\\":
            escaped = not escaped
        elif quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES and parts[-1].rstrip()[-1:] in _BEFORE_QUOTE:
            quote = char
        parts[-1] += char
    if quote:
        raise InvalidInput(f"the mapping has a quote that is not closed: {text.strip()}")
    return parts


def _follow(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step, _MISSING)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value


def _fitted(target: str, value: Any, source: Source) -> Any:
    if target == "content":
        return _body(value)
    if target in TIMES:
        return _moment(target, value, source.written)
    if target in LISTS:
        return _list(target, value)
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise InvalidInput(f"{target} is text or a number, not {_kind(value)}")


def _body(value: Any) -> Body:
    return value if isinstance(value, str) else Json(value)


def _object(target: str, value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise InvalidInput(f"{target} is an object, not {_kind(value)}")


def _list(target: str, value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if all(isinstance(each, str) for each in values):
        return values
    raise InvalidInput(f"{target} is text or a list of texts, not {_kind(value)}")


def _moment(target: str, value: Any, written: str) -> datetime:
    found = None
    if "%" in written:
        found = _by_pattern(str(value), written)
    elif written == "iso":
        found = read_moment(value) if isinstance(value, str) else None
    else:
        unit = next((unit for unit in get_args(Unit) if unit == written), None)
        found = read_moment(value, unit)
    if found is None:
        expected = f"as {written} has it" if written else "in ISO 8601 or a number since 1970"
        raise InvalidInput(f"{target} is no time {expected}")
    return found


def _by_pattern(text: str, pattern: str) -> datetime | None:
    try:
        return in_utc(datetime.strptime(text, pattern))  # noqa: DTZ007 - `in_utc` gives the zone
    except ValueError:
        return None


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", bool: "true or false", str: "text"}.get(
        type(value), "a number"
    )
