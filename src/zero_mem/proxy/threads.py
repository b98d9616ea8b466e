"""Which thread a request continues: one history that a provider sees, and what it may become.

A thread that begins here, with tools, is offloaded for all its life; one that is met in the
middle is only observed, since the provider has seen its results whole. Both are final, so
that a prefix is never rewritten. What decides it is in the store.

| scope (in the tenant's namespace) | key | value |
|---|---|---|
| `proxy.thread` | a thread | "offload" |
| `proxy.mark` | a turn or response | the thread that it belongs to |
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from zero_mem.controller.wire.sites import response_turns
from zero_mem.proxy import identity
from zero_mem.proxy.identity import Asked
from zero_mem.proxy.reach import can_offload
from zero_mem.space import Namespace

Origin: TypeAlias = Literal["named", "session", "marks"]

_THREAD: Final = "proxy.thread"
_MARK: Final = "proxy.mark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One history; `origin` says by what it is told from others.

    `session` is the client's id of its session, for `origin` "session". `is_new` holds until
    its first answer.
    """

    name: str
    origin: Origin
    offloads: bool
    session: str = ""
    is_new: bool = False

    @property
    def memories(self) -> str:
        """Name what shares its memories: a session with its child agents, else the thread."""
        return identity.digest("memories", self.session) if self.session else self.name


def find(space: Namespace, asked: Asked) -> Thread:
    """Find the thread that a request continues or begins.

    Args:
        space: The tenant's namespace.
        asked: The request.
    """
    named = identity.named_conversation(asked.headers)
    if named is not None:
        return _known_or_new(space, asked, identity.digest("named", named), "named")
    session = identity.session(asked.headers, asked.request, asked.wire_format)
    if session is None:
        return _by_marks(space, asked)
    name = identity.digest("session", session, asked.root)
    thread = replace(_known_or_new(space, asked, name, "session"), session=session)
    if thread.offloads:
        return thread
    # The host may have cut or changed the beginning; its calls still tell.
    marked = _marked(space, identity.session_marks(session, asked.history))
    return thread if marked is None else replace(thread, name=marked, offloads=True)


def begin(space: Namespace, thread: Thread) -> None:
    """Make it final that a new thread is offloaded."""
    space.decide(_THREAD, thread.name, "offload", only_new=True)


def mark(space: Namespace, thread: Thread, asked: Asked, response: Mapping[str, Any]) -> None:
    """Note the turn that answers a request, as the host sees it, for the next one to continue.

    Args:
        space: The tenant's namespace.
        thread: The request's thread.
        asked: The request.
        response: The visible response, decoded.
    """
    turns = response_turns(response, asked.wire_format)[:1]
    marks: list[str] = []
    if thread.origin == "session":
        marks += identity.session_marks(thread.session, turns)
    elif thread.origin == "marks":
        marks += identity.history_marks([*asked.history, *turns])[-1:]
    response_id = response.get("id")
    if asked.wire_format == "openai_responses" and isinstance(response_id, str):
        marks.append(identity.response_mark(response_id))
    for each in marks:
        space.decide(_MARK, each, thread.name, only_new=True)


def _known_or_new(space: Namespace, asked: Asked, name: str, origin: Origin) -> Thread:
    if space.decision(_THREAD, name) is not None:
        return Thread(name=name, origin=origin, offloads=True)
    return _new(asked, name, origin)


def _by_marks(space: Namespace, asked: Asked) -> Thread:
    marks = identity.history_marks(asked.history)
    previous = asked.request.get("previous_response_id")
    if isinstance(previous, str):
        marks.append(identity.response_mark(previous))
    marked = _marked(space, marks)
    if marked is not None:
        return Thread(name=marked, origin="marks", offloads=True)
    return _new(asked, secrets.token_hex(16), "marks")


def _new(asked: Asked, name: str, origin: Origin) -> Thread:
    begins = identity.begins(asked.history) and not asked.request.get("previous_response_id")
    offloads = begins and can_offload(asked.request, asked.wire_format)
    return Thread(name=name, origin=origin, offloads=offloads, is_new=True)


def _marked(space: Namespace, marks: Sequence[str]) -> str | None:
    for each in reversed(marks):
        found = space.decision(_MARK, each)
        if found is not None:
            return found
    return None
