"""The hooks that an agent's runtime calls: each is one memory operation, none calls an LLM."""

from __future__ import annotations

import inspect as inspection
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from zero_mem import prompts
from zero_mem.conversation import turns
from zero_mem.conversation.injection import Injections, Wanted
from zero_mem.conversation.persisted import Persisted
from zero_mem.errors import InvalidInput, NotAllowed, NotFound, ZeroMemError
from zero_mem.handles import check_memory_id
from zero_mem.operations.requests import check_json, name_of
from zero_mem.operations.sweep import Ending, SweepReport
from zero_mem.policy.cost_review import Call, KindReview, review_cost
from zero_mem.prompts import Chat, Placed, Span
from zero_mem.recall.render import DEFAULT_BUDGET, check_count
from zero_mem.space import Namespace
from zero_mem.types import Blob, Body, Json, MemoryReceipt, Source

MemoryIdOf: TypeAlias = Callable[[str, Any, Any], str | int | None]
"""Gives a memory id from a tool's name, its arguments and its result (None before it ran)."""

ERROR_KEY = "last_error"
"""The metadata key under which a failed tool leaves its error."""

_ERROR_LIMIT = 500
_SOURCES: Mapping[str, Source] = {"assistant": "model", "tool": "tool"}
_LOG = logging.getLogger(__name__)


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


class ZeroMemRuntime:
    """Connects an agent's events to one namespace.

    Args:
        space: The namespace that the agent's memories live in.
        conversation: Names the conversation whose prompts `build_prompt` makes; give each of
            a namespace's conversations a name of its own.
        memory_id_of: Finds the memory that a tool call is about.

    Raises:
        InvalidInput: `space` is not a namespace; the message says what to pass.
    """

    def __init__(
        self,
        space: Namespace,
        *,
        conversation: str = "default",
        memory_id_of: MemoryIdOf = named_memory_id,
    ) -> None:
        if not isinstance(space, Namespace):
            raise InvalidInput(
                f"a runtime takes a Namespace, not {type(space).__name__}: pass "
                'Memory.open(url).namespace("acme"); there is no asynchronous runtime yet, so '
                "in an event loop call this one by asyncio.to_thread"
            )
        self.space = space
        self.conversation = conversation
        self._memory_id_of = memory_id_of
        self._persisted = Persisted(space, conversation)
        self._injections = Injections(space, self._persisted)

    # Hooks

    def on_task_start(self, task_id: str | int, content: Body) -> MemoryReceipt:
        """Open a task and save its state under the task's own id."""
        identity = check_memory_id(task_id)
        self.space.start_task(identity)
        return self.space.save(content, kind="task_state", memory_id=identity, task=identity)

    def on_tool_start(self, task_id: str | int, tool: str) -> None:
        """Give a sign of life of the task that a tool runs for; nothing is stored of the tool."""
        self.space.renew_task(check_memory_id(task_id))

    def on_tool_success(
        self, memory_id: str | int, content: Body, *, tool: str | None = None
    ) -> MemoryReceipt:
        """Write a tool's result: into the record of that id, or as a new one if there is none.

        A new one belongs to the conversation, with the tool as its speaker.
        A record that was archived meanwhile (by a cap, say) becomes active again.
        """
        identity = check_memory_id(memory_id)
        metadata = {ERROR_KEY: None, **({"tool": tool} if tool else {})}
        try:
            return self.space.update(identity, content=content, metadata=metadata, source="tool")
        except NotAllowed:
            self.space.restore(identity)
            return self.space.update(identity, content=content, metadata=metadata, source="tool")
        except NotFound:
            return self.space.save(
                content,
                kind="tool_result",
                memory_id=identity,
                metadata=metadata,
                source="tool",
                session=name_of(self.conversation),
                speaker=name_of(tool or ""),
            )

    def on_tool_error(
        self, memory_id: str | int, error: BaseException | str, *, tool: str | None = None
    ) -> MemoryReceipt | None:
        """Record a tool's failure beside the body of the record, which stays as it was.

        Returns:
            The receipt; None where no active record has this id, and nothing was saved. An
            error handler calls this, and a missing record must not hide the tool's own error.
        """
        try:
            return self._write_failure(check_memory_id(memory_id), error, tool)
        except (InvalidInput, NotFound, NotAllowed):
            return None

    def _write_failure(
        self, memory_id: str, error: BaseException | str, tool: str | None
    ) -> MemoryReceipt:
        kind = type(error).__name__ if isinstance(error, BaseException) else "error"
        failure = {"type": kind, "message": str(error)[:_ERROR_LIMIT], "tool": tool}
        return self.space.update(memory_id, metadata={ERROR_KEY: failure})

    def on_message(
        self,
        role: str,
        content: Body,
        *,
        session: str | None = None,
        speaker: str | None = None,
    ) -> MemoryReceipt:
        """Record a message of the conversation as it happened; it is never de-duplicated."""
        return self.space.save(
            content,
            kind="message",
            session=session or self.conversation,
            speaker=speaker or role,
            source=_SOURCES.get(role, "user"),
        )

    def on_task_end(self, task_id: str | int, *, action: Ending = "expire") -> SweepReport:
        """End a task and its working memories."""
        return self.space.end_task(check_memory_id(task_id), action=action)

    def on_event(self, event: str, match: Mapping[str, Any] | None = None) -> SweepReport:
        """Tell that a business event has happened, and end the memories it invalidates."""
        return self.space.raise_event(event, match=match)

    def execute_tool(self, name: str, payload: Any, fn: Callable[[Any], Any]) -> ToolRun:
        """Run `fn(payload)` and write what it gave; a failure keeps the previous body.

        The memory is the one that the arguments or the result name (`memory_id_of`); without
        one the result becomes a memory of its own. Once the tool has run its result is
        returned, even if it can't be written: see `ToolRun.error`.

        Raises:
            InvalidInput: The arguments name no possible id, or `fn` is asynchronous; the tool
                did not run.
            Whatever the tool raised, after the failure was recorded.
        """
        if inspection.iscoroutinefunction(fn) or inspection.isasyncgenfunction(fn):
            raise InvalidInput(_asynchronous(name))
        named = self._memory_id_of(name, payload, None)
        known = None if named is None else check_memory_id(named)
        try:
            result = fn(payload)
        except BaseException as error:
            self._record_failure(known, error, name)
            raise
        if inspection.iscoroutine(result):
            result.close()  # it has not begun
            raise InvalidInput(_asynchronous(name))
        return ToolRun(result=result, written=self._record_result(known, payload, result, name))

    def _record_result(
        self, known: str | None, payload: Any, result: Any, tool: str
    ) -> MemoryReceipt | ZeroMemError:
        try:
            if inspection.isawaitable(result):
                raise InvalidInput("the result is still awaited, and only a result is written")
            found = known or self._named_by_result(tool, payload, result)
            body = _body(result)
            if found is not None:
                return self.on_tool_success(found, body, tool=tool)
            return self.space.save(
                body,
                kind="tool_result",
                metadata={"tool": tool},
                source="tool",
                session=name_of(self.conversation),
                speaker=name_of(tool or ""),
            )
        except ZeroMemError as error:
            error.add_note(f"tool {tool} has run; its result is in ToolRun.result")
            _LOG.error("the result of tool %s was not written: %s", tool, error)
            return error

    def _named_by_result(self, tool: str, payload: Any, result: Any) -> str | None:
        """Find the memory that a result names; the tool has run, so an odd name loses nothing."""
        try:
            named = self._memory_id_of(tool, payload, result)
            return None if named is None else check_memory_id(named)
        except (LookupError, AttributeError, TypeError, ValueError):
            return None

    def _record_failure(self, memory_id: str | None, error: BaseException, tool: str) -> None:
        if memory_id is None:
            return
        try:
            self._write_failure(memory_id, error, tool)
        except NotFound:
            return
        except ZeroMemError as unrecorded:
            error.add_note(f"memory {memory_id} does not tell of this failure: {unrecorded}")

    # Prompts

    def recall_for_prompt(
        self, memory_ids: Sequence[str | int], *, budget: int | None = None
    ) -> str:
        """Give named memories as prompt lines; see `Namespace.recall_for_prompt`."""
        return self.space.recall_for_prompt(memory_ids, budget=budget)

    def build_prompt(
        self,
        messages: Sequence[Chat],
        *,
        require: Sequence[str | int] = (),
        budget: int = DEFAULT_BUDGET,
    ) -> list[dict[str, Any]]:
        """Give the messages with the memories that the model must know, in fenced blocks.

        Pinned memories and those in `require` come whole. What an earlier prompt of this
        conversation showed stays at its place as long as the messages before it are the same;
        only what is new or changed is appended, never between a call and its result.

        Args:
            messages: The host's chat messages, with or without the blocks of earlier calls.
            require: Memories that must be in this prompt, or the call fails.
            budget: Most tokens of the new block.

        Raises:
            RequiredMemoryMissing: A required or pinned memory can't be shown.
        """
        given = prompts.check_messages(messages)
        wanted = Wanted(require=_identities(require), budget=check_count(budget, "budget"))
        self.space.memory.flush()
        self._persisted.refresh()
        prompt = self._injections.settled(given, wanted)
        turns.note(self.space, self.conversation, prompt)
        return self._injections.messages(prompt)

    def inspect(self, turn: int, messages: Sequence[Chat]) -> list[Span]:
        """Show the prompt of a turn (from 0), each run of text with the reason it is there.

        The store keeps references only; the host gives its own messages back (of this turn
        or any later one), and they are checked against what was sent.

        Raises:
            NotFound: No such turn in this conversation.
            InvalidInput: The messages are not those of that turn.
        """
        sent = turns.noted(self.space, self.conversation, turn)
        self._persisted.refresh()
        given = self._injections.arranged(prompts.check_messages(messages))
        if sent.messages >= len(given.digests) or given.digests[sent.messages] != sent.digest:
            raise InvalidInput(f"these are not the messages of turn {turn}")
        numbered = {block.number: block for block in self._injections.blocks()}
        prompt = replace(
            given,
            host=given.host[: sent.messages],
            indices=given.indices[: sent.messages],
            placed=tuple(Placed(block=numbered[n], place=place) for n, place in sent.blocks),
        )
        return self._injections.spans(prompt)

    def review_cost(self, calls: Sequence[Call]) -> list[KindReview]:
        """Review what the prompts of this conversation showed, and whether it was used.

        Args:
            calls: For each prompt in order, what the host gave and what the model then wrote.
        """
        built = turns.every(self.space, self.conversation)[: len(calls)]
        self._persisted.refresh()
        runs = turns.runs(built, calls, self._injections.wording, self._injections.blocks())
        return review_cost(runs, tokenizer=self.space.memory.tokenizer)


def _asynchronous(tool: str) -> str:
    return (
        f"tool {tool} is asynchronous and did not run: there is no asynchronous runtime yet; "
        "pass a function that returns the result, or await the tool yourself and give its "
        "result to on_tool_success"
    )


def _identities(require: object) -> list[str]:
    if isinstance(require, str | bytes) or not isinstance(require, Iterable):
        raise InvalidInput(f"require is a list of ids, not one {type(require).__name__}")
    return [check_memory_id(memory_id) for memory_id in require]


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
