"""The hooks that an agent's runtime calls: each is one memory operation, none calls an LLM."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from zero_mem import prompts
from zero_mem.errors import InvalidInput, NotAllowed, NotFound, ZeroMemError
from zero_mem.handles import check_memory_id
from zero_mem.operations.requests import check_json
from zero_mem.operations.sweep import Ending, SweepReport
from zero_mem.policy.cost_review import Call, KindReview, Run, review_cost
from zero_mem.prompts import Chat, Span
from zero_mem.recall.render import DEFAULT_BUDGET, check_count
from zero_mem.space import Namespace
from zero_mem.text.fence import fence
from zero_mem.types import Blob, Body, Json, MemoryReceipt, Source

MemoryIdOf: TypeAlias = Callable[[str, Any, Any], str | int | None]
"""Gives a memory id from a tool's name, its arguments and its result (None before it ran)."""

ERROR_KEY = "last_error"
"""The metadata key under which a failed tool leaves its error."""

_ERROR_LIMIT = 500
_SOURCES: Mapping[str, Source] = {"assistant": "model", "tool": "tool"}


class ToolRun(NamedTuple):
    """What a wrapped tool call gave, and the receipt of the memory it wrote."""

    result: Any
    receipt: MemoryReceipt


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
        conversation: Names the conversation whose prompts `build_prompt` makes.
        memory_id_of: Finds the memory that a tool call is about.
    """

    def __init__(
        self,
        space: Namespace,
        *,
        conversation: str = "default",
        memory_id_of: MemoryIdOf = named_memory_id,
    ) -> None:
        self.space = space
        self.conversation = conversation
        self._memory_id_of = memory_id_of

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
            )

    def on_tool_error(
        self, memory_id: str | int, error: BaseException | str, *, tool: str | None = None
    ) -> MemoryReceipt:
        """Record a tool's failure beside the body of the record, which stays as it was."""
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
        one the result becomes a memory of its own.

        Raises:
            InvalidInput: The arguments name no possible id; the tool did not run.
            Whatever the tool raised, after the failure was recorded.
        """
        named = self._memory_id_of(name, payload, None)
        known = None if named is None else check_memory_id(named)
        try:
            result = fn(payload)
        except BaseException as error:
            self._record_failure(known, error, name)
            raise
        found = known or self._named_by_result(name, payload, result)
        body = _body(result)
        if found is not None:
            return ToolRun(result, self.on_tool_success(found, body, tool=name))
        receipt = self.space.save(body, kind="tool_result", metadata={"tool": name}, source="tool")
        return ToolRun(result, receipt)

    def _named_by_result(self, tool: str, payload: Any, result: Any) -> str | None:
        """Find the memory that a result names; the tool has run, so an odd name loses nothing."""
        try:
            named = self._memory_id_of(tool, payload, result)
            return None if named is None else check_memory_id(named)
        except InvalidInput:
            return None

    def _record_failure(self, memory_id: str | None, error: BaseException, tool: str) -> None:
        if memory_id is None:
            return
        try:
            self.on_tool_error(memory_id, error, tool=tool)
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

        Pinned memories and those in `require` come whole; what an earlier prompt of this
        conversation showed stays at its place, and only what is new or changed is appended.

        Args:
            messages: The host's chat messages, with or without the blocks of earlier calls.
            require: Memories that must be in this prompt, or the call fails.
            budget: Most tokens of the new block.

        Raises:
            RequiredMemoryMissing: A required or pinned memory can't be shown.
        """
        given = prompts.check_messages(messages)
        identities = [check_memory_id(memory_id) for memory_id in require]
        self.space.memory.flush()
        blocks = prompts.blocks_of(self.space, self.conversation)
        tokenizer = self.space.memory.tokenizer
        tokens = check_count(budget, "budget") - tokenizer.count(fence([""]))
        chosen = prompts.choose(self.space, blocks, identities, tokens, tokenizer)
        if chosen:
            block = prompts.Block(number=len(blocks), anchor=len(given), shown=chosen)
            prompts.store_block(self.space, self.conversation, block)
            blocks.append(block)
            self.space.mark_used([shown.memory_id for shown in chosen])
        self._record_turn(given, blocks)
        return prompts.insert_blocks(given, blocks, self.space)

    def _turns(self) -> str:
        return f"turn:{self.conversation}"

    def _record_turn(self, messages: Sequence[Chat], blocks: Sequence[prompts.Block]) -> None:
        turn = len(self.space.decisions(self._turns()))
        fields = {
            "messages": len(messages),
            "digest": prompts.digest_of(messages),
            "blocks": len(blocks),
        }
        self.space.decide(self._turns(), str(turn), json.dumps(fields))

    def inspect(self, turn: int, messages: Sequence[Chat]) -> list[Span]:
        """Show the prompt of a turn (from 0), each run of text with the reason it is there.

        The store keeps references only; the host gives its own messages back (of this turn
        or any later one), and they are checked against what was sent.

        Raises:
            NotFound: No such turn in this conversation.
            InvalidInput: The messages are not those of that turn.
        """
        value = self.space.decision(self._turns(), str(turn))
        if value is None:
            raise NotFound(f"conversation {self.conversation!r} has no turn {turn}")
        fields = json.loads(value)
        given = prompts.check_messages(messages)[: fields["messages"]]
        if prompts.digest_of(given) != fields["digest"]:
            raise InvalidInput(f"these are not the messages of turn {turn}")
        blocks = prompts.blocks_of(self.space, self.conversation)[: fields["blocks"]]
        prompt = prompts.insert_blocks(given, blocks, self.space)
        return prompts.spans_of(self.space, prompt, blocks, self.space.memory.tokenizer)

    def review_cost(self, calls: Sequence[Call]) -> list[KindReview]:
        """Review what the prompts of this conversation showed, and whether it was used.

        Args:
            calls: For each prompt in order, what the host gave and what the model then wrote.
        """
        first_turns: dict[int, int] = {}
        for turn, value in self.space.decisions(self._turns()).items():
            for number in range(json.loads(value)["blocks"] if value else 0):
                first_turns.setdefault(number, int(turn))
        blocks = prompts.blocks_of(self.space, self.conversation)
        exposures = prompts.exposures_of(self.space, blocks, first_turns)
        run = Run(calls=tuple(calls), exposures=tuple(exposures))
        return review_cost([run], tokenizer=self.space.memory.tokenizer)


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
