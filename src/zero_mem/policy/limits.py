"""The limits of a namespace, its forms and its kinds, and the defaults of each form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, get_args

from zero_mem.errors import InvalidInput
from zero_mem.types import Form

Visibility: TypeAlias = Literal["pinned", "summary", "handle", "hidden"]
Overflow: TypeAlias = Literal["archive", "refuse"]

FORMS: Final[tuple[Form, ...]] = get_args(Form)
_FORM_OF_KIND: Final[Mapping[str, Form]] = {
    "task_state": "working",
    "message": "episodic",
    "tool_result": "episodic",
}


def default_form(kind: str) -> Form:
    """Give the form of a kind; unknown kinds are semantic."""
    return _FORM_OF_KIND.get(kind, "semantic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds the records of one kind.

    Attributes:
        max_memory_items: Cap on active, unexpired records; None is no cap.
        max_bytes: Cap on the bytes of all active bodies of the namespace; None is no cap.
        retention_days: Archive that many days after the last update or access; None never.
        compaction_threshold: Characters of one body as shown in a prompt.
        dedupe_key: None, "content", or "metadata.NAME": makes a key where none is given.
        max_recall_items: Most items of one recall.
        overflow: At the cap, archive the least used record or refuse the new one.
        visibility: What a prompt shows of a record without being asked.
        cap_form, cap_kind: What the cap counts (None: every form, every kind).
    """

    max_memory_items: int | None = None
    max_bytes: int | None = None
    retention_days: float | None = None
    compaction_threshold: int = 200
    dedupe_key: str | None = None
    max_recall_items: int = 10
    overflow: Overflow = "archive"
    visibility: Visibility = "handle"
    cap_form: str | None = None
    cap_kind: str | None = None


_DEFAULTS: Final[Mapping[str, Limits]] = {
    "working": Limits(max_memory_items=1000, retention_days=30, cap_form="working"),
    "episodic": Limits(),
    "semantic": Limits(),
    "procedural": Limits(visibility="pinned"),
}
SETTINGS: Final = frozenset(f.name for f in fields(Limits)) - {"cap_form", "cap_kind"}


def limits_for(settings: str, form: str, kind: str) -> Limits:
    """Resolve the limits of a kind: form defaults, then namespace, form and kind settings.

    Args:
        settings: The namespace's settings as `configured` wrote them; "" for none.
        form: One of the four forms.
        kind: Any kind.
    """
    return _resolve(settings, form, kind)


@lru_cache(maxsize=4096)
def _resolve(settings: str, form: str, kind: str) -> Limits:
    limits = _DEFAULTS[form]
    for rule in _rules(settings):
        if rule["form"] in (None, form) and rule["kind"] in (None, kind):
            limits = replace(limits, **rule["set"])
            if "max_memory_items" in rule["set"]:
                limits = replace(limits, cap_form=rule["form"], cap_kind=rule["kind"])
    return limits


def _rules(settings: str) -> list[dict[str, Any]]:
    return json.loads(settings) if settings else []


def configured(
    settings: str, changes: Mapping[str, Any], *, form: str | None, kind: str | None
) -> str:
    """Give the settings with a rule for (form, kind) added to or changed.

    Raises:
        InvalidInput: A setting is unknown or its value is out of range.
    """
    for name, value in changes.items():
        _check(name, value)
    if "max_bytes" in changes and (form, kind) != (None, None):
        raise InvalidInput("max_bytes is set for a whole namespace, not for a form or kind")
    if form is not None and form not in FORMS:
        raise InvalidInput(f"form is one of {', '.join(FORMS)}, not {form!r}")
    rules = _rules(settings)
    found = next((r for r in rules if (r["form"], r["kind"]) == (form, kind)), None)
    if found is None:
        found = {"form": form, "kind": kind, "set": {}}
        rules.append(found)
    found["set"].update(changes)
    # The more specific rule comes later and so wins.
    rules.sort(key=lambda rule: (rule["kind"] is not None, rule["form"] is not None))
    return json.dumps(rules, sort_keys=True)


def _check(name: str, value: object) -> None:
    if name not in SETTINGS:
        raise InvalidInput(f"unknown setting {name!r}; there are {', '.join(sorted(SETTINGS))}")
    if not _CHECKS[name](value):
        raise InvalidInput(f"{name} can't be {value!r}; {_EXPECTED[name]}")


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _dedupe(value: object) -> bool:
    if value is None or value == "content":
        return True
    return isinstance(value, str) and value.startswith("metadata.") and len(value) > 9


_CHECKS: Final[Mapping[str, Callable[[object], bool]]] = {
    "max_memory_items": lambda value: value is None or _whole(value, 1),
    "max_bytes": lambda value: value is None or _whole(value, 1),
    "retention_days": lambda value: (
        value is None
        or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e6)
    ),
    "compaction_threshold": lambda value: _whole(value, 1),
    "dedupe_key": _dedupe,
    "max_recall_items": lambda value: _whole(value, 1),
    "overflow": lambda value: value in get_args(Overflow),
    "visibility": lambda value: value in get_args(Visibility),
}
_EXPECTED: Final = {
    "max_memory_items": "a whole number from 1, or None for no cap",
    "max_bytes": "a whole number of bytes from 1, or None for no cap",
    "retention_days": "a number of days above 0, or None to keep for ever",
    "compaction_threshold": "a whole number of characters from 1",
    "dedupe_key": 'None, "content" or "metadata.NAME"',
    "max_recall_items": "a whole number from 1",
    "overflow": '"archive" or "refuse"',
    "visibility": '"pinned", "summary", "handle" or "hidden"',
}
