"""Whose request it is and which conversation it says it belongs to.

A tenant is a credential: nothing that is stored for one is ever read for another. The
credential itself is not kept, only a digest of it under a key that stays in the store.

Within a tenant a conversation is never told by a content alone. See docs/proxy.md for the
rule and its limits.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from zero_mem.controller.messages import Message, WireFormat
from zero_mem.controller.wire.sites import LIST_FIELD, Result, Step, Turn, steps
from zero_mem.proxy.headers import CONVERSATION, Field, Headers, first, without

_CREDENTIALS: Final = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
_SECRETS: Final = _CREDENTIALS | {b"cookie", b"proxy-authorization"}
_SESSION_FIELDS: Final = (
    b"x-claude-code-session-id",
    b"session-id",
    b"session_id",
    b"conversation_id",
    b"x-session-id",
    b"x-opencode-session",
)
_LONGEST: Final = 256
_ID: Final = re.compile(r"[!-~]{1,256}")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SESSION_MARK: Final = "_session_"
_OPENING: Final = 4
"""Items of a history among which the first user's text nearly always is."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request with what it says about itself."""

    headers: Headers
    request: Mapping[str, Any]
    wire_format: WireFormat

    @cached_property
    def history(self) -> Sequence[Step]:
        """Its steps as the host sent them."""
        return steps(self.request, self.wire_format)

    @cached_property
    def root(self) -> str:
        """The first text that a user said, found without reading all of a long history."""
        field = LIST_FIELD[self.wire_format]
        items = self.request.get(field)
        if isinstance(items, list) and len(items) > _OPENING:
            beginning = {**self.request, field: items[:_OPENING]}
            return root(steps(beginning, self.wire_format)) or root(self.history)
        return root(self.history)


def tenant(headers: Headers, secret: bytes) -> str:
    """Name whoever sends a request, by a digest of the credential; "" is a tenant too.

    Args:
        headers: The request's fields.
        secret: The store's key, 32 bytes.
    """
    digest = hashlib.blake2b(key=secret, digest_size=16)
    for name, value in sorted((name.lower(), value) for name, value in headers):
        if name in _CREDENTIALS:
            digest.update(b"%d:%b%d:%b" % (len(name), name, len(value), value))
    return digest.hexdigest()


def without_credentials(headers: Headers) -> list[Field]:
    """Drop the fields that hold a key."""
    return without(headers, _SECRETS)


def named_conversation(headers: Headers) -> str | None:
    """Read the conversation that a caller names itself."""
    value = first(headers, CONVERSATION)
    return value.decode("latin-1").strip() or None if value is not None else None


def session(headers: Headers, request: Mapping[str, Any], wire_format: WireFormat) -> str | None:
    """Read the id by which a client tells its own sessions apart, None where it sends none.

    Claude Code, Codex and OpenCode send one as a field of the head; Claude Code also as part
    of `metadata.user_id`, Codex as a `prompt_cache_key` that is a UUID. A bare user id, or a
    cache key of another form, may be shared by many conversations and is not taken.
    """
    given = [first(headers, name) for name in _SESSION_FIELDS]
    candidates = [value.decode("latin-1") for value in given if value]
    metadata = request.get("metadata")
    if wire_format == "anthropic" and isinstance(metadata, Mapping):
        candidates.append(_session_of_user(metadata.get("user_id")))
    cache_key = request.get("prompt_cache_key")
    if isinstance(cache_key, str) and _UUID.fullmatch(cache_key):
        candidates.append(cache_key)
    return next((each for each in candidates if _ID.fullmatch(each)), None)


def _session_of_user(user_id: Any) -> str:
    if not isinstance(user_id, str) or len(user_id) > 4 * _LONGEST:
        return ""
    if user_id.startswith("{"):
        try:
            value = json.loads(user_id).get("session_id")
        except ValueError:
            return ""
        return value if isinstance(value, str) else ""
    return user_id.rpartition(_SESSION_MARK)[2] if _SESSION_MARK in user_id else ""


def root(history: Iterable[Step]) -> str:
    """Give the first text that a user said: it tells the threads of one session apart."""
    said = (step for step in history if isinstance(step, Message) and step.role == "user")
    return next((message.text for message in said), "")


def begins(history: Iterable[Step]) -> bool:
    """Tell whether a history has no turn of a model yet."""
    return not any(isinstance(step, Turn) for step in history)


def digest(*parts: Any) -> str:
    """Name values of any length by a short key."""
    text = json.dumps(parts, ensure_ascii=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def session_marks(session_id: str, history: Sequence[Step]) -> list[str]:
    """Name each turn that made calls, within a session, oldest first."""
    turns = (step for step in history if isinstance(step, Turn) and step.calls)
    return [digest("call", session_id, _calls(turn)) for turn in turns]


def history_marks(history: Sequence[Step]) -> list[str]:
    """Name each turn by all that came before it and itself, oldest first.

    Two histories share a mark only if they began alike and have the same turns, calls and
    results up to it. What stands between (reminders, later user texts) does not count, since
    hosts change it.
    """
    return [link for step, link in _chained(history) if isinstance(step, Turn)]


def history_links(history: Sequence[Step]) -> list[str]:
    """Name each state that a history was in: at its beginning, and after each turn and result."""
    return [digest("history", root(history)), *(link for _, link in _chained(history))]


def _chained(history: Sequence[Step]) -> Iterator[tuple[Step, str]]:
    link = digest("history", root(history))
    for step in history:
        if isinstance(step, Result):
            link = digest(link, step.call_id, [site.text for site in step.parts])
        elif isinstance(step, Turn):
            said = [] if step.calls else [site.text.strip() for site in step.texts]
            link = digest(link, _calls(step), said)
        else:
            continue
        yield step, link


def response_mark(response_id: str) -> str:
    """Name a response that a later request may continue by its id."""
    return digest("response", response_id)


def _calls(turn: Turn) -> list[Any]:
    return [[call.call_id, call.tool, _plain(call.arguments)] for call in turn.calls]


def _plain(value: Any) -> Any:
    """Write 1.0 as 1: a client in JavaScript can't tell them apart."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(value[key]) for key in sorted(value)}
    return [_plain(each) for each in value] if isinstance(value, list) else value
