r"""What is redacted and how: a store's default, and what a namespace sets beside it.

Settings are a mapping. A name is a group ("secrets", "personal") or a kind, its value an
action; the kind of a rule of your own has a mapping with a pattern:

    {"personal": "mask", "email": "hash", "order": {"pattern": r"ORD-\\d{6}", "action": "drop"}}
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from zero_mem.errors import InvalidInput
from zero_mem.redaction.engine import Engine

if TYPE_CHECKING:
    from zero_mem.redaction.redactor import Redactor

Settings: TypeAlias = Mapping[str, "str | Mapping[str, str]"]
Changes: TypeAlias = Mapping[str, "str | Mapping[str, str] | None"]

_Where: TypeAlias = "Mapping[str, Any] | None"

NAMES: Final = ("key", "task", "session", "speaker")
"""Fields that tell records apart: a digest stands there where others have a mask."""

_LONGEST_KEY: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What a store redacts in every namespace that sets nothing else.

    Attributes:
        settings: See the module; by default secrets are masked and personal data kept.
        key: Keys the digests of what is hashed, at most 64 bytes. Without one, whoever has
            the store can try all phone numbers.
        engines: Find further kinds, which are masked unless the settings say otherwise.
    """

    settings: Settings = field(default_factory=dict)
    key: bytes = b""
    engines: tuple[Engine, ...] = ()

    def __post_init__(self) -> None:
        kinds = {kind for engine in self.engines for kind in engine.kinds}
        if kinds:
            check(dict.fromkeys(kinds, "mask"), kinds)
        if self.settings:
            check(self.settings, kinds)
        if len(self.key) > _LONGEST_KEY:
            raise InvalidInput(f"a redaction key has at most {_LONGEST_KEY} bytes")


class Redactors:
    """Makes the redactor of a namespace from the store's default and its own settings."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._made: dict[str, Redactor] = {}

    def of(self, namespace: str) -> Redactor:
        """Give the redactor for the `redact` settings of a namespace, as `written` gives them."""
        made = self._made.get(namespace)
        if made is None:
            made = self._made[namespace] = self._make(namespace)
        return made

    def asked(self, settings: str, query: str, where: _Where) -> tuple[str, _Where]:
        """Give a query and a filter as what they name is stored in a namespace.

        Args:
            settings: All settings of the namespace.
            query: What is searched for; "" for nothing.
            where: A filter that was checked.
        """
        redactor = self.of(of_namespace(settings))
        return redactor.asked(query), redactor.asked_where(where) if where else where

    def in_force(self, namespace: str) -> dict[str, Any]:
        """Give the settings that hold, the namespace's before the store's."""
        from zero_mem.redaction.making import DEFAULTS

        engines = {kind: "mask" for engine in self._redaction.engines for kind in engine.kinds}
        own = json.loads(namespace) if namespace else {}
        return {**DEFAULTS, **engines, **self._redaction.settings, **own}

    def _make(self, namespace: str) -> Redactor:
        from zero_mem.redaction.making import redactor

        own = json.loads(namespace) if namespace else {}
        redaction = self._redaction
        layers = (redaction.settings, own)
        return redactor(layers, key=redaction.key, engines=redaction.engines)


@lru_cache(maxsize=4096)
def of_namespace(settings: str) -> str:
    """Take the `redact` settings out of a namespace's; "" where it has none."""
    for rule in json.loads(settings) if settings else ():
        if rule.get("redact"):
            return json.dumps(rule["redact"], sort_keys=True)
    return ""


def configured(settings: str, changes: Changes | None, known: Collection[str]) -> str:
    """Give a namespace's settings with `redact` settings added, changed or, with None, removed.

    Args:
        settings: The namespace's, as they are.
        changes: By kind or group; None removes them all.
        known: Kinds that the store has beside those built in.

    Raises:
        InvalidInput: A setting names no kind, no action, or no pattern.
    """
    rules = json.loads(settings) if settings else []
    general = next((r for r in rules if r["form"] is None and r["kind"] is None), None)
    if general is None:
        general = {"form": None, "kind": None, "set": {}}
        rules.insert(0, general)
    before = general.pop("redact", {})
    if changes is not None:
        merged = {**before, **_mapping(changes)}
        general["redact"] = {name: value for name, value in merged.items() if value is not None}
        check(general["redact"], {*known, *before})
    return json.dumps(rules, sort_keys=True)


def _mapping(changes: object) -> Mapping[str, Any]:
    if not isinstance(changes, Mapping):
        raise InvalidInput('redact is a mapping, such as {"personal": "mask"}')
    return changes


def check(settings: object, known: Collection[str] = ()) -> None:
    """Refuse settings that name no kind, no action, or no pattern.

    Raises:
        InvalidInput: Naming the setting and what is accepted.
    """
    # Compiling the rules would take most of an import's time.
    from zero_mem.redaction.making import check_settings

    check_settings(settings, known)
