"""The five tools on a namespace: what each does, and what it answers.

Writes answer with a receipt. Bodies are in the answers of the two reads only, fenced as data,
each under a budget that says what it left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from zero_mem.controller.reading import MOST_BUDGET, READ_BUDGET, answer_read
from zero_mem.errors import InvalidInput, NotAllowed, NotFound, ZeroMemError
from zero_mem.handles import escape
from zero_mem.mcp import definitions
from zero_mem.mcp.arguments import carried, checked, named
from zero_mem.mcp.definitions import BY_NAME, Receipt
from zero_mem.operations.requests import DEFAULT_KIND
from zero_mem.policy.limits import limits_for
from zero_mem.policy.visibility import visibility_of
from zero_mem.space import Namespace
from zero_mem.text.fence import FENCE_CLOSING, FENCE_OPENING, escape_tags, fence
from zero_mem.text.tokens import tokenizer
from zero_mem.types import UNSET, Body, Json, MemoryReceipt, MemoryRecord

Arguments = Mapping[str, Any]
ENCODING: Final = "o200k"
"""What budgets are counted in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call gives: a text for the model, and a receipt as values where it wrote."""

    text: str
    receipt: Receipt | None = None
    is_error: bool = False


def call(space: Namespace, name: str, given: Arguments | None) -> Answer:
    """Run one call; what is wrong with it becomes its answer.

    Args:
        space: A namespace of a local store, or of one behind a server.
        name: One of `definitions.BY_NAME`.
        given: The arguments as the client sent them.
    """
    try:
        return _CALLS[name](space, checked(BY_NAME[name], given))
    except ZeroMemError as error:
        return refused(error)


def refused(error: ZeroMemError) -> Answer:
    """Say an error as a tool's answer: its type, what was wrong, what to do."""
    text = f"{type(error).__name__}: {escape(str(error))}{_advice(error)}"
    return Answer(text=carried(text), is_error=True)


def _advice(error: ZeroMemError) -> str:
    if isinstance(error, NotFound):
        return f". It cannot be read; {definitions.SEARCH} finds what is there"
    return ""


def receipt_values(receipt: MemoryReceipt) -> Receipt:
    """Give a receipt as structured output."""
    return Receipt(
        receipt=receipt.to_context(),
        memory_id=receipt.memory_id,
        operation=receipt.operation,
        version=receipt.version,
        flags=sorted(receipt.flags),
    )


def is_pinned(settings: str, record: MemoryRecord) -> bool:
    """Tell whether every prompt shows a record, which its user has seen to."""
    limits = limits_for(settings, record.form, record.kind)
    return visibility_of(record, limits) == "pinned"


def _written(receipt: MemoryReceipt) -> Answer:
    return Answer(text=receipt.to_context(), receipt=receipt_values(receipt))


def _save(space: Namespace, given: Arguments) -> Answer:
    kind, key = given.get("kind"), given.get("key")
    if key is not None:
        for record in space.list({"kind": kind or DEFAULT_KIND, "key": key}, limit=1):
            _check_free(space, record)
    receipt = space.save(
        _body(given),
        kind=kind,
        key=key,
        tags=given.get("tags", ()),
        expires_in=given.get("expires_in", UNSET),
        source="model",
    )
    return _written(receipt)


def _update(space: Namespace, given: Arguments) -> Answer:
    memory_id = _whole(given["id"])
    _check_free(space, space.get(memory_id))
    if len(given.keys() - {"id", "if_version", "as_json"}) == 0:
        raise InvalidInput("name what changes: text, tags or expires_in")
    has_body = "text" in given
    receipt = space.update(
        memory_id,
        _body(given) if has_body else UNSET,
        tags=given.get("tags", UNSET),
        expires_in=given.get("expires_in", UNSET),
        source="model" if has_body else None,
        if_version=given.get("if_version"),
    )
    return _written(receipt)


def _delete(space: Namespace, given: Arguments) -> Answer:
    memory_id = _whole(given["id"])
    _check_free(space, space.get(memory_id))
    ending = space.archive if given.get("archive") else space.delete
    return _written(ending(memory_id))


def _search(space: Namespace, given: Arguments) -> Answer:
    budget = _budget(given)
    room = _room(budget)
    while True:
        found = space.recall(given["query"], budget=room)
        notes = [f"({found.left_out})"] if found.left_out else []
        text = fence([found.text, *notes]) if found.items else " ".join(notes)
        over = tokenizer(ENCODING).count(text) - budget
        if over <= 0 or not found.items:
            break
        room = max(1, room - over)  # the note is within the budget too
    space.mark_used([item.memory_id for item in found.items])
    return Answer(text=carried(text) or "(nothing found)")


def _read(space: Namespace, given: Arguments) -> Answer:
    reference = named(given["id"])
    choice = dict(given) | {"budget": _room(_budget(given))}
    if reference.pointer is not None:
        choice.setdefault("pointer", reference.pointer)
    record = space.get(reference.memory_id)
    text = answer_read(record.memory_id, record.content, choice, tokenizer=tokenizer(ENCODING))
    space.mark_used([record.memory_id])
    return Answer(text=carried(fence([escape_tags(text)])))


_CALLS: Final[Mapping[str, Callable[[Namespace, Arguments], Answer]]] = {
    definitions.SAVE: _save,
    definitions.SEARCH: _search,
    definitions.READ: _read,
    definitions.UPDATE: _update,
    definitions.DELETE: _delete,
}


def _body(given: Arguments) -> Body:
    text: str = given["text"]
    if not given.get("as_json"):
        return text
    try:
        return Json(json.loads(text))
    except (ValueError, RecursionError):
        raise InvalidInput(
            "as_json says that text is JSON, and it is not; leave as_json out"
        ) from None


def _whole(text: str) -> str:
    reference = named(text)
    if reference.pointer:
        raise InvalidInput(f"a part can't be changed; give [memo:{reference.memory_id}]")
    return reference.memory_id


def _check_free(space: Namespace, record: MemoryRecord) -> None:
    """Refuse to change what a person has put into every prompt: a model's text may be another's."""
    if is_pinned(space.settings(), record):
        raise NotAllowed("what is pinned can only be changed by who pinned it")


def _budget(given: Arguments) -> int:
    budget = int(given.get("budget", READ_BUDGET))
    if budget < 1:
        raise InvalidInput("budget is a whole number from 1")
    return min(budget, MOST_BUDGET)


def _room(budget: int) -> int:
    """Give the tokens that a budget leaves within the fence."""
    around = tokenizer(ENCODING).count(f"{FENCE_OPENING}\n\n{FENCE_CLOSING}")
    return max(1, budget - around)
