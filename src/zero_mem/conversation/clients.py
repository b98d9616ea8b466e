"""The official clients of OpenAI and Anthropic with memory, synchronous and asynchronous.

    client = with_memory(OpenAI(), MemoryController(space, conversation="order-57"))

The wrapped client is used as before. Requests are prepared, responses absorbed, and calls to
the memory tools answered here: the program around it sees only its own tools' calls. What
happens between a request and its response is one generator without I/O; two thin loops
drive it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from typing import Any, Final, TypeAlias

from zero_mem.controller.messages import WireFormat
from zero_mem.controller.rounds import Answered, Hidden
from zero_mem.controller.wire.places import follow_up, response_items, without_calls
from zero_mem.conversation.controller import MemoryController
from zero_mem.conversation.outputs import Absorbed
from zero_mem.errors import InvalidInput, LimitReached

Exchange: TypeAlias = Generator[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]

MOST_ROUNDS: Final = 8

_CREATES: Final[Mapping[tuple[str, ...], WireFormat]] = {
    ("chat", "completions", "create"): "openai_chat",
    ("responses", "create"): "openai_responses",
    ("messages", "create"): "anthropic",
    ("beta", "messages", "create"): "anthropic",
}
_UNWRAPPED: Final = frozenset({"stream", "parse", "with_raw_response", "with_streaming_response"})
_COPIES: Final = frozenset({"with_options", "copy"})
_READ_FIELDS: Final = ("messages", "input", "system", "tools")


def with_memory(client: Any, controller: MemoryController, *, rounds: int = MOST_ROUNDS) -> Any:
    """Give a client the memory of one conversation.

    Args:
        client: `OpenAI`, `AsyncOpenAI`, `Anthropic` or `AsyncAnthropic`, or one like them.
        controller: The conversation's; every call of the client belongs to it.
        rounds: Most requests that one call makes, memory rounds included.

    Returns:
        An object that is used like the client. Streams are refused: see `prepare`.
    """
    return _Resource(client, (), _Caller(controller, rounds, _is_async(client)))


def exchange(
    controller: MemoryController, request: Mapping[str, Any], wire_format: WireFormat, rounds: int
) -> Exchange:
    """Run one call of the host: yields each request to send, takes its response, returns ours.

    Raises:
        LimitReached: The model used only its memory in every one of the rounds.
    """
    current, usage = request, None
    before: list[Answered] = []
    for _ in range(rounds):
        response = yield controller.prepare(current, wire_format)
        absorbed = controller.absorb(response, wire_format)
        usage = _summed(usage, response.get("usage"))
        answered = _answered(response, absorbed, wire_format)
        if answered is not None and absorbed.all_ours:
            before.append(answered)
            current = follow_up(current, response, answered.answers, wire_format)
            continue
        visible: Mapping[str, Any] = absorbed.response
        if answered is not None:
            visible = without_calls(visible, wire_format, answered.answers)
        if before or answered is not None:
            visible = {**visible, "usage": usage}
            hidden = Hidden(before=tuple(before), cut=answered)
            controller.hide(request, visible, hidden, wire_format)
        return visible
    raise LimitReached(f"the model used its memory in {rounds} rounds and gave no answer")


def _answered(
    response: Mapping[str, Any], absorbed: Absorbed, wire_format: WireFormat
) -> Answered | None:
    """Keep a turn with our answers to it; None where it had no call for us."""
    if not absorbed.pieces:
        return None
    return Answered(turn=tuple(response_items(response, wire_format)), pieces=absorbed.pieces)


def _summed(one: Any, other: Any) -> Any:
    """Add up the figures of two usage objects."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {k: _summed(one.get(k), other.get(k)) for k in {**one, **other}}
    if isinstance(one, int) and isinstance(other, int) and not isinstance(one, bool):
        return one + other
    return one if other is None else other


class _Caller:
    """Makes the calls of a client that are wrapped."""

    def __init__(self, controller: MemoryController, rounds: int, is_async: bool) -> None:
        self._controller = controller
        self._rounds = rounds
        self._is_async = is_async

    def wrapped(self, create: Callable[..., Any], wire_format: WireFormat) -> Callable[..., Any]:
        """Give a `create` that prepares, absorbs and answers memory calls."""

        def call(**request: Any) -> Any:
            if request.get("stream") is True:
                raise InvalidInput(
                    "a client with memory does not stream; leave stream out, or use prepare and "
                    "absorb of the controller around the client itself"
                )
            given = {k: _plain(v) if k in _READ_FIELDS else v for k, v in request.items()}
            run = exchange(self._controller, given, wire_format, self._rounds)
            return _drive_async(run, create) if self._is_async else _drive(run, create)

        return call


def _drive(run: Exchange, create: Callable[..., Any]) -> Any:
    original: Any = None
    response: Any = None
    while True:
        done, value = _step(run, response)
        if done:
            return _modelled(original, response, value)
        original = create(**value)
        response = original.to_dict(mode="json")


async def _drive_async(run: Exchange, create: Callable[..., Awaitable[Any]]) -> Any:
    original: Any = None
    response: Any = None
    while True:
        # The store is read and written in a thread, so that the loop goes on.
        done, value = await asyncio.to_thread(_step, run, response)
        if done:
            return _modelled(original, response, value)
        original = await create(**value)
        response = original.to_dict(mode="json")


def _step(run: Exchange, response: Any) -> tuple[bool, Any]:
    try:
        return False, run.send(response)
    except StopIteration as end:
        return True, end.value


def _modelled(original: Any, response: Any, value: Any) -> Any:
    """Give a response of the client's own type; the original where nothing was edited."""
    if value is response:
        return original
    modelled = type(original).construct(**value)
    request_id = getattr(original, "_request_id", None)
    if request_id is not None:
        modelled._request_id = request_id
    return modelled


def _plain(value: Any) -> Any:
    """Write a client's models as dictionaries, at whatever depth a host put them."""
    if hasattr(value, "to_dict"):
        return value.to_dict(mode="json")
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | Iterator):
        return [_plain(each) for each in value]
    return value


def _is_async(client: Any) -> bool:
    return inspect.iscoroutinefunction(getattr(client, "close", None))


class _Resource:
    """A client, or a part of it on the way to a wrapped call; the rest is the client's own."""

    def __init__(self, target: Any, path: tuple[str, ...], caller: _Caller) -> None:
        self._target = target
        self._path = path
        self._caller = caller

    def __getattr__(self, name: str) -> Any:
        path = (*self._path, name)
        wire_format = _CREATES.get(path)
        if wire_format is not None:
            return self._caller.wrapped(getattr(self._target, name), wire_format)
        if name in _UNWRAPPED and (*self._path, "create") in _CREATES:
            raise InvalidInput(
                f"{name} has no memory; use create, or prepare and absorb of the controller"
            )
        found = getattr(self._target, name)
        if not self._path and name in _COPIES:
            return lambda **options: _Resource(found(**options), (), self._caller)
        on_the_way = any(create[: len(path)] == path for create in _CREATES)
        return _Resource(found, path, self._caller) if on_the_way else found
