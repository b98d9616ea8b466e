"""Which conversations there are, and what each took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from zero_mem.conversation import persisted, turns
from zero_mem.conversation.persisted import Persisted
from zero_mem.conversation.sequence import prompts_of
from zero_mem.conversation.turns import Turns
from zero_mem.ledger.entries import LedgerEntry
from zero_mem.ledger.prices import DEFAULT_TABLE, PriceTable
from zero_mem.ledger.reading import overview
from zero_mem.memory import Memory
from zero_mem.space import Namespace
from zero_mem.types import Path

_SCOPES: Final = (persisted.SCOPE, turns.SCOPE)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One conversation.

    Attributes:
        namespace: Where its decisions, or only its ledger, are kept.
        name: Its name there; a proxy's ledger has names of its own.
        last: When the newest prompt was sent; None where that was not kept.
        entry: What its calls took; None where nobody counted them.
        prompts: How many prompts were sent; `None` in a list that was not asked for details.
        results: How many results were decided.
        phantoms: How often something was claimed of a memory that was not read.
    """

    namespace: Path
    name: str
    last: datetime | None
    entry: LedgerEntry | None
    prompts: int | None = None
    results: int = 0
    phantoms: int = 0


def conversation_names(space: Namespace) -> list[str]:
    """Name the conversations that prompts were prepared or built for, as they began."""
    found = (
        scope.removeprefix(prefix)
        for scope in space.scopes()
        for prefix in _SCOPES
        if scope.startswith(prefix)
    )
    return list(dict.fromkeys(found))


def conversations(
    memory: Memory, prefix: Path = (), *, prices: PriceTable = DEFAULT_TABLE
) -> list[Conversation]:
    """List the conversations at and below a namespace, the newest first; nothing is written.

    Those without a time come last. `detailed` tells more of one.

    Args:
        memory: The store.
        prefix: The namespace; all that can be read by default.
        prices: Prices what was not priced when it was entered.
    """
    found = [
        one
        for path in memory.subtree(*prefix).namespaces()
        for one in _of(memory.namespace(*path), prices)
    ]
    return sorted(found, key=lambda one: one.last or _NEVER, reverse=True)


def _of(space: Namespace, prices: PriceTable) -> Iterator[Conversation]:
    entries = {entry.conversation: entry for entry in overview(space, prices=prices).conversations}
    for name in dict.fromkeys([*conversation_names(space), *entries]):
        entry = entries.get(name)
        if entry is not None and entry.last:
            last: datetime | None = datetime.fromtimestamp(entry.last, UTC)
        else:
            last = _last(space, name)
        yield Conversation(namespace=space.path, name=name, last=last, entry=entry)


def _last(space: Namespace, name: str) -> datetime | None:
    """Tell when a conversation's newest prompt was sent, without counting its prompts."""
    built = Turns(space, name).every()
    if built:
        return built[-1].at
    decided = Persisted(space, name)
    decided.refresh()
    return max((one.at for one in decided.histories().values() if one.at), default=None)


def detailed(memory: Memory, one: Conversation) -> Conversation:
    """Give a conversation of the list with its prompts, results and claims counted."""
    space = memory.namespace(*one.namespace)
    decided = Persisted(space, one.name)
    _, sent = prompts_of(space, decided)
    results = sum(len(each.history.inserts) for each in sent)
    return replace(one, prompts=len(sent), results=results, phantoms=len(decided.entries("claim")))
