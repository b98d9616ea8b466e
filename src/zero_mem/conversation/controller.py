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
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

from zero_mem import handles
from zero_mem.controller.core import MAX_EXTRACT
from zero_mem.controller.messages import WireFormat
from zero_mem.controller.references import ReferencePolicy
from zero_mem.controller.rounds import Hidden, response_key, text_of, turn_keys, with_hidden
from zero_mem.controller.tail import standing_share
from zero_mem.controller.wire.places import answer_schema, input_schemas, with_memory
from zero_mem.controller.wire.sites import (
    LIST_FIELD,
    Path,
    Step,
    Turn,
    items_of,
    response_turns,
    splice,
    steps,
    told_first,
)
from zero_mem.conversation.audit import Passed, passed_of
from zero_mem.conversation.counting import TokenCounts
from zero_mem.conversation.ephemeral import TailBlock, may_follow, tail_block, without_tails
from zero_mem.conversation.history import History
from zero_mem.conversation.injection import Injections, Wanted
from zero_mem.conversation.insertion import Insertions
from zero_mem.conversation.inspection import Shown, definition_spans, prompt_spans
from zero_mem.conversation.ledger import ConversationLedger, Ledger
from zero_mem.conversation.outputs import Absorbed, Output, Outputs
from zero_mem.conversation.persisted import Persisted
from zero_mem.conversation.tools import MemoryTools
from zero_mem.conversation.wording import PURGED
from zero_mem.errors import InvalidInput
from zero_mem.ledger.entries import LedgerEntry, Mode
from zero_mem.ledger.prices import DEFAULT_TABLE, PriceTable
from zero_mem.prompts import Prompt, Span
from zero_mem.recall.render import DEFAULT_BUDGET, check_count
from zero_mem.space import Namespace

DEFAULT_INJECTED: Final = 300

Folding: TypeAlias = Literal["never", "next"]
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
        inject: Most tokens of the memories that are put at the end of a prompt because they were
            found for what the user just said; 0 searches nothing.
        fold: "next" leaves a new result in full for the first call that reads it, and folds it
            for good in the request after that, unless the answer has signed thinking.
        ephemeral_tail: Whether a part of the share goes to a block at the end of each request
            that is selected anew and kept out of the history. None is added where thinking
            would follow it, or where the provider keeps the history.
        prices: Prices the ledger; rows are found by the model's name in the request.
        counts: Counts tokens for the ledger; share one between the conversations of a process.
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
        inject: int = DEFAULT_INJECTED,
        fold: Folding = "never",
        ephemeral_tail: bool = False,
        prices: PriceTable = DEFAULT_TABLE,
        counts: TokenCounts | None = None,
    ) -> None:
        if not isinstance(space, Namespace):
            raise InvalidInput(
                f"a controller takes a Namespace, not {type(space).__name__}: pass "
                'Memory.open(url).namespace("acme")'
            )
        if mode not in get_args(Mode):
            raise InvalidInput(f'mode is "observe" or "offload", not {mode!r}')
        if fold not in get_args(Folding):
            raise InvalidInput(f'fold is "never" or "next", not {fold!r}')
        self._space = space
        self._persisted = Persisted(space, conversation)
        self._tools = MemoryTools(space, self._persisted)
        self._mode = mode
        self._offers_tools = recall_reachable
        self._lock = threading.RLock()
        self._schemas: Mapping[str, Any] = {}
        self._history = History()
        self._prices = prices
        self._ledger = Ledger(
            space,
            conversation,
            mode=mode,
            counts=counts or TokenCounts(space.memory.tokenizer),
        )
        self._answer_schema: Any = None
        self._insertions = Insertions(
            self._persisted,
            space.memory.tokenizer,
            share=standing_share(share) if ephemeral_tail else share,
            max_extract=max_extract,
            decides=recall_reachable,
            folds=fold == "next",
        )
        self._tail_share = share if ephemeral_tail else 0.0
        self._injections = Injections(space, self._persisted)
        self._inject = inject
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

    def prepare(
        self,
        request: Request,
        wire_format: WireFormat,
        *,
        require: Sequence[str | int] = (),
        budget: int = DEFAULT_BUDGET,
    ) -> Request:
        """Give the request as the provider is to see it.

        Args:
            request: The decoded body, with the whole history that the host has; it is not
                changed.
            wire_format: `openai_chat`, `openai_responses` or `anthropic`.
            require: Memories that must stand in this prompt, whole, or it is not sent.
            budget: Most tokens of what is required, pinned or summarised and not there yet.

        Returns:
            A body that shares with the request all that is not edited; the request itself
            where nothing is.

        Raises:
            RequiredMemoryMissing: A required memory can't be read, or it or a pinned one does
                not fit the budget.
        """
        _check(request, wire_format, "a request")
        if self._mode == "observe":
            return request
        wanted = Wanted(
            require=[handles.check_memory_id(memory_id) for memory_id in require],
            budget=check_count(budget, "budget"),
            found=self._inject if self._offers_tools else 0,
        )
        self._space.memory.flush()
        with self._lock:
            self._persisted.refresh()
            return self._prepare(request, wire_format, wanted)

    def begin(self, request: Request, wire_format: WireFormat) -> tuple[Request, Output]:
        """Prepare a request, and begin with the response to it.

        Calls that overlap in one conversation are kept apart by the second part, which goes
        to `absorb`.
        """
        with self._lock:
            return self.prepare(request, wire_format), self._open_output()

    def _open_output(self) -> Output:
        return self._outputs.open(self._schemas, self._answer_schema)

    def _prepare(self, request: Request, wire_format: WireFormat, wanted: Wanted) -> Request:
        collapsed, history = self._collapsed(request, wire_format)
        edits = self._edits(collapsed, wire_format, history)
        prompt = self._injections.settled_in(collapsed, wire_format, history, wanted)
        prepared, _ = self._edited(collapsed, wire_format, history, edits, prompt)
        self._schemas, self._answer_schema = input_schemas(request), answer_schema(request)
        return with_memory(prepared, wire_format) if self._offers_tools else prepared

    def _edits(
        self,
        collapsed: Request,
        wire_format: WireFormat,
        history: Sequence[Step],
        *,
        new: bool = True,
    ) -> dict[Path, Any]:
        """Give what stands in the place of results, and what the model must be told with them."""
        items = items_of(collapsed, wire_format)
        edits: dict[Path, Any] = {**self._insertions.edits(history, items, new=new)}
        for result, told in self._outputs.warnings(history):
            edits.update(told_first(collapsed, result, told, edits))
        return edits

    def _edited(
        self,
        collapsed: Request,
        wire_format: WireFormat,
        history: Sequence[Step],
        edits: Mapping[Path, Any],
        prompt: Prompt | None,
    ) -> tuple[Request, TailBlock | None]:
        """Put what was decided into the request, and the block that is for this call only."""
        edited: Request = splice(collapsed, dict(edits))
        tail = self._tail(collapsed, wire_format, history, edits)
        if tail is None and (prompt is None or not prompt.placed):
            return edited, None
        items = items_of(edited, wire_format)
        if prompt is not None:
            self._log_purged(prompt)
            items = list(self._injections.woven(prompt, [items[index] for index in prompt.indices]))
        return {
            **edited,
            LIST_FIELD[wire_format]: items if tail is None else [*items, tail.message],
        }, tail

    def _log_purged(self, prompt: Prompt) -> None:
        for placed in prompt.placed:
            for memory_id in self._injections.wording.purged(placed.block):
                self._persisted.log(PURGED, memory_id)

    def _tail(
        self,
        collapsed: Request,
        wire_format: WireFormat,
        history: Sequence[Step],
        edits: Mapping[Path, Any],
    ) -> TailBlock | None:
        if not self._tail_share or not may_follow(collapsed, wire_format):
            return None
        return tail_block(
            history,
            self._insertions.standing(history, edits),
            share=self._tail_share,
            tokenizer=self._space.memory.tokenizer,
        )

    def _collapsed(
        self, request: Request, wire_format: WireFormat
    ) -> tuple[Request, Sequence[Step]]:
        """Give the request with its turns as the provider produced them, and its steps."""
        if self._tail_share:
            request = without_tails(request, wire_format)
        hidden = self._persisted.hidden()
        restored = with_hidden(request, wire_format, hidden.get) if hidden else request
        history = self._history.steps(restored, wire_format)
        collapsing = self._outputs.collapsing(history)
        if not collapsing:
            return restored, history
        collapsed: Request = splice(restored, collapsing)
        return collapsed, steps(collapsed, wire_format)

    def keep(self, request: Request, wire_format: WireFormat) -> None:
        """Leave the results of a request that nothing was decided about as they are, for good.

        For a request whose answer can't use the memory tools, as where the host forces another
        tool: what the model could not read again stays whole.

        Args:
            request: As in `prepare`.
            wire_format: As in `prepare`.
        """
        if self._mode == "offload":
            self._insertions.keep(self._collapsed(request, wire_format)[1])

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
        _check(response, wire_format, "a response")
        if self._mode == "observe":
            return Absorbed(response=response)
        turns = response_turns(response, wire_format)
        with self._lock, self._persisted.together():
            if output is None:
                self._persisted.refresh()
            opened = output or self._open_output()
            return self._outputs.absorb(response, turns, opened, streamed=streamed)

    def run_memory_call(self, name: str, arguments: Any) -> str:
        """Run a call to one of the memory tools.

        Args:
            name: The tool.
            arguments: An object, or its JSON text.

        Returns:
            The answer, under the call's budget; an error is an answer too.
        """
        with self._lock, self._persisted.together():
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
        tokenizer = self._space.memory.tokenizer
        with self._lock:
            self._persisted.refresh()
            collapsed, history = self._collapsed(request, wire_format)
            edits = self._edits(collapsed, wire_format, history, new=False)
            prompt = self._injections.arranged_in(collapsed, wire_format)
            prepared, tail = self._edited(collapsed, wire_format, history, edits, prompt)
            if self._offers_tools:
                prepared = with_memory(prepared, wire_format)
            shown = Shown(
                inserted={i.text: i for i in self._persisted.insertions().values() if i.text},
                blocks=self._block_spans(prompt, tail),
                is_ours=self._insertions.is_exempt,
            )
            spans = prompt_spans(steps(prepared, wire_format), shown, tokenizer)
            return [*definition_spans(prepared, tokenizer), *spans]

    def _block_spans(
        self, prompt: Prompt | None, tail: TailBlock | None
    ) -> dict[str, Sequence[Span]]:
        """Give the blocks of a prompt, by their text, line by line."""
        wording, tokenizer = self._injections.wording, self._space.memory.tokenizer
        placed = prompt.placed if prompt is not None else ()
        blocks: dict[str, Sequence[Span]] = {
            wording.text(one.block): wording.spans(one.block, tokenizer) for one in placed
        }
        if tail is not None:
            blocks[tail.message["content"]] = tail.spans
        return blocks

    def account(
        self,
        sent: Request,
        wire_format: WireFormat,
        *,
        response: Request | None = None,
        usage: Mapping[str, Any] | None = None,
        given: Request | None = None,
    ) -> LedgerEntry:
        """Enter a call into the ledger, in every mode; best done after its response went on.

        Args:
            sent: The request as the provider got it.
            wire_format: As in `prepare`.
            response: The body of the complete response; its `usage` corrects the count.
            usage: The provider's usage object, where there is no complete response.
            given: The host's own request, so that what was saved can be told; {} for a round
                that the host alone would not have made.

        Returns:
            The entry, whose columns are corrected to the provider's total.
        """
        if response is not None and usage is None:
            said = response.get("usage")
            usage = said if isinstance(said, Mapping) else None
        with self._lock:
            return self._ledger.account(
                sent, wire_format, response=response, usage=usage, given=given
            )

    def ledger(self) -> ConversationLedger:
        """Give what the calls of the conversation cost, by column and by price."""
        return self._ledger.read(self._prices)

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


def _check(body: Request, wire_format: WireFormat, what: str) -> None:
    if not isinstance(body, Mapping):
        raise InvalidInput(f"{what} is the decoded body, an object, not {type(body).__name__}")
    if wire_format not in get_args(WireFormat):
        known = ", ".join(get_args(WireFormat))
        raise InvalidInput(f"wire_format is one of {known}, not {wire_format!r}")
