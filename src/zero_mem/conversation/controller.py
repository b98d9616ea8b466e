"""The memory controller: what stands between an agent and its provider, without I/O of its own.

    controller = MemoryController(space, conversation="order-57")
    prepared = controller.prepare(request, "anthropic")
    turn = controller.absorb(response, "anthropic")

`prepare` puts receipts in the place of long tool results and offers the memory tools;
`absorb` expands the handles that the model wrote and answers its memory calls. Whatever was
decided is in the store: a restart, another process or a replay gives the same bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from zero_mem import handles
from zero_mem.controller.core import MAX_EXTRACT
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.references import ReferencePolicy
from zero_mem.controller.rounds import Hidden, response_key, text_of, turn_keys, with_hidden
from zero_mem.controller.wire.places import answer_schema, input_schemas, with_memory
from zero_mem.controller.wire.sites import (
    Path,
    Turn,
    response_turns,
    splice,
    steps,
    told_first,
)
from zero_mem.conversation.audit import Passed, passed_of
from zero_mem.conversation.insertion import PURGED, Insertions
from zero_mem.conversation.inspection import definition_spans, prompt_spans
from zero_mem.conversation.outputs import Absorbed, Output, Outputs
from zero_mem.conversation.persisted import Persisted
from zero_mem.conversation.tools import MemoryTools
from zero_mem.errors import InvalidInput
from zero_mem.prompts import Span
from zero_mem.space import Namespace

Mode: TypeAlias = Literal["observe", "offload"]
Request: TypeAlias = Mapping[str, Any]


class MemoryController:
    """Edits the requests and responses of one conversation.

    Args:
        space: The namespace that holds the tool results.
        conversation: Names the conversation; it is never taken from a content.
        share: The part of the tool results' tokens that may stand in the prompts.
        mode: "observe" gives every request and response back as the same object.
        policy: What a model may pass by handle; by default every kind, everywhere.
        recall_reachable: False where nobody would answer a memory call, as for a child
            agent without tools: results then stay as they are.
        max_extract: Most tokens of one result's extract.
    """

    def __init__(
        self,
        space: Namespace,
        *,
        conversation: str,
        share: float = 0.25,
        mode: Mode = "offload",
        policy: ReferencePolicy | None = None,
        recall_reachable: bool = True,
        max_extract: int = MAX_EXTRACT,
    ) -> None:
        if mode not in get_args(Mode):
            raise InvalidInput(f'mode is "observe" or "offload", not {mode!r}')
        self._space = space
        self._persisted = Persisted(space, conversation)
        self._tools = MemoryTools(space, self._persisted)
        self._mode = mode
        self._offers_tools = recall_reachable
        self._lock = threading.RLock()
        self._schemas: Mapping[str, Any] = {}
        self._answer_schema: Any = None
        self._insertions = Insertions(
            self._persisted,
            space.memory.tokenizer,
            share=share,
            max_extract=max_extract,
            decides=recall_reachable,
        )
        self._outputs = Outputs(
            space,
            self._persisted,
            policy=policy or ReferencePolicy(),
            tools=self._tools if recall_reachable else None,
        )

    @property
    def conversation(self) -> str:
        """The owner of the conversation's holds in the store."""
        return self._persisted.owner

    def close(self) -> None:
        """End the conversation: its tool results may be evicted from now on."""
        self._space.release(self._persisted.owner)

    # Requests

    def prepare(self, request: Request, wire_format: WireFormat) -> Request:
        """Give the request as the provider is to see it.

        Args:
            request: The decoded body, with the whole history that the host has; it is not
                changed.
            wire_format: `openai_chat`, `openai_responses` or `anthropic`.

        Returns:
            A body that shares with the request all that is not edited; the request itself
            where nothing is.
        """
        if self._mode == "observe":
            return request
        with self._lock:
            return self._prepared(request, wire_format)

    def begin(self, request: Request, wire_format: WireFormat) -> tuple[Request, Output]:
        """Prepare a request, and begin with the response to it.

        Calls that overlap in one conversation are kept apart by the second part, which goes
        to `absorb`.
        """
        with self._lock:
            return self.prepare(request, wire_format), self._open_output()

    def _open_output(self) -> Output:
        return self._outputs.open(self._schemas, self._answer_schema)

    def _prepared(self, request: Request, wire_format: WireFormat) -> Request:
        hidden = self._persisted.hidden()
        restored = with_hidden(request, wire_format, hidden.get) if hidden else request
        history = steps(restored, wire_format)
        collapsing = self._outputs.collapsing(history)
        collapsed: Request = splice(restored, collapsing)
        if collapsing:
            history = steps(collapsed, wire_format)
        edits: dict[Path, Any] = {**self._insertions.edits(history)}
        for result, told in self._outputs.warnings(history):
            edits.update(told_first(collapsed, result, told, edits))
        prepared: Request = splice(collapsed, edits)
        self._schemas, self._answer_schema = input_schemas(request), answer_schema(request)
        return with_memory(prepared, wire_format) if self._offers_tools else prepared

    def keep(self, request: Request, wire_format: WireFormat) -> None:
        """Leave the results of a request that nothing was decided about as they are, for good.

        For a request whose answer can't use the memory tools, as where the host forces another
        tool: what the model could not read again stays whole.

        Args:
            request: As in `prepare`.
            wire_format: As in `prepare`.
        """
        if self._mode == "offload":
            self._insertions.keep(steps(request, wire_format))

    # Responses

    @property
    def observes(self) -> bool:
        """True where every request and response goes on as it is."""
        return self._mode == "observe"

    def absorb(
        self,
        response: Request,
        wire_format: WireFormat,
        *,
        output: Output | None = None,
        streamed: bool = False,
    ) -> Absorbed:
        """Expand what the model wrote by reference, and answer its memory calls.

        Args:
            response: The decoded body of a complete response; it is not changed.
            wire_format: As in `prepare`.
            output: As `begin` gave it; without it, the response answers the request that
                was prepared last.
            streamed: True where the host has seen the calls already, so that those which
                can't be resolved are not refused any more.

        Returns:
            The response for the host, and the answers to the calls it must not run.
        """
        if self._mode == "observe":
            return Absorbed(response=response)
        return self._outputs.absorb(
            response,
            response_turns(response, wire_format),
            output or self._open_output(),
            streamed=streamed,
        )

    def run_memory_call(self, name: str, arguments: Any) -> str:
        """Run a call to one of the memory tools.

        Args:
            name: The tool.
            arguments: An object, or its JSON text.

        Returns:
            The answer, under the call's budget; an error is an answer too.
        """
        return text_of(self._tools.run(name, arguments))

    # Accounts

    def inspect(self, request: Request, wire_format: WireFormat) -> list[Span]:
        """Show a prompt that was sent, each run of its text with the reason why it is there.

        Args:
            request: The host's request of that turn; what was decided later does not show.
            wire_format: As in `prepare`.

        Returns:
            The tool definitions of ours, then all text in order.
        """
        prepared = self.prepare(request, wire_format)
        by_text = {i.text: i for i in self._persisted.insertions().values() if i.text}
        history = steps(prepared, wire_format)
        spans = prompt_spans(
            history, by_text, self._insertions.is_exempt, self._space.memory.tokenizer
        )
        return [*definition_spans(prepared, self._space.memory.tokenizer), *spans]

    def show(self, *memory_ids: str | int) -> None:
        """Allow handles that the host itself put into the conversation to be expanded."""
        for memory_id in memory_ids:
            self._persisted.show(handles.check_memory_id(memory_id), "host")

    def audit(self) -> list[Passed]:
        """Tell what was passed by reference, as the model wrote it and as it was executed."""
        return [passed_of(self._space, fields) for fields in self._persisted.audited()]

    def phantoms(self) -> list[str]:
        """Name the memories that the model spoke of without a read, once for each claim."""
        return self._persisted.claims()

    def purged(self) -> list[str]:
        """Name the memories whose purge changed a prompt that was sent before."""
        return self._persisted.logged(PURGED)

    # Rounds that the host does not see

    def hide(
        self,
        request: Request,
        response: Request,
        hidden: Hidden,
        wire_format: WireFormat,
    ) -> None:
        """Keep rounds that belong around the turn of `response`, which answers `request`.

        Both are as the host knows them; `prepare` puts the rounds back.
        """
        turns = [step for step in steps(request, wire_format) if isinstance(step, Turn)]
        visible = response_turns(response, wire_format)[:1]
        keys, _ = turn_keys([*turns, *visible])
        self._persisted.hide(keys[-1], hidden)
        if wire_format != "openai_responses":
            return
        names = [response.get("id")]
        if request.get("conversation"):
            names = [call.call_id for turn in visible for call in turn.calls]
        for name in names:
            self._persisted.hide(response_key(name), hidden)
