"""Claude Code session files: entries to the neutral form.

One API response is spread over several lines with one message id; results may stand between
them. A side chain is a run of its own. After a compact boundary the model saw a summary in
place of what was before, so a new run begins there. `toolUseResult`, summaries, snapshots
and other entries without a message are the client's own notes and never reached the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from zero_mem.controller.messages import Defect, Transcript
from zero_mem.controller.wire import anthropic
from zero_mem.controller.wire.draft import Draft, Parsed, kind, string
from zero_mem.controller.wire.moments import moment_of

_SPOKEN: Final = frozenset({"user", "assistant"})


def parse(
    entries: Iterable[Any], *, name: str = "", file: str = "", lines: Sequence[int] = ()
) -> Parsed:
    """Read the entries of one session file.

    Args:
        entries: The decoded entries in the order of the file.
        name: Name of the session, for defects and transcripts.
        file: Name of the file, for defects.
        lines: The 1-based line of each entry in the file; without, they are counted.
    """
    session = Session(name=name, file=file)
    for index, entry in enumerate(entries):
        session.add(entry, lines[index] if index < len(lines) else index + 1)
    return session.parsed()


@dataclass(slots=True)
class _Chain:
    """The run that is being read on one chain, and where each message id stands in it."""

    draft: Draft
    positions: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Session:
    """A session file while it is being read, entry by entry."""

    name: str = ""
    file: str = ""
    _chains: dict[str, _Chain] = field(default_factory=dict)
    _chain_of: dict[str, str] = field(default_factory=dict)
    _closed: list[Draft] = field(default_factory=list)
    _defects: list[Defect] = field(default_factory=list)

    def add(self, entry: Any, line: int) -> None:
        """Read one entry; what cannot be read becomes a defect, the rest goes on."""
        if not isinstance(entry, dict):
            self._reject(line, f"not an entry object ({kind(entry)}): left out")
            return
        self.name = self.name or string(entry.get("sessionId"))
        key = self._key(entry)
        if entry.get("subtype") == "compact_boundary":
            self._close(key)
        elif string(entry.get("type")) in _SPOKEN and not _hidden(entry):
            self._read(key, entry, line)

    def parsed(self) -> Parsed:
        """Close every run; those in which the model said nothing are left out, unless all did."""
        drafts = [*self._closed, *(chain.draft for chain in self._chains.values())]
        drafts.sort(key=_first_line)
        parts = [draft.parsed() for draft in drafts]
        spoken = [part for part in parts if _has_output(part.transcripts[0])] or parts
        return Parsed(
            transcripts=tuple(run for part in spoken for run in part.transcripts),
            defects=(*self._defects, *(defect for part in parts for defect in part.defects)),
        )

    def _key(self, entry: Mapping[str, Any]) -> str:
        """Name the chain of an entry: empty for the main one, else the side chain's first uuid."""
        if entry.get("isSidechain") is not True:
            return ""
        uuid, parent = string(entry.get("uuid")), string(entry.get("parentUuid"))
        key = string(entry.get("agentId")) or self._chain_of.get(parent) or uuid or "side"
        self._chain_of[uuid] = key
        return key

    def _chain(self, key: str) -> _Chain:
        if key not in self._chains:
            name = f"{self.name}/{key}" if key else self.name
            runs = sum(draft.name.split("#")[0] == name for draft in self._closed)
            name = f"{name}#{runs + 1}" if runs else name
            self._chains[key] = _Chain(Draft(wire_format="claude_code", name=name, file=self.file))
        return self._chains[key]

    def _close(self, key: str) -> None:
        chain = self._chains.pop(key, None)
        if chain is not None:
            self._closed.append(chain.draft)

    def _read(self, key: str, entry: Mapping[str, Any], line: int) -> None:
        message = entry.get("message")
        if not isinstance(message, dict):
            self._reject(line, f"a {entry['type']} entry without a message object: left out")
            return
        chain = self._chain(key)
        chain.draft.at(f"line {line}", line, moment_of(entry))
        if entry["type"] == "user":
            anthropic.read_input(chain.draft, "user", message.get("content"))
        else:
            _read_piece(chain, message)

    def _reject(self, line: int, problem: str) -> None:
        record = f"{self.name} line {line}".strip()
        self._defects.append(Defect(file=self.file, line=line, record=record, problem=problem))


def _hidden(entry: Mapping[str, Any]) -> bool:
    """Tell whether the client shows an entry to its user only."""
    if entry.get("isCompactSummary"):
        return False
    return bool(entry.get("isVisibleInTranscriptOnly") or entry.get("isApiErrorMessage"))


def _read_piece(chain: _Chain, message: Mapping[str, Any]) -> None:
    """Read a piece of a response: the first makes the message, the others join it."""
    if message.get("model") == "<synthetic>":
        return
    draft, message_id = chain.draft, string(message.get("id"))
    blocks = anthropic.read_blocks(draft, message.get("content"))
    index = chain.positions.get(message_id) if message_id else None
    if index is None:
        index = draft.assistant(blocks.content, blocks.calls)
        chain.positions[message_id] = index
    else:
        draft.extend(index, blocks.content, blocks.calls)
    draft.model = string(message.get("model")) or draft.model
    if isinstance(message.get("usage"), dict):
        _count(draft, index, anthropic.usage(message["usage"]))


def _count(draft: Draft, index: int, figures: Mapping[str, int]) -> None:
    """Keep the usage of a response: each piece repeats it, and output grows to its last figure."""
    before = draft.usage.get(index, {})
    draft.usage[index] = {key: max(value, before.get(key, 0)) for key, value in figures.items()}


def _has_output(run: Transcript) -> bool:
    return any(message.role == "assistant" for message in run.messages)


def _first_line(draft: Draft) -> int:
    return draft.messages[0].source_line if draft.messages else 0
