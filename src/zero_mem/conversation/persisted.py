"""What a conversation has decided, kept in the store so that every replay is the same.

All of it is one scope of decisions, read at once, and the blocks another (`prompts`); a key
begins with what it is for.

| what | key | value |
|---|---|---|
| `insert` | a result, its alias and its memory | what stands in its place; goes with the memory |
| `shown` | a memory | why its handle stands in the conversation; goes with the memory |
| `read` | a memory | that its body was read |
| `line` | a block and a place in it | what was found for a question; goes with its memory |
| `sent` | a history, by its digest | how many blocks there were when it was first sent, and when |
| `asked` | a message of the user | that memories were searched for it |
| `written` | an expanded output | the provider's own form of it |
| `refused` | a call | what the model must be told with its result: it ran with an open handle |
| `own` | a call id, or one with an answer | the tool whose call was answered here |
| `hidden`, `answer` | a turn | rounds that the host does not see; answers go with their memory |
| `audit` | a number and its content | what was passed by reference |
| `log` | an event and its memory | purges that changed a prompt |
| `claim` | a number and its content | a memory of which something was said though it was not read |

What belongs to a memory that was purged meanwhile is not kept.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from zero_mem import prompts
from zero_mem.controller.rounds import Answered, Hidden, Piece, content_key
from zero_mem.conversation.sent import Sent, SentAt, read, written
from zero_mem.errors import Conflict, InvalidInput, LimitReached, NotFound, ZeroMemError
from zero_mem.operations.requests import check_name
from zero_mem.prompts import Block
from zero_mem.space import Namespace
from zero_mem.types import MemoryReceipt

_LONGEST = 200
_WITHOUT_BODY = "(purged)"
INJECTED: Final = "injected"
SCOPE: Final = "controller:"  # begins the scope of a conversation's decisions


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """What stands in the place of a result.

    `memory_id` is "" where the store had no room for it. `text` is None where the result stands
    as it is; `spans` are stretches (start, end) of the text with their reasons; `receipt` tells
    that its handle is shown; `folds` that the result stands in full until a call has answered
    it; `purged` that the memory was erased, so nothing of it may stand there any more.
    """

    memory_id: str
    text: str | None = None
    spans: tuple[tuple[int, int, str], ...] = ()
    receipt: bool = False
    folds: bool = False
    purged: bool = False

    @property
    def stands_first(self) -> bool:
        """Whether the result stands in full until a call has answered it."""
        return self.folds and not self.purged


class NewResult(NamedTuple):
    """A result that was not decided before: its key, its text and the tool that gave it."""

    key: str
    text: str
    tool: str


class Saved(NamedTuple):
    """What became of a result: its memory, and its text there where a secret was masked.

    `memory_id` is "" where the store has no room and refuses, which is final too; None where
    the memory was purged since.
    """

    memory_id: str | None
    masked: str | None = None


def scope_of(conversation: str) -> str:
    """Name the scope of a conversation's decisions; its keys are in the order of deciding."""
    return f"{SCOPE}{conversation}"


class Persisted:
    """The decisions of one conversation in one namespace.

    What is read is the state of the last `refresh`, with what was written here since;
    `generation` counts both.
    """

    def __init__(self, space: Namespace, conversation: str) -> None:
        self._space = space
        self._name = check_name(conversation, "conversation", longest=_LONGEST)
        self._scope = scope_of(self._name)
        self._known: dict[str, dict[str, str | None]] = {}
        self._parsed: dict[str, Inserted] = {}
        self._pending: list[dict[str, Any]] | None = None
        self._insertions: dict[str, Inserted] | None = None
        self.generation = 0
        self.position = 0
        self.settings = ""
        self.blocks: dict[str, str | None] = {}

    @property
    def owner(self) -> str:
        """The owner of the conversation's holds."""
        return f"conversation:{self._name}"

    @property
    def name(self) -> str:
        """The conversation."""
        return self._name

    def refresh(self) -> None:
        """Read everything at once; `position` tells the newest change of any record by then."""
        found = self._space.decisions_at(self._scope, prompts.blocks_scope(self._name))
        self.position, self.settings, (stored, self.blocks) = found
        known: dict[str, dict[str, str | None]] = defaultdict(dict)
        for key, value in stored.items():
            what, _, rest = key.partition(":")
            known[what][rest] = value
        for item in self._pending or ():
            what, _, rest = item["key"].partition(":")
            known[what].setdefault(rest, item["value"])
        self._known = known
        self._changed()

    def _changed(self) -> None:
        self._insertions = None
        self.generation += 1

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write what is decided inside in one transaction at the end; nothing on an error."""
        self._pending = []
        try:
            yield
            pending = self._pending
        finally:
            self._pending = None
        self._write(pending)

    def _all(self, what: str) -> dict[str, str | None]:
        return self._known.get(what, {})

    def _set(self, what: str, key: str, value: str, memory_id: str | None = None) -> None:
        item = self._item(what, key, value, memory_id)
        if self._pending is None:
            self._space.decide_many([item], only_new=True)
        else:
            self._pending.append(item)
        self._known.setdefault(what, {}).setdefault(key, value)
        self._changed()

    def _item(
        self, what: str, key: str, value: str, memory_id: str | None = None
    ) -> dict[str, Any]:
        named = {"scope": self._scope, "key": f"{what}:{key}", "value": value}
        return {**named, "memory_id": memory_id}

    def _write(self, items: Sequence[Mapping[str, Any]]) -> list[bool]:
        """Write all of the items whose memory is still there, and hold those memories."""
        try:
            return self._space.decide_many(items, only_new=True, hold=self.owner)
        except NotFound:
            there = [item for item in items if self._is_there(item.get("memory_id"))]
            return self._space.decide_many(there, only_new=True, hold=self.owner)

    def _is_there(self, memory_id: str | None) -> bool:
        if memory_id is None:
            return True
        try:
            entries = self._space.history(memory_id)
        except NotFound:
            return False
        return entries[-1].operation != "purge"

    def _append(self, what: str, fields: Mapping[str, Any]) -> None:
        # Two writers at once may count the same number; their entries differ.
        number = len(self._all(what))
        self._set(what, f"{number}:{content_key(fields)}", json.dumps(fields))

    def _list(self, what: str) -> Iterator[dict[str, Any]]:
        self.refresh()
        yield from self.entries(what).values()

    def entries(self, what: str) -> dict[str, dict[str, Any]]:
        """Give the entries of the accounts "audit", "log" or "claim" by key, in order."""
        return {k: json.loads(v) for k, v in self._all(what).items() if v is not None}

    # Results

    def insertions(self) -> dict[str, Inserted]:
        """Read what stands in the place of each result, by the result's key."""
        if self._insertions is None:
            self._insertions = self._read_insertions()
        return self._insertions

    def _read_insertions(self) -> dict[str, Inserted]:
        found: dict[str, Inserted] = {}
        for named, value in self._all("insert").items():
            key, alias, memory_id = named.split(":", 2)
            inserted = self._inserted(named, memory_id, value)
            found.setdefault(key, inserted)  # of two that were decided at once the first holds
            if alias:
                kept = Inserted(memory_id=memory_id, purged=inserted.purged)
                found.setdefault(alias, kept)
        return found

    def _inserted(self, named: str, memory_id: str, value: str | None) -> Inserted:
        if value is None:
            self._parsed.pop(named, None)
            return Inserted(memory_id=memory_id, purged=True)
        found = self._parsed.get(named)
        if found is None:
            fields = json.loads(value)
            spans = tuple((start, end, reason) for start, end, reason in fields.pop("spans"))
            found = Inserted(memory_id=memory_id, spans=spans, **fields)
            self._parsed[named] = found
        return found

    def save_results(self, results: Sequence[NewResult]) -> list[Saved | None]:
        """Save results once, held for the conversation, in one transaction.

        Returns:
            What became of each; None where there is nothing that a store can keep.
        """
        items = [
            {
                "content": text,
                "kind": "tool_result",
                "source": "tool",
                "metadata": {"tool": tool} if tool else None,
                "session": self._name,
                "hold": self.owner,
                "idempotency_key": f"{self._scope}:{key}",
            }
            for key, text, tool in results
        ]
        saved = self._space.save_many(items, on_error="skip")
        return [self._saved(one) for one in saved]

    def _saved(self, result: MemoryReceipt | ZeroMemError) -> Saved | None:
        if isinstance(result, MemoryReceipt):
            memory_id = result.memory_id
            if not result.masked:
                return Saved(memory_id)
            (record,) = self._space.get_many([memory_id])
            return Saved(memory_id, None if record is None else record.text)
        if isinstance(result, LimitReached):
            return Saved("")
        if isinstance(result, Conflict):
            return Saved(None)
        if isinstance(result, InvalidInput):
            return None
        raise result

    def insert(self, decided: Mapping[tuple[str, str], Inserted]) -> None:
        """Make what stands in the place of results final, and read what holds.

        Args:
            decided: By the key of the result, and the key that it has once a host that keeps
                prepared histories sends our text for it ("" where that is the result's own).
        """
        self._write(
            [
                self._item(
                    "insert",
                    f"{key}:{alias}:{inserted.memory_id}",
                    _fields(inserted),
                    inserted.memory_id or None,
                )
                for (key, alias), inserted in decided.items()
            ]
        )
        self.refresh()

    # Handles

    def show(self, memory_id: str, reason: str) -> None:
        """Note that a memory's handle stands in the conversation."""
        if self._all("shown").get(memory_id) is None:
            self._set("shown", memory_id, reason, memory_id)

    def shown(self) -> dict[str, str | None]:
        """Read, as of now, the memories whose handles were shown; None marks a purged one."""
        self.refresh()
        return self.known_shown()

    def known_shown(self) -> dict[str, str | None]:
        """Give what `shown` gives, as of the last `refresh`."""
        inserted = self.insertions().values()
        receipts: dict[str, str | None] = {
            one.memory_id: None if one.purged else "receipt"
            for one in inserted
            if one.memory_id and (one.receipt or one.purged)
        }
        return {**receipts, **self._all("shown")}

    def gone(self) -> frozenset[str]:
        """Name the memories that were shown and have been purged since."""
        shown = self.known_shown()
        return frozenset(memory_id for memory_id, reason in shown.items() if reason is None)

    def shown_by_tools(self) -> frozenset[str]:
        """Name the memories that stand in the conversation otherwise than in a block."""
        shown = self.known_shown()
        return frozenset(k for k, reason in shown.items() if reason not in (None, INJECTED))

    def note_read(self, memory_id: str) -> None:
        """Note that a memory's body was read or passed on."""
        if memory_id not in self._all("read"):
            self._set("read", memory_id, "1")

    def was_read(self) -> frozenset[str]:
        """Name the memories whose bodies were read."""
        return frozenset(self._all("read"))

    # Blocks

    def store_block(self, block: Block, lines: Sequence[str], sent: Sent) -> bool:
        """Make a block final, with its memories held, shown and read.

        Args:
            block: The block.
            lines: What it says, in order.
            sent: The history that it is sent with.

        Returns:
            Whether it was stored: False where another took its number first.
        """
        scope = prompts.blocks_scope(self._name)
        number, value = str(block.number), prompts.stored_block(block)
        items: list[dict[str, Any]] = [{"scope": scope, "key": number, "value": value}]
        for place, (shown, line) in enumerate(zip(block.shown, lines, strict=True)):
            items.append(self._item("shown", shown.memory_id, INJECTED, shown.memory_id))
            items.append(self._item("read", shown.memory_id, "1"))
            if shown.reason == "found":
                items.append(self._item("line", f"{number}:{place}", line, shown.memory_id))
        (first, *_) = self._write([*items, *self._sent_items(sent)])
        self.refresh()
        return first

    def lines(self) -> dict[tuple[int, int], str | None]:
        """Read what was found, by block and place; None where it was purged."""
        named = ((key.split(":"), value) for key, value in self._all("line").items())
        return {(int(number), int(place)): value for (number, place), value in named}

    def note_sent(self, sent: Sent) -> None:
        """Note that a history is sent, and that memories were searched for what it asks."""
        if items := self._sent_items(sent):
            self._space.decide_many(items, only_new=True, durable=False)
            for item in items:
                what, _, rest = item["key"].partition(":")
                self._known.setdefault(what, {}).setdefault(rest, item["value"])

    def _sent_items(self, sent: Sent) -> list[dict[str, Any]]:
        value = written(sent, self._space.memory.now())
        named = (("sent", sent.history, value), ("asked", sent.asked, "1"))
        return [
            self._item(what, key, value)
            for what, key, value in named
            if key and key not in self._all(what)
        ]

    def sent(self) -> dict[str, int]:
        """Read how many blocks there were when a history was first sent, by its digest."""
        return {key: one.blocks for key, one in self.histories().items()}

    def histories(self) -> dict[str, SentAt]:
        """Read what was sent, by its digest, in the order of the first time."""
        return {key: read(value) for key, value in self._all("sent").items() if value}

    def was_asked(self, asked: str) -> bool:
        """Tell whether memories were searched for a message of the user."""
        return asked in self._all("asked")

    # Outputs

    def expanded(self, key: str, written: Any) -> None:
        """Keep the provider's own form of an output that was expanded."""
        self._set("written", key, json.dumps(written))

    def written(self) -> dict[str, Any]:
        """Read the provider's own forms, by the key of the expanded one."""
        return {k: json.loads(v) for k, v in self._all("written").items() if v is not None}

    def refuse(self, key: str, told: str) -> None:
        """Keep what the model must be told with the result of a call."""
        self._set("refused", key, told)

    def refusals(self) -> dict[str, str]:
        """Read what the model must be told, by the key of the call."""
        return {k: v for k, v in self._all("refused").items() if v is not None}

    def note_own(self, key: str, tool: str) -> None:
        """Keep that a result is our own answer, to a call of some tool."""
        self._set("own", key, tool)

    def own(self) -> frozenset[str]:
        """Read the keys of our own answers."""
        return frozenset(self._all("own"))

    # Hidden rounds

    def hide(self, key: str, hidden: Hidden) -> None:
        """Keep the rounds around a visible turn; of answers, each piece with its memory."""
        with self.together():
            self._hide(key, hidden)

    def _hide(self, key: str, hidden: Hidden) -> None:
        rounds = [*hidden.before, *([hidden.cut] if hidden.cut else [])]
        listed = [
            {
                "turn": answered.turn,
                "answers": {
                    call_id: self._keep_answer(f"{key}/{number}/{place}", pieces)
                    for place, (call_id, pieces) in enumerate(answered.pieces.items())
                },
            }
            for number, answered in enumerate(rounds)
        ]
        value = {"rounds": listed, "cut": hidden.cut is not None, "response": hidden.response_id}
        self._set("hidden", key, json.dumps(value))

    def _keep_answer(self, key: str, pieces: Sequence[Piece]) -> str:
        for number, piece in enumerate(pieces):
            fields = {"text": piece.text, "memory_id": piece.memory_id}
            self._set("answer", f"{key}/{number}", json.dumps(fields), piece.memory_id)
        return f"{key}:{len(pieces)}"

    def hidden(self) -> dict[str, Hidden]:
        """Read the rounds that the host does not see, by the key of the visible turn."""
        stored = self._all("hidden")
        answers = self._all("answer") if stored else {}
        return {k: _hidden(json.loads(v), answers) for k, v in stored.items() if v is not None}

    # Accounts

    def audit(self, fields: Mapping[str, Any]) -> None:
        """Note what was passed by reference."""
        self._append("audit", fields)

    def audited(self) -> list[dict[str, Any]]:
        """Read what was passed by reference, in order."""
        return list(self._list("audit"))

    def log(self, event: str, memory_id: str) -> None:
        """Note an event once for a memory."""
        key = f"{event}:{memory_id}"
        if key not in self._all("log"):
            self._set("log", key, json.dumps({"event": event, "memory_id": memory_id}))

    def log_claim(self, memory_id: str) -> None:
        """Note a claim about a memory that was not read; each one counts."""
        self._append("claim", {"memory_id": memory_id})

    def claims(self) -> list[str]:
        """Name the memories of which something was claimed unread, once for each claim."""
        return [fields["memory_id"] for fields in self._list("claim")]

    def logged(self, event: str) -> list[str]:
        """Name the memories of an event."""
        return [f["memory_id"] for f in self._list("log") if f["event"] == event]


def _fields(inserted: Inserted) -> str:
    names = ("text", "spans", "receipt", "folds")
    return json.dumps({name: getattr(inserted, name) for name in names})


def _hidden(fields: Mapping[str, Any], answers: Mapping[str, str | None]) -> Hidden:
    rounds = [
        Answered(
            turn=tuple(listed["turn"]),
            pieces={call: _answer(key, answers) for call, key in listed["answers"].items()},
        )
        for listed in fields["rounds"]
    ]
    cut = rounds.pop() if fields["cut"] else None
    return Hidden(before=tuple(rounds), cut=cut, response_id=fields.get("response"))


def _answer(key: str, answers: Mapping[str, str | None]) -> list[Piece]:
    name, _, count = key.rpartition(":")
    found = (answers.get(f"{name}/{number}") for number in range(int(count)))
    return [Piece(**json.loads(v)) if v is not None else Piece(text=_WITHOUT_BODY) for v in found]
