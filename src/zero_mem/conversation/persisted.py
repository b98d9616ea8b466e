"""What a conversation has decided, kept in the store so that every replay is the same.

| scope | key | value |
|---|---|---|
| `result` | the result | the memory that holds it |
| `insert` | the result | what was inserted in its place; goes with the memory when it is purged |
| `shown` | a memory | why its handle stands in the conversation; goes with the memory |
| `read` | a memory | that its body was read |
| `written` | an expanded output | the provider's own form of it |
| `refused` | a call | what the model must be told with its result: it ran with an open handle |
| `own` | a call id, or one with an answer | the tool whose call was answered here |
| `hidden`, `answer` | a turn | rounds that the host does not see; answers go with their memory |
| `audit` | a number and its content | what was passed by reference |
| `log` | an event and its memory | purges that changed a prompt |
| `claim` | a number and its content | a memory of which something was said though it was not read |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zero_mem.controller.rounds import Answered, Hidden, Piece, content_key
from zero_mem.errors import InvalidInput, LimitReached, NotFound
from zero_mem.operations.requests import check_name
from zero_mem.space import Namespace

_LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """What stands in the place of a result.

    `memory_id` is "" where the store had no room for it. `text` is None where the result stands
    as it is; `spans` are stretches (start, end) of the text with their reasons; `purged` tells that
    the memory was erased, so nothing of it may stand there any more.
    """

    memory_id: str
    text: str | None = None
    spans: tuple[tuple[int, int, str], ...] = ()
    purged: bool = False


class Persisted:
    """The decisions of one conversation in one namespace."""

    def __init__(self, space: Namespace, conversation: str) -> None:
        self._space = space
        self._name = check_name(conversation, "conversation", longest=_LONGEST)

    @property
    def owner(self) -> str:
        """The owner of the conversation's holds."""
        return f"conversation:{self._name}"

    def _scope(self, what: str) -> str:
        return f"controller.{what}:{self._name}"

    def _all(self, what: str) -> dict[str, str | None]:
        return self._space.decisions(self._scope(what))

    def _get(self, what: str, key: str) -> str | None:
        return self._space.decision(self._scope(what), key)

    def _set(self, what: str, key: str, value: str, memory_id: str | None = None) -> None:
        self._space.decide(self._scope(what), key, value, memory_id=memory_id)

    def _append(self, what: str, fields: Mapping[str, Any]) -> None:
        # Two writers at once may count the same number; their entries differ.
        number = len(self._all(what))
        self._set(what, f"{number}:{content_key(fields)}", json.dumps(fields))

    def _list(self, what: str) -> Iterator[dict[str, Any]]:
        for value in self._all(what).values():
            if value is not None:
                yield json.loads(value)

    # Results

    def insertions(self) -> dict[str, Inserted]:
        """Read what stands in the place of each result, by the result's key."""
        texts = self._all("insert")
        return {
            key: _inserted(memory_id, texts.get(key))
            for key, memory_id in self._all("result").items()
            if memory_id is not None and key in texts
        }

    def save_result(self, key: str, text: str, *, tool: str) -> str | None:
        """Save a result once, held for the conversation.

        Returns:
            The memory's id; "" where the store has no room and refuses, which is final too;
            None where there is nothing that a store can keep.
        """
        known = self._get("result", key)
        if known is not None:
            return known
        try:
            receipt = self._space.save(
                text,
                kind="tool_result",
                source="tool",
                metadata={"tool": tool} if tool else None,
                session=self._name,
                hold=self.owner,
                idempotency_key=f"{self._scope('result')}:{key}",
            )
        except InvalidInput:
            return None
        except LimitReached:
            self._set("result", key, "")
            return ""
        self._set("result", key, receipt.memory_id)
        return receipt.memory_id

    def insert(self, key: str, inserted: Inserted) -> None:
        """Make what stands in the place of a result final."""
        value = json.dumps({"text": inserted.text, "spans": inserted.spans})
        if self._get("result", key) is None:
            self._set("result", key, inserted.memory_id)
        try:
            self._set("insert", key, value, inserted.memory_id or None)
        except NotFound:  # it ended between the save and now
            self._set("insert", key, value)

    # Handles

    def show(self, memory_id: str, reason: str) -> None:
        """Note that a memory's handle stands in the conversation."""
        if self._get("shown", memory_id) is None:
            self._set("shown", memory_id, reason, memory_id)

    def shown(self) -> dict[str, str | None]:
        """Read the memories whose handles were shown; None marks a purged one."""
        return self._all("shown")

    def note_read(self, memory_id: str) -> None:
        """Note that a memory's body was read or passed on."""
        if self._get("read", memory_id) is None:
            self._set("read", memory_id, "1")

    def was_read(self) -> frozenset[str]:
        """Name the memories whose bodies were read."""
        return frozenset(self._all("read"))

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
            try:
                self._set("answer", f"{key}/{number}", json.dumps(fields), piece.memory_id)
            except NotFound:  # the call was to forget it
                self._set("answer", f"{key}/{number}", json.dumps(fields))
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
        if self._get("log", key) is None:
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


def _inserted(memory_id: str, value: str | None) -> Inserted:
    if value is None:
        return Inserted(memory_id=memory_id, purged=True)
    fields = json.loads(value)
    spans = tuple((start, end, reason) for start, end, reason in fields["spans"])
    return Inserted(memory_id=memory_id, text=fields["text"], spans=spans)


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
    return [Piece(**json.loads(v)) if v is not None else Piece(text="(purged)") for v in found]
