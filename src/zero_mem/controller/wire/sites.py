"""Where the pieces stand in a raw request or response that the controller may edit.

A site has a path into the decoded body; `splice` puts new values at paths and copies only
the containers on the way, so everything else is the caller's own object, untouched. What is
not listed as a site (thinking, images, documents, tools that the provider runs, fields that
nobody knows) can't be edited at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from zero_mem.controller.messages import Message, Role, ToolCall, WireFormat
from zero_mem.controller.wire.draft import arguments, joined, string

Path: TypeAlias = tuple[str | int, ...]

_TEXT_TYPES: Final = frozenset({"text", "input_text", "output_text"})
_ITEM_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_ITEM_RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_ITEMS_PRODUCED: Final = frozenset({"reasoning", "mcp_list_tools", "mcp_approval_request"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSite:
    """A text at its place."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """A tool call; `path` is that of its arguments, which are text or an object."""

    path: Path
    call_id: str
    tool: str
    arguments: Any

    @property
    def is_free(self) -> bool:
        """True where the arguments are free text, and not the text of a JSON value."""
        return self.path[-1] == "input" and isinstance(self.arguments, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A tool's result: its text parts, each at its place; `tool` is "" where no call is known.

    `path` is that of the whole content.
    """

    call_id: str
    tool: str
    is_error: bool
    parts: tuple[TextSite, ...]
    path: Path = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one LLM call produced: the items from `start` to before `stop` of the list."""

    start: int
    stop: int
    texts: tuple[TextSite, ...]
    calls: tuple[CallSite, ...]

    def message(self) -> Message:
        """Give the turn in the neutral form."""
        return Message(
            role="assistant",
            text=joined(site.text for site in self.texts),
            calls=tuple(
                ToolCall(call_id=c.call_id, name=c.tool, arguments=arguments(c.arguments))
                for c in self.calls
            ),
        )


Step: TypeAlias = Result | Turn | Message

LIST_FIELD: Final[Mapping[WireFormat, str]] = {
    "openai_chat": "messages",
    "openai_responses": "input",
    "anthropic": "messages",
    "claude_code": "messages",
}


def splice(value: Any, edits: Mapping[Path, Any]) -> Any:
    """Give the value with other values at some paths; what no path passes is the same object."""
    if not edits:
        return value
    if () in edits:
        return edits[()]
    inside: dict[str | int, dict[Path, Any]] = {}
    for path, new in edits.items():
        inside.setdefault(path[0], {})[path[1:]] = new
    copy: Any = dict(value) if isinstance(value, Mapping) else list(value)
    for step, deeper in inside.items():
        copy[step] = splice(copy[step], deeper)
    return copy


def told_first(
    body: Mapping[str, Any], result: Result, told: str, edits: Mapping[Path, Any]
) -> dict[Path, Any]:
    """Put words of ours in front of a result, in whatever else is put in its place."""
    if result.parts:
        site = result.parts[0]
        return {site.path: f"{told}\n{edits.get(site.path, site.text)}"}
    content: Any = body
    for step in result.path:
        if isinstance(content, Mapping) and step not in content:
            return {}
        content = content[step]
    if not isinstance(content, list | tuple):
        return {result.path: told}
    kind = "input_text" if result.path[0] == "input" else "text"
    return {result.path: [{"type": kind, "text": told}, *content]}


def steps(
    request: Mapping[str, Any],
    wire_format: WireFormat,
    *,
    known: Sequence[Step] = (),
    start: int = 0,
) -> list[Step]:
    """List a request's messages in order: results and turns as sites, the rest neutral.

    Args:
        request: The decoded body.
        wire_format: Its format.
        known: The steps before the item `start`, where somebody has them already.
        start: The first item to read; no turn may go on across it.
    """
    if wire_format == "openai_chat":
        found = _chat(_items(request.get("messages"), start))
    elif wire_format == "openai_responses":
        found = _responses(request, start)
    else:
        found = _anthropic(request, start)
    return [*known, *_paired(found, known)]


def response_turns(response: Mapping[str, Any], wire_format: WireFormat) -> list[Turn]:
    """Give what a complete response holds; several only where several choices were asked for."""
    if wire_format == "openai_chat":
        choices = _items(response.get("choices"))
        messages = ((i, choice.get("message")) for i, choice in choices)
        return [
            _chat_turn(0, message, ("choices", i, "message"))
            for i, message in messages
            if isinstance(message, Mapping)
        ]
    if wire_format == "openai_responses":
        return [_item_turn(_items(response.get("output")), "output")]
    return [_block_turn(0, response.get("content"), ("content",))]


def items_of(request: Mapping[str, Any], wire_format: WireFormat) -> list[Any]:
    """Give the request's list of messages or items; a plain input is one user item."""
    given = request.get(LIST_FIELD[wire_format])
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return list(given) if isinstance(given, Sequence) else []


def _items(value: Any, start: int = 0) -> list[tuple[int, Mapping[str, Any]]]:
    found = value[start:] if isinstance(value, list | tuple) else []
    return [(i, item) for i, item in enumerate(found, start) if isinstance(item, Mapping)]


def _paired(found: Iterator[Step], known: Iterable[Step] = ()) -> Iterator[Step]:
    """Name each result's tool by the newest call of its id."""
    earlier = (call for step in known if isinstance(step, Turn) for call in step.calls)
    tools = {call.call_id: call.tool for call in earlier}
    for step in found:
        if isinstance(step, Turn):
            tools.update((call.call_id, call.tool) for call in step.calls)
        if isinstance(step, Result) and not step.tool:
            yield replace(step, tool=tools.get(step.call_id, ""))
        else:
            yield step


def text_sites(content: Any, path: Path) -> tuple[TextSite, ...]:
    """Find the texts of a content that is a string or a list of parts."""
    if isinstance(content, str):
        return (TextSite(path=path, text=content),)
    return tuple(
        TextSite(path=(*path, i, "text"), text=part["text"])
        for i, part in _items(content)
        if string(part.get("type")) in _TEXT_TYPES and isinstance(part.get("text"), str)
    )


def _said(role: Role, content: Any) -> Iterator[Message]:
    text = joined(site.text for site in text_sites(content, ()))
    if text:
        yield Message(role=role, text=text)


def _role(item: Mapping[str, Any]) -> Role:
    return "system" if item.get("role") in ("system", "developer") else "user"


# OpenAI Chat Completions


def _chat(messages: list[tuple[int, Mapping[str, Any]]]) -> Iterator[Step]:
    for i, message in messages:
        role = message.get("role")
        if role == "assistant":
            yield _chat_turn(i, message, ("messages", i))
        elif role in ("tool", "function"):
            yield Result(
                call_id=string(message.get("tool_call_id")),
                tool=string(message.get("name")),
                is_error=False,
                parts=text_sites(message.get("content"), ("messages", i, "content")),
                path=("messages", i, "content"),
            )
        else:
            yield from _said(_role(message), message.get("content"))


def _chat_turn(index: int, message: Mapping[str, Any], path: Path) -> Turn:
    calls = []
    for i, call in _items(message.get("tool_calls")):
        for field, inside in (("function", "arguments"), ("custom", "input")):
            body = call.get(field)
            if isinstance(body, Mapping):
                calls.append(
                    CallSite(
                        path=(*path, "tool_calls", i, field, inside),
                        call_id=string(call.get("id")),
                        tool=string(body.get("name")),
                        arguments=body.get(inside),
                    )
                )
    texts = text_sites(message.get("content"), (*path, "content"))
    return Turn(start=index, stop=index + 1, texts=texts, calls=tuple(calls))


# OpenAI Responses


def _responses(request: Mapping[str, Any], start: int) -> Iterator[Step]:
    if not start:
        yield from _said("system", request.get("instructions"))
    given = request.get("input")
    if isinstance(given, str):
        yield from _said("user", given)
        return
    produced: list[tuple[int, Mapping[str, Any]]] = []
    for i, item in _items(given, start):
        if is_produced(item):
            produced.append((i, item))
            continue
        if produced:
            yield _item_turn(produced, "input")
            produced = []
        yield from _item(i, item)
    if produced:
        yield _item_turn(produced, "input")


def is_produced(item: Mapping[str, Any]) -> bool:
    """Tell whether an item of OpenAI's Responses is a model's, so that its turn may go on."""
    kind = string(item.get("type")) or "message"
    if kind == "message":
        return item.get("role") == "assistant"
    return kind in _ITEMS_PRODUCED or kind.endswith("_call")


def is_result(item: Any) -> bool:
    """Tell whether an item of the Responses API is the result of a call."""
    return isinstance(item, Mapping) and string(item.get("type")) in _ITEM_RESULTS


def _item(i: int, item: Mapping[str, Any]) -> Iterator[Step]:
    if is_result(item):
        yield Result(
            call_id=string(item.get("call_id")),
            tool="",
            is_error=False,
            parts=text_sites(item.get("output"), ("input", i, "output")),
            path=("input", i, "output"),
        )
    elif "role" in item:
        yield from _said(_role(item), item.get("content"))


def _item_turn(items: list[tuple[int, Mapping[str, Any]]], field: str) -> Turn:
    texts: list[TextSite] = []
    calls: list[CallSite] = []
    for i, item in items:
        kind = string(item.get("type")) or "message"
        if kind == "message":
            texts += text_sites(item.get("content"), (field, i, "content"))
        elif kind in _ITEM_CALLS:
            calls.append(
                CallSite(
                    path=(field, i, _ITEM_CALLS[kind]),
                    call_id=string(item.get("call_id")),
                    tool=string(item.get("name")),
                    arguments=item.get(_ITEM_CALLS[kind]),
                )
            )
    start, stop = (items[0][0], items[-1][0] + 1) if items else (0, 0)
    return Turn(start=start, stop=stop, texts=tuple(texts), calls=tuple(calls))


# Anthropic Messages


def _anthropic(request: Mapping[str, Any], start: int) -> Iterator[Step]:
    if not start:
        yield from _said("system", request.get("system"))
    for i, message in _items(request.get("messages"), start):
        content = message.get("content")
        if message.get("role") == "assistant":
            yield _block_turn(i, content, ("messages", i, "content"))
            continue
        yield from _block_results(content, ("messages", i, "content"))
        yield from _said(_role(message), content)


def _block_results(content: Any, path: Path) -> Iterator[Result]:
    for i, block in _items(content):
        if block.get("type") == "tool_result":
            yield Result(
                call_id=string(block.get("tool_use_id")),
                tool="",
                is_error=block.get("is_error") is True,
                parts=text_sites(block.get("content"), (*path, i, "content")),
                path=(*path, i, "content"),
            )


def _block_turn(index: int, content: Any, path: Path) -> Turn:
    calls = tuple(
        CallSite(
            path=(*path, i, "input"),
            call_id=string(block.get("id")),
            tool=string(block.get("name")),
            arguments=block.get("input"),
        )
        for i, block in _items(content)
        if block.get("type") == "tool_use"
    )
    return Turn(start=index, stop=index + 1, texts=text_sites(content, path), calls=calls)
