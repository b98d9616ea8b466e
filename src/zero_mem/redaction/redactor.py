"""Takes what was found out of texts and JSON, and leaves a placeholder that says what it was."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

from zero_mem.redaction.checks import is_secret_value
from zero_mem.redaction.engine import Engine, Found
from zero_mem.redaction.rules import NUMBER, Rule
from zero_mem.redaction.secrets import SECRET_NAME
from zero_mem.redaction.settings import NAMES
from zero_mem.types import Blob, Body, Json

Action: TypeAlias = Literal["mask", "hash", "drop", "keep"]

_LOOKED_UP: Final = frozenset({*NAMES, "tags", "tag", "text", "metadata"})

FIELD: Final = "secret_field"
"""The kind of a JSON value that its field's name gives away."""

_WIDE: Final = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
_DIGITS: Final = re.compile(r"\d\d\d")
_TEXT_TYPES: Final = re.compile(
    r"(?i)text/.*|application/(?:.*\+)?(?:json|xml|yaml|x-ndjson|x-pem-file)"
)


class Redactor:
    """Applies rules, and an action for each kind that they find.

    Args:
        rules: What is looked for; the earlier of two that overlap wins.
        actions: By kind: "mask" leaves `[redacted:KIND]`, "hash" `[KIND:DIGEST]`, the same
            for equal values of a key, "drop" nothing (a JSON field goes as a whole).
        key: Keys the digests; at most 64 bytes.
        engines: Find more, after the rules.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        actions: Mapping[str, Action],
        *,
        key: bytes = b"",
        engines: tuple[Engine, ...] = (),
    ) -> None:
        self._actions = actions
        self._key = key
        self._engines = engines
        self._rules = tuple(rules)
        self._numbers = [place for place, rule in enumerate(rules) if NUMBER in rule.hints]
        self._signs = _signs(rules, in_runs=False)
        self._in_runs = _signs(rules, in_runs=True)
        self._run = min((rule.run for rule in rules if rule.run), default=0)

    def text(self, text: str) -> str:
        """Give a text without what was found; the same object where nothing was."""
        found = self._found(text)
        return self._replaced(text, found, self._actions) if found else text

    def name(self, name: str) -> str:
        """Give a name, which keeps telling things apart: what is masked elsewhere is hashed."""
        found = self._found(name)
        if not found:
            return name
        return self._replaced(name, found, dict.fromkeys(self._actions, "hash"))

    def asked(self, text: str) -> str:
        """Give a query as it can be looked up: what is hashed by its digest, the rest without."""
        found = self._found(text)
        if not found:
            return text
        how: dict[str, Action] = {
            kind: "hash" if action == "hash" else "drop" for kind, action in self._actions.items()
        }
        left = self._replaced(text, found, how)
        return left if left.strip() else self._nothing(text)

    def asked_where(self, where: Any, field: str = "") -> Any:
        """Give a filter as it can be looked up."""
        if isinstance(where, str):
            return self.name(where) if field in NAMES else self.asked(where)
        if isinstance(where, Mapping):
            inner = {key: key if key in _LOOKED_UP else field for key in where}
            return {key: self.asked_where(each, inner[key]) for key, each in where.items()}
        if isinstance(where, list | tuple):
            return [self.asked_where(each, field) for each in where]
        return where

    def kinds(self, text: str) -> list[str]:
        """Name what stands in a text, each place once, in order."""
        return [found.kind for found in self._found(text)]

    def body(self, body: Body) -> Body:
        """Give a body without what was found; the same object where nothing was."""
        if isinstance(body, str):
            text = self.text(body)
            return text if text is body or text.strip() else self._nothing(body)
        if isinstance(body, Json):
            value = self.value(body.value)
            return body if value is body.value else Json(value)
        if not _TEXT_TYPES.fullmatch(body.media_type):
            return body
        return self._blob(body)

    def value(self, value: Any) -> Any:
        """Give a JSON value without what was found; the same object where nothing was."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._object(value)
        if isinstance(value, list):
            items = [self.value(item) for item in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else items
        return value

    def _object(self, value: Mapping[str, Any]) -> Any:
        fields: dict[str, Any] = {}
        changed = False
        for name, old in value.items():
            new = self._field(name, old)
            if new is _DROPPED:
                changed = True
                continue
            named = self.name(name)
            changed = changed or new is not old or named is not name
            fields[named] = new
        return fields if changed else value

    def _field(self, name: str, value: Any) -> Any:
        action = self._actions.get(FIELD, "keep")
        if action != "keep" and isinstance(value, str) and SECRET_NAME.fullmatch(_snake(name)):
            inside = self.text(value)
            if inside is value and is_secret_value(value):
                return _DROPPED if action == "drop" else self._placeholder(FIELD, value, action)
        redacted = self.value(value)
        return _DROPPED if redacted == "" and value != "" else redacted

    def _blob(self, blob: Blob) -> Blob:
        try:
            text = blob.data.decode()
        except UnicodeDecodeError:
            return blob
        redacted = self.text(text)
        if redacted is text:
            return blob
        return replace(blob, data=redacted.encode() or self._nothing(text).encode())

    def _found(self, text: str) -> list[Found]:
        """Find what is acted on, in order and without overlaps."""
        if not text.isascii():
            text = text.translate(_WIDE)
        low = text.lower()
        due = [places for hint, places in self._signs if hint in low]
        if self._in_runs and max(map(len, text.split()), default=0) >= self._run:
            due += [places for hint, places in self._in_runs if hint in low]
        if self._numbers and _DIGITS.search(text):
            due.append(self._numbers)
        if not due and not self._engines:
            return []
        places = sorted({place for places in due for place in places})
        found = [each for place in places for each in self._rules[place].find(text)]
        for engine in self._engines:
            found.extend(engine.find(text))
        return _apart(found, self._actions) if found else found

    def _replaced(self, text: str, found: Sequence[Found], actions: Mapping[str, Action]) -> str:
        pieces: list[str] = []
        at = 0
        for start, end, kind in found:
            pieces.append(text[at:start])
            pieces.append(self._placeholder(kind, text[start:end], actions[kind]))
            at = end
        return "".join([*pieces, text[at:]])

    def _placeholder(self, kind: str, value: str, action: Action) -> str:
        if action == "drop":
            return ""
        if action == "mask":
            return f"[redacted:{kind}]"
        plain = re.sub(r"[\s().-]", "", value.translate(_WIDE)).lower()
        data = plain.encode("utf-8", "surrogatepass")
        return f"[{kind}:{hashlib.blake2b(data, key=self._key, digest_size=8).hexdigest()}]"

    def _nothing(self, text: str) -> str:
        """Say what a body was of which nothing was left."""
        return f"[redacted:{self._found(text)[0].kind}]"


class _Dropped:
    """Stands for a field that goes."""


_DROPPED: Final = _Dropped()


def _signs(rules: Sequence[Rule], *, in_runs: bool) -> list[tuple[str, list[int]]]:
    """List the hints, each with the places of its rules; numbers have a sign of their own."""
    signs: dict[str, list[int]] = {}
    for place, rule in enumerate(rules):
        for hint in rule.hints:
            if hint != NUMBER and bool(rule.run) == in_runs:
                signs.setdefault(hint, []).append(place)
    return list(signs.items())


def _snake(name: str) -> str:
    """Write a camelCase name with underscores, as the names of secrets are listed."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


def _apart(found: Sequence[Found], actions: Mapping[str, Action]) -> list[Found]:
    """Order what is acted on; of two that overlap the first found stays, grown over the other."""
    kept: list[Found] = []
    for _, each in sorted(enumerate(found), key=lambda numbered: (numbered[1].start, numbered[0])):
        if actions.get(each.kind, "keep") == "keep" or each.start >= each.end:
            continue
        if kept and each.start < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, each.end))
        else:
            kept.append(each)
    return kept
