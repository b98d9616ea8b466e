"""The memory controller: what stands between an agent and its provider, without I/O of its own.

    controller = MemoryController(space, conversation="order-57")
    prepared = controller.prepare(request, "anthropic")
    turn = controller.absorb(response, "anthropic")

`prepare` puts receipts in the place of long tool results and offers the memory tools;
`absorb` expands the handles that the model wrote and answers its memory calls. Whatever was
decided is in the store: a restart, another process or a replay gives the same bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

from zero_mem import handles
from zero_mem.controller.core import MAX_EXTRACT, Offloader
from zero_mem.controller.definitions import MEMORY_TOOLS
from zero_mem.controller.messages import Message, WireFormat
from zero_mem.controller.references import (
    Expansion,
    ReferencePolicy,
    claims,
    text_places,
)
from zero_mem.controller.rounds import (
    Hidden,
    Piece,
    content_key,
    response_key,
    text_of,
    turn_keys,
    with_hidden,
)
from zero_mem.controller.wire.draft import json_text
from zero_mem.controller.wire.places import input_schemas, with_memory
from zero_mem.controller.wire.sites import (
    CallSite,
    Path,
    Result,
    Step,
    TextSite,
    Turn,
    response_turns,
    splice,
    steps,
)
from zero_mem.conversation.audit import Passed, passed_of
from zero_mem.conversation.inspection import definition_spans, prompt_spans
from zero_mem.conversation.persisted import Inserted, Persisted
from zero_mem.conversation.tools import MemoryTools
from zero_mem.errors import InvalidInput, NotAllowed, NotFound
from zero_mem.handles import Reference
from zero_mem.prompts import Span
from zero_mem.space import Namespace
from zero_mem.types import Body

Mode: TypeAlias = Literal["observe", "offload"]
Request: TypeAlias = Mapping[str, Any]
Keyed: TypeAlias = Mapping[str, tuple[Result, TextSite]]

_PURGED: Final = "purged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absorbed:
    """A response as the host gets it, and the answers that the host need not find.

    `answers` has a text for each call that the host must not run: those to memory tools, and
    those whose handles can't be resolved (`refused`). `claims` are the memories that the
    text speaks of though nobody read them (`controller:phantom`).
    """

    response: Mapping[str, Any]
    pieces: Mapping[str, Sequence[Piece]] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    claims: tuple[str, ...] = ()
    calls: int = 0

    @property
    def answers(self) -> dict[str, str]:
        """The text that answers a call, by its id."""
        return {call_id: text_of(pieces) for call_id, pieces in self.pieces.items()}

    @property
    def all_ours(self) -> bool:
        """True when there were calls and each one is answered."""
        return 0 < self.calls == len(self.pieces)


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
        self._share = share
        self._max_extract = max_extract
        self._mode = mode
        self._policy = policy or ReferencePolicy()
        self._recall_reachable = recall_reachable
        self._schemas: Mapping[str, Any] = {}
        self._own: frozenset[str] = frozenset()
        self._seen: Counter[str] = Counter()
        self._offloader()

    def _offloader(self) -> Offloader:
        return Offloader(
            share=self._share,
            tokenizer=self._space.memory.tokenizer,
            max_extract=self._max_extract,
            exempt=MEMORY_TOOLS,
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
        self._own = self._persisted.own()
        hidden = self._persisted.hidden()
        restored = with_hidden(request, wire_format, hidden.get)
        collapsed = splice(restored, self._collapsing(steps(restored, wire_format)))
        edits = self._insertions(steps(collapsed, wire_format))
        prepared: Request = splice(collapsed, edits)
        self._schemas = input_schemas(request)
        return with_memory(prepared, wire_format) if self._recall_reachable else prepared

    def _collapsing(self, history: Iterable[Step]) -> dict[Path, Any]:
        """Find the outputs that were expanded, and the provider's own form of each."""
        written = self._persisted.written()
        self._seen.clear()
        edits: dict[Path, Any] = {}
        for turn in history:
            if isinstance(turn, Turn):
                for path, key in _output_keys(turn):
                    own = written.get(self._numbered(key))
                    if own is not None:
                        edits[path] = own["written"]
        return edits

    def _numbered(self, key: str) -> str:
        """Tell equal outputs apart: one may have been expanded, the next written so."""
        self._seen[key] += 1
        return f"{key}:{self._seen[key] - 1}"

    def _insertions(self, history: Sequence[Step]) -> dict[Path, str]:
        known = self._persisted.insertions()
        keyed = _keyed(history)
        settled = known.keys() | self._already_prepared(keyed, known)
        new = [result for key, (result, _) in keyed.items() if key not in settled]
        if self._recall_reachable and not all(map(self._is_exempt, new)):
            known = {**known, **self._decided(history, keyed, known)}
        edits = {
            site.path: self._inserted(known[key], site)
            for key, (_, site) in keyed.items()
            if key in known
        }
        edits.update(self._without_purged(history))
        return edits

    def _inserted(self, inserted: Inserted, site: TextSite) -> str:
        if inserted.purged:
            self._persisted.log(_PURGED, inserted.memory_id)
            return f"{handles.render(inserted.memory_id)} {_PURGED}"
        return site.text if inserted.text is None else inserted.text

    def _already_prepared(self, keyed: Keyed, known: Mapping[str, Inserted]) -> set[str]:
        """Find the results of a history that was prepared before: they hold what we inserted."""
        ours = {(inserted.call, inserted.text) for inserted in known.values() if inserted.text}
        return {
            key
            for key, (result, site) in keyed.items()
            if (content_key(result.call_id), site.text) in ours
        }

    def _is_exempt(self, result: Result) -> bool:
        """Tell whether a result is an answer of our own (`recall:no-loop`)."""
        if result.tool in MEMORY_TOOLS:
            return True
        if not result.tool and content_key(result.call_id) in self._own:
            return True
        return _answer_key(result.call_id, *(site.text for site in result.parts)) in self._own

    def _decided(
        self,
        history: Sequence[Step],
        keyed: Keyed,
        known: Mapping[str, Inserted],
    ) -> dict[str, Inserted]:
        """Decide the new results in order, after feeding all that came before them."""
        offloader = self._offloader()
        decided: dict[str, Inserted] = {}
        keys = iter(keyed)
        prepared = self._already_prepared(keyed, known)
        for step in history:
            if isinstance(step, Result):
                for site in step.parts:
                    key = next(keys)
                    message = _tool_message(step, site)
                    if key in prepared or self._is_exempt(step):
                        offloader.adopt(message, site.text)
                    elif key in known:
                        offloader.adopt(message, self._inserted(known[key], site))
                    else:
                        decided.update(self._decide(offloader, key, message))
            else:
                offloader.observe(step.message() if isinstance(step, Turn) else step)
        return decided

    def _decide(self, offloader: Offloader, key: str, message: Message) -> dict[str, Inserted]:
        memory_id = self._persisted.save_result(key, message.text, tool=message.tool)
        if not memory_id:  # nothing to keep, or no room to keep it
            text = handles.escape(message.text)
            offloader.adopt(message, text)
            inserted = Inserted(memory_id="", text=text, call=content_key(message.call_id))
        else:
            insertion = offloader.insert(message, memory_id)
            if insertion.receipt:
                self._persisted.show(memory_id, "receipt")
            inserted = Inserted(
                memory_id=memory_id,
                text=None if insertion.text == message.text else insertion.text,
                call=content_key(message.call_id),
                spans=tuple((span.start, span.end, span.reason) for span in insertion.spans),
            )
        if memory_id is not None:
            self._persisted.insert(key, inserted)
        return {key: inserted}

    def _without_purged(self, history: Sequence[Step]) -> dict[Path, str]:
        """Take what was purged out of earlier answers of the memory tools."""
        purged = {key for key, reason in self._persisted.shown().items() if reason is None}
        edits: dict[Path, str] = {}
        for step in history if purged else ():
            if isinstance(step, Result) and self._is_exempt(step):
                for site in step.parts:
                    text = _purge_lines(site.text, purged)
                    if text != site.text:
                        edits[site.path] = text
        for memory_id in purged if edits else ():
            self._persisted.log(_PURGED, memory_id)
        return edits

    # Responses

    def absorb(self, response: Request, wire_format: WireFormat) -> Absorbed:
        """Expand what the model wrote by reference, and answer its memory calls.

        Args:
            response: The decoded body of a complete response; it is not changed.
            wire_format: As in `prepare`.

        Returns:
            The response for the host, and the answers to the calls it must not run.
        """
        if self._mode == "observe":
            return Absorbed(response=response)
        output = _Output(shown=self._persisted.shown())
        turns = response_turns(response, wire_format)
        for turn in turns:
            for call in turn.calls:
                self._absorb_call(call, output)
            for site in turn.texts:
                self._absorb_text(site, output)
        return Absorbed(
            response=splice(response, output.edits),
            refused=frozenset(output.refused),
            claims=tuple(output.claims),
            pieces=output.pieces,
            calls=sum(len(turn.calls) for turn in turns),
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

    def _absorb_call(self, call: CallSite, output: _Output) -> None:
        if call.tool in MEMORY_TOOLS and self._recall_reachable:
            self._persisted.note_own(content_key(call.call_id), call.tool)
            output.pieces[call.call_id] = self._tools.run(call.tool, call.arguments)
            return
        value, is_json = _arguments(call.arguments)
        places = frozenset(text_places(value, self._schemas.get(call.tool)))
        expansion = self._expansion(output.shown, call.tool, places)
        expanded = expansion.arguments(value)
        key = self._numbered(_call_key(call.call_id, value if expansion.refused else expanded))
        if expansion.refused:
            output.refused.append(call.call_id)
            refusal = _refusal(expansion.refused, output.shown)
            output.pieces[call.call_id] = [Piece(text=refusal)]
            self._persisted.note_own(_answer_key(call.call_id, refusal), call.tool)
        elif expanded != value:
            text = isinstance(call.arguments, str) and is_json
            new = json_text(expanded) if text else expanded
            output.edits[call.path] = new
            self._persisted.expanded(key, {"written": call.arguments})
            self._passed(call.tool, call.arguments, expansion)

    def _absorb_text(self, site: TextSite, output: _Output) -> None:
        self._count_claims(site.text, output)
        expansion = self._expansion(output.shown, None)
        expanded = expansion.text(site.text)
        key = self._numbered(_text_key(expanded))
        if expanded != site.text:
            output.edits[site.path] = expanded
            self._persisted.expanded(key, {"written": site.text})
            self._passed("", site.text, expansion)

    def _count_claims(self, text: str, output: _Output) -> None:
        named = claims(text)
        was_read = self._persisted.was_read() if named else frozenset()
        for memory_id in dict.fromkeys(reference.memory_id for reference in named):
            if memory_id not in was_read and memory_id not in output.claims:
                output.claims.append(memory_id)
                self._persisted.log_claim(memory_id)

    def _expansion(
        self,
        shown: Mapping[str, str | None],
        tool: str | None,
        places: frozenset[str] = frozenset(),
    ) -> Expansion:
        def resolve(reference: Reference) -> Body:
            memory_id = reference.memory_id
            if shown.get(memory_id) is None:
                raise NotFound(f"{handles.render(memory_id)} is no memory of this conversation")
            record = self._space.get(memory_id)
            if not self._policy.allows(record.kind, tool):
                where = "an answer" if tool is None else f"the arguments of {tool}"
                raise NotAllowed(f"a memory of kind {record.kind} may not go into {where}")
            return record.content

        return Expansion(resolve=resolve, places=places)

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
        spans = prompt_spans(history, by_text, self._is_exempt, self._space.memory.tokenizer)
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
        return self._persisted.logged(_PURGED)

    def _passed(self, tool: str, written: Any, expansion: Expansion) -> None:
        versions = {}
        for reference in expansion.used:
            memory_id = reference.memory_id
            versions[memory_id] = self._space.get(memory_id).version
        self._persisted.audit(
            {
                "tool": tool,
                "written": written,
                "versions": versions,
                "places": sorted(expansion.places),
            }
        )

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
        if wire_format == "openai_responses" and hidden.cut is not None:
            self._persisted.hide(response_key(response.get("id")), hidden)


@dataclass(slots=True)
class _Output:
    """What was found in one response."""

    shown: Mapping[str, str | None]
    edits: dict[Path, Any] = field(default_factory=dict)
    pieces: dict[str, Sequence[Piece]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)


def _keyed(history: Iterable[Step]) -> dict[str, tuple[Result, TextSite]]:
    """Name each text of a result by its call id, content, part, and which of its like it is."""
    keyed: dict[str, tuple[Result, TextSite]] = {}
    for step in history:
        for place, site in enumerate(step.parts if isinstance(step, Result) else ()):
            assert isinstance(step, Result)
            occurrence = 0
            while (key := content_key(step.call_id, place, site.text, occurrence)) in keyed:
                occurrence += 1
            keyed[key] = (step, site)
    return keyed


def _tool_message(result: Result, site: TextSite) -> Message:
    return Message(
        role="tool",
        text=site.text,
        call_id=result.call_id,
        tool=result.tool,
        is_error=result.is_error,
    )


def _answer_key(call_id: str, *texts: str) -> str:
    return content_key("answer", call_id, texts)


def _output_keys(turn: Turn) -> Iterator[tuple[Path, str]]:
    """Name what of a turn may have been expanded, in the order in which it is absorbed."""
    for call in turn.calls:
        yield call.path, _call_key(call.call_id, _arguments(call.arguments)[0])
    for site in turn.texts:
        yield site.path, _text_key(site.text)


def _call_key(call_id: str, arguments: Any) -> str:
    return content_key("arguments", call_id, arguments)


def _text_key(text: str) -> str:
    return content_key("text", text)


def _arguments(given: Any) -> tuple[Any, bool]:
    """Decode a call's arguments; free text (of a custom tool) stays text."""
    if not isinstance(given, str):
        return given, False
    try:
        return json.loads(given), True
    except (ValueError, RecursionError):
        return given, False


def _refusal(reasons: Iterable[str], shown: Mapping[str, str | None]) -> str:
    usable = [memory_id for memory_id, reason in shown.items() if reason is not None][-10:]
    known = f" Handles that can be used: {handles.render(*usable)}." if usable else ""
    said = "; ".join(dict.fromkeys(reasons))
    return f"Error: {said}. The tool was not run; do not repeat this call as it is.{known}"


def _purge_lines(text: str, purged: set[str]) -> str:
    """Leave of each purged memory in an answer its handle alone."""
    lines: list[str] = []
    dropping = False
    for line in text.split("\n"):
        found = handles.find(line)
        head = found[0] if found and found[0].start == 0 else None
        if head is not None:
            memory_id = head.references[0].memory_id
            dropping = memory_id in purged
            if dropping:
                lines.append(f"{handles.render(memory_id)} {_PURGED}")
        if not dropping:
            lines.append(line)
    return "\n".join(lines)
