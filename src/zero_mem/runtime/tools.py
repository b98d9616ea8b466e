"""One call of a tool: which memory it is about, and what is written of how it ended."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from zero_mem.errors import InvalidInput, NotAllowed, NotFound, ZeroMemError
from zero_mem.handles import check_memory_id
from zero_mem.operations.requests import check_json, name_of
from zero_mem.space import Namespace
from zero_mem.types import Blob, Body, Json, MemoryReceipt

MemoryIdOf: TypeAlias = Callable[[str, Any, Any], str | int | None]
"""Gives a memory id from a tool's name, its arguments and its result (None before it ran)."""

ERROR_KEY = "last_error"
"""The metadata key under which a failed tool leaves its error."""

_ERROR_LIMIT: Final = 500
_LOG = logging.getLogger("zero_mem.runtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """What a tool gave, and the receipt of the memory it went into or why it went into none.

    The tool has run in either case. A failed write is no reason to run it again, so it is
    not raised before somebody asks for the receipt.
    """

    result: Any
    written: MemoryReceipt | ZeroMemError

    @property
    def error(self) -> ZeroMemError | None:
        """Why the result was not written, None where it was."""
        return self.written if isinstance(self.written, ZeroMemError) else None

    @property
    def receipt(self) -> MemoryReceipt:
        """The receipt of the memory that holds the result.

        Raises:
            ZeroMemError: The result was not written; this is `error`.
        """
        if isinstance(self.written, ZeroMemError):
            raise self.written
        return self.written


def named_memory_id(tool: str, payload: Any, result: Any) -> str | int | None:
    """Find `memory_id`, else `task_id`, in a tool's arguments, else in its result."""
    for name in ("memory_id", "task_id"):
        for value in (payload, result):
            found = value.get(name) if isinstance(value, Mapping) else None
            if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
                return found
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Where the results of one conversation's tools are written."""

    space: Namespace
    conversation: str

    def update(self, memory_id: str, content: Body, tool: str | None) -> MemoryReceipt:
        """Write a result into the record of that id, or as a new one if there is none."""
        metadata = {ERROR_KEY: None, **({"tool": tool} if tool else {})}
        try:
            return self._revised(memory_id, content, metadata)
        except NotAllowed:
            self.space.restore(memory_id)
            return self._revised(memory_id, content, metadata)
        except NotFound:
            return self.add(content, metadata, tool, memory_id=memory_id)

    def _revised(self, memory_id: str, content: Body, metadata: Mapping[str, Any]) -> MemoryReceipt:
        return self.space.update(memory_id, content=content, metadata=metadata, source="tool")

    def add(
        self,
        content: Body,
        metadata: Mapping[str, Any],
        tool: str | None,
        *,
        memory_id: str | None = None,
    ) -> MemoryReceipt:
        """Write a result as a record of its own, with the tool as its speaker."""
        return self.space.save(
            content,
            kind="tool_result",
            memory_id=memory_id,
            metadata=metadata,
            source="tool",
            session=name_of(self.conversation),
            speaker=name_of(tool or ""),
        )

    def failed(self, memory_id: str, error: BaseException | str, tool: str | None) -> MemoryReceipt:
        """Note a tool's failure beside the body of a record."""
        kind = type(error).__name__ if isinstance(error, BaseException) else "error"
        failure = {"type": kind, "message": str(error)[:_ERROR_LIMIT], "tool": tool}
        return self.space.update(memory_id, metadata={ERROR_KEY: failure})


class ToolCall:
    """A call that is about to be made; it says nothing of how the tool is run.

    Args:
        results: Where what it gives is written.
        memory_id_of: Finds the memory that it is about.
        tool: The tool's name.
        payload: Its arguments.

    Raises:
        InvalidInput: The arguments name no possible id.
    """

    def __init__(self, results: Results, memory_id_of: MemoryIdOf, tool: str, payload: Any) -> None:
        self._results = results
        self._memory_id_of = memory_id_of
        self._tool = tool
        self._payload = payload
        named = memory_id_of(tool, payload, None)
        self._known = None if named is None else check_memory_id(named)

    def gave(self, result: Any) -> ToolRun:
        """Write the result; the tool has run, so this raises nothing that the store may say."""
        return ToolRun(result=result, written=self._written(result))

    def _written(self, result: Any) -> MemoryReceipt | ZeroMemError:
        try:
            if inspect.isawaitable(result):
                raise InvalidInput("the result is still awaited, and only a result is written")
            found = self._known or self._named_by_result(result)
            if found is not None:
                return self._results.update(found, _body(result), self._tool)
            return self._results.add(_body(result), {"tool": self._tool}, self._tool)
        except ZeroMemError as error:
            error.add_note(f"tool {self._tool} has run; its result is in ToolRun.result")
            _LOG.error("the result of tool %s was not written: %s", self._tool, error)
            return error

    def _named_by_result(self, result: Any) -> str | None:
        """Find the memory that a result names; the tool has run, so an odd name loses nothing."""
        try:
            named = self._memory_id_of(self._tool, self._payload, result)
            return None if named is None else check_memory_id(named)
        except (LookupError, AttributeError, TypeError, ValueError):
            return None

    def failed(self, error: BaseException) -> None:
        """Note what the tool raised in the memory that the arguments name, if there is one."""
        if self._known is None:
            return
        try:
            self._results.failed(self._known, error, self._tool)
        except NotFound:
            return
        except ZeroMemError as unrecorded:
            error.add_note(f"memory {self._known} does not tell of this failure: {unrecorded}")


def _body(result: Any) -> Body:
    """Take a tool's result as a body: text and blobs as they are, bytes as a blob, else JSON.

    What JSON does not have is kept as Python writes it: the tool has run, and its result
    must not be lost.
    """
    if isinstance(result, Json | Blob):
        return result
    if isinstance(result, bytes) and result:
        return Blob(data=result)
    if isinstance(result, str) and result.strip():
        return result
    try:
        return Json(check_json(result, "the result"))
    except InvalidInput:
        return repr(result)
