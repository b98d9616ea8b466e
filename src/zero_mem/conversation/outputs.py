"""What a model wrote by reference: expanded for the host, collapsed for the provider."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zero_mem import handles
from zero_mem.controller.definitions import MEMORY_TOOLS
from zero_mem.controller.references import Expansion, ReferencePolicy, claims, text_places
from zero_mem.controller.rounds import Piece, answer_key, content_key, text_of
from zero_mem.controller.wire.draft import json_text
from zero_mem.controller.wire.sites import CallSite, Path, Step, TextSite, Turn, splice
from zero_mem.conversation.persisted import Persisted
from zero_mem.conversation.tools import MemoryTools
from zero_mem.errors import NotAllowed, NotFound
from zero_mem.handles import Reference
from zero_mem.space import Namespace
from zero_mem.types import Body


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

    def collapsing(self, history: Iterable[Step]) -> dict[Path, Any]:
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

    def absorb(
        self, response: Mapping[str, Any], turns: Sequence[Turn], schemas: Mapping[str, Any]
    ) -> Absorbed:
        """Expand the turns of a response, and answer their memory calls.

        Args:
            response: The body, which is not changed.
            turns: What the model produced in it.
            schemas: The schema of each tool's arguments.
        """
        output = _Output(shown=self._persisted.shown(), schemas=schemas)
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

    def _absorb_call(self, call: CallSite, output: _Output) -> None:
        if call.tool in MEMORY_TOOLS and self._tools is not None:
            self._persisted.note_own(content_key(call.call_id), call.tool)
            output.pieces[call.call_id] = self._tools.run(call.tool, call.arguments)
            return
        value, is_json = _arguments(call.arguments)
        places = frozenset(text_places(value, output.schemas.get(call.tool)))
        expansion = self._expansion(output.shown, call.tool, places)
        expanded = expansion.arguments(value)
        key = self._numbered(_call_key(call.call_id, value if expansion.refused else expanded))
        if expansion.refused:
            output.refused.append(call.call_id)
            refusal = _refusal(expansion.refused, output.shown)
            output.pieces[call.call_id] = [Piece(text=refusal)]
            self._persisted.note_own(answer_key(call.call_id, refusal), call.tool)
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


@dataclass(slots=True)
class _Output:
    """What was found in one response."""

    shown: Mapping[str, str | None]
    schemas: Mapping[str, Any]
    edits: dict[Path, Any] = field(default_factory=dict)
    pieces: dict[str, Sequence[Piece]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)


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
