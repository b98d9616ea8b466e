"""What stands in the place of tool results, decided once and kept in the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from zero_mem import handles
from zero_mem.controller.core import Offloader
from zero_mem.controller.definitions import MEMORY_TOOLS
from zero_mem.controller.messages import Message
from zero_mem.controller.rounds import answer_key, content_key
from zero_mem.controller.wire.sites import Path, Result, Step, TextSite, Turn
from zero_mem.conversation.persisted import Inserted, Persisted
from zero_mem.text.tokens import Tokenizer

Keyed: TypeAlias = Mapping[str, tuple[Result, TextSite]]

PURGED: Final = "purged"


class Insertions:
    """Decides what stands in the place of each result of one conversation.

    Args:
        persisted: The conversation's decisions.
        tokenizer: Counts for the offloader.
        share: As in `Offloader`.
        max_extract: As in `Offloader`.
        decides: False where only earlier decisions hold and new results stay as they are.
    """

    def __init__(
        self,
        persisted: Persisted,
        tokenizer: Tokenizer,
        *,
        share: float,
        max_extract: int,
        decides: bool,
    ) -> None:
        self._persisted = persisted
        self._tokenizer = tokenizer
        self._share = share
        self._max_extract = max_extract
        self._decides = decides
        self._own: frozenset[str] = frozenset()
        self._offloader()

    def _offloader(self) -> Offloader:
        return Offloader(
            share=self._share,
            tokenizer=self._tokenizer,
            max_extract=self._max_extract,
            exempt=MEMORY_TOOLS,
        )

    def edits(self, history: Sequence[Step]) -> dict[Path, str]:
        """Give what stands in the place of the results of a history, deciding new ones."""
        self._own = self._persisted.own()
        known = self._persisted.insertions()
        keyed = _keyed(history)
        new = [result for key, (result, _) in keyed.items() if key not in known]
        if self._decides and not all(map(self.is_exempt, new)):
            known = {**known, **self._decided(history, keyed, known)}
        edits = {
            site.path: self._inserted(known[key], site)
            for key, (_, site) in keyed.items()
            if key in known
        }
        edits.update(self._without_purged(history))
        return edits

    def keep(self, history: Sequence[Step]) -> None:
        """Decide that the results of a history that are not decided yet stay whole."""
        self._own = self._persisted.own()
        known = self._persisted.insertions()
        for key, (result, site) in _keyed(history).items():
            if key not in known and not self.is_exempt(result):
                text = handles.escape(site.text)
                self._persisted.insert(key, Inserted(memory_id="", text=text))

    def _inserted(self, inserted: Inserted, site: TextSite) -> str:
        if inserted.purged:
            self._persisted.log(PURGED, inserted.memory_id)
            return f"{handles.render(inserted.memory_id)} {PURGED}"
        return site.text if inserted.text is None else inserted.text

    def is_exempt(self, result: Result) -> bool:
        """Tell whether a result is an answer of our own (`recall:no-loop`)."""
        if result.tool in MEMORY_TOOLS:
            return True
        if not result.tool and content_key(result.call_id) in self._own:
            return True
        return answer_key(result.call_id, *(site.text for site in result.parts)) in self._own

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
        for step in history:
            if not isinstance(step, Result):
                offloader.observe(step.message() if isinstance(step, Turn) else step)
                continue
            for place, site in enumerate(step.parts):
                key = next(keys)
                message = _tool_message(step, site)
                if self.is_exempt(step):
                    offloader.adopt(message, site.text)
                elif key in known:
                    offloader.adopt(message, self._inserted(known[key], site))
                else:
                    decided[key] = self._decide(offloader, key, place, message)
        return decided

    def _decide(self, offloader: Offloader, key: str, place: int, message: Message) -> Inserted:
        memory_id = self._persisted.save_result(key, message.text, tool=message.tool)
        if not memory_id:  # nothing to keep, or no room to keep it
            text = handles.escape(message.text)
            offloader.adopt(message, text)
            inserted = Inserted(memory_id="", text=text)
        else:
            insertion = offloader.insert(message, memory_id)
            if insertion.receipt:
                self._persisted.show(memory_id, "receipt")
            inserted = Inserted(
                memory_id=memory_id,
                text=None if insertion.text == message.text else insertion.text,
                spans=tuple((span.start, span.end, span.reason) for span in insertion.spans),
            )
        if memory_id is not None:
            self._persisted.insert(key, inserted)
            if inserted.text is not None:
                # A host that keeps the prepared history sends our text for the result.
                ours = _key(message.call_id, place, inserted.text)
                self._persisted.insert(ours, Inserted(memory_id=memory_id))
        return inserted

    def _without_purged(self, history: Sequence[Step]) -> dict[Path, str]:
        """Take what was purged out of earlier answers of the memory tools."""
        purged = {key for key, reason in self._persisted.shown().items() if reason is None}
        edits: dict[Path, str] = {}
        for step in history if purged else ():
            if isinstance(step, Result) and self.is_exempt(step):
                for site in step.parts:
                    text = _purge_lines(site.text, purged)
                    if text != site.text:
                        edits[site.path] = text
        for memory_id in purged if edits else ():
            self._persisted.log(PURGED, memory_id)
        return edits


def _keyed(history: Iterable[Step]) -> dict[str, tuple[Result, TextSite]]:
    """Name each text of a result by its call id, content, part, and which of its like it is."""
    keyed: dict[str, tuple[Result, TextSite]] = {}
    for result in (step for step in history if isinstance(step, Result)):
        for place, site in enumerate(result.parts):
            occurrence = 0
            while (key := _key(result.call_id, place, site.text, occurrence)) in keyed:
                occurrence += 1
            keyed[key] = (result, site)
    return keyed


def _key(call_id: str, place: int, text: str, occurrence: int = 0) -> str:
    return content_key(call_id, place, text, occurrence)


def _tool_message(result: Result, site: TextSite) -> Message:
    return Message(
        role="tool",
        text=site.text,
        call_id=result.call_id,
        tool=result.tool,
        is_error=result.is_error,
    )


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
                lines.append(f"{handles.render(memory_id)} {PURGED}")
        if not dropping:
            lines.append(line)
    return "\n".join(lines)
