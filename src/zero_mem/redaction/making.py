"""Redactors made from settings: what compiles the rules, loaded on first use."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, get_args

from zero_mem.errors import InvalidInput
from zero_mem.redaction.engine import Engine
from zero_mem.redaction.personal import PERSONAL
from zero_mem.redaction.redactor import FIELD, Action, Redactor
from zero_mem.redaction.rules import Rule
from zero_mem.redaction.secrets import SECRETS
from zero_mem.redaction.settings import Settings

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "secrets": tuple(dict.fromkeys([*(rule.kind for rule in SECRETS), FIELD])),
    "personal": tuple(dict.fromkeys(rule.kind for rule in PERSONAL)),
}
DEFAULTS: Final[Settings] = {"secrets": "mask", "personal": "keep"}

_ACTIONS: Final = get_args(Action)
_KIND = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LONGEST_PATTERN: Final = 500


def redactor(layers: Sequence[Settings], *, key: bytes, engines: Sequence[Engine]) -> Redactor:
    """Make the redactor of settings, of which later ones win."""
    actions: dict[str, Action] = {}
    for engine in engines:
        actions.update(dict.fromkeys(engine.kinds, "mask"))
    own: dict[str, Rule] = {}
    for layer in (DEFAULTS, *layers):
        # A kind wins over its group, whatever the order in which they are given.
        for name, value in sorted(layer.items(), key=lambda item: item[0] not in GROUPS):
            action, pattern = _parts(value)
            actions.update(dict.fromkeys(GROUPS.get(name, (name,)), action))
            if pattern is not None:
                own[name] = Rule(kind=name, pattern=re.compile(pattern))
    rules = (*own.values(), *SECRETS, *PERSONAL)
    used = [rule for rule in rules if actions.get(rule.kind, "keep") != "keep"]
    return Redactor(used, actions, key=key, engines=tuple(engines))


def check_settings(settings: object, known: Collection[str] = ()) -> None:
    """Refuse settings that name no kind, no action, or no pattern.

    Args:
        settings: What is checked.
        known: Kinds of engines and of rules of the user's own, beside the kinds built in.

    Raises:
        InvalidInput: Naming the setting and what is accepted.
    """
    if not isinstance(settings, Mapping):
        raise InvalidInput('redact is a mapping, such as {"personal": "mask"}')
    built_in = {*GROUPS, *(kind for kinds in GROUPS.values() for kind in kinds)}
    for name, value in settings.items():
        if not isinstance(name, str) or not _KIND.fullmatch(name):
            raise InvalidInput(f"a kind to redact is named in lower case letters, not {name!r}")
        if isinstance(value, Mapping):
            _check_rule(name, value, name in built_in)
        elif not isinstance(value, str) or value not in _ACTIONS:
            raise InvalidInput(f"redact[{name!r}] is one of {', '.join(_ACTIONS)}, not {value!r}")
        elif name not in built_in and name not in known:
            kinds = ", ".join(sorted({*built_in, *known}))
            raise InvalidInput(f"redact has no kind {name!r}; it has {kinds}")


def _check_rule(name: str, rule: Mapping[str, Any], is_taken: bool) -> None:
    if is_taken:
        raise InvalidInput(f"{name} has a rule already; give a rule of your own another name")
    if not set(rule) <= {"pattern", "action"} or not isinstance(rule.get("pattern"), str):
        raise InvalidInput(f"redact[{name!r}] has a pattern and, if not mask, an action")
    if rule.get("action", "mask") not in _ACTIONS:
        raise InvalidInput(f"redact[{name!r}]: action is one of {', '.join(_ACTIONS)}")
    if len(rule["pattern"]) > _LONGEST_PATTERN:
        raise InvalidInput(f"redact[{name!r}]: a pattern has at most {_LONGEST_PATTERN} characters")
    try:
        compiled = re.compile(rule["pattern"])
    except re.error as error:
        raise InvalidInput(f"redact[{name!r}]: {error}") from None
    if compiled.search(""):
        raise InvalidInput(f"redact[{name!r}]: the pattern matches an empty text")


def _parts(value: str | Mapping[str, str]) -> tuple[Action, str | None]:
    if isinstance(value, Mapping):
        return value.get("action", "mask"), value["pattern"]  # type: ignore[return-value]
    return value, None  # type: ignore[return-value]
