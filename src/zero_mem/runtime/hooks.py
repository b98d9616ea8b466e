"""The hooks that an agent's runtime calls: each is one memory operation, none calls an LLM."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zero_mem import prompts
from zero_mem.conversation.injection import Injections, Wanted
from zero_mem.conversation.persisted import Persisted
from zero_mem.errors import InvalidInput, NotAllowed, NotFound
from zero_mem.handles import check_memory_id
from zero_mem.operations.sweep import Ending, SweepReport
from zero_mem.policy.cost_review import Call, KindReview, Run, review_cost
from zero_mem.prompts import Chat, Placed, Prompt, Span
from zero_mem.recall.render import DEFAULT_BUDGET, check_count
from zero_mem.runtime.tools import MemoryIdOf, Results, ToolCall, ToolRun, named_memory_id
from zero_mem.runtime.turns import Turn, Turns, beginnings, exposures
from zero_mem.space import Namespace
from zero_mem.types import Body, MemoryReceipt, Source

_SOURCES: Mapping[str, Source] = {"assistant": "model", "tool": "tool"}


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
                'Memory.open(url).namespace("acme"); '
                "for the namespace of an "
                "AsyncMemory there is AsyncZeroMemRuntime"
            )
        self.space = space
        self.conversation = conversation
        self._memory_id_of = memory_id_of
        self._results = Results(space=space, conversation=conversation)
        self._turns = Turns(space, conversation)
        self._persisted = Persisted(space, conversation)
        self._injections = Injections(space, self._persisted)
        self._one_prompt = threading.Lock()
        """Held while the blocks of the conversation are read or made."""

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
        return self._results.update(check_memory_id(memory_id), content, tool)

    def on_tool_error(
        self, memory_id: str | int, error: BaseException | str, *, tool: str | None = None
    ) -> MemoryReceipt | None:
        """Record a tool's failure beside the body of the record, which stays as it was.

        Returns:
            The receipt; None where no active record has this id, and nothing was saved. An
            error handler calls this, and a missing record must not hide the tool's own error.
        """
        try:
            return self._results.failed(check_memory_id(memory_id), error, tool)
        except (InvalidInput, NotFound, NotAllowed):
            return None

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
        if inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
            raise InvalidInput(_asynchronous(name))
        call = self.tool_call(name, payload)
        try:
            result = fn(payload)
        except BaseException as error:
            call.failed(error)
            raise
        if inspect.iscoroutine(result):
            result.close()  # it has not begun
            raise InvalidInput(_asynchronous(name))
        return call.gave(result)

    def tool_call(self, name: str, payload: Any) -> ToolCall:
        """Begin a call that somebody else runs, who then says what it `gave` or that it `failed`.

        Raises:
            InvalidInput: The arguments name no possible id.
        """
        return ToolCall(self._results, self._memory_id_of, name, payload)

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
        with self._one_prompt:
            self._persisted.refresh()
            prompt = self._injections.settled(given, wanted)
            self._turns.add(prompt)
            return self._injections.messages(prompt)

    def inspect(self, turn: int, messages: Sequence[Chat]) -> list[Span]:
        """Show the prompt of a turn (from 0), each run of text with the reason it is there.

        The store keeps references only; the host gives its own messages back (of this turn
        or any later one), and they are checked against what was sent.

        Raises:
            NotFound: No such turn in this conversation.
            InvalidInput: The messages are not those of that turn.
        """
        sent = self._turns.find(turn)
        if sent is None:
            raise NotFound(f"conversation {self.conversation!r} has no turn {turn}")
        checked = prompts.check_messages(messages)
        with self._one_prompt:
            self._persisted.refresh()
            return self._injections.spans(self._as_sent(sent, checked, turn))

    def _as_sent(self, sent: Turn, checked: Sequence[Chat], turn: int) -> Prompt:
        given = self._injections.arranged(checked)
        if sent.messages >= len(given.digests) or given.digests[sent.messages] != sent.digest:
            raise InvalidInput(f"these are not the messages of turn {turn}")
        numbered = {block.number: block for block in self._injections.blocks()}
        return replace(
            given,
            host=given.host[: sent.messages],
            indices=given.indices[: sent.messages],
            placed=tuple(Placed(block=numbered[n], place=place) for n, place in sent.blocks),
        )

    def review_cost(self, calls: Sequence[Call]) -> list[KindReview]:
        """Review what the prompts of this conversation showed, and whether it was used.

        Args:
            calls: For each prompt in order, what the host gave and what the model then wrote.
        """
        turns = self._turns.every()[: len(calls)]
        with self._one_prompt:
            self._persisted.refresh()
            blocks = self._injections.blocks()
        starts = beginnings(turns)
        runs = [
            Run(
                calls=tuple(calls[start:stop]),
                exposures=tuple(exposures(self._injections.wording, blocks, turns[start:stop])),
            )
            for start, stop in zip(starts, [*starts[1:], len(calls)], strict=True)
        ]
        return review_cost(runs, tokenizer=self.space.memory.tokenizer)


def _asynchronous(tool: str) -> str:
    return (
        f"tool {tool} is asynchronous and did not run: use AsyncZeroMemRuntime, or pass a "
        "function that returns the result"
    )


def _identities(require: object) -> list[str]:
    if isinstance(require, str | bytes) or not isinstance(require, Iterable):
        raise InvalidInput(f"require is a list of ids, not one {type(require).__name__}")
    return [check_memory_id(memory_id) for memory_id in require]
