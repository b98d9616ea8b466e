"""The memory tools as they run: each answer under a budget, each error one to act on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from zero_mem import handles
from zero_mem.controller.definitions import (
    FORGET_TOOL,
    MEMORY_TOOLS,
    NOTE_TOOL,
    READ_TOOL,
    SEARCH_TOOL,
)
from zero_mem.controller.reading import READ_BUDGET, answer_read, named_id
from zero_mem.controller.rounds import Piece
from zero_mem.conversation.persisted import Persisted
from zero_mem.errors import InvalidInput, NotAllowed, NotFound, ZeroMemError
from zero_mem.policy.visibility import visibility_of
from zero_mem.space import Namespace
from zero_mem.text.fence import memory_line

Arguments = Mapping[str, Any]


class MemoryTools:
    """Runs the calls of a conversation to its memory tools."""

    def __init__(self, space: Namespace, persisted: Persisted) -> None:
        self._space = space
        self._persisted = persisted
        self._tools: Mapping[str, Callable[[Arguments], list[Piece]]] = {
            READ_TOOL: self._read,
            SEARCH_TOOL: self._search,
            NOTE_TOOL: self._note,
            FORGET_TOOL: self._forget,
        }

    def run(self, name: str, arguments: Any) -> list[Piece]:
        """Run a call; what is wrong with it becomes its answer.

        Raises:
            InvalidInput: No memory tool has this name.
        """
        if name not in self._tools:
            raise InvalidInput(f"no memory tool is called {name!r}; there are {MEMORY_TOOLS}")
        try:
            return self._tools[name](_parsed(arguments))
        except NotFound as error:
            return [Piece(text=f"Error: {error}. It cannot be read; do not ask for it again.")]
        except ZeroMemError as error:
            return [Piece(text=f"Error: {handles.escape(str(error))}")]

    def _read(self, arguments: Arguments) -> list[Piece]:
        memory_id = named_id(_required(arguments, "id"))
        choice = {key: value for key, value in arguments.items() if value not in ("", None)}
        pointer = _pointer(arguments["id"])
        if pointer is not None:
            choice.setdefault("pointer", pointer)
        record = self._space.get(memory_id)
        tokenizer = self._space.memory.tokenizer
        text = answer_read(memory_id, record.content, choice, tokenizer=tokenizer)
        self._persisted.show(memory_id, "read")
        self._persisted.note_read(memory_id)
        return [Piece(text=text, memory_id=memory_id)]

    def _search(self, arguments: Arguments) -> list[Piece]:
        found = self._space.recall(_required(arguments, "query"), budget=READ_BUDGET)
        pieces = []
        for item in found.items:
            record = item.record
            line = memory_line(record.memory_id, record.kind, record.key, item.text)
            pieces.append(Piece(text=line, memory_id=record.memory_id))
            self._persisted.show(record.memory_id, "found")
        self._space.mark_used([item.memory_id for item in found.items])
        if found.left_out or not pieces:
            pieces.append(Piece(text=f"({found.left_out or 'nothing found'})"))
        return pieces

    def _note(self, arguments: Arguments) -> list[Piece]:
        key = arguments.get("key") or None
        text = _required(arguments, "text")
        receipt = self._space.save(text, kind="note", key=key, source="model")
        self._persisted.show(receipt.memory_id, "noted")
        self._persisted.note_read(receipt.memory_id)
        return [Piece(text=receipt.to_context(), memory_id=receipt.memory_id)]

    def _forget(self, arguments: Arguments) -> list[Piece]:
        memory_id = named_id(_required(arguments, "id"))
        shown = self._persisted.shown()
        if shown.get(memory_id) is None:
            raise NotFound(f"memory {memory_id} was not shown in this conversation")
        record = self._space.get(memory_id)
        if record.kind == "tool_result":
            raise NotAllowed("a tool result stays for as long as its conversation")
        if visibility_of(record, self._space.limits(record.form, record.kind)) == "pinned":
            raise NotAllowed("what is pinned can only be forgotten by who pinned it")
        return [Piece(text=self._space.delete(memory_id).to_context())]


def _parsed(arguments: Any) -> Arguments:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError:
            raise InvalidInput("the arguments are not JSON") from None
    if not isinstance(arguments, Mapping):
        raise InvalidInput("the arguments are an object")
    return arguments


def _required(arguments: Arguments, name: str) -> Any:
    value = arguments.get(name)
    if value in (None, ""):
        raise InvalidInput(f"{name} is missing")
    return value


def _pointer(named: Any) -> str | None:
    whole = handles.parse_whole(named.strip()) if isinstance(named, str) else None
    return None if whole is None else whole.references[0].pointer
