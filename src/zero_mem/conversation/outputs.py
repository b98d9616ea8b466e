"""What a model wrote by reference: expanded for the host, collapsed for the provider."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem import handles
from zero_mem.controller.definitions import MEMORY_TOOLS
from zero_mem.controller.fragments import Fragments, JsonFragments, TextFragments, expand_json
from zero_mem.controller.references import Expansion, ReferencePolicy, claims, text_places
from zero_mem.controller.rounds import Piece, answer_key, content_key, text_of
from zero_mem.controller.wire.sites import CallSite, Path, Result, Step, TextSite, Turn, splice
from zero_mem.conversation.persisted import Persisted
from zero_mem.conversation.tools import MemoryTools
from zero_mem.errors import NotAllowed, NotFound, ZeroMemError
from zero_mem.handles import Reference
from zero_mem.space import Namespace
from zero_mem.types import Body, MemoryRecord


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
    choices: int = 1

    @property
    def answers(self) -> dict[str, str]:
        """The text that answers a call, by its id."""
        return {call_id: text_of(pieces) for call_id, pieces in self.pieces.items()}

    @property
    def all_ours(self) -> bool:
        """True when there were calls and each one is answered; several choices never are."""
        return self.choices == 1 and 0 < self.calls == len(self.pieces)


class Outputs:
    """Absorbs the turns of one conversation, and collapses them when they come back.

    Args:
        space: The namespace.
        persisted: The conversation's decisions.
        policy: What may be passed where.
        tools: Answers the memory calls; None where the model was offered no memory tools.
    """

    def __init__(
        self,
        space: Namespace,
        persisted: Persisted,
        *,
        policy: ReferencePolicy,
        tools: MemoryTools | None,
    ) -> None:
        self._space = space
        self._persisted = persisted
        self._policy = policy
        self._tools = tools
        self._seen: Counter[str] = Counter()
        self._calls: Counter[str] = Counter()
        self._keys: dict[int, TurnKeys] = {}

    def collapsing(self, history: Iterable[Step]) -> dict[Path, Any]:
        """Find the outputs that were expanded, and the provider's own form of each."""
        written = self._persisted.written()
        self._seen.clear()
        turns = [step for step in history if isinstance(step, Turn)]
        # The same objects come again with every longer history.
        known = self._keys
        self._keys = {id(turn): known.get(id(turn)) or TurnKeys.of(turn) for turn in turns}
        edits: dict[Path, Any] = {}
        for turn in turns:
            for path, key in self._keys[id(turn)].outputs:
                own = written.get(_numbered(key, self._seen))
                if own is not None:
                    edits[path] = own["written"]
        return edits

    def _keys_of(self, turn: Turn) -> TurnKeys:
        return self._keys.get(id(turn)) or TurnKeys.of(turn)

    def warnings(self, history: Iterable[Step]) -> list[tuple[Result, str]]:
        """Find the results of calls that ran with handles nobody could resolve.

        Args:
            history: Collapsed, so that each call is as the model wrote it.

        Returns:
            Each result with what the model must be told in front of it.
        """
        refusals = self._persisted.refusals()
        # Where the provider keeps the history, a result comes without its call.
        due = dict(refusals)
        self._calls.clear()
        found = []
        for step in history:
            if isinstance(step, Turn):
                for call, named in zip(step.calls, self._keys_of(step).calls, strict=True):
                    key = _numbered(named, self._calls)
                    if refusals:
                        due[_any_call_key(call.call_id)] = refusals.get(key, "")
            elif refusals and isinstance(step, Result):
                told = due.pop(_any_call_key(step.call_id), "")
                if told and not any(site.text.startswith(told) for site in step.parts[:1]):
                    found.append((step, told))
        return found

    def open(self, schemas: Mapping[str, Any], answer_schema: Any) -> Output:
        """Begin with the response to the request that was prepared last, as of that time.

        Args:
            schemas: The schema of each tool's arguments.
            answer_schema: That of an answer which is JSON; None where answers are text.
        """
        return Output(
            space=self._space,
            policy=self._policy,
            shown=self._persisted.known_shown(),
            schemas=schemas,
            answer_schema=answer_schema,
            seen=self._seen.copy(),
            calls=self._calls.copy(),
            answers_calls=self._tools is not None,
        )

    def absorb(
        self,
        response: Mapping[str, Any],
        turns: Sequence[Turn],
        output: Output,
        *,
        streamed: bool = False,
    ) -> Absorbed:
        """Expand the turns of a response, and answer their memory calls.

        Args:
            response: The body, which is not changed.
            turns: What the model produced in it.
            output: As `open` gave it.
            streamed: True where the host has seen the calls already, so that none can be
                refused any more.
        """
        decided = _Decided()
        for turn in turns:
            for call in turn.calls:
                if not output.is_ours(call.tool):
                    self._absorb_call(call, output, decided, streamed=streamed)
            for site in turn.texts:
                self._absorb_text(site, output, decided)
        # Last, so that what a call changes or forgets never changes what the turn passed on.
        pieces = self._answers([call for turn in turns for call in turn.calls], output, decided)
        for turn in turns:
            for site in turn.texts:
                self._count_claims(site.text, decided)
        return Absorbed(
            response=splice(response, decided.edits),
            refused=frozenset(decided.refused),
            claims=tuple(decided.claims),
            pieces=pieces,
            calls=sum(len(turn.calls) for turn in turns),
            choices=len(turns),
        )

    def _answers(
        self, calls: Iterable[CallSite], output: Output, decided: _Decided
    ) -> dict[str, Sequence[Piece]]:
        pieces: dict[str, Sequence[Piece]] = {}
        for call in calls:
            if output.is_ours(call.tool) and self._tools is not None:
                self._persisted.note_own(content_key(call.call_id), call.tool)
                pieces[call.call_id] = self._tools.run(call.tool, call.arguments)
            elif call.call_id in decided.refused:
                pieces[call.call_id] = [Piece(text=decided.refused[call.call_id])]
        return pieces

    def _absorb_call(
        self, call: CallSite, output: Output, decided: _Decided, *, streamed: bool
    ) -> None:
        expansion = output.expansion(call.tool)
        given = call.arguments
        schema = output.schemas.get(call.tool)
        expansion.places = frozenset(text_places(_arguments(given), schema))
        if call.is_free:
            expanded = expansion.text(given)
        elif isinstance(given, str):
            expanded = expand_json(given, expansion, schema)
        else:
            expanded = expansion.arguments(given)
        own_key = _call_key(call.call_id, _arguments(given))
        if expansion.refused and not streamed:
            _numbered(own_key, output.seen)
            refusal = _refusal(expansion.refused, output.shown, _NOT_RUN)
            decided.refused[call.call_id] = refusal
            self._persisted.note_own(answer_key(call.call_id, refusal), call.tool)
            return
        key = _numbered(_call_key(call.call_id, _arguments(expanded)), output.seen)
        own_key = _numbered(own_key, output.calls)
        if expansion.refused:
            refusal = _refusal(expansion.refused, output.shown, _RUN_AS_IT_STANDS)
            self._persisted.refuse(own_key, refusal)
            self._persisted.refuse(_any_call_key(call.call_id), refusal)
        if expanded != given:
            decided.edits[call.path] = expanded
            self._persisted.expanded(key, {"written": given})
            self._passed(call.tool, given, expansion, output, is_text=call.is_free)

    def _absorb_text(self, site: TextSite, output: Output, decided: _Decided) -> None:
        expansion = output.expansion(None)
        is_text = output.answer_schema is None
        if is_text:
            expanded = expansion.text(site.text)
        else:
            places = text_places(_arguments(site.text), output.answer_schema)
            expansion.places = frozenset(places)
            expanded = expand_json(site.text, expansion, output.answer_schema)
        key = _numbered(_text_key(expanded), output.seen)
        if expanded != site.text:
            decided.edits[site.path] = expanded
            self._persisted.expanded(key, {"written": site.text})
            self._passed("", site.text, expansion, output, is_text=is_text)

    def _count_claims(self, text: str, decided: _Decided) -> None:
        named = claims(text)
        was_read = self._persisted.was_read() if named else frozenset()
        for memory_id in dict.fromkeys(reference.memory_id for reference in named):
            if memory_id not in was_read and memory_id not in decided.claims:
                decided.claims.append(memory_id)
                self._persisted.log_claim(memory_id)

    def _passed(
        self, tool: str, written: Any, expansion: Expansion, output: Output, *, is_text: bool
    ) -> None:
        named = dict.fromkeys(reference.memory_id for reference in expansion.used)
        self._persisted.audit(
            {
                "tool": tool,
                "written": written,
                "versions": {memory_id: output.record(memory_id).version for memory_id in named},
                "places": sorted(expansion.places),
                "is_text": is_text,
            }
        )


@dataclass(slots=True, kw_only=True)
class Output:
    """One response on its way to the host: what its handles stand for.

    Each memory is read once, so that a stream and the account of it can't differ.

    Args:
        space: The namespace.
        policy: What may be passed where.
        shown: The memories whose handles were shown when the response began.
        schemas: The schema of each tool's arguments.
        answer_schema: That of an answer which is JSON; None where answers are text.
        seen: How often each output was seen in the history, as the host has it.
        calls: How often each call was, as the model wrote it.
        answers_calls: False where the model was offered no memory tools.
    """

    space: Namespace
    policy: ReferencePolicy
    shown: Mapping[str, str | None]
    schemas: Mapping[str, Any]
    answer_schema: Any
    seen: Counter[str]
    calls: Counter[str]
    answers_calls: bool
    _read: dict[str, MemoryRecord | ZeroMemError] = field(default_factory=dict)

    def is_ours(self, tool: str) -> bool:
        """Tell whether a call to this tool is answered here."""
        return self.answers_calls and tool in MEMORY_TOOLS

    def text(self) -> Fragments:
        """Expand a text for the user as it comes in; JSON, where that was asked for, stays JSON."""
        expansion = self.expansion(None)
        if self.answer_schema is None:
            return TextFragments(expansion)
        return JsonFragments(expansion, self.answer_schema)

    def arguments(self, tool: str, *, free: bool = False) -> Fragments:
        """Expand the arguments of a call as they come in: JSON, or free text."""
        expansion = self.expansion(tool)
        if free:
            return TextFragments(expansion)
        return JsonFragments(expansion, self.schemas.get(tool))

    def expansion(self, tool: str | None) -> Expansion:
        """Expand the arguments of a call, or (None) a text for the user."""

        def resolve(reference: Reference) -> Body:
            memory_id = reference.memory_id
            if self.shown.get(memory_id) is None:
                raise NotFound(f"{handles.render(memory_id)} is no memory of this conversation")
            record = self.record(memory_id)
            if not self.policy.allows(record.kind, tool):
                where = "an answer" if tool is None else f"the arguments of {tool}"
                raise NotAllowed(f"a memory of kind {record.kind} may not go into {where}")
            return record.content

        return Expansion(resolve=resolve)

    def record(self, memory_id: str) -> MemoryRecord:
        """Read a memory, once.

        Raises:
            NotFound: There is none, or it has ended.
        """
        found = self._read.get(memory_id)
        if found is None:
            try:
                found = self.space.get(memory_id)
            except NotFound as error:
                found = error
            self._read[memory_id] = found
        if isinstance(found, ZeroMemError):
            raise found
        return found


@dataclass(slots=True)
class _Decided:
    """What was found in one response; `refused` has the answers to calls that are not run."""

    edits: dict[Path, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    claims: list[str] = field(default_factory=list)


def _numbered(key: str, seen: Counter[str]) -> str:
    """Tell equal outputs apart: one may have been expanded, the next written so."""
    seen[key] += 1
    return f"{key}:{seen[key] - 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnKeys:
    """The names of what of a turn may have been expanded, in the order in which it is absorbed.

    `calls` are those of its calls, which are the first of `outputs`.
    """

    turn: Turn
    calls: tuple[str, ...]
    outputs: tuple[tuple[Path, str], ...]

    @classmethod
    def of(cls, turn: Turn) -> TurnKeys:
        """Name the outputs of a turn."""
        calls = tuple(_call_key(c.call_id, _arguments(c.arguments)) for c in turn.calls)
        paths = [*(call.path for call in turn.calls), *(site.path for site in turn.texts)]
        keys = [*calls, *(_text_key(site.text) for site in turn.texts)]
        return cls(turn=turn, calls=calls, outputs=tuple(zip(paths, keys, strict=True)))


def _call_key(call_id: str, arguments: Any) -> str:
    return content_key("arguments", call_id, arguments)


def _any_call_key(call_id: str) -> str:
    return content_key("refused", call_id)


def _text_key(text: str) -> str:
    return content_key("text", text)


def _arguments(given: Any) -> Any:
    """Decode a call's arguments; free text (of a custom tool) stays text."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given


_NOT_RUN: Final = "The tool was not run; do not repeat this call as it is."
_RUN_AS_IT_STANDS: Final = (
    "The tool was run with these characters as they stand; do not repeat this call as it is."
)


def _refusal(reasons: Iterable[str], shown: Mapping[str, str | None], what_happened: str) -> str:
    usable = [memory_id for memory_id, reason in shown.items() if reason is not None][-10:]
    known = f" Handles that can be used: {handles.render(*usable)}." if usable else ""
    said = "; ".join(dict.fromkeys(reasons))
    return f"Error: {said}. {what_happened}{known}"
