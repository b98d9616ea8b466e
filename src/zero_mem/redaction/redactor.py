"""Takes what was found out of texts and JSON, and leaves a placeholder that says what it was."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

from zero_mem.redaction.checks import is_secret_value
from zero_mem.redaction.engine import Engine, Found
from zero_mem.redaction.fields import VALUES, names_password, names_secret, names_secret_beside
from zero_mem.redaction.rules import Rule
from zero_mem.redaction.scanning import Scanner
from zero_mem.redaction.settings import NAMES
from zero_mem.types import Blob, Body, Json

Action: TypeAlias = Literal["mask", "hash", "drop", "keep"]

_NAMED: Final = frozenset({*NAMES, "invalidated_by"})
_FIELDS: Final = _NAMED | {"tags", "tag", "text", "metadata"}

FIELD: Final = "secret_field"
"""The kind of a JSON value that its field's name gives away."""

_WIDE: Final = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
_WIDE_ONES: Final = re.compile("[\uff10-\uff19\uff20\uff21-\uff3a\uff41-\uff5a]")
_PLACEHOLDER: Final = re.compile(r"\[(?:redacted:[a-z][a-z0-9_]*|[a-z][a-z0-9_]*:[0-9a-f]{16})\]")
_HASHED: Final = re.compile(r"\[[a-z][a-z0-9_]*:([0-9a-f]{16})\]")
_NUMBERS: Final = frozenset({"card", "chinese_id", "iban", "phone", "ssn"})
_ROUNDS: Final = 8
_LONGEST_NAME: Final = 64
_MOST_FIELDS: Final = 4096
_LONG_NUMBER: Final = 10**10
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
        self._action_of_fields = actions.get(FIELD, "keep")
        self._key = key
        self._engines = engines
        self._scanner = Scanner(rules)
        self._after_rules = len(rules)
        # Names of fields come again and again: whether each says that its value is secret.
        self._fields: dict[str, bool] = {}

    def text(self, text: str) -> str:
        """Give a text without what was found; the same object where nothing was."""
        found = self.find(text)
        return self._replaced(text, found, self._actions) if found else text

    def name(self, name: str) -> str:
        """Give a name, which keeps telling things apart: what is masked elsewhere is hashed."""
        found = self.find(name)
        if not found:
            return name
        return self._replaced(name, found, dict.fromkeys(self._actions, "hash"))

    def asked(self, text: str) -> str:
        """Give a query as it can be looked up: what is hashed by its digest, the rest without."""
        found = self.find(text)
        if not found:
            return text
        how: dict[str, Action] = {
            kind: "hash" if action == "hash" else "drop" for kind, action in self._actions.items()
        }
        # The digest alone: the name of the kind would find whatever else speaks of it.
        left = _HASHED.sub(r"\1", self._replaced(text, found, how))
        return left if left.strip() else self._nothing(text)

    def asked_where(self, where: Any, field: str = "") -> Any:
        """Give a filter with names and hashed values as they are stored.

        What was masked or dropped can't be told apart any more; a filter that asks for it finds
        nothing, rather than everything that was masked.
        """
        if isinstance(where, str):
            return self.name(where) if field in _NAMED else self._hashed(where)
        if isinstance(where, Mapping):
            is_inner = field.startswith("metadata")
            inner = {key: key if key in _FIELDS and not is_inner else field for key in where}
            return {key: self.asked_where(each, inner[key]) for key, each in where.items()}
        if isinstance(where, list | tuple):
            return [self.asked_where(each, field) for each in where]
        return where

    def _hashed(self, text: str) -> str:
        found = self.find(text)
        if not found or any(self._actions[each.kind] != "hash" for each in found):
            return text
        return self._replaced(text, found, self._actions)

    def kinds(self, text: str) -> list[str]:
        """Name what stands in a text, each place once, in order."""
        return [found.kind for found in self.find(text)]

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
        # Card and phone numbers come as numbers too.
        if isinstance(value, int) and abs(value) >= _LONG_NUMBER:
            written = str(value)
            redacted = self.text(written)
            return value if redacted is written else redacted
        return value

    def _object(self, value: Mapping[str, Any]) -> Any:
        fields: dict[str, Any] = {}
        changed = False
        pair = names_secret_beside(value)
        for name, old in value.items():
            secret = self._fields.get(name)
            named, secret = (name, secret) if secret is not None else self._named(name)
            secret = secret or (pair and name in VALUES)
            new = self._field(old, secret, name)
            changed = changed or new is not old or named is not name
            if new is not _DROPPED:
                fields[named] = new
        return fields if changed else value

    def _named(self, name: str) -> tuple[str, bool]:
        """Give the name of a field as it is stored, and whether its value is a secret."""
        named = self.name(name)
        secret = names_secret(name)
        if named is name and len(name) <= _LONGEST_NAME and len(self._fields) < _MOST_FIELDS:
            self._fields[name] = secret
        return named, secret

    def _field(self, value: Any, secret: bool, name: str) -> Any:
        redacted = self.value(value)
        if secret and redacted is value and self._action_of_fields != "keep":
            return self._secret(value, self._action_of_fields, name)
        return _DROPPED if redacted == "" and value != "" else redacted

    def _secret(self, value: Any, action: Action, name: str) -> Any:
        """Take out what is a secret because its field says so."""
        if isinstance(value, list):
            items = [self._secret(item, action, name) for item in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else [item for item in items if item is not _DROPPED]
        if type(value) is int and names_password(name):
            value = str(value)
        elif not isinstance(value, str) or not is_secret_value(value):
            return value
        return _DROPPED if action == "drop" else self._placeholder(FIELD, value, action)

    def _blob(self, blob: Blob) -> Blob:
        try:
            text = blob.data.decode()
        except UnicodeDecodeError:
            return blob
        redacted = self.text(text)
        if redacted is text:
            return blob
        return replace(blob, data=redacted.encode() or self._nothing(text).encode())

    def find(self, text: str, *, with_engines: bool = True) -> list[Found]:
        """Find what is acted on, in order and without overlaps."""
        if not text.isascii() and _WIDE_ONES.search(text):
            text = text.translate(_WIDE)
        found = self._scanner.search(text)
        if with_engines and self._engines:
            last = self._after_rules
            found += ((last, each) for engine in self._engines for each in engine.find(text))
        return _apart(text, found, self._actions) if found else []

    def _replaced(self, text: str, found: Sequence[Found], actions: Mapping[str, Action]) -> str:
        """Put placeholders in; what only now stands apart from its neighbour is found too."""
        for _ in range(_ROUNDS):
            pieces: list[str] = []
            at = 0
            for start, end, kind in found:
                pieces += (text[at:start], self._placeholder(kind, text[start:end], actions[kind]))
                at = end
            text = "".join([*pieces, text[at:]])
            found = self.find(text, with_engines=False)
            if not found:
                break
        return text

    def _placeholder(self, kind: str, value: str, action: Action) -> str:
        if action == "drop":
            return ""
        if action == "mask":
            return f"[redacted:{kind}]"
        data = _normal(kind, value).encode("utf-8", "surrogatepass")
        return f"[{kind}:{hashlib.blake2b(data, key=self._key, digest_size=8).hexdigest()}]"

    def _nothing(self, text: str) -> str:
        """Say what a body was of which nothing was left."""
        return f"[redacted:{self.find(text)[0].kind}]"


class _Dropped:
    """Stands for a field that goes."""


_DROPPED: Final = _Dropped()


def _normal(kind: str, value: str) -> str:
    """Write a value as all of its spellings are, so that they have one digest."""
    if kind in _NUMBERS:
        return re.sub(r"[\s().-]", "", value.translate(_WIDE)).lower()
    return value.lower() if kind == "email" else value


def _apart(
    text: str, found: Sequence[tuple[int, Found]], actions: Mapping[str, Action]
) -> list[Found]:
    """Order what is acted on.

    Of two that overlap, that of the earlier rule stays, and grows over the other. What begins
    inside a placeholder was redacted before.
    """
    done = [m.span() for m in _PLACEHOLDER.finditer(text)] if "[" in text else []
    kept: list[Found] = []
    for _, each in sorted(found, key=lambda ranked: (ranked[1].start, ranked[0])):
        if actions.get(each.kind, "keep") == "keep" or each.start >= each.end:
            continue
        if any(start <= each.start < end for start, end in done):
            continue
        if kept and each.start < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, each.end))
        else:
            kept.append(each)
    return kept
