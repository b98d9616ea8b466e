"""What stands in the place of tool results, decided once and kept in the store."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from zero_mem import handles
from zero_mem.controller.core import Offloader
from zero_mem.controller.definitions import MEMORY_TOOLS
from zero_mem.controller.folding import folded
from zero_mem.controller.messages import Message
from zero_mem.controller.rounds import answer_key, content_key
from zero_mem.controller.wire.draft import string
from zero_mem.controller.wire.sites import Path, Result, Step, TextSite, Turn
from zero_mem.conversation.feed import Fed, Feed
from zero_mem.conversation.persisted import Inserted, NewResult, Persisted, Saved
from zero_mem.conversation.wording import PURGED
from zero_mem.text.tokens import Tokenizer

Keyed: TypeAlias = Mapping[str, tuple[Result, TextSite]]

GONE: Final = "(purged)"


class Insertions:
    """Decides what stands in the place of each result of one conversation.

    Args:
        persisted: The conversation's decisions.
        tokenizer: Counts for the offloader.
        share: As in `Offloader`.
        max_extract: As in `Offloader`.
        decides: False where only earlier decisions hold and new results stay as they are.
        folds: Whether a new result stands in full for the first call that reads it.
    """

    def __init__(
        self,
        persisted: Persisted,
        tokenizer: Tokenizer,
        *,
        share: float,
        max_extract: int,
        decides: bool,
        folds: bool = False,
    ) -> None:
        self._persisted = persisted
        self._folds = folds
        self._decides = decides
        self._own: frozenset[str] = frozenset()
        self._names: dict[int, tuple[Result, tuple[str, ...]]] = {}
        self._feed = Feed(
            partial(
                Offloader,
                share=share,
                tokenizer=tokenizer,
                max_extract=max_extract,
                exempt=MEMORY_TOOLS,
            )
        )

    def edits(
        self, history: Sequence[Step], items: Sequence[Any], *, new: bool = True
    ) -> dict[Path, str]:
        """Give what stands in the place of the results of a history.

        Args:
            history: The messages, results as the host has them.
            items: The raw items that they were read from.
            new: Whether to decide what was not decided before.
        """
        self._own = self._persisted.own()
        known = self._persisted.insertions()
        keyed = self._keyed(history)
        if self._decides and new:
            fresh = {key: at for key, at in keyed.items() if key not in known}
            fresh = {key: at for key, at in fresh.items() if not self.is_exempt(at[0])}
            if fresh and self._decide(history, keyed, known, fresh):
                known = self._persisted.insertions()
        edits = {
            site.path: self._inserted(known[key], site)
            for key, (_, site) in keyed.items()
            if key in known
        }
        edits.update(self._unfolded(history, items, keyed, known))
        edits.update(self._without_purged(history))
        return edits

    def keep(self, history: Sequence[Step]) -> None:
        """Decide that the results of a history that are not decided yet stay whole."""
        self._own = self._persisted.own()
        known = self._persisted.insertions()
        kept = {
            (key, ""): Inserted(memory_id="", text=handles.escape(site.text))
            for key, (result, site) in self._keyed(history).items()
            if key not in known and not self.is_exempt(result)
        }
        if kept:
            self._persisted.insert(kept)

    def standing(self, history: Sequence[Step], edits: Mapping[Path, str]) -> dict[int, Inserted]:
        """Give the decisions that stand in a prompt, by the number of the text among results.

        Args:
            history: As in `edits`.
            edits: What that gave; what stands in full there, or is purged, is not among them.
        """
        known = self._persisted.insertions()
        listed = enumerate(self._keyed(history).items())
        return {
            number: known[key]
            for number, (key, (_, site)) in listed
            if key in known and edits.get(site.path) == known[key].text
        }

    def _unfolded(
        self,
        history: Sequence[Step],
        items: Sequence[Any],
        keyed: Keyed,
        known: Mapping[str, Inserted],
    ) -> dict[Path, str]:
        """Give the results that are to fold, but stand in full in this prompt."""
        folding = [at for key, at in keyed.items() if key in known and known[key].stands_first]
        if not folding:
            return {}
        short = folded([_neutral(step, items) for step in history])
        done = {id(step) for at, step in enumerate(history) if at in short}
        return {
            site.path: handles.escape(site.text)
            for result, site in folding
            if id(result) not in done
        }

    def _keyed(self, history: Iterable[Step]) -> Keyed:
        """Name each text of a result by its call id, content, part, and which of its like it is."""
        results = [step for step in history if isinstance(step, Result)]
        # The same objects come again with every longer history.
        known = self._names
        self._names = {id(one): known.get(id(one)) or (one, _names(one)) for one in results}
        keyed: dict[str, tuple[Result, TextSite]] = {}
        seen: Counter[str] = Counter()
        for result in results:
            for name, site in zip(self._names[id(result)][1], result.parts, strict=True):
                keyed[f"{name}-{seen[name]}"] = (result, site)
                seen[name] += 1
        return keyed

    def _inserted(self, inserted: Inserted, site: TextSite) -> str:
        if inserted.purged:
            self._persisted.log(PURGED, inserted.memory_id)
            return f"{handles.render(inserted.memory_id)} {PURGED}"
        return site.text if inserted.text is None else inserted.text

    def is_exempt(self, result: Result) -> bool:
        """Tell whether a result is an answer of our own (`recall:no-loop`)."""
        if result.tool in MEMORY_TOOLS:
            return True
        if not self._own:
            return False
        if not result.tool and content_key(result.call_id) in self._own:
            return True
        return answer_key(result.call_id, *(site.text for site in result.parts)) in self._own

    def _decide(
        self, history: Sequence[Step], keyed: Keyed, known: Mapping[str, Inserted], new: Keyed
    ) -> bool:
        """Save the new results and decide them, in order, after all that came before them.

        Returns:
            Whether any was decided: what a store can't keep stays as it is.
        """
        results = [NewResult(key, site.text, result.tool) for key, (result, site) in new.items()]
        saved = dict(zip(new, self._persisted.save_results(results), strict=True))
        decided: dict[tuple[str, str], Inserted] = {}
        keys = iter(keyed)
        fed = self._feed.start()
        for step in history:
            if not isinstance(step, Result):
                fed.observe(step.message() if isinstance(step, Turn) else step)
                continue
            for place, site in enumerate(step.parts):
                key, message = next(keys), _tool_message(step, site)
                outcome = saved.get(key)
                if key in known:
                    fed.adopt(message, self._inserted(known[key], site))
                elif outcome is None:
                    fed.adopt(message, site.text)
                else:
                    inserted = _insertion(fed, message, outcome, folds=self._folds)
                    decided[key, _alias(message, place, inserted)] = inserted
        self._feed.keep(fed)
        if decided:
            self._persisted.insert(decided)
        return bool(decided)

    def _without_purged(self, history: Sequence[Step]) -> dict[Path, str]:
        """Take what was purged out of earlier answers of the memory tools."""
        purged = {key for key, reason in self._persisted.known_shown().items() if reason is None}
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


def _names(result: Result) -> tuple[str, ...]:
    listed = enumerate(result.parts)
    return tuple(_name(result.call_id, place, site.text) for place, site in listed)


def _name(call_id: str, place: int, text: str) -> str:
    head = f"{len(call_id)}/{place}/{call_id}".encode("utf-8", "surrogatepass")
    named = hashlib.blake2b(head, digest_size=20)
    named.update(text.encode("utf-8", "surrogatepass"))
    return named.hexdigest()


def _alias(message: Message, place: int, inserted: Inserted) -> str:
    """Name the result as it is once a host that keeps prepared histories sends our text."""
    if inserted.text is None:
        return ""
    return f"{_name(message.call_id, place, inserted.text)}-0"


def _insertion(fed: Fed, message: Message, saved: Saved, *, folds: bool) -> Inserted:
    """Decide one new result."""
    if saved.memory_id is None:
        fed.adopt(message, GONE)
        return Inserted(memory_id="", text=GONE)
    if not saved.memory_id:  # the store has no room
        text = handles.escape(message.text)
        fed.adopt(message, text)
        return Inserted(memory_id="", text=text)
    # Only what the store may hold is quoted, since the quotation is stored too.
    stored = message if saved.masked is None else replace(message, text=saved.masked)
    insertion = fed.insert(stored, saved.memory_id)
    return Inserted(
        memory_id=saved.memory_id,
        text=None if insertion.text == stored.text else insertion.text,
        spans=tuple((span.start, span.end, span.reason) for span in insertion.spans),
        receipt=bool(insertion.receipt),
        folds=folds and bool(insertion.receipt),
    )


def _neutral(step: Step, items: Sequence[Any]) -> Message:
    """Give a step as folding looks at it: its role, and whether it has parts that are signed."""
    if isinstance(step, Result):
        return Message(role="tool")
    if not isinstance(step, Turn):
        return step
    return Message(role="assistant", opaque=tuple(part_types(items[step.start : step.stop])))


def part_types(items: Iterable[Any]) -> Iterator[str]:
    """Name the types of items and of the parts in their contents."""
    for item in items:
        if isinstance(item, Mapping):
            yield string(item.get("type"))
            content = item.get("content")
            for part in content if isinstance(content, list | tuple) else ():
                if isinstance(part, Mapping):
                    yield string(part.get("type"))


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
