"""From decoded JSON values, one after another, to runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from zero_mem.controller.messages import Defect, Transcript
from zero_mem.controller.wire.claude_code import Session
from zero_mem.controller.wire.codex import Rollout
from zero_mem.controller.wire.detect import own_name, shape, wire_format
from zero_mem.controller.wire.draft import Draft, Parsed, kind
from zero_mem.controller.wire.formats import WIRES, parse
from zero_mem.controller.wire.request_log import RequestLog

Read: TypeAlias = Transcript | Defect


@dataclass(slots=True)
class Assembly:
    """The values of one file on their way to runs.

    A record that holds a run gives it at once. Loose messages, session entries and requests
    belong together, so their runs are given by `finish`.

    Args:
        file: Name of the file, for names and defects.
        names: The names that are taken; those given here are added.
    """

    file: str
    names: set[str] = field(default_factory=set)
    _session: Session | None = None
    _rollout: Rollout | None = None
    _log: RequestLog | None = None
    _loose: list[tuple[Any, int]] = field(default_factory=list)
    _strange: list[tuple[Defect, bool]] = field(default_factory=list)
    _runs: int = 0

    def feed(self, value: Any, line: int) -> Iterator[Read]:
        """Take one decoded value; give the runs and defects that are complete with it."""
        match shape(value):
            case "session":
                self._entries().add(value, line)
            case "rollout":
                self._rollout = self._rollout or Rollout(file=self.file)
                self._rollout.add(value, line)
            case "pair" | "request":
                self._requests().add(value, line)
            case "run":
                yield from self._run(value, line)
            case "messages":
                yield from self._list(value, line)
            case "message":
                self._loose.append((value, line))
            case "several":
                for part in value:
                    yield from self.feed(part, line)
            case None:
                problem = f"no message, run, request or session entry ({kind(value)}): left out"
                defect = self._defect(problem, record=f"line {line}", line=line)
                self._strange.append((defect, _may_be_entry(value)))

    def finish(self) -> Iterator[Read]:
        """Give the runs that needed the whole file, and what was no part of any."""
        if self._loose:
            messages = [value for value, _ in self._loose]
            yield from self._messages(messages, [line for _, line in self._loose])
        for session in (self._session, self._rollout):
            if session is not None:
                yield from self._named(session.parsed())
        if self._log is not None:
            for draft in self._log.runs():
                yield from self._named(draft.parsed())
        client = self._session or self._rollout
        yield from (defect for defect, entry in self._strange if not (entry and client))

    def _entries(self) -> Session:
        self._session = self._session or Session(file=self.file)
        return self._session

    def _requests(self) -> RequestLog:
        self._log = self._log or RequestLog(file=self.file)
        return self._log

    def _run(self, record: Mapping[str, Any], line: int) -> Iterator[Read]:
        items = record.get("messages", record.get("input"))
        form = wire_format(items if isinstance(items, list) else (), record)
        draft = Draft(wire_format=form, name=own_name(record), file=self.file, line=line)
        WIRES[form].read_request(draft, record)
        yield from self._named(draft.parsed(), line)

    def _list(self, messages: Sequence[Any], line: int) -> Iterator[Read]:
        yield from self._messages(messages, [line] * len(messages))

    def _messages(self, messages: Sequence[Any], lines: Sequence[int]) -> Iterator[Read]:
        read = parse(messages, wire_format(messages), file=self.file, lines=lines)
        yield from self._named(read)

    def _named(self, parsed: Parsed, line: int = 0) -> Iterator[Read]:
        for run in parsed.transcripts:
            self._runs += 1
            if run.messages:
                yield replace(run, name=self._name(run.name))
            else:
                yield self._defect("a run without messages: left out", record=run.name, line=line)
        yield from parsed.defects

    def _name(self, wanted: str) -> str:
        """Give a name that nothing else has: the run's own, with the file's if it is taken."""
        numbered = f"{self.file}#{self._runs}"
        for name in (
            wanted,
            f"{self.file}:{wanted}" if wanted else numbered,
            f"{numbered}:{wanted}",
        ):
            if name and name not in self.names:
                break
        self.names.add(name)
        return name

    def _defect(self, problem: str, *, record: str = "", line: int = 0) -> Defect:
        return Defect(file=self.file, line=line, record=record, problem=problem)


def _may_be_entry(value: Any) -> bool:
    """Tell whether a session's client could have noted this: every entry has a type."""
    return isinstance(value, dict) and isinstance(value.get("type"), str)
