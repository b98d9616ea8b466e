"""Decision coverage of one run, call by call: what was needed, and what a prompt gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zero_mem.controller.definitions import READ_TOOL
from zero_mem.controller.messages import Message
from zero_mem.replay.accounting import TokenCache
from zero_mem.replay.coverage import History, Part, Taken, Verdict, judge, read_of
from zero_mem.replay.figures import Seen, ValueSeen
from zero_mem.replay.prompt import INJECTED, Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The values that one call takes from memory."""

    values: tuple[Taken, ...] = ()


class Judge:
    """Judges the prompts of one run against the full transcript so far."""

    def __init__(self, cache: TokenCache, *, read_tool: str = READ_TOOL) -> None:
        self._cache = cache
        self._history = History()
        self._memory_ids: dict[int, str] = {}
        self._read_tool = read_tool
        self._seen = 0

    def observe(self, message: Message, memory_id: str) -> None:
        """Take the next message, and the memory that holds it where it is a tool result."""
        if memory_id:
            self._memory_ids[self._seen] = memory_id
        self._history.observe(message)
        self._seen += 1

    def need(self, answer: Message) -> Need:
        """Say what the next message's calls take from memory."""
        return Need(values=tuple(self._history.called(answer)) if answer.calls else ())

    def see(self, need: Need, shown: Shown) -> tuple[Seen, tuple[ValueSeen, ...]]:
        """Judge a prompt: how many of the values it gives, and each of them.

        A receipt in the prompt is a live handle of the result that it stands for.
        """
        total, values = Seen(), []
        for taken in need.values:
            verdict = judge(taken, shown.parts, self._history, live=shown.live)
            total += self._counted(taken, verdict)
            away = verdict.reachable and not verdict.visible
            values.append(
                ValueSeen(
                    value=taken.value,
                    visible=verdict.visible,
                    linked=verdict.linked,
                    read=self._memory_ids.get(taken.newest, "") if away else "",
                )
            )
        return total, tuple(values)

    def _counted(self, taken: Taken, verdict: Verdict) -> Seen:
        in_text = not self._history.record(taken.newest).is_json
        counted = Seen(
            values=1,
            visible=verdict.visible,
            linked=verdict.linked,
            lines=in_text,
            in_line=in_text and verdict.in_line,
            reachable=verdict.reachable,
        )
        unseen = verdict.reachable and not verdict.visible
        return counted + self._read(taken) if unseen else counted

    def _read(self, taken: Taken) -> Seen:
        read = read_of(taken, self._history, self._memory_ids.get(taken.newest, ""))
        control = self._cache.count(self._read_tool) + self._cache.count(read.arguments)
        return Seen(reads=1, read_tokens=self._cache.count(read.text), control_tokens=control)


class Shown:
    """What one session's prompts show of memory, kept up to date from call to call.

    A value from memory stands in nothing that was said, so that of a prompt only tool results
    and what a strategy wrote itself can show it. `live` has one item per message, -1 for what
    has no handle.
    """

    def __init__(self) -> None:
        self.live: list[int] = []
        self._parts: list[Sequence[Part]] = []

    @property
    def parts(self) -> list[Part]:
        """The texts that can show a value, each with the message that it stands for."""
        return [part for parts in self._parts for part in parts]

    def update(self, entries: Sequence[Entry], kept: int) -> None:
        """Take the next prompt, of which the first `kept` messages are as before."""
        del self._parts[kept:], self.live[kept:]
        for entry in entries[kept:]:
            self._parts.append(_parts(entry))
            self.live.append(entry.origin if entry.receipt else -1)


def _parts(entry: Entry) -> Sequence[Part]:
    if entry.message.role != "tool" and not entry.changed:
        return ()
    text = entry.message.text
    quoted = [
        Part(text=text[span.start : span.end], origin=span.origin)
        for span in entry.spans
        if span.origin != INJECTED
    ]
    return quoted or (Part(text=text, origin=entry.origin),)
